"""`htfi eval portfolio` on bars of one's own: figures, charts and trials; ugly data are a reason, never a traceback."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from htfi.domain.errors import InvalidInput
from htfi_eval.eval.portfolio.command import command
from htfi_eval.eval.portfolio.walk import complete_series, energy_score, make_books, variogram_score
from htfi_eval.eval.trials import list_trials


def write_bars(path: Path, moves: np.ndarray, skip: float = 0.0) -> None:
    rng = np.random.default_rng(1)
    closes = 100.0 * np.exp(np.cumsum(moves, axis=0))
    days = np.datetime64("2015-01-05") + np.arange(len(moves))
    lines = ["date,symbol,open,high,low,close"]
    for day, row in zip(days.tolist(), closes, strict=True):
        for n, close in enumerate(row.tolist()):
            if rng.random() >= skip:
                lines.append(f"{day},S{n},{close:.6f},{close * 1.004:.6f},{close * 0.996:.6f},{close:.6f}")
    path.write_text("\n".join(lines) + "\n")


def invoke(tmp_path: Path, *arguments: str) -> Result:
    files = [
        "--json",
        str(tmp_path / "p.json"),
        "--html",
        str(tmp_path / "p.html"),
        "--trials",
        str(tmp_path / "trials"),
    ]
    return CliRunner().invoke(command, [str(tmp_path / "bars.csv"), *arguments, *files])


def test_figures_charts_and_trials_of_a_file_of_bars(tmp_path: Path):
    rng = np.random.default_rng(2)
    common = rng.standard_normal((260, 1)) * 0.008
    write_bars(tmp_path / "bars.csv", common + 0.006 * rng.standard_normal((260, 4)))
    done = invoke(tmp_path)
    assert done.exit_code == 0, done.output
    told = json.loads((tmp_path / "p.json").read_text())
    assert len(told["rows"]) == 2 * 3 * 5  # horizons, books, methods
    assert 0.0 <= told["metrics"]["passes_joint_scenarios"] <= 1.0
    assert {chart["type"] for chart in told["charts"]} >= {"fan", "lines", "bars", "histogram"}
    assert any("rules are left out" in note for note in told["notes"])
    assert (tmp_path / "p.html").stat().st_size > 1000
    assert {trial.settings["method"] for trial in list_trials(tmp_path / "trials")} >= {
        "joint scenarios",
        "RiskMetrics",
    }


@pytest.mark.parametrize("kind", ["one series", "constant", "gaps"])
def test_constant_prices_give_figures_and_too_many_gaps_one_clear_line(tmp_path: Path, kind: str):
    moves = 0.01 * np.random.default_rng(3).standard_normal((160, 1 if kind == "one series" else 3))
    if kind == "constant":
        moves[:, 1] = 0.0
    write_bars(tmp_path / "bars.csv", moves, skip=0.3 if kind == "gaps" else 0.0)
    done = invoke(tmp_path, "--no-rules")
    assert isinstance(done.exception, InvalidInput if kind == "gaps" else type(None)), done.exception


def test_energy_score_is_the_crps_of_one_series_and_blind_to_order():
    rng = np.random.default_rng(4)
    scenarios = np.repeat(rng.standard_normal(500), 2)[:, None]  # neighbours alike
    found = energy_score(scenarios, np.array([0.3]))
    exact = np.abs(scenarios - 0.3).mean() - 0.5 * np.abs(scenarios - scenarios.T).mean()
    assert found == pytest.approx(exact, rel=0.05)


def test_scores_of_the_whole_prefer_the_true_dependence():
    rng = np.random.default_rng(5)
    common = rng.standard_normal((400, 1))
    true = 0.9 * common + 0.45 * rng.standard_normal((400, 8))
    apart = rng.permuted(true, axis=0)
    came = 0.9 * rng.standard_normal((200, 1)) + 0.45 * rng.standard_normal((200, 8))
    assert np.mean([energy_score(true, row) for row in came]) < np.mean(
        [energy_score(apart, row) for row in came]
    )
    assert np.mean([variogram_score(true, row) for row in came]) < np.mean(
        [variogram_score(apart, row) for row in came]
    )


def test_books_of_few_series_hold_all_they_can():
    for num in (1, 2, 3, 50):
        books = make_books(num, 0)
        assert np.abs(books.notionals).sum(axis=1) == pytest.approx(np.ones(3))


def test_panel_without_a_complete_series_is_refused():
    from htfi_eval.eval.prices import Prices

    close = np.full((100, 2), 10.0)
    close[1::2] = np.nan
    ends_ns = np.arange(100)
    with pytest.raises(InvalidInput, match="no series"):
        complete_series(Prices("made", ("A", "B"), "1d", ends_ns, ends_ns, close, close, close, close), 2, 50)


@pytest.mark.parametrize("costs", ["nan", "inf", "-1"])
def test_costs_that_are_not_a_number_from_zero_are_refused(tmp_path: Path, costs: str):
    done = invoke(tmp_path, "--costs-bps", costs)
    assert done.exit_code == 2
    assert "--costs-bps" in done.output
    assert not (tmp_path / "p.json").exists()
