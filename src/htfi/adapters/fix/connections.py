"""Sockets of FIX sessions on asyncio: an initiator that connects again, and an acceptor of many sessions."""

import asyncio
import logging
import os
import ssl
from collections.abc import Iterable

from htfi.adapters.fix.runner import SessionRunner
from htfi.adapters.fix.settings import FixEndpoint, FixTls, tls_context
from htfi.domain.errors import DependencyUnavailable
from htfi.execution.fix.framing import split_frames
from htfi.execution.fix.routing import SessionKey, session_key_of

_LOG = logging.getLogger("htfi.fix")
_MAX_FIRST_BYTES = 8_192  # before a connection belongs to a session
_CONNECT_TIMEOUT_S = 10.0


class _Connection(asyncio.Protocol):
    """A connection of a session that is known."""

    def __init__(self, runner: SessionRunner | None) -> None:
        self.runner: SessionRunner | None = runner
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self.runner is not None:
            self.runner.connect(transport)

    def data_received(self, data: bytes) -> None:
        assert self.runner is not None
        try:
            self.runner.receive(data)
        except Exception as error:  # noqa: BLE001 - an application's or the disk's: it ends this connection alone
            self.end(f"{type(error).__name__}: {error}")

    def connection_lost(self, exc: Exception | None) -> None:
        if self.runner is not None:
            self.runner.lose(f"the connection ended{f': {exc}' if exc else ''}")
        if not self.ended.done():
            self.ended.set_result(None)

    def end(self, why: str) -> None:
        _LOG.warning("connection closed: %s", why)
        if self._transport is not None:
            self._transport.close()


class _Accepted(_Connection):
    """A connection that belongs to a session once its first frame has come."""

    def __init__(self, acceptor: "Acceptor") -> None:
        super().__init__(None)
        self.runner: SessionRunner | None = None
        self._acceptor = acceptor
        self._data = b""
        self._timeout: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._acceptor.connections.add(self)
        self._timeout = asyncio.get_running_loop().call_later(
            self._acceptor.logon_timeout_s, self.end, "no Logon came in time"
        )

    def data_received(self, data: bytes) -> None:
        if self.runner is not None:
            super().data_received(data)
            return
        self._data += data
        frames, _ = split_frames(self._data, _MAX_FIRST_BYTES)
        if not frames:
            if len(self._data) > _MAX_FIRST_BYTES:
                self.end("what came first is no Logon")
            return
        key = session_key_of(frames[0])
        runner = self._acceptor.runners.get(key) if key is not None else None
        if self._transport is None or self._transport.is_closing():
            return
        if runner is None or runner.is_connected:
            who = (
                "what came first"
                if key is None
                else f"a Logon of {key.target} to {key.sender} by {key.begin_string}"
            )
            self.end(f"{who}: {'it is logged on already' if runner else 'there is no such session here'}")
            return
        self._forget_timeout()
        self.runner = runner
        runner.connect(self._transport)
        super().data_received(self._data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_timeout()
        self._acceptor.connections.discard(self)
        super().connection_lost(exc)

    def _forget_timeout(self) -> None:
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None


class Acceptor:
    """Listens on one address for the sessions that it is given."""

    def __init__(self, runners: Iterable[SessionRunner], tls: FixTls | None = None) -> None:
        self.runners = {
            SessionKey(runner.settings.begin_string, runner.settings.sender, runner.settings.target): runner
            for runner in runners
        }
        self.connections: set[_Accepted] = set()
        self.logon_timeout_s = min(
            (one.settings.logon_timeout_s for one in self.runners.values()), default=10.0
        )
        self._context = None if tls is None else tls_context(tls, is_acceptor=True)
        self._server: asyncio.Server | None = None

    async def listen(self, host: str, port: int) -> int:
        """The port that it listens on. Raises: DependencyUnavailable."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(lambda: _Accepted(self), host, port, ssl=self._context)
        except OSError as error:
            why = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
            raise DependencyUnavailable(
                f"cannot listen on {host}:{port}: {why}: choose another address or port, or end who listens there"
            ) from error
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Log out, and wait until the connections have ended."""
        if self._server is not None:
            self._server.close()
        for runner in self.runners.values():
            runner.log_out()
        for connection in tuple(self.connections):
            if connection.runner is None:
                connection.end("the acceptor ends")
            await connection.ended


class Initiator:
    """Connects one session, and again after each end until it is closed."""

    def __init__(self, endpoint: FixEndpoint, runner: SessionRunner) -> None:
        self.runner = runner
        self._endpoint = endpoint
        self._context = None if endpoint.tls is None else tls_context(endpoint.tls, is_acceptor=False)
        self._is_closed = asyncio.Event()
        self.problem = ""  # what keeps it from connecting

    async def run(self) -> None:
        """Until `close`. What keeps it from connecting is in the log."""
        wait_s = self._endpoint.reconnect_s
        while not self._is_closed.is_set():
            try:
                connection = await self._connect()
                if self._is_closed.is_set():
                    self.runner.log_out()
                wait_s, self.problem = self._endpoint.reconnect_s, ""
                await connection.ended
            except (OSError, TimeoutError, ssl.SSLError) as error:
                problem = _words_of(error)
                if problem != self.problem:  # the same one again and again is in the log once
                    self.problem = problem
                    _LOG.warning(
                        "%s:%s: cannot connect: %s", self._endpoint.host, self._endpoint.port, problem
                    )
            try:
                await asyncio.wait_for(self._is_closed.wait(), wait_s)
            except TimeoutError:
                wait_s = min(2 * wait_s, self._endpoint.max_reconnect_s)

    def close(self) -> None:
        """Log out, and do not connect again."""
        self._is_closed.set()
        self.runner.log_out()

    async def _connect(self) -> _Connection:
        endpoint = self._endpoint
        name = None
        if self._context is not None and endpoint.tls is not None:
            name = endpoint.tls.server_name or endpoint.host
        _, connection = await asyncio.wait_for(
            asyncio.get_running_loop().create_connection(
                lambda: _Connection(self.runner),
                endpoint.host,
                endpoint.port,
                ssl=self._context,
                server_hostname=name,
            ),
            _CONNECT_TIMEOUT_S,
        )
        return connection


def _words_of(error: Exception) -> str:
    """Why there is no connection, in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate does not hold: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or error}"
    if isinstance(error, TimeoutError):
        return "it does not answer"
    if isinstance(error, OSError) and error.errno and error.strerror:
        return error.strerror if "Connect call failed" not in error.strerror else os.strerror(error.errno)
    return str(error) or type(error).__name__
