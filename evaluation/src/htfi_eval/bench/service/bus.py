"""Decisions onto NATS and ticks from it, beside its client library alone, where a nats-server is at hand."""

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from htfi.domain.errors import DependencyUnavailable
from htfi.domain.events import Trade
from htfi.domain.time import NS_PER_S, SystemClock, format_ns
from htfi.pipeline.publishing import PublishedLine
from htfi.wiring.bus import open_decision_bus
from htfi.wiring.feeds import open_feed, resolve
from htfi.wiring.in_memory_run import MemoryQuarantine

NUM_DECISIONS, NUM_TICKS, NUM_TURNS = 4_096, 20_000, 3
GROUP = 256  # decisions under way at once
_FETCHED = 500  # below the 1,000 that a consumer leaves unacknowledged unless told otherwise
_BEGIN_NS = 1_709_301_600 * NS_PER_S


def nats_server() -> str | None:
    """Its path, the environment's own before the system's; None where there is none."""
    own = shutil.which("nats-server", path=str(Path(sys.executable).parent))
    return os.environ.get("HTFI_NATS_SERVER") or own or shutil.which("nats-server")


def bus_rates(
    server: str, folder: Path, content: bytes, num_decisions: int, num_ticks: int, num_turns: int
) -> dict[str, float]:
    """A second: decisions published and ticks read, ours and by nats-py alone, each in turn; medians.

    Decisions have the `content` given and are acknowledged; ticks of ours are parsed and in the inbox, on the disk.
    Raises: DependencyUnavailable.
    """
    import nats

    def with_client(work: Callable[[Any], Awaitable[None]]) -> None:
        async def connected() -> None:
            client = await nats.connect(url)  # pyright: ignore[reportUnknownMemberType] - untyped options
            try:
                await work(client.jetstream())  # pyright: ignore[reportUnknownMemberType] - untyped options
            finally:
                await client.close()

        asyncio.run(connected())

    folder.mkdir()
    ticks = [_tick(number) for number in range(num_ticks)]
    found: dict[str, list[float]] = {"publish": [], "publish_bare": [], "read": [], "read_bare": []}
    with _running(server, folder / "server") as url:
        with_client(lambda stream: _fill(stream, ticks))
        for turn in range(num_turns):
            lines = [
                PublishedLine(at, f"{at:064x}", "S00", "1m", "released", content)
                for at in range(num_decisions)
            ]
            bus = open_decision_bus(f"{url}/OURS{turn}?prefix=ours{turn}.x")
            bus.open("bench")
            began = time.perf_counter()
            for at in range(0, num_decisions, GROUP):
                bus.publish(lines[at : at + GROUP])
            found["publish"].append(num_decisions / (time.perf_counter() - began))
            bus.close()
            found["publish_bare"].append(_rate(with_client, _publish_bare, turn, content, num_decisions))
            found["read"].append(
                num_ticks / _read(f"{url}/TICKS?until=now&stamp=row", folder / f"r{turn}", num_ticks)
            )
            found["read_bare"].append(_rate(with_client, _read_bare, turn, b"", num_ticks))
    return {name: median(rates) for name, rates in found.items()}


def _tick(number: int) -> bytes:
    row = {"ts": format_ns(_BEGIN_NS + number * NS_PER_S), "symbol": "A", "price": 100.0 + number % 7}
    return json.dumps(row).encode()


def _rate(
    with_client: Callable[[Callable[[Any], Awaitable[None]]], None],
    work: Callable[[Any, int, bytes, int, list[float]], Awaitable[None]],
    turn: int,
    content: bytes,
    num: int,
) -> float:
    took: list[float] = []
    with_client(lambda stream: work(stream, turn, content, num, took))
    return num / took[0]


async def _fill(stream: Any, ticks: list[bytes]) -> None:
    await stream.add_stream(name="TICKS", subjects=["ticks.>"])
    for at in range(0, len(ticks), _FETCHED):
        group = [await stream.publish_async("ticks.A", one) for one in ticks[at : at + _FETCHED]]
        await asyncio.gather(*group)


async def _publish_bare(stream: Any, turn: int, content: bytes, num: int, took: list[float]) -> None:
    await stream.add_stream(name=f"BARE{turn}", subjects=[f"bare{turn}.>"])
    began = time.perf_counter()
    for at in range(0, num, GROUP):
        group = [
            await stream.publish_async(f"bare{turn}.x.S00.1m", content, headers={"Nats-Msg-Id": str(number)})
            for number in range(at, min(at + GROUP, num))
        ]
        await asyncio.gather(*group)
    took.append(time.perf_counter() - began)


async def _read_bare(stream: Any, turn: int, content: bytes, num: int, took: list[float]) -> None:
    del content
    began, seen = time.perf_counter(), 0
    subscription = await stream.pull_subscribe("ticks.>", durable=f"bare{turn}", stream="TICKS")
    while seen < num:
        for message in await subscription.fetch(min(_FETCHED, num - seen), timeout=5):
            await message.ack()
            seen += 1
    took.append(time.perf_counter() - began)


def _read(url: str, folder: Path, expected: int) -> float:
    """Seconds until the feed has ended. Raises: DependencyUnavailable where not all came."""
    folder.mkdir()
    began = time.perf_counter()
    feed = open_feed(
        resolve([url]), inbox=folder / "inbox", quarantine=MemoryQuarantine(), clock=SystemClock()
    )
    num = sum(isinstance(item, Trade) for item in feed)
    seconds = time.perf_counter() - began
    feed.close()
    if num != expected:
        raise DependencyUnavailable(f"of {expected:,} ticks {num:,} came from the bus")
    return seconds


@contextmanager
def _running(server: str, folder: Path) -> Generator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    command = [server, "-js", "-sd", str(folder), "-a", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until_s = time.monotonic() + 10.0
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > until_s:
                    raise DependencyUnavailable(f"{server} does not start") from None
                time.sleep(0.01)
        yield f"nats://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()
