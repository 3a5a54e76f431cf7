"""What the facts of an item say about one asset, and when they say nothing."""

import pytest
from msgspec.structs import replace

from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.facts.extraction import extract_facts
from htfi.narrative.facts.naming import find_name
from htfi.narrative.facts.outcomes import KindOutcomes
from htfi.narrative.facts.reading import Silence, read_for, reading_record
from htfi.narrative.facts.record import EventKind, Modality, NewsFacts, Party, PartyRole, Tense

LINKER = EntityLinker({})


def facts(text: str, event: EventKind, tone: float = 0.0, **changes: object) -> NewsFacts:
    """The facts that code finds in a text, with what a network would say of it."""
    read = extract_facts(text, None, LINKER)
    neutral = round(1.0 - abs(tone), 3)
    known = replace(
        read, event=event, event_confidence=0.9, tone=tone, neutral=neutral, axis=tone, axis_neutral=neutral,
        relevant=0.99, modality_confidence=0.9, tense_confidence=0.9,
    )  # fmt: skip
    return replace(known, **changes)


def party(text: str, name: str, role: PartyRole, effect: float, *symbols: str) -> Party:
    start = text.index(name)
    return Party(name, start, start + len(name), role, 0.9, effect, symbols)


DEAL = "Amgen agrees to buy Horizon Therapeutics for $27.8 billion"


def deal() -> NewsFacts:
    parties = (
        party(DEAL, "Amgen", PartyRole.ACQUIRER, -0.1, "AMGN"),
        party(DEAL, "Horizon Therapeutics", PartyRole.TARGET, 0.9),
    )
    return facts(DEAL, EventKind.ACQUISITION, 0.8, parties=parties)


def test_a_target_gains_and_its_acquirer_hardly_moves() -> None:
    target = read_for(deal(), "HZNP", "Horizon Therapeutics")
    assert (target.direction, target.role, target.silence) == (1, PartyRole.TARGET, Silence.NONE)
    assert target.size_sigmas > 2.0
    acquirer = read_for(deal(), "AMGN", "Amgen")
    assert acquirer.role is PartyRole.ACQUIRER
    assert acquirer.direction == 0


def test_an_unsure_target_moves_as_any_party_of_the_deal() -> None:
    sure = read_for(deal(), "HZNP", "Horizon Therapeutics")
    unsure = replace(deal(), parties=tuple(replace(one, confidence=0.4) for one in deal().parties))
    found = read_for(unsure, "HZNP", "Horizon Therapeutics")
    assert (found.direction, found.role) == (sure.direction, PartyRole.TARGET)
    assert found.size_sigmas < sure.size_sigmas / 4.0


def test_a_plain_offer_is_good_for_its_target_where_the_text_does_not_say() -> None:
    text = "Danaher to buy Abcam for $5.7 billion"
    parties = (
        party(text, "Danaher", PartyRole.ACQUIRER, 0.0, "DHR"),
        party(text, "Abcam", PartyRole.TARGET, 0.1),
    )
    plain = facts(text, EventKind.ACQUISITION, 0.1, parties=parties)
    assert read_for(plain, "ABCM", "Abcam").direction == 1
    assert read_for(plain, "DHR", "Danaher").direction == 0
    for changes in ({"modality": Modality.DENIES}, {"tense": Tense.RECAP}, {"negated": True}):
        assert read_for(replace(plain, **changes), "ABCM", "Abcam").direction == 0
    blocked = "Danaher to buy Abcam: regulator blocks $5.7 billion deal"
    parties = (party(blocked, "Abcam", PartyRole.TARGET, -0.1),)
    undone = replace(plain, text=blocked, parties=parties, tone=-0.1)
    assert read_for(undone, "ABCM", "Abcam").direction == -1


def test_a_move_over_months_is_known() -> None:
    text = "Abcam shares have gained 40% this year"
    read = facts(text, EventKind.MARKET_MOVE, 0.9, parties=(party(text, "Abcam", PartyRole.SUBJECT, 0.9),))
    assert read_for(read, "ABCM", "Abcam").silence is Silence.RECAP


