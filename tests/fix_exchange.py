"""Orders each way between us and an independent FIX engine in a process of its own.

The engine is a command that takes its role, a port, the number of orders and the version; it sends orders P0, P1, …,
answers ours with a report, and prints one line of JSON once it has all: `orders`, `reports`, `problems`.
"""

import asyncio
import json
import socket
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

from fix_peer import Recorder, listen, order_fields, runner_of, until
from htfi.adapters.fix.connections import Initiator
from htfi.adapters.fix.settings import FixEndpoint
from htfi.execution.fix.config import FixSession


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


async def exchange(
    folder: Path, command: list[str], place: Path, role: str, version: str, num_orders: int
) -> tuple[dict[str, Any], Recorder]:
    """What the counterparty has seen, and what we have; we are `role`. It is `command`, run in the folder `place`."""
    ours = Recorder(answers=True)
    settings = FixSession(
        "HTFI", "PEER", version, initiator=role == "initiator", reset_on_logon=role == "initiator"
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
    other = "initiator" if role == "acceptor" else "acceptor"
    process = await asyncio.create_subprocess_exec(
        *command,
        other,
        str(port),
        str(num_orders),
        version,
        cwd=place,
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


def check_exchange(
    folder: Path, command: list[str], place: Path, role: str, version: str, num_orders: int
) -> None:
    """Every order and every report arrives once and in order on both sides; nothing else is sent."""
    seen, ours = asyncio.run(exchange(folder, command, place, role, version, num_orders))
    assert seen["problems"] == []
    assert seen["orders"] == [f"O{n}" for n in range(num_orders)]
    assert seen["reports"] == [f"P{n}" for n in range(num_orders)]
    assert [one.get(11) for one in ours.messages if one.msg_type == "D"] == [
        f"P{n}" for n in range(num_orders)
    ]
    assert [one.get(11) for one in ours.messages if one.msg_type == "8"] == [
        f"O{n}" for n in range(num_orders)
    ]
    assert {one.msg_type for one in ours.messages} == {"D", "8"}
    assert ours.ends == ["logged out"]
