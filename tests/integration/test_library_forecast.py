"""`htfi.forecast` on frames, as a person in a notebook calls it."""

import copy
import json
import math
import pickle
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner

import htfi
from htfi.apps.cli.forecast.command import command


def closes(num=40, symbols=("AAA", "BBB"), seed=0):
    steps = np.random.default_rng(seed).standard_normal((num, len(symbols)))
    prices = 100.0 * np.exp(np.cumsum(0.01 * steps, axis=0))
    return pd.DataFrame(prices, index=pd.bdate_range("2020-01-01", periods=num), columns=list(symbols))


def test_a_forecast_comes_back_as_the_frame_that_was_put_in():
    wide = closes()
    table = htfi.forecast(wide).quantiles
    assert isinstance(table, pd.DataFrame)
    assert set(table["symbol"]) == {"AAA", "BBB"}
    assert set(table["horizon"]) == {1, 5, 22}
    levels = table.filter(regex=r"^0\.")
    assert (levels.diff(axis=1).iloc[:, 1:] >= 0).all(axis=None)
    moves = levels[table["measure"] == "log_return"].to_numpy()
    last = np.repeat(wide.iloc[-1].to_numpy(), 3)[:, None]
    np.testing.assert_allclose(levels[table["measure"] == "price"], last * np.exp(moves), rtol=1e-12)
    polars = htfi.forecast(pl.from_pandas(wide.reset_index(names="day"))).quantiles
    assert isinstance(polars, pl.DataFrame)
    assert polars.to_pandas()["0.5"].tolist() == table["0.5"].tolist()


def test_a_relation_comes_back_as_a_relation():
    duckdb = pytest.importorskip("duckdb", reason="needs duckdb")
    connection = duckdb.connect()
    connection.register("closes", closes().reset_index(names="day"))
    relation = connection.sql("SELECT * FROM closes")
    result, expected = htfi.forecast(relation), htfi.forecast(closes())
    found = result.quantiles
    assert type(found) is type(relation)
    assert found.columns == expected.quantiles.columns.tolist()
    assert found.df()["0.5"].tolist() == expected.quantiles["0.5"].tolist()
    assert result.quantiles.filter("symbol = 'AAA'").aggregate("count(*)").fetchall() == [(6,)]
    assert result.set_aside.fetchall() == []
    walked = htfi.backtest(relation).forecasts
    assert walked.filter("horizon = 1").aggregate("count(*)").fetchall() == [(40,)]


def test_the_command_line_says_the_same(tmp_path):
    file = tmp_path / "acme.csv"
    closes(symbols=("close",)).to_csv(file, index_label="date")
    said = json.loads(CliRunner().invoke(command, [str(file), "--json"]).output)
    table = htfi.forecast(pd.read_csv(file), symbol="acme").quantiles
    moves = table[table["measure"] == "log_return"].filter(regex=r"^0\.").to_numpy().tolist()
    assert moves == list(said["forecast"]["log_returns"].values())


@pytest.mark.parametrize("form", ["by symbol", "descending", "wide", "nixtla", "parquet", "feather"])
def test_a_file_of_any_shape_says_the_same_to_the_command_and_to_python(form, tmp_path):
    wide = closes()
    rows = wide.melt(ignore_index=False, var_name="symbol", value_name="close").reset_index(names="date")
    rows = pd.concat([rows, rows.iloc[40:41]])  # a row that is there again, long after it was
    file = tmp_path / f"prices.{form if form in ('parquet', 'feather') else 'csv'}"
    match form:
        case "wide":
            wide.to_csv(file, index_label="date")
        case "nixtla":
            rows.rename(columns={"symbol": "unique_id", "date": "ds", "close": "y"}).to_csv(file, index=False)
        case "descending":
            rows[::-1].to_csv(file, index=False)
        case "parquet":
            rows.to_parquet(file)
        case "feather":
            rows.reset_index(drop=True).to_feather(file)
        case _:
            rows.to_csv(file, index=False)
    said = json.loads(CliRunner().invoke(command, [str(file), "--symbol", "BBB", "--json"]).output)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        found = htfi.forecast(file, symbol="BBB").one().decision
    assert said["as_of"] == "2020-02-26T05:00:00Z"
    assert list(said["forecast"]["log_returns"].values()) == [list(row) for row in found.forecast.quantiles]
    expected = htfi.forecast(wide, symbol="BBB").one().decision
    np.testing.assert_allclose(found.forecast.quantiles, expected.forecast.quantiles, rtol=1e-6)
    assert ["duplicate (1)" in str(one.message) for one in seen] == ([] if form == "wide" else [True])


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"horizons": [1.5]}, r"horizons=\[1.5\]: give whole numbers of bars"),
        ({"horizons": "5"}, "horizons='5': give whole numbers of bars"),
        ({"horizons": [0]}, "the arguments: each of forecasting.horizons must be at least 1"),
        ({"interval": 5}, "interval=5: give a text"),
        ({"interval": "1y2"}, "'1y2' is not an interval"),
        ({"symbol": ["AAA"]}, r"symbol=\['AAA'\]: give one symbol"),
        ({"models": ("a",)}, r"models=\('a',\): say 'default'"),
        ({"models": "a"}, "models='a': say 'default'"),
        ({"experts": 3}, "experts=3: give a symbol"),
    ],
)
def test_an_argument_of_the_wrong_kind_is_one_line_that_names_it(asked, says):
    for call in (htfi.forecast, htfi.backtest):
        with pytest.raises(htfi.HtfiError, match=f"^{says}") as refusal:
            call(closes(), **asked)
        assert "\n" not in str(refusal.value)


