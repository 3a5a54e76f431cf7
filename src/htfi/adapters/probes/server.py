"""Answers GET /live, GET /ready and further pages over HTTP/1.1 from one thread of its own; runs, edges and clouds
start it.

200 where the answer is yes, 503 where it is no, with a small JSON body. One request a connection, each within a bound,
so that no client can hold it up.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import NamedTuple

from htfi.domain.errors import DependencyUnavailable, InvalidInput

MAX_REQUEST_BYTES = 8192
_START_S, _STOP_S = 5.0, 2.0
_LINGER_S = 0.01  # a connection on its way in becomes a task, an aborted one closes its socket
_REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    503: "Service Unavailable",
}


class ProbeResult(NamedTuple):
    """An answer, and why."""

    holds: bool
    reason: str = ""


Probe = Callable[[], ProbeResult]
Page = Callable[[str], tuple[str, bytes]]
"""The content type and the content of a page, given a request's `Accept`. It must not wait."""


class ProbeServer:
    """A server at `address` (host:port, port 0: any, see `port`), with `pages` by path beside its probes.

    `live` and `ready` are asked in its thread and must not wait; one that raises counts as no.
    Raises: InvalidInput for an address that is none, DependencyUnavailable where it cannot listen.
    """

    def __init__(
        self,
        address: str,
        live: Probe,
        ready: Probe,
        *,
        pages: Mapping[str, Page] = MappingProxyType({}),
        answer_s: float = 1.0,
        num_connections: int = 64,
    ) -> None:
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65535:
            raise InvalidInput(f"'{address}' is not an address for probes: write HOST:PORT")
        self._probes = {"/live": live, "/ready": ready}
        self._pages = pages
        self._answer_s, self._num_connections = answer_s, num_connections
        self._num_open = 0
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._started = threading.Event()
        self._failure: OSError | None = None
        self.port = 0
        self._thread = threading.Thread(
            target=self._work, args=(host.strip("[]"), int(port)), name="probes", daemon=True
        )
        self._thread.start()
        self._started.wait(_START_S)
        if self._failure is not None or self.port == 0:
            self._thread.join(_STOP_S)
            why = self._failure.strerror if self._failure else "its thread does not start"
            raise DependencyUnavailable(f"cannot listen on {address} for probes: {why}") from self._failure

    def __enter__(self) -> "ProbeServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Twice is once."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(_STOP_S)

    def _work(self, host: str, port: int) -> None:
        try:
            self._loop.run_until_complete(self._serve(host, port))
        except OSError as error:
            self._failure = error
        finally:
            self._loop.close()
            self._started.set()

    async def _serve(self, host: str, port: int) -> None:
        server = await asyncio.start_server(self._connected, host, port, limit=MAX_REQUEST_BYTES)
        try:
            self.port = server.sockets[0].getsockname()[1]
            self._started.set()
            await self._stopping.wait()
        finally:
            # Closed at once, asyncio (3.11) would lose a connection that it has just accepted.
            for listening in server.sockets:
                self._loop.remove_reader(listening.fileno())
            await asyncio.sleep(_LINGER_S)
            server.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await asyncio.sleep(_LINGER_S)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._num_open += 1
        try:
            if self._num_open <= self._num_connections:
                async with asyncio.timeout(self._answer_s):
                    writer.write(self._answer(await reader.readuntil(b"\r\n\r\n")))
                    await writer.drain()
                    writer.write_eof()
                    await reader.read(1)  # until the client has read it: closing sooner could take it away
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        except asyncio.CancelledError:  # by close; asyncio's streams report a handler that ends so as a fault
            pass
        finally:
            self._num_open -= 1
            writer.transport.abort()

    def _answer(self, request: bytes) -> bytes:
        method, _, rest = request.partition(b"\r\n")[0].decode("latin-1").partition(" ")
        path, _, version = rest.partition(" ")
        if not version.startswith("HTTP/1."):
            return _json_response(400, {"error": "not an HTTP/1.1 request"})
        path, is_head = path.partition("?")[0], method == "HEAD"
        ask, page = self._probes.get(path), self._pages.get(path)
        if ask is None and page is None:
            return _json_response(404, {"error": f"request {', '.join([*self._probes, *self._pages])}"})
        if method not in ("GET", "HEAD"):
            return _json_response(405, {"error": "use GET"})
        if page is not None:
            try:
                content_type, content = page(_accepted(request))
            except Exception as error:  # noqa: BLE001 - whatever fails, a scraper sees that it failed
                return _json_response(503, {"error": f"{type(error).__name__}: {error}"})
            return _response(200, content_type, content, is_head)
        assert ask is not None
        try:
            holds, words = ask()
        except Exception as error:  # noqa: BLE001 - whatever fails, the answer is no
            holds, words = False, f"unknown: {error}"
        return _json_response(200 if holds else 503, {"ok": holds, "words": words}, is_head)


def _accepted(request: bytes) -> str:
    """The `Accept` header of a request; '' where it has none."""
    for line in request.split(b"\r\n")[1:]:
        name, _, value = line.decode("latin-1").partition(":")
        if name.strip().lower() == "accept":
            return value.strip()
    return ""


def _json_response(status: int, body: dict[str, object], only_head: bool = False) -> bytes:
    content = json.dumps(body, ensure_ascii=False).encode() + b"\n"
    return _response(status, "application/json", content, only_head)


def _response(status: int, content_type: str, content: bytes, only_head: bool = False) -> bytes:
    head = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(content)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (b"" if only_head else content)
