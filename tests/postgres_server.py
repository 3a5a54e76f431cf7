"""A real PostgreSQL server for tests, on a free port, with its own data. It can be killed and started again."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

import pytest

_WAIT_S = 20.0
_OWNERS = ("postgres", "nobody")  # who runs it where the tests are root's, whom it refuses


def found_folder() -> Path | None:
    """Where initdb and postgres are."""
    on_path = shutil.which("initdb")
    folders = [Path(on_path).parent] if on_path else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((one for one in folders if (one / "initdb").exists() and (one / "postgres").exists()), None)


class PostgresServer:
    """Trusts whoever reaches its port of the loopback."""

    def __init__(self) -> None:
        folder = found_folder()
        if folder is None:
            pytest.skip("there is no PostgreSQL here: apt-get install postgresql")
        self._programs = folder
        self._owner = next((one for one in _OWNERS if _is_user(one)), None) if os.geteuid() == 0 else None
        self._data = Path(tempfile.mkdtemp(prefix="htfi-postgres-"))
        if self._owner is not None:
            shutil.chown(self._data, self._owner)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self._call("initdb", "-D", str(self._data), "-U", "htfi", "-A", "trust", "--no-sync", "-E", "UTF8")
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql://htfi@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        options = ("-c", "unix_socket_directories=", "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off")
        command = [str(self._programs / "postgres"), "-D", str(self._data), "-p", str(self.port), *options]
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, user=self._owner, cwd="/"
        )
        end = time.monotonic() + _WAIT_S
        while not self._is_ready():
            assert time.monotonic() < end, "PostgreSQL did not start"
            time.sleep(0.05)

    def add_user(self, name: str, password: str) -> str:
        """An owner of all who must give a password; the address to connect to."""
        import pg8000.native

        rules = self._data / "pg_hba.conf"
        rules.write_text(f"host all {name} 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
        with pg8000.native.Connection("htfi", "127.0.0.1", "postgres", self.port) as connection:
            connection.run(f"CREATE ROLE {name} LOGIN SUPERUSER PASSWORD '{password}'")
            connection.run("SELECT pg_reload_conf()")
        return self.url.replace("htfi@", f"{name}@")

    def kill(self) -> None:
        """End it at once, as a machine that fails: clients' connections break."""
        assert self._process is not None
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait()

    def clear(self) -> None:
        """Leave the database as it was made."""
        import pg8000.native

        with pg8000.native.Connection("htfi", "127.0.0.1", "postgres", self.port) as connection:
            connection.run("DROP SCHEMA public CASCADE")
            connection.run("CREATE SCHEMA public")

    def _is_ready(self) -> bool:
        import pg8000.exceptions
        import pg8000.native

        try:
            pg8000.native.Connection("htfi", "127.0.0.1", "postgres", self.port).close()
        except (pg8000.exceptions.InterfaceError, pg8000.exceptions.DatabaseError, OSError):
            return False
        return True

    def _call(self, program: str, *words: str) -> None:
        done = subprocess.run(
            [str(self._programs / program), *words], capture_output=True, text=True, check=False,
            user=self._owner, cwd="/",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def __enter__(self) -> "PostgresServer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
        shutil.rmtree(self._data, ignore_errors=True)


def _is_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
