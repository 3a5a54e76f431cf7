"""The rationale says what the situation is, in words whose every figure is a slot."""

import re
from typing import Any

import pytest

from htfi.domain.decision import EventFactor, FeatureDriver, KnownEvents, NewsTilt, Rationale, Regime
from htfi.domain.errors import InvalidInput
from htfi.domain.events import News
from htfi.domain.news_view import NewsView, ViewPart
from htfi.narrative.merging import merge_views
from htfi.narrative.rationale.choice import KNOWN_PARTS
from htfi.narrative.rationale.phrasing import Phrasing, fill
from htfi.narrative.rationale.versions import CURRENT, PHRASINGS, phrasing_of
from written_rationale import write_rationale

HOUR_NS = 3_600 * 10**9
SPREAD = FeatureDriver("spread_bps", 3.1, 1.3, 3.1 / 1.3)


def write(**changed: Any) -> Rationale:
    values: dict[str, Any] = {
        "symbol": "SPX",
        "interval": "1d",
        "regime": Regime.NORMAL,
        "last_price": 1_000.0,
        "low": -0.02,
        "high": 0.02,
        "as_of_ns": 100 * HOUR_NS,
        "previous_width": 0.04,
        "last_return": 0.001,
        "last_sigmas": 0.1,
    }
    return write_rationale(**(values | changed))


def headline(text: str, number: int = 1, hours_ago: int = 2) -> News:
    at_ns = (100 - hours_ago) * HOUR_NS
    return News(at_ns, at_ns, "wire", number, f"id-{number}", text)


@pytest.mark.parametrize(
    ("changed", "template"),
    [
        ({"previous_width": None}, "first"),
        ({"last_return": None}, "first"),
        ({"regime": Regime.CALM}, "steady"),
        ({"previous_width": 0.03}, "widening"),
        ({"previous_width": 0.05}, "narrowing"),
        ({"previous_width": 0.0}, "widening"),
        ({"last_return": -0.05, "last_sigmas": -5.0}, "after_jump"),
        ({"regime": Regime.SHOCK, "last_return": -0.05, "last_sigmas": -5.0}, "shock"),
        ({"last_sigmas": None}, "steady"),
    ],
)
def test_opening_follows_the_situation(changed: dict[str, Any], template: str) -> None:
    assert write(**changed).template == template


def test_full_text_reads_as_a_person_would_write_it() -> None:
    found = write(
        regime=Regime.STRESSED,
        low=-0.0311,
        high=0.0290,
        drivers=[SPREAD],
        weights={"ewma": 0.2, "log_range_har": 0.5, "random_walk": 0.3},
        headlines=[headline("Fed cuts its target rate by 50 bp to 4.75%")],
    )
    assert found.text == (
        "SPX/1d is under stress. With a probability of 90%, the next day closes between 969.38 and 1,029.42 "
        "(-3.1% to +2.9%). The band has widened from 4.0% to 6.0%. Unusual: spread at 3.1 bp (usually 1.3 bp). "
        "The log-range HAR model has the largest weight, 50%. News: “Fed cuts its target rate by 50 bp to 4.75%” "
        "(2 hours earlier); cited without effect on the forecast."
    )
    assert found.cited == ["id-1"]
    assert found.drivers == [SPREAD]


def test_version_4_writes_what_ledgers_of_its_time_hold() -> None:
    found = write(
        regime=Regime.STRESSED,
        low=-0.0311,
        high=0.0290,
        drivers=[SPREAD],
        weights={"ewma": 0.2, "log_range_har": 0.5, "random_walk": 0.3},
        headlines=[headline("Fed cuts its target rate by 50 bp to 4.75%")],
        phrasing=PHRASINGS["templates/4"],
    )
    assert found.text == (
        "SPX/1d is under stress, and its band widens to 6.01% from 4.00%. With 90% probability the next day "
        "closes between 969.38 and 1,029.42 (-3.06% to +2.94%). Out of line: spread 3.1 bp against a usual "
        "1.3 bp (2.38x). log range har leads the experts with 50% of the weight. On the wire: “Fed cuts its "
        "target rate by 50 bp to 4.75%”, 2 h earlier; cited, not weighed."
    )


