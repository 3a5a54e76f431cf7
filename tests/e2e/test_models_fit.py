"""`htfi models fit` on a file of bars: figures, a folder that a run uses, one line for what cannot be fitted."""

import json
import signal
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import forked
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.experts.pooled.models import FILE, PooledModels, read_models
from htfi.forecasting.experts.pooled.typical import typical_trees
from htfi_eval.eval.pooled.comparison import WITHOUT, compare, rows_of
from htfi_eval.eval.prices import load_prices
from htfi_eval.eval.returns.leaks import PLANTED_LEAK, check_leaks
from pooled_bars import market_paths, write_bars

NUM, WIDTH = 900, 3
EXPERTS = '["ewma","market_har","random_walk"]'


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory, htfi: Callable[..., str]) -> Path:
    """A folder with the bars, the model, its figures and the trials."""
    folder = tmp_path_factory.mktemp("fit")
    paths = market_paths(NUM, WIDTH, 11)
    paths[400:, 2] += np.log(0.05)  # a split that nobody told of
    write_bars(folder / "bars.csv", paths)
    write_bars(folder / "first.csv", paths[:40])
    htfi(
        "models", "fit", str(folder / "bars.csv"), "--out", str(folder / "mine"), "--trees", "20",
        "--set", f"experts={EXPERTS}", "--trials", str(folder / "trials"), "--json", str(folder / "out.json"),
    )  # fmt: skip
    return folder


@pytest.mark.slow
def test_a_fit_compares_itself_with_the_experts_out_of_sample(fitted: Path) -> None:
    told = json.loads((fitted / "out.json").read_text())
    rows = {(row["forecaster"], row["bars"]): row for row in told["rows"]}
    names = {"fused", "ewma", "ewma_gaussian", "market_har", "random_walk", "pooled", WITHOUT}
    assert set(rows) == {(name, bars) for name in names for bars in (1, 5, 22)}
    assert rows["ewma", 1]["n"] > 170 * WIDTH  # all of 2012, to 22 June
    assert 0.8 < rows["ewma", 1]["pooled/row"] < 1.1
    assert isinstance(rows["ewma", 1]["DM"], float)
    assert rows["fused", 1]["pooled/row"] > 0.9
    assert 0.9 < told["metrics"]["bars.fused_with_vs_without"] < 1.05
    text = " ".join(told["notes"])
    assert "1 configurations have been evaluated so far" in text
    assert read_models(fitted / "mine", (1, 5, 22)).digest in text
    assert [word in text for word in ("fit for 2011", "fit for 2012", "newest fit")] == [False, True, True]


def test_each_fit_may_forecast_only_after_what_it_knows(fitted: Path) -> None:
    starts = read_models(fitted / "mine", (1, 5, 22)).starts_ns
    days = [str(np.datetime64(start, "ns").astype("datetime64[D]")) for start in starts]
    assert days[0] == "2012-01-01"
    assert np.datetime64(days[-1]) >= np.datetime64("2010-01-04") + NUM + 9  # the embargo is past


def test_a_run_records_which_model_forecast(fitted: Path, htfi: Callable[..., str]) -> None:
    htfi(
        "run", str(fitted / "first.csv"), "--plain", "--out", str(fitted / "run"),
        HTFI_FORECASTING__EXPERTS='["ewma","pooled"]', HTFI_FORECASTING__POOLED=str(fitted / "mine"),
    )  # fmt: skip
    decision = json.loads((fitted / "run" / "decisions.jsonl").read_text().splitlines()[-1])
    digest = read_models(fitted / "mine", (1, 5, 22)).digest
    assert f"1@{digest[:12]}" in json.dumps(decision)
    settings = (fitted / "run" / "settings.json").read_text()
    assert str(fitted / "mine") not in settings  # where a model lies is no part of the record


@pytest.mark.slow
def test_the_fitted_expert_does_not_leak(fitted: Path) -> None:
    config = replace(ForecastConfig(), experts=("ewma", "pooled"), pooled=str(fitted / "mine"))
    report = check_leaks(load_prices(fitted / "bars.csv"), config, 3, with_arch=False)
    assert report.honest == {}
    assert PLANTED_LEAK in report.planted


def test_a_foundation_model_stands_in_the_same_table(fitted: Path) -> None:
    class Zeroth:
        """States a band of fixed width about zero, whatever it reads."""

        version, max_context = "zeroth", 32

        def quantiles(self, contexts, horizons, levels):
            band = 0.02 * (np.array(levels) - 0.5)
            return np.broadcast_to(band, (len(contexts), len(horizons), len(levels))).copy()

    prices, config = load_prices(fitted / "bars.csv"), ForecastConfig(experts=("ewma",))
    start = int(np.datetime64("2012-03-01", "ns").astype(np.int64))
    models = PooledModels(config.horizons, [start], [typical_trees(config.horizons)])
    compared = compare(prices, config, models, Zeroth(), 0, 100)  # pyright: ignore[reportArgumentType]
    rows = {(row["forecaster"], row["bars"]): row for row in rows_of(compared)}
    assert 60 < rows["chronos", 5]["n"] <= 100 < rows["pooled", 5]["n"]
    assert rows["chronos", 5]["pooled/row"] < 0.9


def fit_process(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return forked.run(
        [*forked.HTFI, "models", "fit", *words, "--out", "mine"],
        capture_output=True, text=True, timeout=120, check=False, cwd=cwd,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["short", "missing file", "not bars", "foundation"])
def test_what_cannot_be_fitted_is_said_in_one_line_and_leaves_no_folder(kind: str, tmp_path: Path) -> None:
    write_bars(tmp_path / "short.csv", market_paths(120, 2, 1))
    (tmp_path / "words.csv").write_text("a,b\n1,2\n")
    words, said = {
        "short": (["short.csv"], "a fit needs 2,000 over 365 days"),
        "missing file": (["nowhere.csv"], "nowhere.csv"),
        "not bars": (["words.csv"], "words"),
        "foundation": (["short.csv", "--foundation", "nowhere"], "nowhere"),
    }[kind]
    done = fit_process(*words, cwd=tmp_path)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert said in done.stderr.splitlines()[-1]
    assert not (tmp_path / "mine").exists()


def test_a_fit_that_is_killed_leaves_the_earlier_model_whole(fitted: Path, tmp_path: Path) -> None:
    out = tmp_path / "mine"
    out.mkdir()
    (out / FILE).write_bytes((fitted / "mine" / FILE).read_bytes())
    child = forked.Popen(
        [*forked.HTFI, "models", "fit", str(fitted / "bars.csv"), "--out", str(out)],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert child.stderr is not None
    with child:
        line = next(line for line in child.stderr if line.startswith("fit for"))
        child.send_signal(signal.SIGKILL)
    assert line.startswith("fit for 2012")
    assert [file.name for file in out.iterdir()] == [FILE]
    assert (out / FILE).read_bytes() == (fitted / "mine" / FILE).read_bytes()
