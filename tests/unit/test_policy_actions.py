"""Central banks' decisions in headlines and statements: bank, move, size, level, votes, modality."""

from pathlib import Path

import pytest

from htfi.narrative.facts.policy.action import (
    PolicyAction,
    PolicyExpectation,
    PolicyInstrument,
    PolicyModality,
    PolicyMove,
)
from htfi.narrative.facts.policy.banks import bank_named
from htfi.narrative.facts.policy.decisions import find_policy_action
from htfi.narrative.facts.policy.votes import Dissent, Preference, find_vote

DATA = Path(__file__).parents[1] / "data/policy"


def rows(name: str) -> list[list[str]]:
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


def level_of(text: str) -> tuple[float, float]:
    """'2', '-0.25' or '4-4.25'."""
    low, found, high = text[1:].partition("-")
    low = text[0] + low
    return float(low), float(high if found else low)


def read(headline: str, body: str = "") -> PolicyAction:
    found = find_policy_action(headline, body)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "row",
    [*rows("headlines.tsv"), *rows("fresh.tsv"), *rows("last.tsv"), *rows("telegrams.tsv")],
    ids=lambda row: row[-1][:60],
)
def test_headline_is_read_with_its_bank_move_figures_and_modality(row: list[str]):
    bank, move, size, level, modality, headline = row
    if bank == "-":
        found = find_policy_action(headline)
        assert found is None or found.modality is not PolicyModality.DID
        return
    found = read(headline)
    assert (found.bank, found.move, found.modality) == (bank, PolicyMove(move), PolicyModality(modality))
    if size != "?":
        assert found.size_bp == int(size)
    if level != "?":
        assert (found.low, found.high) == pytest.approx(level_of(level))


@pytest.mark.parametrize("row", rows("statements.tsv"), ids=lambda row: row[-1][:60])
def test_statement_is_read_in_the_manner_of_each_bank(row: list[str]):
    bank, move, size, level, statement = row
    found = read("", statement)
    assert (found.bank, found.move, found.modality) == (bank, PolicyMove(move), PolicyModality.DID)
    if size != "?":
        assert found.size_bp == int(size)
    if level != "?":
        assert (found.low, found.high) == pytest.approx(level_of(level))


def test_statement_completes_a_headline():
    body = (
        "The Committee decided to lower the target range for the federal funds rate by 1/4 percentage point to "
        "3-1/2 to 3-3/4 percent. Voting against this action was Stephen I. Miran, who preferred to lower the target "
        "range by 1/2 percentage point."
    )
    found = read("Fed cuts rates", body)
    assert (found.size_bp, found.low, found.high) == (25, 3.5, 3.75)
    assert found.vote.dissents == (Dissent("Stephen I. Miran", Preference.CUT),)
    assert read("Federal Reserve issues FOMC statement", body).move is PolicyMove.CUT


def test_prospect_in_a_headline_is_done_where_the_statement_does_it():
    found = read(
        "Fed expected to hold rates",
        "The FOMC decided to raise its target for the federal funds rate to 5 percent.",
    )
    assert (found.move, found.modality) == (PolicyMove.RAISE, PolicyModality.DID)


def test_other_rates_are_no_policy_rate():
    assert read("Fed cuts discount rate to 5%").instrument is PolicyInstrument.LENDING
    assert read("PBOC cuts reserve requirement ratio by 50 bps").instrument is PolicyInstrument.RESERVES
    assert find_policy_action("U.S. jobless rate unchanged at 4.2%, Fed on watch") is None


@pytest.mark.parametrize(
    ("headline", "expectation"),
    [
        ("BoE holds rates at 4% as expected", PolicyExpectation.AS_EXPECTED),
        ("RBNZ cuts OCR by 50 bps, more than expected", PolicyExpectation.LARGER),
        ("ECB cuts rates by 10 bps, less than forecast", PolicyExpectation.SMALLER),
        ("Norges Bank unexpectedly cuts policy rate to 4.25%", PolicyExpectation.SURPRISE),
        ("BoC cuts rates to 2.5% vs 2.75% expected", PolicyExpectation.SURPRISE),
        ("BoC cuts rates to 2.5% vs 2.5% expected", PolicyExpectation.AS_EXPECTED),
        ("RBA holds cash rate at 3.6%", PolicyExpectation.UNKNOWN),
    ],
)
def test_comparison_with_expectations_is_read(headline: str, expectation: PolicyExpectation):
    assert read(headline).expectation is expectation


