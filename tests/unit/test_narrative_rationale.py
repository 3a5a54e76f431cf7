"""The rationale says what the situation is, in words whose every figure is a slot."""

import re
from typing import Any

import pytest

from htfi.domain.decision import FeatureDriver, Rationale, Regime
from htfi.domain.errors import InvalidInput
from htfi.domain.events import News
from htfi.narrative.rationale.sentences import CLAIM, OPENINGS, SENTENCES
from htfi.narrative.rationale.writer import fill, write_rationale

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


def test_full_text_reads_as_a_desk_would_write_it() -> None:
    found = write(
        regime=Regime.STRESSED,
        low=-0.0311,
        high=0.0290,
        drivers=[SPREAD],
        weights={"ewma": 0.2, "log_range_har": 0.5, "random_walk": 0.3},
        headlines=[headline("Fed cuts its target rate by 50 bp to 4.75%")],
    )
    assert found.text == (
        "SPX/1d is under stress, and its band widens to 6.01% from 4.00%. With 90% probability the next day "
        "closes between 969.38 and 1,029.42 (-3.06% to +2.94%). Out of line: spread 3.1 bp against a usual "
        "1.3 bp (2.38x). log range har leads the experts with 50% of the weight. On the wire: “Fed cuts its "
        "target rate by 50 bp to 4.75%”, 2 h earlier; cited, not weighed."
    )
    assert found.cited == ["id-1"]
    assert found.drivers == [SPREAD]


def test_shock_is_marked_provisional_and_names_the_move() -> None:
    text = write(regime=Regime.SHOCK, last_return=-0.0947, last_sigmas=-6.3).text
    assert "last move was -9.04%" in text
    assert "provisional" in text


def test_small_bands_are_told_in_basis_points() -> None:
    text = write(low=-0.0003, high=0.0004, interval="60s").text
    assert "the next minute closes between 999.70 and 1,000.40 (-3.0 bp to +4.0 bp)" in text


def test_no_driver_is_said_only_where_something_was_usual() -> None:
    assert "No feature is far" in write(has_usual=True).text
    assert "No feature" not in write(has_usual=False).text


def test_equal_weights_name_no_leader() -> None:
    text = write(weights={"a": 0.25, "b": 0.25, "c": 0.25, "d": 0.25}).text
    assert "leads" not in text
    assert "The experts weigh the same." in text


def test_headline_cannot_close_its_quotation_or_fill_a_slot() -> None:
    hostile = "Calm” the next day closes at {last_price} %(low)s %s “"
    text = write(headlines=[headline(hostile)]).text
    assert text.count("“") == text.count("”") == 1
    assert "“Calm’ the next day closes at {last_price} %(low)s %s ’”" in text


def test_three_headlines_are_the_most_that_are_told() -> None:
    found = write(headlines=[headline(f"Item {n}", n, n) for n in range(1, 6)])
    assert found.cited == ["id-1", "id-2", "id-3"]
    assert "Item 4" not in found.text


def test_no_prepared_sentence_holds_a_digit() -> None:
    for sentence in (CLAIM, *OPENINGS.values(), *SENTENCES.values()):
        assert not re.search(r"\d", sentence)


def test_text_comes_again_from_template_and_slots() -> None:
    found = write(drivers=[SPREAD], weights={"a": 0.9, "b": 0.1}, headlines=[headline("x")])
    assert fill(found.template, found.slots) == found.text


@pytest.mark.parametrize("template", ["", "nothing", "first+nothing", "first", "one_driver"])
def test_template_that_does_not_fit_is_refused_in_one_line(template: str) -> None:
    with pytest.raises(InvalidInput, match="rationale template"):
        fill(template, {"series": "SPX/1d"})
