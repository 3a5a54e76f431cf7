"""`htfi bench execution`: a quick run gives the figures it promises."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from htfi.apps.cli.main import cli


@pytest.mark.slow
def test_quick_run_has_every_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("htfi_eval.bench.execution.nautilus.is_installed", lambda _: False)
    file = tmp_path / "execution.json"
    done = CliRunner().invoke(
        cli, ["bench", "execution", "orders", "venue", "cancels", "--quick", "--json", str(file)]
    )
    assert done.exit_code == 0, done.output
    metrics = json.loads(file.read_text())["metrics"]
    promised = {"orders_per_s", "tick_to_order_p99_ms", "cancel_1000_ms", "venue_events_per_s"}
    assert set(metrics) == promised | {"fix_cancel_1000_ms"}
    assert all(value > 0 for value in metrics.values())
    assert "No figure of NautilusTrader: it is not installed" in " ".join(done.output.split())


def test_quick_run_of_fix_has_our_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fix = "htfi_eval.bench.execution.fix"
    monkeypatch.setattr(f"{fix}.ENGINE", tmp_path)  # peers and the other engine are not part of it
    monkeypatch.setattr(f"{fix}.is_installed", lambda _: False)
    file = tmp_path / "fix.json"
    done = CliRunner().invoke(cli, ["bench", "execution", "fix", "--quick", "--json", str(file)])
    assert done.exit_code == 0, done.output
    metrics = json.loads(file.read_text())["metrics"]
    assert set(metrics) == {"fix_share_p50_us", "fix_share_p99_us"}
    said = " ".join(done.output.split())
    assert "No round trip with jspurefix: it is not installed" in said
    assert "No round trip with QuickFIX: it is not installed" in said
    assert 0 < metrics["fix_share_p50_us"] <= metrics["fix_share_p99_us"]
