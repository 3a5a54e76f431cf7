"""One pass of a network: what it may be given, and a text read from its first token. Engines and checks share it."""

import numpy as np

from htfi.decoding.kv import HIDDEN
from htfi.decoding.ports import Floats, Ids, Network, NetworkShape, Pass
from htfi.domain.errors import InvalidInput, ShapeMismatch


def check_pass(
    of: NetworkShape, ids: Ids, positions: Ids, mask: Floats, keys: Floats, values: Floats
) -> tuple[int, int]:
    """Rows and new positions of a pass that fits the port.

    Raises: ShapeMismatch; InvalidInput, for an id or a position out of range.
    """
    if ids.ndim != 2 or ids.size == 0:
        raise ShapeMismatch(
            f"ids have shape {list(ids.shape)}: give [rows, new positions], at least one each"
        )
    num_rows, num_new = ids.shape
    past = keys.shape[3] if keys.ndim == 5 else 0
    kept = (of.num_layers, num_rows, of.num_kv_heads, past, of.head_dim)
    wanted = (
        ("ids", ids, (num_rows, num_new), np.int64),
        ("positions", positions, (num_rows, num_new), np.int64),
        ("mask", mask, (num_rows, num_new, past + num_new), np.float32),
        ("keys", keys, kept, np.float32),
        ("values", values, kept, np.float32),
    )
    for name, array, shape, dtype in wanted:
        if array.shape != shape or array.dtype != dtype:
            raise ShapeMismatch(
                f"{name} are {array.dtype} {list(array.shape)} where {np.dtype(dtype)} {list(shape)} is due"
            )
    if ids.min() < 0 or ids.max() >= of.vocab_size:
        raise InvalidInput(
            f"token ids must lie in 0 to {of.vocab_size - 1}: is it the model's own tokenizer?"
        )
    if positions.min() < 0 or positions.max() >= of.max_positions:
        raise InvalidInput(f"positions must lie in 0 to {of.max_positions - 1}: the text is too long")
    return num_rows, num_new


def read_whole(network: Network, ids: Ids) -> Pass:
    """One causal pass over texts [B, T] from their first token, with nothing before."""
    of = network.shape
    num_rows, num_new = ids.shape
    empty = np.zeros((of.num_layers, num_rows, of.num_kv_heads, 0, of.head_dim), np.float32)
    causal = np.triu(np.full((num_new, num_new), HIDDEN, np.float32), 1)
    positions: Ids = np.tile(np.arange(num_new, dtype=np.int64), (num_rows, 1))
    return network.forward(ids, positions, np.tile(causal, (num_rows, 1, 1)), empty, empty)
