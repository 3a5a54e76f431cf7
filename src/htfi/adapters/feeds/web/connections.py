"""Sockets for the web client: only to machines that may be asked, and none outlives its request's time.

`WebClient` makes one. httpcore reads and writes through it, so that a server which sends a byte a second,
headers too, is left when the time of the whole request is over, and at once when the run stops.
"""

import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from httpcore import (
    ConnectError,
    ConnectTimeout,
    NetworkBackend,
    NetworkStream,
    ReadError,
    ReadTimeout,
    WriteError,
    WriteTimeout,
)

from htfi.adapters.feeds.web.address import is_allowed_target

_MAX_WAIT_S = 0.25
_MAX_ADDRESSES = 4  # of one host are tried


class Deadline:
    """When the request under way must be over. One thread asks at a time."""

    def __init__(self, stopped: threading.Event, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._stopped = stopped
        self._clock_s = clock_s
        self._until_s = 0.0

    def begin(self, seconds: float) -> None:
        self._until_s = self._clock_s() + seconds

    def left_s(self, most_s: float = _MAX_WAIT_S) -> float:
        """At most a slice, so that a stop is noticed; 0 when the time is over."""
        left_s = self._until_s - self._clock_s()
        return 0.0 if self._stopped.is_set() else max(0.0, min(left_s, most_s))


class GuardedBackend(NetworkBackend):
    """Connects for one source, whose person wrote the host `configured`."""

    def __init__(self, configured: str, deadline: Deadline) -> None:
        self._configured = configured
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> NetworkStream:
        """The name is looked up once, and what was checked is what is connected to."""
        del local_address, socket_options  # none are used here
        try:
            entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise ConnectError(f"the name {host} cannot be resolved") from error
        found = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
        allowed = [number for number in found if is_allowed_target(number, host, self._configured)]
        if not allowed:
            raise ConnectError(f"{host} is {found[0]}, a private address: it must be written so")
        last: OSError | None = None
        for number in allowed[:_MAX_ADDRESSES]:
            try:
                opened = self._connect(number, port, max(self._deadline.left_s(timeout or 10.0), 0.01))
                opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return _DeadlineStream(opened, self._deadline)
            except OSError as error:
                last = error
        if isinstance(last, TimeoutError):
            raise ConnectTimeout("the connection timed out") from last
        raise ConnectError(last.strerror or str(last) if last else "the connection failed") from last

    def _connect(self, number: str, port: int, timeout_s: float) -> socket.socket:
        return socket.create_connection((number, port), timeout=timeout_s)


class _DeadlineStream(NetworkStream):
    def __init__(self, opened: socket.socket, deadline: Deadline) -> None:
        self._socket = opened
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        waited_s = 0.0
        while (slice_s := self._deadline.left_s()) > 0.0 and (timeout is None or waited_s < timeout):
            try:
                self._socket.settimeout(slice_s)
                return self._socket.recv(max_bytes)
            except TimeoutError:
                waited_s += slice_s
            except OSError as error:
                raise ReadError(str(error)) from error
        raise ReadTimeout("the response timed out")

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if self._deadline.left_s() <= 0.0:
            raise WriteTimeout("the request timed out")
        try:
            self._socket.settimeout(timeout)
            self._socket.sendall(buffer)
        except TimeoutError as error:
            raise WriteTimeout(str(error)) from error
        except OSError as error:
            raise WriteError(str(error)) from error

    def close(self) -> None:
        self._socket.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> NetworkStream:
        try:
            self._socket.settimeout(timeout)
            return _DeadlineStream(
                ssl_context.wrap_socket(self._socket, server_hostname=server_hostname), self._deadline
            )
        except TimeoutError as error:
            self.close()
            raise ConnectTimeout("the TLS handshake timed out") from error
        except OSError as error:
            self.close()
            raise ConnectError(f"TLS failed: {error}") from error

    def get_extra_info(self, info: str) -> Any:
        """What httpcore asks of a connection: whether the other side has closed it."""
        if info == "is_readable":
            return self._readable()
        return self._socket if info == "socket" else None

    def _readable(self) -> bool:
        """Nothing is to be read from a connection at rest but its end."""
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self._socket, selectors.EVENT_READ)
                return bool(selector.select(0.0))
        except (OSError, ValueError):
            return True
