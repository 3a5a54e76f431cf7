"""A served simulated venue for tests: its TOML files, on a thread of the test or as a process of its own."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from htfi.adapters.stores.order_log import ORDERS
from htfi.wiring.settings import load_settings, with_venues
from htfi.wiring.venue_server import open_venue_server


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def write_session(
    path: Path,
    port: int,
    *,
    is_venue: bool,
    version: str = "FIX.4.4",
    orders: str = "",
    name: str = "XSIM",
) -> Path:
    """The TOML file of one side of a venue's session."""
    sides = (name, "HTFI") if is_venue else ("HTFI", name)
    path.write_text(
        f'port = {port}\nsync = false\nreconnect_s = 0.02\nmax_reconnect_s = 0.05\n[session]\nsender = "{sides[0]}"\n'
        f'target = "{sides[1]}"\nversion = "{version}"\ninitiator = {str(not is_venue).lower()}\n[orders]\n{orders}\n'
    )
    return path


@contextmanager
def served(
    path: Path, settings_file: Path | None = None, venues_file: Path | None = None
) -> Generator[list[str]]:
    """The venue of a TOML file on a thread; the lines that it shows."""
    lines: list[str] = []
    is_listening = threading.Event()

    def show(line: str) -> None:
        lines.append(line)
        is_listening.set()

    settings = load_settings(settings_file)
    if venues_file is not None:
        settings = with_venues(settings, venues_file)
    server = open_venue_server(path, settings, show)
    thread = threading.Thread(target=server.serve)
    thread.start()
    assert is_listening.wait(20)
    try:
        yield lines
    finally:
        server.close()
        thread.join(20)
        assert not thread.is_alive()


class VenueProcess:
    """`htfi venue serve FILE` as a process, which may be killed and started again."""

    def __init__(self, path: Path, name: str = "XSIM", *more: object) -> None:
        self._words = ["venue", "serve", str(path), "--quiet", *map(str, more)]
        self._name = name
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "htfi", *self._words],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert re.match(rf"venue {self._name} is ready at ", self._process.stdout.readline())

    def end(self, number: signal.Signals = signal.SIGKILL) -> int:
        """Its exit status after a signal."""
        assert self._process is not None
        self._process.send_signal(number)
        self._process.communicate(timeout=20)
        return self._process.returncode


def orders_of(folder: Path) -> list[dict[str, object]]:
    """The order events of a run, without what FIX alone states."""
    found = [json.loads(line) for line in (folder / ORDERS).read_text().splitlines()]
    for one in found:
        one.pop("venue_order_id", None)
    return found
