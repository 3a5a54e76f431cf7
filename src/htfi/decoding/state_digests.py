"""Digests of the states by which a model came to an answer: its last hidden states and its last layer's attention.

They are of one pass over prompt and answer, alone, so they depend on no batch, draft or cut, and the same model on the
same kind of engine computes them again to the bit.
"""

from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from htfi.decoding.ports import Floats, StatesNetwork
from htfi.domain.generation_trace import StateDigests


def state_digests(network: StatesNetwork, prompt: Sequence[int], tokens: Sequence[int]) -> StateDigests:
    """The digests of the positions before each token of an answer. Raises: InvalidInput, DependencyUnavailable."""
    found = network.states(np.array([*prompt, *tokens[:-1]], np.int64))
    before = slice(len(prompt) - 1, len(prompt) - 1 + len(tokens))
    return StateDigests(_digest(found.hidden[before]), _digest(found.attention[:, before].swapaxes(0, 1)))


def _digest(values: Floats) -> str:
    """Minus zero counts as zero."""
    return sha256(np.ascontiguousarray(values + np.float32(0.0), "<f4").tobytes()).hexdigest()
