"""The clients of `htfi bench service`, in a process of their own: requests at a rate, or subscribers of a stream.

python -m htfi_eval.bench.service.load requests PORT PATH CONNECTIONS PER_SECOND SECONDS
python -m htfi_eval.bench.service.load stream PORT SUBSCRIBERS WHICH

Prints one line of JSON. Times are of the system's monotonic clock, which all processes share.
"""

import asyncio
import json
import sys
import time
from dataclasses import dataclass, field
from typing import cast

from htfi_eval.bench.service.connections import ask_at_rate, open_connections

_PATIENCE_S = 60.0


async def requests(
    port: int, path: str, num_connections: int, per_second: float, seconds: float
) -> dict[str, object]:
    """Requests at a rate, spread over the connections in turn, whether or not answers come."""
    answers: list[tuple[str, float]] = []
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    clients = await open_connections(
        port, request, lambda status, seconds: answers.append((status, seconds)), num_connections
    )
    num = int(per_second * seconds)
    await ask_at_rate(clients, per_second, num)
    end = time.perf_counter() + _PATIENCE_S
    while any(one.num_open and not one.is_lost for one in clients) and time.perf_counter() < end:
        await asyncio.sleep(0.01)
    times_s = [took_s for status, took_s in answers if status == "200"]
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
