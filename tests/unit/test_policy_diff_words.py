"""`htfi policy draft` and `diff` show values in words."""

from pathlib import Path

from click.testing import CliRunner

from htfi.adapters.keys.ed25519 import create_key
from htfi.apps.cli.main import cli
from htfi.wiring.bundles import init_folder


def test_changed_values_are_shown_without_pythons_names_for_them(tmp_path: Path) -> None:
    init_folder(tmp_path / "G", 1, [("ann", str(create_key(tmp_path / "ann.key", "ann").verifier_key))])
    words = ["policy", "draft", str(tmp_path / "G"), "--by", "Ann", "--out", str(tmp_path / "b.toml")]
    for assigned in (
        'checkpoints.regimes=["shock", "stressed"]', "checkpoints.notional={SPX=1e6}", "checkpoints.suspected=true",
    ):  # fmt: skip
        words += ["--set", assigned]
    done = CliRunner().invoke(cli, words, env={"COLUMNS": "150"}, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    rows = [
        [cell.strip() for cell in line.split("│")[1:4]] for line in done.output.splitlines() if "│" in line
    ]
    assert rows == [
        ["checkpoints.notional", "none", "SPX: 1000000.0"],
        ["checkpoints.regimes", "none", "shock, stressed"],
        ["checkpoints.suspected", "false", "true"],
    ]
