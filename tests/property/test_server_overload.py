"""More requests than a cloud can answer, in simulated time: it says no early, and who is admitted is in time."""

import numpy as np
import pytest

from htfi.decoding.link import frames
from htfi.decoding.link.frames import DraftMode, PartFrame, RefusalReason
from server_traffic import World, asked
from server_world import truth

NUM_ASKED = 200


def storm(
    rate_hz: float, deadline_ms: int, seed: int
) -> tuple[dict[int, float], dict[int, float], World, float]:
    """Requests at random times: how long those answered took, those refused, and the seconds that passed."""
    dice = np.random.Generator(np.random.PCG64(seed))
    world = World(8, 0, DraftMode.PLAIN)
    world.events.clear()
    desk, time, edges = world.desk, world.time, world.edges
    began_s = time.now_s
    due_s = time.now_s + np.cumsum(dice.exponential(1.0 / rate_hz, NUM_ASKED))
    done: dict[int, float] = {}
    refused: dict[int, float] = {}
    handle = 0
    while len(done) + len(refused) < NUM_ASKED:
        while handle < NUM_ASKED and due_s[handle] <= time.now_s:
            edge = edges[handle % 8]
            opening = edge.opening(asked(handle % 8, handle), handle, deadline_ms=deadline_ms)
            for name, data in edge.parts.items():
                edge.say(PartFrame(name, 0, len(data), data))
            edge.parts.clear()
            edge.say(opening)
            handle += 1
        is_busy = desk.step()
        for stream, sealed in desk.outgoing():
            edge = next(edge for edge in edges if edge.stream == stream)
            edge.hear(frames.decode(frames.unseal(sealed)[1]))
            for of in edge.done:
                done.setdefault(of, 1e3 * (time.now_s - due_s[of]))
            for no in edge.refused():
                assert no.reason == RefusalReason.BUSY
                assert no.retry_ms > 0
                refused.setdefault(no.handle, 1e3 * (time.now_s - due_s[no.handle]))
        if not is_busy and handle < NUM_ASKED:
            time.now_s = max(time.now_s, float(due_s[handle]))
    return done, refused, world, time.now_s - began_s


def test_all_are_answered_in_time_where_there_is_room():
    done, refused, world, _ = storm(100.0, 150, seed=1)
    assert not refused
    assert max(done.values()) <= 150.0
    for handle in range(0, NUM_ASKED, 50):
        assert tuple(world.edges[handle % 8].done[handle]) == truth(asked(handle % 8, handle)).tokens


@pytest.mark.parametrize("deadline_ms", [150, pytest.param(400, marks=pytest.mark.slow)])
def test_three_times_too_many_are_refused_early_and_the_others_are_in_time(deadline_ms: int):
    done, refused, _, took_s = storm(600.0, deadline_ms, seed=1)
    in_time = sum(ms <= deadline_ms for ms in done.values())
    assert in_time >= 0.8 * len(done)
    assert in_time / took_s >= 120.0  # of some 180 a second that this pace allows
    assert np.mean(list(refused.values())) < 10.0
