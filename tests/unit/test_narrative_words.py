"""Units, rounding and names as a reader sees them."""

import pytest

from htfi.domain.decision import FeatureDriver
from htfi.narrative.rationale.units import (
    bar_name,
    driver_words,
    duration_words,
    expert_words,
    feature_family,
    percent,
    price_words,
    return_words,
    sigmas_words,
    significant,
    two_digits,
    volatility_words,
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
    ("value", "shown"),
    [
        (3.14159, "3.1"),
        (2.0, "2"),
        (0.000404, "0.0004"),
        (-0.5, "-0.5"),
        (12.6, "13"),
        (1_234_567.8, "1,234,568"),
        (1e-9, "0"),
    ],
)
def test_two_digits_suffice_for_a_person(value: float, shown: str) -> None:
    assert two_digits(value) == shown


@pytest.mark.parametrize(
    ("fraction", "shown"),
    [
        (0.0601, "6.0%"),
        (0.123, "12%"),
        (0.0042, "0.42%"),
        (0.00031, "0.031%"),
        (1e-7, "0%"),
        (25.0, "2,500%"),
    ],
)
def test_a_share_has_the_digits_that_its_size_needs(fraction: float, shown: str) -> None:
    assert percent(fraction) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 seconds"),
        (1, "1 second"),
        (89, "89 seconds"),
        (600, "10 minutes"),
        (7_200, "2 hours"),
        (100_000, "28 hours"),
        (259_200, "3 days"),
    ],
)
def test_span_takes_the_unit_that_suits(seconds: int, shown: str) -> None:
    assert duration_words(seconds * 10**9) == shown


def test_a_log_return_is_stated_as_a_simple_one() -> None:
    assert return_words(-0.6931471805599453) == "-50%"
    assert return_words(0.0001) == "+0.010%"


def test_sizes_and_volatility_are_rounded() -> None:
    assert sigmas_words(0.008435) == "less than 0.1 standard deviations"
    assert sigmas_words(1.0) == "1 standard deviation"
    assert sigmas_words(2.8344) == "2.8 standard deviations"
    assert volatility_words(1.24985) == "25% above usual"
    assert volatility_words(0.8) == "20% below usual"
    assert volatility_words(1.0) == "as usual"


@pytest.mark.parametrize(
    ("interval", "words"),
    [
        ("1d", "day"),
        ("60s", "minute"),
        ("60m", "hour"),
        ("5m", "5-minute bar"),
        ("volume:5000", "volume bar of 5,000"),
        ("odd", "odd bar"),
    ],
)
def test_bar_is_named_by_its_clock(interval: str, words: str) -> None:
    assert bar_name(interval) == words


@pytest.mark.parametrize(
    ("feature", "value", "usual", "words"),
    [
        ("spread_bps", 3.0, 1.5, "spread at 3 bp (usually 1.5 bp)"),
        ("odd%name", -3.0, 1.5, "odd%name at -3 (usually ±1.5)"),
        (
            "return_sigmas",
            3.2,
            0.8,
            "last return at 3.2 standard deviations (usually 0.8 standard deviations)",
        ),
        (
            "macro_average_hourly_earnings_m_m",
            0.2,
            0.000404,
            "average hourly earnings month on month at 0.2 (far above usual)",
        ),
        ("realised_vol_5m", 0.0001, 0.01, "realised volatility over 5 minutes at 0.01% (far below usual)"),
    ],
)
def test_a_driver_is_stated_beside_what_is_usual(
    feature: str, value: float, usual: float, words: str
) -> None:
    assert driver_words(FeatureDriver(feature, value, usual, abs(value) / usual)) == words


def test_experts_have_the_names_of_their_papers() -> None:
    assert expert_words("log_range_har") == "log-range HAR"
    assert expert_words("my_expert") == "my expert"


def test_prices_and_tallies_have_no_family_and_scales_share_one() -> None:
    assert feature_family("mid") is None
    assert feature_family("num_trades") is None
    assert feature_family("realised_vol_5m") == feature_family("realised_vol_30m")
