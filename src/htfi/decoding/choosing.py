"""The choice of a token in C, with the bits of the choice in Python; sampling calls it where it was compiled."""

import numpy as np

from htfi.decoding.noise import BOUNDS, Keys
from htfi.decoding.ports import Floats, Ids

try:
    from htfi.decoding import choosing_core as core
except ImportError:  # the package was built without a C compiler
    core = None
else:
    core.use_bounds(*BOUNDS)


def available() -> bool:
    """Whether the choice in C was compiled."""
    return core is not None


def compiled_choice(
    logits: Floats, ids: Ids, counters: Keys, temperature: float, row_keys: Keys
) -> Ids | None:
    """As sampling's choose without top_k and top_p: one token a row; None where it must be done in Python.

    Shapes: logits [N, V], ids (rising) and their counters [C], keys [N].
    """
    if core is None:
        return None
    tokens: Ids = np.empty(len(logits), np.int64)
    return tokens if core.choose(logits, ids, counters, row_keys, tokens, temperature) else None
