"""`htfi bench execution`: a quick run gives the figures it promises."""

import json
from pathlib import Path

from click.testing import CliRunner

from htfi.apps.cli.main import cli


def test_quick_run_has_every_figure(tmp_path: Path) -> None:
    file = tmp_path / "execution.json"
    done = CliRunner().invoke(cli, ["bench", "execution", "orders", "venue", "--quick", "--json", str(file)])
    assert done.exit_code == 0, done.output
    metrics = json.loads(file.read_text())["metrics"]
    assert set(metrics) == {"orders_per_s", "tick_to_order_p99_ms", "cancel_1000_ms", "venue_events_per_s"}
    assert all(value > 0 for value in metrics.values())