def test_events_of_small_economies_do_not_move_shares_elsewhere() -> None:
    text = "Unemployment jumps in Iceland"
    read = facts(text, EventKind.JOBS, -0.9, regions=("IS",))
    assert read_for(read, "GPS", "Gap").silence is Silence.OTHERS
    assert read_for(replace(read, regions=("US",)), "GPS", "Gap").silence is Silence.NONE


def test_a_countrys_rating_moves_its_index_and_no_others() -> None:
    text = "Moody's strips France of its Aa2 rating"
    parties = (
        party(text, "Moody's", PartyRole.RATER, 0.0),
        party(text, "France", PartyRole.RATED, -0.8),
    )
    read = facts(text, EventKind.CREDIT_RATING, -0.8, parties=parties)
    assert read_for(read, "CAC", "CAC 40").direction == -1
    assert read_for(read, "N225", "Nikkei 225").silence is Silence.OTHERS


def test_a_symbol_spelt_like_a_currency_is_the_company_that_is_named() -> None:
    text = "Nokia wins 5G contract in Brazil"
    read = facts(text, EventKind.DEAL, 0.8, parties=(party(text, "Nokia", PartyRole.WINNER, 0.8),))
    assert read_for(read, "NOK", "Nokia").asset == "equity"
    assert read_for(read, "NOK", "Norwegian krone").asset == "currency"


def test_other_firms_news_is_silence_however_it_is_tagged() -> None:
    reading = read_for(deal(), "NVDA", "Nvidia")
    assert reading.silence is Silence.OTHERS
    assert (reading.direction, reading.size_sigmas, reading.volatility) == (0, 0.0, 1.0)


def test_what_is_unrelated_is_silence_even_where_the_name_stands_in_it() -> None:
    text = "Marathon world record falls in Berlin"
    assert (
        read_for(facts(text, EventKind.UNRELATED, -0.9), "MRO", "Marathon Oil").silence is Silence.UNRELATED
    )
    assert read_for(facts(text, EventKind.PRODUCT, -0.9, relevant=0.2), "MRO", "Marathon Oil").direction == 0


def test_a_companys_shares_are_one_company() -> None:
    text = "Court sides with Oracle over Google"
    parties = (
        party(text, "Oracle", PartyRole.PLAINTIFF, 0.8, "ORCL"),
        party(text, "Google", PartyRole.DEFENDANT, -0.8, "GOOG"),
    )
    reading = read_for(facts(text, EventKind.LAWSUIT, 0.2, parties=parties), "GOOGL", "Alphabet")
    assert (reading.direction, reading.role) == (-1, PartyRole.DEFENDANT)


def test_a_recap_and_a_neutral_line_are_silence() -> None:
    text = "Nike raises full-year forecast"
    assert read_for(facts(text, EventKind.GUIDANCE, 0.9), "NKE", "Nike").direction == 1
    old = facts(text, EventKind.GUIDANCE, 0.9, tense=Tense.RECAP)
    assert read_for(old, "NKE", "Nike").silence is Silence.RECAP
    assert read_for(facts(text, EventKind.GUIDANCE, 0.1), "NKE", "Nike").silence is Silence.NEUTRAL


def test_a_line_without_any_name_is_about_whom_it_is_tagged_with() -> None:
    text = "Operating profit rose to EUR 13 million"
    reading = read_for(facts(text, EventKind.EARNINGS, 0.9), "KNEBV", "Kone")
    assert reading.direction == 1
    assert reading.relevance < 0.8


@pytest.mark.parametrize(
    ("symbol", "direction"),
    [("DXY", 1), ("EURUSD", -1), ("USDJPY", 1), ("US10Y", 1), ("TLT", -1), ("GLD", -1)],
)
def test_payrolls_above_what_was_expected_lift_the_dollar(symbol: str, direction: int) -> None:
    read = facts("Payrolls rise 273K vs 175K expected", EventKind.JOBS)
    assert read_for(read, symbol).direction == direction


