"""`htfi bench service`: a quick run gives the figures it promises."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from htfi.apps.cli.main import cli
from htfi_eval.bench.service.bus import nats_server


@pytest.mark.slow
def test_quick_run_has_every_figure(tmp_path: Path) -> None:
    file = tmp_path / "service.json"
    done = CliRunner().invoke(cli, ["bench", "service", "--quick", "--json", str(file)])
    assert done.exit_code == 0, done.output
    metrics = json.loads(file.read_text())["metrics"]
    names = {"forecast_p99_ms", "forecast_p99_bare_ms", "stream_lag_p99_ms", "start_s", "page_kb"}
    names |= {"quiet_tenant_p99_ratio", "chat_overhead_ms"}
    if nats_server():
        names |= {"bus_publish_per_s", "bus_publish_ratio", "bus_read_per_s", "bus_read_ratio"}
    assert set(metrics) == names
    assert all(value > 0 for value in metrics.values())
