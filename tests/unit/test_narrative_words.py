"""Units, rounding and names as a reader sees them."""

import pytest

from htfi.narrative.rationale.units import (
    band_width,
    bar_name,
    duration_words,
    feature_comparison,
    feature_family,
    move_unit,
    move_words,
    price_words,
    significant,
)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1_234.5, "1,234.50"),
        (12.226, "12.23"),
        (1.23456, "1.2346"),
        (0.00012345, "0.00012345"),
        (0.0, "0.00"),
    ],
)
def test_price_has_the_decimals_of_its_market(value: float, shown: str) -> None:
    assert price_words(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(0.12345, "0.123"), (999.4, "999"), (1_234_567.8, "1,234,568"), (-2_000.0, "-2,000")]
)
def test_figure_is_never_in_exponent_form_when_large(value: float, shown: str) -> None:
    assert significant(value) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0 s"), (89, "89 s"), (600, "10 min"), (7_200, "2 h"), (100_000, "28 h"), (259_200, "3 d")],
)
def test_span_takes_the_unit_that_suits(seconds: int, shown: str) -> None:
    assert duration_words(seconds * 10**9) == shown


def test_move_turns_a_log_return_into_a_simple_one() -> None:
    assert move_words(-0.6931471805599453, "%") == "-50.00%"
    assert move_words(0.0001, "bp") == "+1.0 bp"
    assert band_width(0.04, "%") == "4.00%"
    assert move_unit(0.0049) == "bp"


@pytest.mark.parametrize(
    ("interval", "words"),
    [("1d", "day"), ("60s", "minute"), ("5m", "5m bar"), ("volume:5000", "volume bar of 5000")],
)
def test_bar_is_named_by_its_clock(interval: str, words: str) -> None:
    assert bar_name(interval) == words


def test_comparison_carries_the_features_unit() -> None:
    assert feature_comparison("spread_bps", 3.0, 1.5, 2.0) == "spread 3 bp against a usual 1.5 bp (2x)"
    assert feature_comparison("odd%name", 3.0, 1.5, 2.0) == "odd%name 3 against a usual 1.5 (2x)"


def test_prices_and_tallies_have_no_family_and_scales_share_one() -> None:
    assert feature_family("mid") is None
    assert feature_family("num_trades") is None
    assert feature_family("realised_vol_5m") == feature_family("realised_vol_30m")
