"""Simulated order flow: sessions are possible and repeatable, abusers are found, honest parties are not."""

import itertools

import pytest

from htfi.governance.regulation.catalogue import CHECKS
from htfi.governance.regulation.checks.surveillance import surveillance_checks
from htfi.governance.regulation.findings import CheckOutcome
from htfi.governance.regulation.monitor import run_checks
from htfi_train.simulation.order_flow.abusive import ABUSER, STRENGTHS, AbusePattern, add_abuser
from htfi_train.simulation.order_flow.honest import add_honest_parties
from htfi_train.simulation.order_flow.session import SessionSpec, TradingSession

SEED = 5


def session_events(pattern: AbusePattern | None = None, seed: int = SEED, length_s: float = 2_400.0):
    session = TradingSession(SessionSpec(seed, length_s=length_s))
    add_honest_parties(session)
    if pattern is not None:
        add_abuser(session, pattern, STRENGTHS[-1])
    return session.run()


def test_a_session_is_possible_ordered_and_repeatable() -> None:
    events = session_events(length_s=1_200.0)
    assert len(events) > 2_000
    assert events == session_events(length_s=1_200.0)
    assert events != session_events(seed=SEED + 1, length_s=1_200.0)
    assert all(one.at_ns <= two.at_ns for one, two in itertools.pairwise(events))
    wanted = {"lifecycle", "attribution", "duplicate-orders"}
    results, _ = run_checks(events, [one for one in CHECKS if one.id in wanted])
    assert {one.id: one.outcome for one in results} == dict.fromkeys(wanted, CheckOutcome.NOTHING_FOUND)


def test_honest_parties_are_not_found() -> None:
    results, _ = run_checks(session_events(), surveillance_checks())
    assert [one.findings for one in results] == [[]] * 6
    assert all(one.num_judged > 0 for one in results)


@pytest.mark.parametrize("pattern", AbusePattern)
def test_a_strong_abuser_is_found_by_the_check_of_its_pattern(pattern) -> None:
    checks = [one for one in surveillance_checks() if one.id == pattern.value]
    (result,), _ = run_checks(session_events(pattern), checks)
    assert {one.where.party for one in result.findings} == {f"client:{ABUSER}"}
