"""32 edges on one cloud, in simulated time at the shipped pair's pace: how much more they get than one, how evenly."""

import numpy as np
import pytest

from htfi.decoding.link.frames import DraftMode
from server_traffic import World, asked
from server_world import truth


@pytest.mark.parametrize("lead", [DraftMode.PLAIN, pytest.param(DraftMode.PIPELINED, marks=pytest.mark.slow)])
def test_32_edges_get_four_times_the_tokens_of_one_and_all_much_the_same(lead: DraftMode):
    one = World(1, 8, lead)
    many = World(32, 8, lead)
    alone, together = one.run(), many.run()
    p95 = [float(np.quantile(waits, 0.95)) for waits in many.waits_ms.values()]
    assert together >= 4.0 * alone, (alone, together)
    assert max(p95) <= 2.0 * float(np.median(p95)), sorted(p95)
    for index, edge in enumerate(many.edges[:4]):
        assert tuple(edge.done[3]) == truth(asked(index, 3)).tokens
