"""Connections of a tenant over its quota are read again one after another, at the quota's rate."""

from htfi.domain.time import NS_PER_MS, NS_PER_S
from htfi.tenancy.refusal_pace import MAX_PAUSE_NS, MIN_PAUSE_NS, RefusalPace

EVERY_NS = 10 * NS_PER_MS
NOW_NS = 1_700_000_000 * NS_PER_S


def test_connections_are_read_again_one_after_another() -> None:
    pace = RefusalPace()
    assert [pace.pause_ns("a", EVERY_NS, NOW_NS) for _ in range(3)] == [EVERY_NS, 2 * EVERY_NS, 3 * EVERY_NS]
    assert pace.pause_ns("b", EVERY_NS, NOW_NS) == EVERY_NS
    assert pace.pause_ns("a", EVERY_NS, NOW_NS + 2 * EVERY_NS) == 2 * EVERY_NS
    assert pace.pause_ns("a", EVERY_NS, NOW_NS + NS_PER_S) == EVERY_NS


def test_no_pause_is_longer_than_a_second_however_many_connections_wait() -> None:
    pace = RefusalPace()
    pauses = [pace.pause_ns("a", EVERY_NS, NOW_NS) for _ in range(1_000)]
    assert max(pauses) == pauses[-1] == MAX_PAUSE_NS
    assert pace.pause_ns("a", EVERY_NS, NOW_NS + NS_PER_S) == EVERY_NS
    assert pace.pause_ns("b", 3_600 * NS_PER_S, NOW_NS) == MAX_PAUSE_NS


def test_a_quota_that_lets_many_through_still_pauses() -> None:
    assert RefusalPace().pause_ns("a", 1, NOW_NS) == MIN_PAUSE_NS


def test_of_a_flood_little_more_is_read_than_the_quota_lets_through() -> None:
    """80 connections that ask on at once: each admitted request is followed by one that is refused."""
    pace, num_read, seconds = RefusalPace(), 0, 10
    due_ns = [NOW_NS] * 80
    token_ns = NOW_NS
    while (now_ns := min(due_ns)) < NOW_NS + seconds * NS_PER_S:
        which = due_ns.index(now_ns)
        num_read += 1
        if token_ns <= now_ns:
            token_ns = max(token_ns, now_ns - EVERY_NS) + EVERY_NS
            due_ns[which] = now_ns + NS_PER_MS
        else:
            due_ns[which] = now_ns + pace.pause_ns("a", EVERY_NS, now_ns)
    assert num_read <= 2.1 * seconds * NS_PER_S / EVERY_NS + len(due_ns)
