"""A pass over a few of many rows reads those alone, and nothing else of what they say changes."""

import numpy as np
import pytest

from htfi.decoding.config import DecodingConfig
from htfi.decoding.sessions import KVSessions
from tiny_network import TinyNetwork


@pytest.mark.parametrize("num_asked", [1, 3, 6, 7, 8])
@pytest.mark.parametrize("parents", [[-1, 0, 1], [-1, -1, 0]])
def test_few_of_many_rows_are_read_alone_with_the_same_logits(num_asked: int, parents: list[int]):
    network = TinyNetwork(23)
    sessions = KVSessions(network, DecodingConfig(batch_bytes=2**22, block_tokens=4))
    prompts = [[place, 2, 3, *range(place)] for place in range(8)]
    rows = [sessions.open(prompt, 64).row for prompt in prompts]
    asked = rows[-num_asked:]
    before = network.num_positions
    logits = sessions.extend(asked, [[4, 5, 6]] * num_asked, [parents] * num_asked)
    assert network.num_positions - before == 3 * (num_asked if num_asked <= 6 else 8)
    for prompt, row, after in zip(prompts[-num_asked:], asked, logits, strict=True):
        alone = KVSessions(TinyNetwork(23), DecodingConfig(batch_bytes=2**22, block_tokens=4))
        own = alone.open(prompt, 64).row
        np.testing.assert_allclose(after, alone.extend([own], [[4, 5, 6]], [parents])[0], atol=1e-5)
        assert row.length == own.length
        np.testing.assert_allclose(
            sessions.arena.keys[:, row.slot, :, : row.length],
            alone.arena.keys[:, own.slot, :, : own.length],
            atol=1e-5,
        )
