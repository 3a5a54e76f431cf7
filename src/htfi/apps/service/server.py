"""The process that answers: uvicorn on one address, until a signal ends it."""

import signal
import socket
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from htfi.apps.service.app import create_app
from htfi.apps.service.served_run import ServedRun
from htfi.domain.errors import DependencyUnavailable, InvalidInput

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_BACKLOG = 4_096
_SWITCH_S = 0.0005  # at Python's own 5 ms an answer waits that long for the thread that follows the record
_GRACE_S = 5  # for answers under way when the service ends


def listen_at(address: str) -> socket.socket:
    """A listening socket at HOST:PORT of the loopback. Raises: InvalidInput, DependencyUnavailable."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise InvalidInput(f"--listen {address}: write HOST:PORT, such as 127.0.0.1:8350")
    if host not in _LOOPBACK:
        raise InvalidInput(
            f"--listen {address}: without keys the service answers this machine alone: 127.0.0.1:{port}"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, int(port)))
        found.listen(_BACKLOG)
    except OSError as error:
        found.close()
        raise DependencyUnavailable(f"cannot listen at {address}: {error.strerror}") from error
    return found


def serve(folders: Mapping[str, Path], listening: socket.socket, target: str = "", draft: str = "") -> None:
    """Answer for each tenant's run, and by a pair of language models, until SIGINT or SIGTERM."""
    sys.setswitchinterval(_SWITCH_S)
    app = create_app(folders, target, draft)
    config = uvicorn.Config(
        app, loop="uvloop", http="httptools", ws="websockets-sansio", lifespan="on", log_level="warning",
        access_log=False,
        server_header=False, timeout_graceful_shutdown=_GRACE_S, timeout_keep_alive=30, ws_max_size=1 << 16,
    )  # fmt: skip

    def end_streams() -> None:
        runs: dict[str, ServedRun] = app.state.runs
        for run in runs.values():
            run.record.end_streams()

    _EndingServer(config, end_streams).run(sockets=[listening])


class _EndingServer(uvicorn.Server):
    """Ends streams before it waits for connections; a signal that ends it is not raised again."""

    def __init__(self, config: uvicorn.Config, end_streams: Callable[[], None]) -> None:
        super().__init__(config)
        self._end_streams = end_streams

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        before = {
            number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._end_streams()
        await super().shutdown(sockets)