@pytest.mark.parametrize(
    ("symbol", "direction"), [("SPX", 1), ("^VIX", -1), ("EURUSD", 1), ("TLT", 1), ("SH", -1)]
)
def test_a_cut_lifts_equities_and_lowers_their_volatility(symbol: str, direction: int) -> None:
    read = facts("Fed cuts rates by 25 basis points", EventKind.RATE_DECISION)
    assert read.action is not None
    assert read_for(read, symbol).direction == direction


def test_what_was_expected_is_no_news() -> None:
    read = facts("Fed leaves rates unchanged, as expected", EventKind.RATE_DECISION)
    assert read_for(read, "SPX").silence is Silence.KNOWN
    assert read_for(read, "SPX").volatility == 1.0


def test_a_commodity_event_is_about_its_own_commodity() -> None:
    read = facts("Copper mine halts output after mudslide", EventKind.SUPPLY, -0.9)
    assert read_for(read, "HG=F").direction == 1
    assert read_for(read, "CL=F").silence is Silence.OTHERS


def test_what_is_possible_moves_less_than_what_was_done() -> None:
    text = "Nike raises full-year forecast"
    sizes = [
        read_for(facts(text, EventKind.GUIDANCE, 0.9, modality=one), "NKE", "Nike").size_sigmas
        for one in (Modality.DID, Modality.RUMOUR, Modality.MAY)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1] > 0.0


def test_a_reading_without_a_name_is_for_the_subject() -> None:
    reading = read_for(facts("VW admits cheating on diesel tests", EventKind.INVESTIGATION, -0.9), "")
    assert (reading.symbol, reading.direction) == ("", -1)


def test_the_record_of_a_reading_names_its_versions_and_lines() -> None:
    read = facts("Fed cuts rates by 25 basis points", EventKind.RATE_DECISION)
    record = reading_record(read, read_for(read, "SPX"))
    assert (record.effects, record.facts, record.event) == ("effects/2", "facts/2", "rate_decision")
    assert record.lines


@pytest.mark.parametrize(
    ("text", "symbol", "name", "found"),
    [
        ("Horizon jumps on bid", "HZNP", "Horizon Therapeutics plc", "Horizon"),
        ("Shares of General Motors rise", "GM", "General Motors Co", "General Motors"),
        ("A general strike in Paris", "GM", "General Motors Co", None),
        ("$TSLA up again", "TSLA", "", "TSLA"),
        ("Arm to be bought by SoftBank", "ARM", "ARM Holdings", "Arm"),
        ("it is now or never", "NOW", "ServiceNow", None),
        ("Amazon to invest in Anthropic", "AMZN", "Amazon.com", "Amazon"),
        ("Cars recalled by the thousand", "CARS", "Cars.com", None),
        ("IT spending to rise in all regions", "IT", "Gartner", None),
        (
            "Tata Consultancy Services wins order",
            "TCS",
            "Tata Consultancy Services Ltd",
            "Tata Consultancy Services",
        ),
    ],
)
def test_a_name_is_found_in_its_forms(text: str, symbol: str, name: str, found: str | None) -> None:
    span = find_name(text, symbol, name)
    assert (None if span is None else text[slice(*span)]) == found


def test_a_kind_of_event_earns_its_direction() -> None:
    outcomes = KindOutcomes()
    assert outcomes.earned("earnings") == 0.0
    for _ in range(200):
        outcomes.learn("earnings", 1.0, 0.8)
        outcomes.learn("rating", 1.0, -0.8)
    assert 0.4 < outcomes.earned("earnings") < 0.8
    assert outcomes.earned("rating") == 0.0
    again = KindOutcomes()
    again.restore(outcomes.state())
    assert again.earned("earnings") == outcomes.earned("earnings")
