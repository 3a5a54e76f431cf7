"""The measure of central banks' decisions: its truth, its headlines and its count."""

from datetime import date
from pathlib import Path

from htfi.narrative.facts.policy.action import PolicyMove
from htfi_eval.eval.reading.notations import decision_headlines, prospect_headlines
from htfi_eval.eval.reading.policy import PolicyPart, describe, evaluate_policy
from htfi_eval.eval.reading.policy_truth import RateDecision, fed_decision


def test_target_of_the_federal_reserve_is_known_by_date():
    raised = fed_decision(date(2022, 6, 15))
    assert (raised.move, raised.change_bp, raised.low, raised.level) == (PolicyMove.RAISE, 75, 1.5, 1.75)
    held = fed_decision(date(2004, 3, 16))
    assert (held.move, held.low, held.level) == (PolicyMove.HOLD, 1.0, 1.0)
    assert fed_decision(date(2008, 12, 16)).change_bp == -75


def test_headlines_state_the_decision_in_many_notations():
    cut = RateDecision("fed", date(2024, 9, 18), 5.0, 5.5)
    found = {one.text: one for one in decision_headlines(cut)}
    assert "Fed cuts rates by 50 bps to 4.75-5.00%" in found
    assert "FED LOWERS FEDERAL FUNDS TARGET RANGE 50 BPS TO 4.75%-5.00%" in found
    assert "Federal Reserve cuts federal funds target range to 4-3/4 to 5 pct, vote 6-3" in found
    held = [one.text for one in decision_headlines(RateDecision("snb", date(2019, 9, 19), -0.75, -0.75))]
    assert "SNB holds rates at -0.75%" in held
    assert min(len(found), len(held), len(prospect_headlines(cut))) >= 12
    assert not any("[" in text or "{" in text for text in (*found, *held, *prospect_headlines(cut)))


def test_missing_data_gives_nothing(tmp_path: Path):
    assert evaluate_policy(tmp_path) is None


def test_part_counts_by_group():
    part = PolicyPart("headlines")
    part.count(True, ("fed", "cut 1"), "a", None)
    part.count(False, ("fed",), "b", None)
    assert list(describe(part)) == ["headlines: 1 of 2 right (50.00%)", "  cut 1: 1 of 1", "  fed: 1 of 2"]
    assert part.wrong == [("b", None)]
