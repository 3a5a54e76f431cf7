"""The small drawings: what they show is what the numbers say."""

import pytest

from htfi.apps.cli.view.state import SeriesView, quantile_at
from htfi.apps.display.drawing import (
    INNER,
    OUTER,
    band,
    fan_chart,
    format_percent,
    sparkline,
    stacked_bar,
    truncate_end,
)
from htfi.domain.decision import Regime
from htfi.library.charts.fan import format_price


def series(bands, history=(100.0, 101.0, 100.0)):
    return SeriesView("SPX/1d", history[-1], 0.0, Regime.CALM, (1, 22), bands, history, {"ewma": 1.0})


@pytest.mark.parametrize(
    ("price", "text"),
    [(899.22, "899.22"), (15421.1, "15,421.10"), (0.012345, "0.012345"), (0.0, "0"), (1.5, "1.5000")],
)
def test_prices_keep_the_digits_that_matter(price, text):
    assert format_price(price) == text


def test_percentages_carry_a_true_minus_sign():
    assert format_percent(-0.0123) == "−1.23%"
    assert format_percent(0.5, signed=False) == "50.00%"


def test_a_band_is_drawn_to_scale_about_its_middle():
    text = band((-0.5, -0.25, 0.0, 0.25, 0.5), reach=1.0, width=41)
    assert text.plain == " " * 10 + "─" * 5 + "━" * 5 + "│" + "━" * 5 + "─" * 5 + " " * 10


def test_a_band_beyond_the_scale_stays_within_its_width():
    assert len(band((-9, -8, 0, 8, 9), reach=1.0, width=21)) == 21


def test_a_sparkline_rises_with_its_values():
    assert sparkline([1, 2, 3, 4], 10) == "⡠⠊"
    assert sparkline([], 10) == ""
    assert len(sparkline(range(1000), 10)) == 10


def test_a_stacked_bar_fills_its_width_in_proportion():
    bar = stacked_bar({"a": 0.25, "b": 0.75}, {"a": "red", "b": "blue"}, 12)
    assert [(span.end - span.start, span.style) for span in bar.spans] == [(3, "red"), (9, "blue")]


def test_the_wider_forecast_makes_the_wider_fan():
    def rows_shaded(half):
        wide = tuple(half * z for z in (-1.6, -0.7, 0.0, 0.7, 1.6))
        chart = fan_chart(series((wide, wide), history=(100.0, 130.0, 70.0, 100.0)), 80, 12)
        return sum(
            any(shade in str(span.style) for span in line.spans for shade in (INNER, OUTER)) for line in chart
        )

    assert rows_shaded(0.02) < rows_shaded(0.2)


def test_a_flat_history_without_spread_can_be_drawn():
    still = (0.0,) * 5
    assert len(fan_chart(series((still, still), history=(100.0,)), 60, 8)) == 8


def test_long_text_is_clipped_to_one_line():
    assert truncate_end("a\nb\tc  d", 20) == "a b c d"
    assert truncate_end("abcdef", 4) == "abc…"


@pytest.mark.parametrize(
    ("level", "value"), [(0.05, -2.0), (0.25, -1.0), (0.5, 0.0), (0.01, -2.0), (0.99, 2.0)]
)
def test_a_quantile_between_levels_lies_on_the_line(level, value):
    assert quantile_at(level, (0.05, 0.2, 0.3, 0.5, 0.95), [-2.0, -1.2, -0.8, 0.0, 2.0]) == pytest.approx(
        value
    )


def test_a_fall_of_99_percent_is_drawn_on_a_logarithmic_scale():
    level = (0.0, 0.0, 0.0, 0.0, 0.0)
    history = tuple(100.0 * 0.01 ** (k / 60) for k in range(61))
    fallen = [line.plain for line in fan_chart(series((level, level), history), 90, 20)]
    steady = [line.plain for line in fan_chart(series((level, level)), 90, 20)]
    assert "log scale" in fallen[-1]
    assert "log scale" not in "".join(steady)
    drawn = [k for k, line in enumerate(fallen) if any("\u2801" <= char <= "\u28ff" for char in line)]
    assert drawn == list(range(20))  # an even fall crosses every row
    assert "1.0000 median" in "".join(fallen)
