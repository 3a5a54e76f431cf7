"""A served simulated venue for tests: its TOML files, on a thread of the test or as a process of its own."""

import json
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import forked
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


def write_price_sessions(
    folder: Path,
    symbols: Sequence[str],
    version: str = "FIX.4.4",
    *,
    orders: str = "shares_clock = true\ncancel_on_disconnect = false",
    prices: str = 'stamp = "row"\nend_at_close = true',
) -> tuple[Path, Path]:
    """The files of a venue with prices of its own and of its client."""
    port = free_port()
    venue = write_session(folder / "venue.toml", port, is_venue=True, version=version, orders=orders)
    client = write_session(folder / "fix.toml", port, is_venue=False, version=version, orders=orders)
    venue.write_text(f'{venue.read_text()}[market_data]\ntarget = "PRICES"\n')
    client.write_text(
        f'{client.read_text()}[market_data]\nsender = "PRICES"\nsymbols = {json.dumps(list(symbols))}\n{prices}\n'
    )
    return venue, client


@contextmanager
def served(
    path: Path,
    settings_file: Path | None = None,
    prices: Sequence[Path] = (),
    pace: float | None = None,
    *,
    venues_file: Path | None = None,
) -> Generator[list[str]]:
    """The venue of a TOML file on a thread, with prices of its own where some are named; the lines that it shows."""
    lines: list[str] = []
    is_listening = threading.Event()

    def show(line: str) -> None:
        lines.append(line)
        is_listening.set()

    settings = load_settings(settings_file)
    if venues_file is not None:
        settings = with_venues(settings, venues_file)
    files = [str(one) for one in prices]
    server = open_venue_server(path, settings, show, files, pace=pace)
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

    def __init__(self, path: Path, *more: str, name: str = "XSIM") -> None:
        """`more` words follow the file."""
        self._path, self._more, self._name = path, more, name
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        self._process = forked.Popen(
            [*forked.HTFI, "venue", "serve", str(self._path), *self._more, "--quiet"],
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
