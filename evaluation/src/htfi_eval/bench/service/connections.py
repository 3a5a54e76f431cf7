"""Connections that ask one request again and again, at a rate, for the processes that load a service."""

import asyncio
import time
from collections.abc import Callable
from typing import cast


class AskingConnection(asyncio.Protocol):
    """An answer is whole once its stated length is there; `done` gets its status and the seconds since it was due."""

    def __init__(self, request: bytes, done: Callable[[str, float], None]) -> None:
        self._request, self._done = request, done
        self._answer = bytearray()
        self._transport: asyncio.Transport | None = None
        self._due_s: list[float] = []

    @property
    def num_open(self) -> int:
        """Requests without an answer."""
        return len(self._due_s)

    @property
    def is_lost(self) -> bool:
        return self._transport is None

    def withdraw(self) -> int:
        """Forget the requests that were not sent yet; how many they were."""
        num = len(self._due_s[1:])
        del self._due_s[1:]
        return num

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def ask(self) -> None:
        """One request more; it waits for the answer before, and its time counts from now."""
        self._due_s.append(time.perf_counter())
        if len(self._due_s) == 1:
            self._send()

    def _send(self) -> None:
        if self._transport is not None:
            self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._answer += data
        head, found, body = self._answer.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        if len(body) < length:
            return
        status = head[9:12].decode()
        self._answer.clear()
        self._done(status, time.perf_counter() - self._due_s.pop(0))
        if self._due_s:
            self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._transport = None


async def open_connections(
    port: int, request: bytes, done: Callable[[str, float], None], num: int
) -> list[AskingConnection]:
    """So many to a port of this machine."""
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(lambda: AskingConnection(request, done), "127.0.0.1", port)
        for _ in range(num)
    ]
    return [connection for _, connection in made]


async def ask_at_rate(connections: list[AskingConnection], per_second: float, num: int) -> None:
    """So many requests at a rate, spread over the connections in turn, whether or not answers come."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    for k in range(num):
        wait_s = began + k / per_second - loop.time()
        if wait_s > 0:
            await asyncio.sleep(wait_s)
        connections[k % len(connections)].ask()
