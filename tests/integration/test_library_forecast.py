"""`htfi.forecast` on frames, as a person in a notebook calls it."""

import copy
import json
import math
import pickle
import re
import subprocess
import sys
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