def test_a_reading_is_stated_with_rounded_figures() -> None:
    view = NewsView(
        direction=1.0, size_sigmas=0.008435, volatility_multiplier=1.24985, confidence=0.75, cited=("id-1",),
        as_of_ns=100 * HOUR_NS, half_life_ns=HOUR_NS, consistency="unmoved", words="{symbol} goes {direction}",
        reader="mini-target-int8@7a26",
    )  # fmt: skip
    tilt = NewsTilt(view.reader, [0.0], [1.2], [0.16], 0.5, 0.973)
    text = write(view=view, tilt=tilt, headlines=[headline("x")], deepening=True).text
    assert text.endswith(
        " News: “x” (2 hours earlier). Reading by mini-target-int8: up by less than 0.1 standard deviations, "
        "volatility 25% above usual, confidence 75%; prices had not moved on it yet. Reason given: “SPX goes up”. "
        "With a weight of 16%, it moves the median by less than 0.0001% and widens the band by 3%. News and numbers "
        "disagree more than in 97% of this reader's earlier readings. The answer is provisional; a deeper reading "
        "follows."
    )


@pytest.mark.parametrize(
    ("direction", "said"),
    [
        (0.0, ", by the model, which alone sees no direction."),
        (1.0, ", by the model, which alone sees a rise."),
        (-1.0, "."),
    ],
)
def test_a_reason_for_another_direction_than_the_views_says_whose_it_is(direction: float, said: str) -> None:
    read = NewsView(
        direction=direction, size_sigmas=0.5, volatility_multiplier=1.0, confidence=0.9, cited=("id-1",),
        as_of_ns=0, half_life_ns=HOUR_NS, words="nothing here should move {symbol}", reader="mini@1",
    )  # fmt: skip
    facts = ViewPart(
        reader="facts", direction=-1.0, size_sigmas=1.0, volatility_multiplier=1.4, confidence=0.9, cited=("id-1",),
        as_of_ns=0, half_life_ns=HOUR_NS, trust=1.0,
    )  # fmt: skip
    view = merge_views(read, 0.25, [facts], 0)
    assert view is not None
    assert view.direction == -1.0
    text = write(view=view, headlines=[headline("x")]).text
    assert f"Reason given: “nothing here should move SPX”{said}" in text


def test_a_version_that_is_not_known_is_refused_in_one_line() -> None:
    assert phrasing_of({"rationale": "templates/7"}) is CURRENT
    with pytest.raises(
        InvalidInput,
        match="'templates/9', this program knows templates/4, templates/5, templates/6, templates/7",
    ):
        phrasing_of({"rationale": "templates/9"})


PAYROLLS = EventFactor("us_payrolls", 101 * HOUR_NS, 1.9)
RESULTS = KnownEvents(1.3, (EventFactor("earnings", 101 * HOUR_NS, 1.3),))


@pytest.mark.parametrize(
    ("changed", "known", "template"),
    [
        ({}, KnownEvents(1.5, (PAYROLLS,)), "event"),
        ({}, KnownEvents(0.66, (PAYROLLS,)), "event"),
        ({"previous_width": 0.05}, KnownEvents(1.9, (PAYROLLS,)), "event"),
        ({"previous_width": 0.03}, RESULTS, "widening+known"),
        ({}, KnownEvents(0.67, (PAYROLLS,)), "steady+known"),
        ({"previous_width": None}, KnownEvents(1.9, (PAYROLLS,)), "first+known"),
        ({"last_return": -0.05, "last_sigmas": -5.0}, KnownEvents(1.9, (PAYROLLS,)), "after_jump+known"),
        ({"regime": Regime.SHOCK, "last_return": -0.05}, KnownEvents(1.9, (PAYROLLS,)), "shock+known"),
    ],
)
def test_what_is_known_of_the_next_bar_stands_first_where_it_says_the_most(
    changed: dict[str, Any], known: KnownEvents, template: str
) -> None:
    found = write(known=known, **changed)
    assert found.template == template
    assert "its usual width. " in found.text + " "
    older = write(known=known, phrasing=PHRASINGS["templates/6"], **changed)
    assert older == write(phrasing=PHRASINGS["templates/6"], **changed)


