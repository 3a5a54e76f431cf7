"""`htfi eval returns` and `htfi eval volatility` on files of a person's own, good and bad."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import forked
from htfi.forecasting.config import ForecastConfig
from htfi_eval.eval.prices import load_prices
from htfi_eval.eval.returns.judging import WalkOptions, judge
from htfi_eval.eval.returns.leaks import PLANTED_LEAK, check_leaks
from htfi_eval.eval.walk import FUSED

Array = NDArray[np.float64]
BARS = 360
SEED = 20_260


def _panel(
    file: Path, change: Callable[[Array], None] = lambda _: None, num: int = BARS, series: int = 3
) -> Path:
    """A CSV of daily bars; `change` spoils the closes [T, N], NaN leaving a row out."""
    dice = np.random.Generator(np.random.PCG64(SEED))
    closes = 50 * np.exp(np.cumsum(0.01 * dice.standard_normal((num, series)), axis=0))
    change(closes)
    days = np.datetime64("2015-01-01") + np.arange(num)
    lines = ["date,symbol,open,high,low,close"]
    for t in range(num):
        for n in range(series):
            close = closes[t, n]
            if np.isfinite(close):
                lines.append(f"{days[t]},S{n},{close},{close * 1.01},{close * 0.99},{close}")
    file.write_text("\n".join(lines) + "\n")
    return file


def _process(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return forked.run(
        [*forked.HTFI, "eval", *args],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        cwd=cwd,
    )


def test_returns_of_an_own_file_give_a_table_a_page_and_figures(
    tmp_path: Path, htfi: Callable[..., str]
) -> None:
    file, figures, page = _panel(tmp_path / "mine.csv"), tmp_path / "out.json", tmp_path / "out.html"
    htfi("eval", "returns", str(file), "--fast", "--json", str(figures), "--html", str(page))
    told = json.loads(figures.read_text())
    assert 0.5 < told["metrics"]["crps_vs_ewma"] < 1.1
    names = {row["forecaster"] for row in told["rows"]}
    assert {"fused", "random_walk", "ewma_gaussian", "constant_walk"} <= names
    rival = next(row for row in told["rows"] if row["forecaster"] == "ewma_gaussian" and row["bars"] == 1)
    assert rival["p, Holm"] >= rival["q, BH"] >= 0.0
    assert "<svg" in page.read_text()
    assert 0.0 <= told["metrics"]["left_tail_1pct"] <= 1.0
    assert told["metrics"]["fused_vs_best_expert"] > 0.9
    cells = next(table["rows"] for table in told["tables"] if table["title"].startswith("coverage, CRPS"))
    every = next(row for row in cells if row["by"] == "all" and row["bars"] == 1)
    assert every["n"] == sum(row["n"] for row in cells if row["by"] == "weekday" and row["bars"] == 1)
    assert {"year", "volatility", "regime"} <= {row["by"] for row in cells}


@pytest.mark.slow  # three processes start
def test_sets_walked_at_once_have_the_figures_of_sets_walked_in_turn(tmp_path: Path) -> None:
    files = [str(_panel(tmp_path / f"{name}.csv", series=series)) for name, series in (("a", 2), ("b", 1))]
    told: list[dict[str, object]] = []
    for processes in ("1", "2"):
        figures = tmp_path / f"{processes}.json"
        done = _process(
            "returns", *files, "--fast", "--processes", processes, "--json", str(figures), cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
        told.append(json.loads(figures.read_text()))
    assert told[0]["metrics"] == told[1]["metrics"]
    assert told[0]["tables"] == told[1]["tables"]


@pytest.mark.slow  # two processes start
def test_a_file_that_is_missing_is_named_whichever_process_reads_it(tmp_path: Path) -> None:
    there = str(_panel(tmp_path / "there.csv", num=120, series=1))
    done = _process("returns", there, "nowhere.csv", "--fast", "--processes", "2", cwd=tmp_path)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "nowhere.csv" in done.stderr


def test_an_evaluation_of_the_calendar_without_staged_data_says_so_in_one_line(tmp_path: Path) -> None:
    done = _process("calendar", "--data", str(tmp_path), cwd=tmp_path)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "name it with --data" in done.stderr.splitlines()[-1]


def test_volatility_of_an_own_file_stands_beside_har(tmp_path: Path, htfi: Callable[..., str]) -> None:
    file, figures = _panel(tmp_path / "mine.csv"), tmp_path / "out.json"
    htfi("eval", "volatility", str(file), "--fast", "--json", str(figures))
    told = json.loads(figures.read_text())
    assert 0.1 < told["metrics"]["qlike_vs_har"] < 10.0
    assert {"har_rolling", "har_expanding", "fused"} <= {row["forecaster"] for row in told["rows"]}


@pytest.mark.parametrize("what", ["returns", "volatility"])
def test_a_history_that_is_too_short_is_a_reason_in_one_line(tmp_path: Path, what: str) -> None:
    done = _process(what, str(_panel(tmp_path / "short.csv", num=12)), "--fast", cwd=tmp_path)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "short" in done.stderr.splitlines()[-1]


def _spoil(closes: Array) -> None:
    closes[:, 0] = 20.0  # constant
    closes[100:200, 1] = np.nan  # a gap
    closes[250:, 2] /= 20.0  # a split nobody told of
    closes[200, 3] *= 1000.0  # a wild print
    closes[:-60, 4] = np.nan  # a late start
    closes[::3, 5] = np.nan  # holes


def test_spoilt_prices_still_give_figures_of_every_series(tmp_path: Path) -> None:
    prices = load_prices(_panel(tmp_path / "bad.csv", _spoil, series=6))
    scores = judge(prices, WalkOptions(ForecastConfig(), with_fitted=False)).scores
    forecasts = scores.held != -1
    moving = slice(1, None)  # a price that never moved gives nothing to forecast by
    assert forecasts[:, moving, 0].any(axis=0).all()
    assert np.isfinite(scores.crps[0][scores.common]).all()
    assert 0.7 < scores.coverage(FUSED, 0)[0] <= 1.0


@pytest.mark.slow
def test_one_symbol_is_enough(tmp_path: Path) -> None:
    judged = judge(
        load_prices(_panel(tmp_path / "one.csv", series=1)), WalkOptions(ForecastConfig(), with_fitted=False)
    )
    assert judged.rows[0]["n"] > 200


@pytest.mark.slow
def test_our_forecasters_do_not_leak_and_the_planted_cheat_is_caught(tmp_path: Path) -> None:
    report = check_leaks(load_prices(_panel(tmp_path / "mine.csv")), ForecastConfig(), SEED)
    assert report.honest == {}
    assert report.found_planted_leak
    assert set(report.planted) == {PLANTED_LEAK, FUSED}
    assert report.num_checked >= 8  # fused, experts, peers and arch's GARCH


@pytest.mark.slow
def test_ten_thousand_symbols_are_walked(tmp_path: Path) -> None:
    del tmp_path
    from htfi_eval.eval.price_grid import Prices
    from htfi_eval.eval.walk import Walk

    num, series = 30, 10_000
    dice = np.random.Generator(np.random.PCG64(SEED))
    closes = 50 * np.exp(np.cumsum(0.01 * dice.standard_normal((num, series)), axis=0))
    ends_ns = (np.arange(num) + 16_000) * 86_400 * 10**9
    names = tuple(f"S{n:05d}" for n in range(series))
    prices = Prices("many", names, "1d", ends_ns, ends_ns, closes, closes * 1.01, closes * 0.99, closes)
    last = next(iter(Walk(prices, ForecastConfig()).instants(num - 1)))
    fused = last.quantiles[0, :, 0]
    assert np.isfinite(fused).all()
    assert (np.diff(fused, axis=1) >= 0).all()


def _index_file(file: Path, *, as_traded: bool) -> Path:
    """The S&P 500 of the sample, 2006 to 2007; as traded it was called SP before 2006-10-02 and is split 4 to 1 on
    2007-03-01."""
    prices = load_prices("sample").cut(("SPX",), last="2007-12-31")
    lines = ["date,symbol,open,high,low,close,volume"]
    for t, day in enumerate(prices.dates()):
        ratio = 1.0 if as_traded and day < "2007-03-01" else 4.0
        symbol = "SP" if as_traded and day < "2006-10-02" else "SPX"
        bar = [float(field[t, 0]) / ratio for field in (prices.open, prices.high, prices.low, prices.close)]
        lines.append(f"{day},{symbol},{','.join(f'{price!r}' for price in bar)},{int(ratio * 1000)}")
    file.write_text("\n".join(lines) + "\n")
    return file


def test_splits_and_renames_of_the_settings_act_on_an_own_file(
    tmp_path: Path, htfi: Callable[..., str]
) -> None:
    file = _index_file(tmp_path / "traded.csv", as_traded=True)
    whole = _index_file(tmp_path / "whole.csv", as_traded=False)
    settings = tmp_path / "settings.toml"
    settings.write_text('[market]\nrenames = {SP = "SPX", OLD = "NEW"}\nsplits = {SPX = {2007-03-01 = 4}}\n')
    told: dict[str, Any] = {}
    for name, asked in (
        ("bare", [str(file)]),
        ("set", [str(file), "--settings", str(settings)]),
        ("whole", [str(whole)]),
    ):
        out = tmp_path / f"{name}.json"
        htfi("eval", "returns", *asked, "--fast", "--json", str(out))
        told[name] = json.loads(out.read_text())
    notes = {
        name: [note for note in one["notes"] if note.startswith(("traded: ", "whole: "))]
        for name, one in told.items()
    }
    split = "SPX/1d 2007-03-01: prices are not adjusted for a split of 4 to 1"
    assert [split in note for note in notes["bare"]].count(True) == 1
    assert notes["set"] == [
        "traded: as market.renames and market.splits say, 188 bars of SP count as SPX; 290 bars of SPX adjusted for "
        "4 to 1 on 2007-03-01; no bar of OLD"
    ]
    assert notes["whole"] == []
    assert told["set"]["metrics"] == pytest.approx(told["whole"]["metrics"], rel=1e-9)
    assert told["bare"]["metrics"]["crps_vs_ewma"] != pytest.approx(
        told["whole"]["metrics"]["crps_vs_ewma"], rel=1e-6
    )
