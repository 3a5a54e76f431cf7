"""An independent FIX engine, jspurefix, on the other side: we are initiator and acceptor, with orders each way."""

import asyncio
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from fix_exchange import check_exchange
from htfi_eval.bench.execution.fix import _round_trips

ROOT = Path(__file__).parents[2]
SOURCE, FOLDER = ROOT / "tests/jspurefix", ROOT / "build/jspurefix"


def is_installed() -> bool:
    installed = FOLDER / "node_modules/jspurefix/package.json"
    wanted = json.loads((SOURCE / "package.json").read_text())["dependencies"]["jspurefix"]
    return (
        shutil.which("node") is not None
        and installed.is_file()
        and json.loads(installed.read_text())["version"] == wanted
    )


def install() -> None:
    """Into a folder of the build, by the lock file; skips the test where npm or its registry cannot be reached."""
    if is_installed():
        return
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(SOURCE / name, FOLDER / name)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        pytest.skip(f"npm cannot install jspurefix: {done.stderr.strip()[-200:]}")


def check(folder: Path, role: str, version: str, num_orders: int) -> None:
    shutil.copy(SOURCE / "counterparty.mjs", FOLDER / "counterparty.mjs")
    check_exchange(folder, ["node", "counterparty.mjs"], FOLDER, role, version, num_orders)


@pytest.mark.slow
@pytest.mark.skipif(
    not is_installed(), reason="jspurefix is not in build/jspurefix: `make test-all` installs it"
)
@pytest.mark.parametrize(("role", "version"), [("initiator", "FIX.4.4"), ("acceptor", "FIX.4.4")])
def test_a_hundred_orders_each_way_with_jspurefix(tmp_path: Path, role: str, version: str) -> None:
    check(tmp_path, role, version, 100)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["FIX.4.4", "FIX.5.0SP2"])
@pytest.mark.parametrize("role", ["initiator", "acceptor"])
def test_ten_thousand_orders_each_way_with_jspurefix(tmp_path: Path, role: str, version: str) -> None:
    install()
    check(tmp_path, role, version, 10_000)


@pytest.mark.slow
def test_the_round_trip_that_is_measured_comes_about(monkeypatch: pytest.MonkeyPatch) -> None:
    install()
    monkeypatch.chdir(ROOT)
    trips = asyncio.run(_round_trips(5))
    assert trips is not None
    assert len(trips) == 5
    assert min(trips) > 0.0