def test_a_release_that_widens_the_band_is_said_before_the_band() -> None:
    found = write(interval="1h", known=KnownEvents(1.94, (PAYROLLS,)), previous_width=0.02)
    assert found.text == (
        "SPX/1h is trading normally. The next hour holds US payrolls (05:00 UTC): its band is 1.9 times its usual "
        "width. With a probability of 90%, the next hour closes between 980.20 and 1,020.20 (-2.0% to +2.0%). The band "
        "is 4.0% wide, after 2.0%."
    )


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ((), "holds several small events"),
        (("fomc_decision",), "holds the decision of the FOMC (05:00 UTC)"),
        (("us_payrolls", "us_unemployment_rate"), "holds US payrolls and US unemployment rate (05:00 UTC)"),
        (("half_day",), "is a half day"),
        (("earnings", "gap_long"), "holds the company's results (05:00 UTC) and follows a long weekend"),
        (("fed_chair_speaks",), "holds a speech from the Fed's chair (05:00 UTC)"),
        (("uk_cpi", "ea_pmi_services", "de_ifo"),
         "holds UK consumer prices, euro-area PMI services and German Ifo index (05:00 UTC)"),
        (("USD Wards {size} 3%\u202e",), "holds “USD Wards {size} 3%” (05:00 UTC)"),
    ],
)  # fmt: skip
def test_kinds_of_events_are_worded(events: tuple[str, ...], words: str) -> None:
    listed = tuple(EventFactor(kind, 101 * HOUR_NS, 1.3) for kind in events)
    found = write(interval="1h", known=KnownEvents(1.3, listed))
    assert found.slots["next_bar"] == words
    assert words in found.text


def test_a_release_of_the_bar_before_is_followed_and_a_day_states_no_hour() -> None:
    past = EventFactor("us_payrolls", 99 * HOUR_NS, 1.2, follows=True)
    found = write(known=KnownEvents(1.3, (EventFactor("earnings", 110 * HOUR_NS, 1.3), past)))
    assert found.slots["next_bar"] == "holds the company's results and follows US payrolls"


def test_shock_is_marked_provisional_and_names_the_move() -> None:
    text = write(regime=Regime.SHOCK, last_return=-0.0947, last_sigmas=-6.3).text
    assert "last move was -9.0%" in text
    assert "provisional" in text


def test_small_bands_keep_two_digits() -> None:
    text = write(low=-0.0003, high=0.0004, interval="60s").text
    assert "the next minute closes between 999.70 and 1,000.40 (-0.030% to +0.040%)" in text


def test_no_driver_is_said_only_where_something_was_usual() -> None:
    assert "All features are near" in write(has_usual=True).text
    assert "All features" not in write(has_usual=False).text


def test_equal_weights_name_no_leader() -> None:
    text = write(weights={"a": 0.25, "b": 0.25, "c": 0.25, "d": 0.25}).text
    assert "largest weight" not in text
    assert "All models have the same weight." in text


def test_headline_cannot_close_its_quotation_or_fill_a_slot() -> None:
    hostile = "Calm” the next day closes at {last_price} %(low)s %s “"
    text = write(headlines=[headline(hostile)]).text
    assert text.count("“") == text.count("”") == 1
    assert "“Calm’ the next day closes at {last_price} %(low)s %s ’”" in text


def test_three_headlines_are_the_most_that_are_told() -> None:
    found = write(headlines=[headline(f"Item {n}", n, n) for n in range(1, 6)])
    assert found.cited == ["id-1", "id-2", "id-3"]
    assert "Item 4" not in found.text


@pytest.mark.parametrize("phrasing", PHRASINGS.values(), ids=PHRASINGS)
def test_no_prepared_sentence_holds_a_digit(phrasing: Phrasing) -> None:
    claim, openings, parts = phrasing.sentences
    sentences = (claim, *openings.values(), *parts.values())
    assert len(sentences) > 30
    assert not any(re.search(r"\d", sentence) for sentence in sentences)


def test_every_version_has_the_same_parts_but_for_what_is_known_of_the_next_bar() -> None:
    opening, part = KNOWN_PARTS
    names = {
        (frozenset(one.sentences.openings) - {opening}, frozenset(one.sentences.parts) - {part})
        for one in PHRASINGS.values()
    }
    assert len(names) == 1
    stating = [one.version for one in PHRASINGS.values() if one.states_known]
    assert stating == [one.version for one in PHRASINGS.values() if opening in one.sentences.openings]
    assert stating == [one.version for one in PHRASINGS.values() if part in one.sentences.parts]
    assert stating == ["templates/7"]


def test_text_comes_again_from_template_and_slots() -> None:
    found = write(drivers=[SPREAD], weights={"a": 0.9, "b": 0.1}, headlines=[headline("x")])
    assert fill(found.template, found.slots, CURRENT) == found.text


@pytest.mark.parametrize("template", ["", "nothing", "first+nothing", "first", "one_driver"])
def test_template_that_does_not_fit_is_refused_in_one_line(template: str) -> None:
    with pytest.raises(InvalidInput, match="rationale template"):
        fill(template, {"series": "SPX/1d"}, CURRENT)