def test_votes_and_dissents_are_counted_by_name():
    vote = find_vote(
        "Voting for the monetary policy action were Jerome H. Powell, Chair; John C. Williams, Vice Chair; Michael "
        "S. Barr; and Lisa D. Cook. Voting against this action were Stephen I. Miran, who preferred to lower the "
        "target range for the federal funds rate by 1/2 percentage point at this meeting; and Austan D. Goolsbee and "
        "Jeffrey R. Schmid, who preferred no change to the target range for the federal funds rate at this meeting."
    )
    assert (vote.num_for, vote.num_against) == (4, 3)
    assert vote.dissents == (
        Dissent("Stephen I. Miran", Preference.CUT),
        Dissent("Austan D. Goolsbee", Preference.HOLD),
        Dissent("Jeffrey R. Schmid", Preference.HOLD),
    )


@pytest.mark.parametrize(
    ("text", "num_for", "num_against"),
    [
        ("BoE cuts Bank Rate to 4%, vote 5-4", 5, 4),
        ("the MPC voted by a majority of 7–2 to maintain Bank Rate", 7, 2),
        ("BOJ holds at 0.5% in 7-2 vote", 7, 2),
        ("RBI votes 4 to 2 to keep rates", 4, 2),
        ("The decision was unanimous.", None, 0),
        ("Fed holds at 5.25-5.50%", None, None),
        ("growth of 2-3 percent", None, None),
    ],
)
def test_count_of_a_vote_is_read_and_ranges_are_not(text: str, num_for: int | None, num_against: int | None):
    vote = find_vote(text)
    assert (vote.num_for, vote.num_against) == (num_for, num_against)


def test_older_dissent_states_its_preference_in_a_sentence_of_its_own():
    vote = find_vote(
        "Voting for the FOMC monetary policy action were: Alan Greenspan, Chairman; and Susan S. Bies.\n\n"
        "Voting against the action was Robert T. Parry. President Parry preferred a 50 basis point reduction in the "
        "target."
    )
    assert vote.dissents == (Dissent("Robert T. Parry", Preference.CUT),)
    assert (vote.num_for, vote.num_against) == (2, 1)


def test_minority_without_names_counts():
    vote = find_vote(
        "voted by a majority of 7-2 to maintain Bank Rate. Two members preferred to reduce Bank Rate."
    )
    assert vote.dissents == (Dissent("", Preference.CUT),) * 2


@pytest.mark.parametrize(
    ("text", "bank"),
    [
        ("The Governing Council decided that the interest rate on the main refinancing operations", "ecb"),
        ("The MPC agreed to hold the OCR", "rbnz"),
        ("The policy repo rate under the LAF", "rbi"),
        ("UK raises interest rates", "boe"),
        ("Nokia raises its outlook", ""),
    ],
)
def test_bank_is_known_by_what_only_it_sets(text: str, bank: str):
    assert bank_named(text) == bank


def test_text_of_any_kind_ends_without_an_action():
    for text in (
        "",
        " ",
        "\n\n",
        "%",
        "1/0 percent",
        "rate rate rate",
        "cut " * 400,
        "to 5-1/0 percent rates cut",
        "利率不变",
        "a.b." * 999,
    ):
        assert find_policy_action(text, text) is None


@pytest.mark.parametrize(
    ("text", "expectation", "move"),
    [
        ("ECB cuts deposit rate to minus 0.5%", PolicyExpectation.UNKNOWN, None),
        ("Fed cuts rates to 4.25%", PolicyExpectation.UNKNOWN, None),
        ("Fed cuts rates to 4.25%; economists expected 4.25%", PolicyExpectation.AS_EXPECTED, None),
        ("Bank of Canada holds rates, economists had expected a hike", PolicyExpectation.SURPRISE, PolicyMove.RAISE),
        ("Fed leaves rates unchanged; markets had priced in a cut", PolicyExpectation.SURPRISE, PolicyMove.CUT),
        ("Norges Bank cuts rates, defying forecasts of a pause", PolicyExpectation.SURPRISE, PolicyMove.HOLD),
    ],
)  # fmt: skip
def test_what_was_expected_of_a_decision(
    text: str, expectation: PolicyExpectation, move: PolicyMove | None
) -> None:
    action = find_policy_action(text)
    assert action is not None
    assert (action.expectation, action.expected_move) == (expectation, move)
