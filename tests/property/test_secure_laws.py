"""Laws of suspicion: more trouble never means less of it, it always ends, and a snapshot changes nothing."""

import json

from hypothesis import given
from hypothesis import strategies as st

from htfi.domain.events import SuspicionReset
from htfi.narrative.config import SUSPICION_HALF_LIFE_NS, SuspicionConfig
from htfi.narrative.sanitising.incidents import ScreeningIncident
from htfi.narrative.suspicion import SuspicionMonitor

NOW = 1_221_500_000 * 10**9
HOUR = 3_600 * 10**9
CONFIG = SuspicionConfig()

troubles = st.builds(
    ScreeningIncident,
    source=st.sampled_from(["blog", "wire", "tips"]),
    symbols=st.sampled_from([(), ("A",), ("B",), ("A", "B")]),
    rule=st.sampled_from(["pump", "burst", "injection.order", "impersonation"]),
    at_ns=st.just(NOW),
)
courses = st.lists(st.tuples(st.integers(0, 40 * HOUR), st.lists(troubles, max_size=4)), max_size=12)


def told(secure: SuspicionMonitor, now_ns: int) -> dict[str, bool]:
    active = secure.active_suspicions(now_ns)
    return {
        "A": bool(secure.suspicion("A", now_ns)),
        "B": bool(secure.suspicion("B", now_ns)),
        "other": bool(secure.suspicion("C", now_ns)),
        "blog": any(words.startswith("source blog ") for words in active),
        "tips": any(words.startswith("source tips ") for words in active),
    }


@given(course=courses, at=st.integers(0, 12), extra=st.lists(troubles, min_size=1, max_size=3))
def test_more_trouble_never_means_less_suspicion(
    course: list[tuple[int, list[ScreeningIncident]]], at: int, extra: list[ScreeningIncident]
) -> None:
    less, more, now_ns = SuspicionMonitor(), SuspicionMonitor(), NOW
    for turn, (wait_ns, found) in enumerate(course):
        now_ns += wait_ns
        less.observe(found, now_ns)
        more.observe([*found, *extra] if turn == at else found, now_ns)
        fewer, all_of = told(less, now_ns), told(more, now_ns)
        assert all(all_of[name] for name, on in fewer.items() if on)


@given(course=courses)
def test_it_ends_when_a_cool_down_has_passed_and_the_trouble_has_faded(
    course: list[tuple[int, list[ScreeningIncident]]],
) -> None:
    secure, now_ns = SuspicionMonitor(), NOW
    for wait_ns, found in course:
        now_ns += wait_ns
        secure.observe(found, now_ns)
    # four thresholds of trouble fade below off_at in at most five half-lives
    assert not any(told(secure, now_ns + CONFIG.cool_down_ns + 5 * SUSPICION_HALF_LIFE_NS).values())


@given(course=courses, cut=st.integers(0, 12), cleared=st.sampled_from(["A", ""]))
def test_a_snapshot_in_between_and_a_clearing_change_nothing_else(
    course: list[tuple[int, list[ScreeningIncident]]], cut: int, cleared: str
) -> None:
    through, taken_up, now_ns = SuspicionMonitor(), SuspicionMonitor(), NOW
    for turn, (wait_ns, found) in enumerate(course):
        now_ns += wait_ns
        if turn == cut:
            words = SuspicionReset(now_ns, now_ns, "people", 1, "Ada", "looked", cleared)
            assert through.reset(words) == taken_up.reset(words)
            again = SuspicionMonitor()
            again.restore(json.loads(json.dumps(taken_up.state())))
            taken_up = again
        through.observe(found, now_ns)
        taken_up.observe(found, now_ns)
        assert through.active_suspicions(now_ns) == taken_up.active_suspicions(now_ns)
    assert through.state() == taken_up.state()
