"""`htfi bench governance`: a quick run of its parts gives the figures it promises."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from htfi.apps.cli.main import cli


@pytest.mark.slow
def test_a_quick_run_times_stops_of_a_live_run(tmp_path: Path) -> None:
    file = tmp_path / "governance.json"
    found = CliRunner().invoke(cli, ["bench", "governance", "stops", "--quick", "--json", str(file)])
    assert found.exit_code == 0, found.output
    metrics = json.loads(file.read_text())["metrics"]
    assert 0.0 < metrics["stop_local_p50_ms"] <= metrics["stop_local_p99_ms"]


@pytest.mark.slow
def test_a_quick_run_times_stops_over_a_cluster(tmp_path: Path) -> None:
    file = tmp_path / "governance.json"
    found = CliRunner().invoke(cli, ["bench", "governance", "cluster-stops", "--quick", "--json", str(file)])
    assert found.exit_code == 0, found.output
    metrics = json.loads(file.read_text())["metrics"]
    assert 0.0 < metrics["stop_cluster_p50_ms"] <= metrics["stop_cluster_p99_ms"]


def test_an_unknown_part_is_refused_in_one_line() -> None:
    found = CliRunner().invoke(cli, ["bench", "governance", "nothing"])
    assert found.exit_code == 1
    assert "there is no part 'nothing': choose from stops, cluster-stops, breakers, bundles" in str(
        found.exception
    )
