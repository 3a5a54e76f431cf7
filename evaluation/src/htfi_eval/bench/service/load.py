"""The clients of `htfi bench service`, in a process of their own: requests at a rate, or subscribers of a stream.

python -m htfi_eval.bench.service.load requests PORT PATH CONNECTIONS PER_SECOND SECONDS
python -m htfi_eval.bench.service.load stream PORT SUBSCRIBERS WHICH

Prints one line of JSON. Times are of the system's monotonic clock, which all processes share.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

_PATIENCE_S = 60.0


class _Client(asyncio.Protocol):
    """A connection that asks one path again and again; an answer is whole once its stated length is there."""

    def __init__(self, path: str, done: Callable[[float], None]) -> None:
        self._request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
        self._done = done
        self._answer = bytearray()
        self._transport: asyncio.Transport | None = None
        self._due_s: list[float] = []
        self.num_failed = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def ask(self) -> None:
        """One request more; it waits for the answer before, and its time counts from now."""
        self._due_s.append(time.perf_counter())
        if len(self._due_s) == 1:
            self._send()

    def _send(self) -> None:
        assert self._transport is not None
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._answer += data
        head, found, body = self._answer.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        if len(body) < length:
            return
        self.num_failed += not head.startswith(b"HTTP/1.1 200")
        self._answer.clear()
        self._done(time.perf_counter() - self._due_s.pop(0))
        if self._due_s:
            self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.num_failed += len(self._due_s)


async def requests(
    port: int, path: str, num_connections: int, per_second: float, seconds: float
) -> dict[str, object]:
    """Requests at a rate, spread over the connections in turn, whether or not answers come."""
    loop = asyncio.get_running_loop()
    times_s: list[float] = []
    made = [
        await loop.create_connection(lambda: _Client(path, times_s.append), "127.0.0.1", port)
        for _ in range(num_connections)
    ]
    clients = [client for _, client in made]
    num, began = int(per_second * seconds), loop.time()
    for k in range(num):
        wait = began + k / per_second - loop.time()
        if wait > 0:
            await asyncio.sleep(wait)
        clients[k % num_connections].ask()
    end = loop.time() + _PATIENCE_S
    while len(times_s) + sum(one.num_failed for one in clients) < num and loop.time() < end:
        await asyncio.sleep(0.01)
    return {"times_ms": [1e3 * one for one in times_s], "failed": num - len(times_s)}


@dataclass(slots=True)
class _Arrivals:
    """When the subscriber that counts, the so-manyeth, had each event."""

    which: int
    num_by_id: dict[int, int] = field(default_factory=dict[int, int])
    at_ns: dict[int, int] = field(default_factory=dict[int, int])

    def add(self, index: int) -> None:
        num = self.num_by_id[index] = self.num_by_id.get(index, 0) + 1
        if num == self.which:
            self.at_ns[index] = time.monotonic_ns()


class _Subscriber(asyncio.Protocol):
    def __init__(self, arrivals: _Arrivals) -> None:
        self._arrivals = arrivals
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).write(b"GET /v1/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"id: "):
                self._arrivals.add(int(line[4:]))


async def stream(port: int, num_subscribers: int, which: int) -> dict[str, object]:
    """Subscribe so many; `ready` on standard output once all are; then when the `which`-th had each event.

    Standard input says, after the last, how many there were.
    """
    loop, arrivals = asyncio.get_running_loop(), _Arrivals(which)
    for _ in range(num_subscribers):
        await loop.create_connection(lambda: _Subscriber(arrivals), "127.0.0.1", port)
    await asyncio.sleep(0.5)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    num = int(await loop.run_in_executor(None, sys.stdin.readline))
    end = loop.time() + _PATIENCE_S
    while loop.time() < end and sum(one == num_subscribers for one in arrivals.num_by_id.values()) < num:
        await asyncio.sleep(0.01)
    return {
        "at_ns": {str(index): at for index, at in arrivals.at_ns.items()},
        "whole": sum(one == num_subscribers for one in arrivals.num_by_id.values()),
    }


if __name__ == "__main__":
    kind, *words = sys.argv[1:]
    if kind == "requests":
        answer = asyncio.run(
            requests(int(words[0]), words[1], int(words[2]), float(words[3]), float(words[4]))
        )
    else:
        answer = asyncio.run(stream(*map(int, words)))  # type: ignore[arg-type]
    sys.stdout.write(json.dumps(answer) + "\n")