def test_numbers_of_numpy_and_lengths_of_pandas_are_arguments_too():
    expected = htfi.forecast(closes(), horizons=[1, 5], interval="1d").quantiles
    for horizons in (np.array([1, 5]), (5, 1), {1, 5}):
        assert htfi.forecast(closes(), horizons=horizons).quantiles.equals(expected)
    for interval in ("1D", "daily", pd.Timedelta("1d"), "1440"):
        assert htfi.forecast(closes(), horizons=[1, 5], interval=interval).quantiles.equals(expected)
    assert set(htfi.forecast(closes(), horizons=5).quantiles["horizon"]) == {5}


def test_an_untagged_headline_that_names_an_authority_alone_speaks_for_no_company():
    ts = "2020-02-26T02:00:00Z"
    for headline, num_read in (("SEC charges firm with fraud", 0), ("SEC charges AAA with fraud", 1)):
        told = htfi.forecast(closes(), news=[{"ts": ts, "headline": headline}], models=None)
        sized = [one.decision.view is not None and one.decision.view.size_sigmas != 0 for one in told.series]
        assert sum(sized) == num_read
    tagged = htfi.forecast(
        closes(),
        news=[{"ts": ts, "headline": "SEC charges firm with fraud", "symbols": ["AAA"]}],
        models=None,
    )
    assert tagged.one("AAA").decision.view.size_sigmas != 0


def test_rows_that_cannot_be_used_are_listed_with_one_warning():
    frame = closes().melt(ignore_index=False, var_name="symbol", value_name="close").reset_index(names="date")
    frame.loc[[3, 50, 70], "close"] = [np.nan, np.inf, -1.0]
    frame = pd.concat([frame, frame.iloc[[0]]])
    with pytest.warns(
        htfi.RowsSetAside, match=r"^set aside: 4 of 81 rows: .*`set_aside` lists them$"
    ) as seen:
        result = htfi.forecast(frame)
    assert len(seen) == 1
    listed = result.set_aside
    assert listed["row"].tolist() == [4, 51, 71, 81]
    assert listed["reason"].tolist() == ["missing_field", "bad_price", "bad_price", "duplicate"]


def test_a_symbol_that_never_moves_is_named_beside_the_others():
    with pytest.warns(htfi.RowsSetAside, match="1 series: unmoved"):
        result = htfi.forecast(closes().assign(AAA=5.0))
    assert set(result.quantiles["symbol"]) == {"BBB"}
    assert result.set_aside["detail"].tolist() == ["AAA/1d: its price never moves"]


@pytest.mark.parametrize(
    ("prices", "says"),
    [
        (closes(num=1), "cannot be determined, it has one row"),
        (closes(num=10), "holds 20 bars: a forecast needs 20 of one series"),
        (closes() * 0 + 5, "never moves"),
        ("none.csv", "none.csv does not exist"),
    ],
)
def test_a_history_that_is_too_short_is_said_in_one_line(prices, says):
    with pytest.raises(htfi.HtfiError, match=says) as refusal:
        htfi.forecast(prices)
    assert "\n" not in str(refusal.value)


def test_results_can_be_copied_and_pickled():
    result = htfi.forecast(closes(), horizons=[2])
    for other in (copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert other.quantiles.equals(result.quantiles)
    with pytest.raises(AttributeError):
        result.kind = "polars"


def test_importing_is_quiet_and_loads_nothing_heavy():
    heavy = ("numpy", "pandas", "arro3", "pyarrow", "narwhals", "onnxruntime", "rich", "click")
    code = f"import sys, htfi; print([name for name in {heavy} if name in sys.modules], dir(htfi) > [])"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("[] True\n", "")


def test_every_public_name_can_be_had_and_no_other():
    stub = Path(htfi.__file__).with_suffix(".pyi").read_text()
    assert sorted(re.findall(r" as (\w+)", stub)) == htfi.__all__
    assert all(math.isfinite(len(repr(getattr(htfi, name)))) for name in htfi.__all__)
    with pytest.raises(AttributeError, match="no attribute 'forcast'"):
        _ = htfi.forcast


def test_of_many_bad_rows_the_first_are_kept_and_all_are_counted(monkeypatch):
    monkeypatch.setattr("htfi.wiring.in_memory_run.MAX_KEPT_ROWS", 5)
    frame = closes().melt(ignore_index=False, var_name="symbol", value_name="close").reset_index(names="date")
    frame.loc[40:51, "close"] = -1.0
    with pytest.warns(htfi.RowsSetAside, match=r"12 of 80 rows: bad_price \(12\)"):
        listed = htfi.forecast(frame).set_aside
    assert listed["row"].tolist() == [0, 41, 42, 43, 44, 45]
    assert listed["detail"][0] == "7 more rows"
