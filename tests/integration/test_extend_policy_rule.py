"""docs/extend-a-policy-rule.md, followed to the letter in a scratch copy of the package."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import htfi
from htfi.apps.cli.main import cli
from htfi.domain.decision import Decision, PolicyOutcome
from htfi.domain.errors import IntegrityError
from htfi.governance.policy import NUM_VERSIONS, VERSION
from htfi.pipeline.record.entry import decode_entry
from htfi.wiring.ledger import open_ledger_readonly

PACKAGE = Path(htfi.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "extend-a-policy-rule.md"
NUM_DAYS = 60


def extended_package(folder: Path) -> Path:
    """A copy of the package whose policy has the page's function and line; its other parts are links."""
    package = folder / "htfi"
    package.mkdir(parents=True)
    for part in PACKAGE.iterdir():
        if part.name not in ("governance", "__pycache__"):
            (package / part.name).symlink_to(part)
    (package / "governance").mkdir()
    for part in (PACKAGE / "governance").iterdir():
        if part.name not in ("policy.py", "__pycache__"):
            (package / "governance" / part.name).symlink_to(part)
    function, line = re.findall(r"```(?:python|text)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    policy = (PACKAGE / "governance" / "policy.py").read_text(encoding="utf-8")
    head, rules, rest = re.split(r"^(RULES: .*?\n)\)\n", policy, maxsplit=1, flags=re.DOTALL | re.MULTILINE)
    (package / "governance" / "policy.py").write_text(
        f"{head}{function}\n\n{rules}{line})\n{rest}", encoding="utf-8"
    )
    return folder


def run_htfi(*arguments: str, package: Path) -> subprocess.CompletedProcess[str]:
    paths = [str(package), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.run(
        [sys.executable, "-m", "htfi", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
    )


def made_here(prices: Path, folder: Path) -> list[Decision]:
    done = CliRunner().invoke(cli, ["run", str(prices), "--out", str(folder)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return decisions(folder)


def made_by(prices: Path, folder: Path, package: Path) -> list[Decision]:
    done = run_htfi("run", str(prices), "--out", str(folder), package=package)
    assert done.returncode == 0, done.stderr
    return decisions(folder)


def decisions(folder: Path) -> list[Decision]:
    ledger = open_ledger_readonly(folder)
    try:
        return [decode_entry(entry) for entry in ledger.entries()]
    finally:
        ledger.close()


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    """Daily bars, of which the last has hardly any volume."""
    file = tmp_path / "ACME.csv"
    lines = ["date,close,volume"]
    for day in range(NUM_DAYS):
        volume = 3 if day == NUM_DAYS - 1 else 5_000 + day
        lines.append(f"2024-{1 + day // 28:02d}-{1 + day % 28:02d},{100 + day * 7 % 13 / 10},{volume}")
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def test_one_function_and_one_line_add_a_rule_and_older_ledgers_verify(prices: Path, tmp_path: Path) -> None:
    package = extended_package(tmp_path / "scratch")
    before, after = tmp_path / "before", tmp_path / "after"
    plain, extended = made_here(prices, before), made_by(prices, after, package)
    assert len(plain) == len(extended) > 10
    assert {decision.models["policy"] for decision in plain} == {VERSION}
    assert {decision.models["policy"] for decision in extended} == {f"policy/{NUM_VERSIONS + 1}"}
    objections = [
        decision.verdict
        for decision in extended
        if any(reason.startswith("thin-volume: ") for reason in decision.verdict.reasons)
    ]
    assert objections == [extended[-1].verdict]
    assert extended[-1].verdict.outcome is PolicyOutcome.CAUTION
    assert plain[-1].verdict.outcome is PolicyOutcome.RELEASE
    for folder in (before, after):
        verified = run_htfi("ledger", "verify", str(folder), "--recompute", package=package)
        assert verified.returncode == 0, verified.stderr
    with pytest.raises(IntegrityError, match=f"policy 'policy/{NUM_VERSIONS + 1}' is not known here"):
        CliRunner().invoke(cli, ["ledger", "verify", str(after), "--recompute"], catch_exceptions=False)
