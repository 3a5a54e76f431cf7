"""An independent FIX engine, jspurefix, on the other side: we are initiator and acceptor, with orders each way."""

import asyncio
import json
import shutil
import socket
import subprocess
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import pytest

from fix_peer import Recorder, listen, order_fields, runner_of, until
from htfi.adapters.fix.connections import Initiator
from htfi.adapters.fix.settings import FixEndpoint
from htfi.execution.fix.config import FixSession

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


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


async def exchange(folder: Path, role: str, version: str, num_orders: int) -> tuple[dict[str, Any], Recorder]:
    """What the counterparty has seen, and what we have; we are `role`."""
    ours = Recorder(answers=True)
    settings = FixSession(
        "HTFI", "JSPF", version, initiator=role == "initiator", reset_on_logon=role == "initiator"
    )
    runner = runner_of(folder, settings, ours)
    ours.then = lambda one: [one.send("D", order_fields(f"O{n}")) for n in range(num_orders)]
    acceptor, initiator, running = None, None, None
    if role == "acceptor":
        acceptor, port = await listen(runner)
    else:
        port = free_port()
        initiator = Initiator(
            FixEndpoint(settings, "127.0.0.1", port, reconnect_s=0.05, max_reconnect_s=0.05), runner
        )
    shutil.copy(SOURCE / "counterparty.mjs", FOLDER / "counterparty.mjs")
    other = "initiator" if role == "acceptor" else "acceptor"
    process = await asyncio.create_subprocess_exec(
        "node",
        "counterparty.mjs",
        other,
        str(port),
        str(num_orders),
        version,
        cwd=FOLDER,
        stdout=PIPE,
        limit=2**24,
    )
    try:
        if initiator is not None:
            running = asyncio.ensure_future(initiator.run())
        assert process.stdout is not None
        seen = json.loads(await asyncio.wait_for(process.stdout.readline(), 120.0))
        if initiator is not None and running is not None:
            initiator.close()
            await running
        await until(lambda: ours.ends != [], "the logout")
        if acceptor is not None:
            await acceptor.close()
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
    return seen, ours


def check(folder: Path, role: str, version: str, num_orders: int) -> None:
    seen, ours = asyncio.run(exchange(folder, role, version, num_orders))
    assert seen["problems"] == []
    assert seen["orders"] == [f"O{n}" for n in range(num_orders)]
    assert seen["reports"] == [f"J{n}" for n in range(num_orders)]
    assert [one.get(11) for one in ours.messages if one.msg_type == "D"] == [
        f"J{n}" for n in range(num_orders)
    ]
    assert [one.get(11) for one in ours.messages if one.msg_type == "8"] == [
        f"O{n}" for n in range(num_orders)
    ]
    assert {one.msg_type for one in ours.messages} == {"D", "8"}
    assert ours.ends == ["logged out"]


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
