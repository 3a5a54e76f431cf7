"""What notebooks show of results: HTML, and figures of the library that is asked for."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pandas as pd
import pytest

import htfi
from htfi.library.charts.fan import format_price
from htfi.library.html import marked, marked_spans

DAYS = pd.bdate_range("2020-01-01", periods=40)
STEPS = np.random.default_rng(3).standard_normal((40, 2))
PRICES = pd.DataFrame(100.0 * np.exp(np.cumsum(0.01 * STEPS, axis=0)), DAYS, ["<b>A", "BBB"])
NEWS = [
    {
        "ts": "2020-02-25T20:00:00Z",
        "headline": "BBB cuts its profit guidance after weak sales",
        "symbols": "BBB",
    }
]


@pytest.fixture(scope="module")
def result():
    return htfi.forecast(PRICES, news=NEWS, models=None)


def parsed(html):
    return ElementTree.fromstring(f"<div>{html}</div>")


def test_a_forecast_is_a_fan_a_table_and_words_with_what_counted_marked(result):
    page = parsed(result._repr_html_())
    assert len(page.findall(".//svg[@role='img']")) == 2
    assert [cell.text for cell in page.findall(".//th")][:6] == [
        "bars ahead",
        "5%",
        "25%",
        "50%",
        "75%",
        "95%",
    ]
    rows = [[cell.text for cell in row] for row in page.findall(".//tbody/tr")]
    table = result.quantiles
    first = table[(table["symbol"] == "<b>A") & (table["measure"] == "price")].iloc[0]
    stated = [format_price(first[level]) for level in ("0.05", "0.5", "0.95")]
    assert [rows[0][0], *rows[0][1::2]] == ["1", *stated]
    assert any("cuts its profit guidance" in (mark.text or "") for mark in page.findall(".//mark"))
    assert "<b>A/1d" in (page.findall(".//div/b")[0].text or "")


def test_results_are_short_in_a_console(result):
    assert repr(result) == "forecast of <b>A/1d, BBB/1d"


def test_an_explanation_is_its_words_and_the_weight_of_each_expert(result):
    why = result.explain("BBB")
    page = parsed(why._repr_html_())
    assert page.findall(".//p")[0].text == why.text
    shown = {row[0].text: row[1].text for row in page.findall(".//tbody/tr")}
    assert {name: shown[name] for name in why.weights} == {
        name: f"{share:.1%}" for name, share in why.weights.items()
    }


def test_other_results_are_tables_that_parse(result):
    walked = htfi.backtest(PRICES, news=NEWS, models=None)
    page = parsed(walked._repr_html_())
    assert page.findall(".//tbody/tr")[0][0].text == "fused"
    scenario = parsed(htfi.scenario(result, shock={"BBB": -0.02})._repr_html_())
    assert [row[0].text for row in scenario.findall(".//tbody/tr")] == ["today", "BBB -2%"]


def test_a_reading_marks_the_words_that_it_is_made_of():
    page = parsed(htfi.read("Amgen to buy Horizon for $27.8 bln <now>", on="HZNP", views=False)._repr_html_())
    marks = [mark.text for mark in page.findall(".//mark")]
    assert {"Amgen", "Horizon"} <= set(marks)
    assert any("27.8" in mark for mark in marks)
    assert page.findall(".//tbody/tr/td")[0].text == "HZNP"


def test_marks_are_escaped_and_do_not_overlap():
    assert marked("a <b> c <b>", ["<b>", "b> c"]).count("<mark") == 1
    assert "<script>" not in marked("<script>x</script>", ["x"])
    assert marked_spans("abc", [(0, 2), (1, 3), (2, 9)]).count("<mark") == 1


def test_the_library_that_draws_must_be_known_and_installed(result, monkeypatch):
    with pytest.raises(htfi.HtfiError, match="choose one of plotly, matplotlib"):
        result.plot("bokeh")
    monkeypatch.setattr("htfi.domain.errors.is_installed", lambda _: False)
    with pytest.raises(htfi.HtfiError, match=r"plot needs plotly: pip install 'htfi\[plots\]'"):
        result.plot()


def test_plotly_draws_bands_median_and_price(result):
    pytest.importorskip("plotly")
    traces = result.plot("plotly").data
    assert [trace.name for trace in traces[:6]] == [None, "90%", None, "50%", "median", "price"]
    assert traces[5].y[-1] == PRICES.iloc[-1, 0]


def test_a_backtest_draws_its_bands_and_what_came():
    pytest.importorskip("matplotlib")
    walked = htfi.backtest(PRICES, horizons=[1, 2])
    (panel,) = walked.plot("BBB", horizon=2, backend="matplotlib").axes
    assert panel.get_title() == "BBB/1d, 2 bars ahead"
    prices = PRICES["BBB"].to_numpy()
    assert panel.lines[1].get_ydata()[-3] == pytest.approx(np.log(prices[-1] / prices[-3]))


def test_a_backtest_of_another_horizon_or_symbol_is_not_drawn():
    walked = htfi.backtest(PRICES, horizons=[1])
    with pytest.raises(htfi.HtfiError, match="horizon=9: the backtest has 1"):
        walked.plot(horizon=9)
    with pytest.raises(htfi.HtfiError, match="no series 'XXX'"):
        walked.plot("XXX")


def test_matplotlib_draws_bands_median_and_price(result):
    pytest.importorskip("matplotlib")
    figure = result.plot("matplotlib")
    assert [panel.get_title() for panel in figure.axes] == ["<b>A/1d", "BBB/1d"]
    assert figure.axes[0].lines[1].get_ydata()[-1] == PRICES.iloc[-1, 0]
