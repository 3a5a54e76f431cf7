"""Results in the forms of other packages: Nixtla's cross-validation, GluonTS's forecasts."""

import importlib
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

import htfi
from htfi.library.bar_stamps import bar_stamps

DAYS = pd.bdate_range("2020-01-01", periods=50)
STEPS = np.random.default_rng(3).standard_normal((50, 2))
PRICES = pd.DataFrame(100.0 * np.exp(np.cumsum(0.01 * STEPS, axis=0)), DAYS, ["BBB", "AAA"])


@pytest.fixture(scope="module")
def walked():
    return htfi.backtest(PRICES, horizons=[1, 5])


def test_cross_validation_has_a_row_for_each_outcome_that_came(walked):
    table = walked.cross_validation()
    assert table.columns.tolist()[:5] == ["unique_id", "ds", "cutoff", "y", "HTFI"]
    widths = ["98", "90", "80", "60", "40", "20"]
    bands = [f"HTFI-lo-{width}" for width in widths] + [f"HTFI-hi-{width}" for width in reversed(widths)]
    assert table.columns.tolist()[5:] == bands
    known = walked.forecasts.dropna()
    assert len(table) == len(known) == 2 * (30 - 1 + 30 - 5)
    assert table[["unique_id", "cutoff", "ds"]].apply(tuple, axis=1).is_monotonic_increasing
    assert (
        table[["HTFI-lo-98", "HTFI-lo-90", "HTFI", "HTFI-hi-90", "HTFI-hi-98"]].diff(axis=1).iloc[:, 1:] > 0
    ).all(axis=None)
    for row in table.iloc[:: len(table) // 7].itertuples():
        assert row.y == PRICES.loc[row.ds, row.unique_id]
        assert DAYS.get_loc(row.ds) - DAYS.get_loc(row.cutoff) in (1, 5)
    of_band = known.sort_values(["symbol", "as_of", "horizon"])
    np.testing.assert_allclose(
        table["HTFI-lo-90"], of_band["last_price"] * np.exp(of_band["0.05"]), rtol=1e-12
    )


def test_cross_validation_merges_with_the_table_that_was_given(walked):
    long = PRICES.melt(ignore_index=False, var_name="unique_id", value_name="actual").reset_index(names="ds")
    merged = walked.cross_validation().merge(long, on=["unique_id", "ds"])
    assert len(merged) == len(walked.cross_validation())
    assert (merged["y"] == merged["actual"]).all()
    of_polars = htfi.backtest(
        pl.from_pandas(long.rename(columns={"actual": "y"})), horizons=[1, 5]
    ).cross_validation()
    assert of_polars["HTFI"].to_list() == walked.cross_validation()["HTFI"].tolist()


def test_cross_validation_is_evaluated_by_nixtlas_losses(walked):
    evaluation = pytest.importorskip("utilsforecast.evaluation", reason="needs utilsforecast")
    losses = pytest.importorskip("utilsforecast.losses")
    table = walked.cross_validation()
    found = evaluation.evaluate(table.drop(columns="cutoff"), [losses.mae, losses.coverage], level=[90])
    by_metric = found.set_index(["unique_id", "metric"])["HTFI"]
    assert table["unique_id"].nunique() == 2
    for symbol, rows in table.groupby("unique_id"):
        assert by_metric[symbol, "mae"] == pytest.approx((rows["y"] - rows["HTFI"]).abs().mean())
        inside = rows["y"].between(rows["HTFI-lo-90"], rows["HTFI-hi-90"])
        assert by_metric[symbol, "coverage_level90"] == pytest.approx(inside.mean())


@pytest.mark.parametrize(
    "index",
    [
        pd.date_range("2015-01-01", periods=40, freq="MS"),
        pd.date_range("2015-01-31", periods=40, freq="ME"),
        pd.date_range("2015-01-05", periods=40, freq="W-MON"),
        pd.date_range("2015-01-05 14:30", periods=40, freq="5min"),
        pd.date_range("2015-03-05", periods=40, freq="D", tz="Europe/Berlin"),
    ],
    ids=["month starts", "month ends", "weeks", "five minutes", "days in a zone"],
)
def test_a_bar_is_named_as_in_its_table(index):
    closes = pd.Series(100.0 * np.exp(np.cumsum(0.01 * STEPS[:40, 0])), index)
    walked = htfi.backtest(closes, horizons=[1])
    stamps = bar_stamps(walked.names[0].rpartition("/")[2], walked.as_of_ns)
    expected = index if index.tz is None else index.tz_convert(None)
    assert stamps.tolist() == expected.to_numpy()[-len(walked) :].tolist()


def test_bars_without_a_length_in_time_are_named_by_their_end():
    ends_ns = [1_000, 2_000]
    assert bar_stamps("volume:5000", ends_ns).astype(np.int64).tolist() == ends_ns


def test_gluonts_has_the_same_quantiles():
    pytest.importorskip("gluonts", reason="needs gluonts")
    forecast = htfi.forecast(PRICES, horizons=range(1, 4))
    found = forecast.to_gluonts()
    table = forecast.quantiles.query("measure == 'price'").set_index(["symbol", "horizon"])
    assert [one.item_id for one in found] == ["BBB", "AAA"]
    for one in found:
        assert one.prediction_length == 3
        assert (str(one.start_date), one.freq) == ("2020-03-11", pd.offsets.BDay())
        for level in (0.01, 0.5, 0.95):
            np.testing.assert_allclose(one.quantile(level), table.loc[one.item_id, f"{level:g}"], rtol=1e-12)
    closes = pd.Series(PRICES["AAA"].to_numpy(), pd.date_range("2015-01-05 14:30", periods=50, freq="5min"))
    (intraday,) = htfi.forecast(closes, horizons=[1, 2]).to_gluonts()
    assert intraday.start_date == pd.Period("2015-01-05 18:40", "5min")


def test_gluonts_needs_every_bar_ahead_and_a_frequency_of_pandas():
    pytest.importorskip("gluonts", reason="needs gluonts")
    with pytest.raises(htfi.HtfiError, match=r"1, 5, 22: give htfi.forecast horizons=range\(1, 17\)"):
        htfi.forecast(PRICES).to_gluonts()
    with pytest.raises(htfi.HtfiError, match="freq='daily'"):
        htfi.forecast(PRICES, horizons=[1]).to_gluonts(freq="daily")


def test_without_gluonts_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gluonts", None)
    with pytest.raises(htfi.HtfiError, match=r"pip install 'htfi\[gluonts\]'"):
        htfi.forecast(PRICES, horizons=[1]).to_gluonts()


def test_without_sktime_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sktime", None)
    monkeypatch.delitem(sys.modules, "htfi.library.sktime", raising=False)
    with pytest.raises(htfi.HtfiError, match=r"sktime needs sktime.*: pip install 'htfi\[sktime\]'"):
        importlib.import_module("htfi.library.sktime")
