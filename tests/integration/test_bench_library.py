"""`htfi bench library` measures each figure, beside arch, and counts the statements of the example that it runs."""

import json

import pytest
from click.testing import CliRunner

from htfi.domain.errors import DependencyUnavailable
from htfi_eval.bench.library import command as bench
from htfi_eval.bench.library.tasks import TASKS
from htfi_eval.better import unlisted_metrics

SIZES = {"first_forecast": (40,), "backtest": (40, 2)}
PEER = {"yearly_per_s": 3_000.0, "one_by_one_per_s": 300.0}


def small_task(name, *_):
    """The task itself on little data; the peer's answer as it would be."""
    return PEER if name == "arch" else TASKS[name](*SIZES[name])


def figures(tmp_path):
    """The figures, and what was printed."""
    file = tmp_path / "library.json"
    result = CliRunner().invoke(
        bench.command, ["--quick", "--json", str(file)], catch_exceptions=False, env={"COLUMNS": "160"}
    )
    assert result.exit_code == 0
    return json.loads(file.read_text()), result.stdout


def test_the_bench_reports_every_figure(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "_task", small_task)
    body, _ = figures(tmp_path)
    assert set(body["metrics"]) == {
        *(
            "import_s",
            "first_forecast_s",
            "backtest_forecasts_per_s",
            "backtest_vs_arch",
            "backtest_vs_arch_by_bar",
        ),
        "lines_to_first_forecast",
    }
    assert unlisted_metrics("library", [*body["metrics"], "install_mb"]) == []
    assert all(value > 0 for value in body["metrics"].values())
    assert body["metrics"]["lines_to_first_forecast"] == 3
    rates = {row["what"]: row.get("forecasts/s") for row in body["rows"]}
    ours = next(rate for what, rate in rates.items() if what.startswith("backtest"))
    assert body["metrics"]["backtest_vs_arch"] == ours / rates["arch, fitted yearly, a year at once"]
    assert body["metrics"]["backtest_vs_arch_by_bar"] == ours / rates["arch, fitted yearly, bar by bar"]


def test_an_absent_peer_is_a_line_in_the_table(tmp_path, monkeypatch):
    def without_peer(name, *arguments):
        if name == "arch":
            raise DependencyUnavailable("No module named 'arch'")
        return small_task(name, *arguments)

    monkeypatch.setattr(bench, "_task", without_peer)
    monkeypatch.setattr(bench, "run_example", lambda: 3)
    body, printed = figures(tmp_path)
    assert "backtest_vs_arch" not in body["metrics"]
    assert "arch: No module named 'arch'" in printed


@pytest.mark.slow
def test_the_peer_walks_forward_in_both_ways():
    rates = TASKS["arch"](760, 1)
    assert rates["yearly_per_s"] > rates["one_by_one_per_s"] > 0


def test_a_process_that_fails_is_said_in_one_line():
    with pytest.raises(DependencyUnavailable, match="NameError"):
        bench._run(["-c", "nothing"])
