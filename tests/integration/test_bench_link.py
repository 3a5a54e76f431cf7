"""`htfi bench link` end to end, on real processes: a run of few, and one line for what cannot be measured."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from htfi.domain.errors import InvalidInput
from htfi_eval.bench.link.command import command


@pytest.mark.slow
def test_a_quick_run_writes_every_figure_and_a_page(tmp_path: Path) -> None:
    figures, page = tmp_path / "link.json", tmp_path / "link.html"
    told = ["--quick", "--rtt", "0,20", "--targets", "shipped", "--json", str(figures), "--html", str(page)]
    done = CliRunner().invoke(command, told)
    assert done.exit_code == 0, done.output
    found = json.loads(figures.read_text())
    assert set(found["metrics"]) == {
        "planner_regret_steady", "planner_regret_stepping", "inflight_vs_lockstep", "scale_32_edges",
        "unfairness_p95", "detect_loss_ms", "lost_requests", "overhead_bytes_per_round",
    }  # fmt: skip
    assert found["metrics"]["lost_requests"] == 0
    unlike = [note for note in found["notes"] if "differ" in note]
    assert len(unlike) == 3
    assert all(" 0 of " in note or ", 0 different" in note for note in unlike), unlike
    text = page.read_text()
    assert text.count("<svg") == 1
    assert re.search(r"<(script|link|img|iframe)[^>]* (src|href)=", text) is None


@pytest.mark.parametrize(
    "told", [["--rtt", "near"], ["--rtt", "-5"], ["--jitter", "2"], ["--targets", "moon"]]
)
def test_what_cannot_be_measured_is_told_in_one_line(told: list[str]) -> None:
    done = CliRunner().invoke(command, told)
    assert isinstance(done.exception, InvalidInput)
    assert "\n" not in str(done.exception)
