"""A real Redis server for tests, on a socket of its own. Where none can be had, the test fails and says what to do."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import pytest

FETCHED = Path(__file__).parents[1] / "build" / "redis"  # where `make redis` unpacks it
UNPACKED = (FETCHED / "usr" / "bin" / "redis-server", Path(sys.executable).parent / "redis-server")
WAIT_S = 10.0


class RedisServer:
    """Listens on `socket` alone, keeps nothing on disk. It can be killed, stopped, and started again."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.socket = folder / "redis.sock"
        self._command = [
            found_server(),
            *("--port", "0", "--unixsocket", str(self.socket), "--dir", str(folder)),
            *("--save", "", "--appendonly", "no", "--daemonize", "no", *options),
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        self.socket.unlink(missing_ok=True)
        self._process = subprocess.Popen(
            self._command, env=_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until_s = time.monotonic() + WAIT_S
        while not self.socket.exists():
            assert self._process.poll() is None, f"{self._command[0]} ended at once"
            assert time.monotonic() < until_s, "redis-server opens no socket"
            time.sleep(0.01)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(WAIT_S)
            self._process = None

    def __enter__(self) -> "RedisServer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()


def found_server() -> str:
    """The server's path. Skips where HTFI_NO_REDIS=1 says so; fails where there is none."""
    if os.environ.get("HTFI_NO_REDIS") == "1":
        pytest.skip("HTFI_NO_REDIS=1")
    named = os.environ.get("HTFI_REDIS_SERVER", "")
    places = [named] if named else [shutil.which("redis-server") or "", *map(str, UNPACKED)]
    found = next((place for place in places if place and Path(place).exists()), "")
    if not found:
        pytest.fail(
            f"no redis-server{f' at {named}' if named else ''}: install the system's package redis-server, or on "
            "Debian and Ubuntu `make redis`, or leave these tests out with HTFI_NO_REDIS=1",
            pytrace=False,
        )
    return found


@contextmanager
def redis_server(folder: Path, *options: str) -> Iterator[RedisServer]:
    folder.mkdir(parents=True, exist_ok=True)
    with RedisServer(folder, *options) as server:
        yield server


def _environment() -> dict[str, str]:
    libraries = [str(path.parent) for path in (FETCHED / "usr" / "lib").glob("*/libjemalloc.so.2")]
    before = os.environ.get("LD_LIBRARY_PATH", "")
    return {**os.environ, "LD_LIBRARY_PATH": ":".join([*libraries, *([before] if before else [])])}
