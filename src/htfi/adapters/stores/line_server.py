"""Serves decisions.jsonl to programs on this machine: a client names the first index it wants and gets the lines.

A client sends one line, `{"from": 120}`, and gets the lines from that index on, then each as it is released, until the
run ends. What it has not taken stays in the file: no client holds the run, nor another. Of several edges in one group
only the leader sends; a client of another waits.
"""

import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec

from htfi.adapters.stores.released_lines import ReleasedLines
from htfi.domain.errors import DependencyUnavailable, InvalidInput

_REQUEST_S = 30.0
_MAX_REQUEST_BYTES = 1024
_LAST_LINES_S = 2.0  # for clients to take what is left when the run has ended
_TURN_S = 0.05  # between looks at whether this process may send
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_UNIX = "unix:"


class _Request(msgspec.Struct, forbid_unknown_fields=True):
    first: Annotated[int, msgspec.Meta(ge=0)] = msgspec.field(name="from")


class LineServer:
    """Listens at `unix:PATH` or at `HOST:PORT` of the loopback, with a thread for each client.

    Lines are sent while `may_send` holds; each client's next one waits until then, or for the end.

    Raises: InvalidInput for another address, DependencyUnavailable where it cannot be listened at.
    """

    def __init__(
        self, address: str, lines: ReleasedLines, may_send: Callable[[], bool] = lambda: True
    ) -> None:
        self._lines = lines
        self._may_send = may_send
        self._closing = threading.Event()
        self._path: Path | None = None
        self._clients: dict[threading.Thread, socket.socket] = {}
        self._lock = threading.Lock()
        try:
            self._socket = (
                self._listen_at_path(Path(address[len(_UNIX) :]))
                if address.startswith(_UNIX)
                else _listen(address)
            )
        except OSError as error:
            raise DependencyUnavailable(f"cannot listen at {address}: {error.strerror or error}") from error
        threading.Thread(target=self._accept, name="line server", daemon=True).start()

    @property
    def port(self) -> int:
        """The port that was chosen for port 0; 0 at a path."""
        return 0 if self._path is not None else self._socket.getsockname()[1]

    def close(self) -> None:
        """Give clients a moment for the last lines, which have ended, then leave."""
        self._closing.set()
        with self._lock:
            clients = dict(self._clients)
        left_s = _LAST_LINES_S / max(len(clients), 1)
        for thread, client in clients.items():
            thread.join(left_s)
            _shut(client)
        _shut(self._socket)
        self._socket.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _listen_at_path(self, path: Path) -> socket.socket:
        if not path.name:
            raise InvalidInput("unix: give the path of a socket, as in unix:/run/htfi.sock")
        if path.is_socket():
            with socket.socket(socket.AF_UNIX) as probe:
                if probe.connect_ex(str(path)) == 0:
                    raise DependencyUnavailable(f"cannot listen at {_UNIX}{path}: another process does")
            path.unlink()  # of a process that is gone
        listening = socket.socket(socket.AF_UNIX)
        before = os.umask(0o177)
        try:
            listening.bind(str(path))
            listening.listen()
        except OSError:
            listening.close()
            raise
        finally:
            os.umask(before)
        self._path = path
        return listening

    def _accept(self) -> None:
        with suppress(OSError):  # it was closed
            while True:
                client, _ = self._socket.accept()
                thread = threading.Thread(target=self._serve, args=(client,), name="line client", daemon=True)
                with self._lock:
                    thread.start()
                    self._clients[thread] = client

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError):  # a client that leaves
            client.settimeout(_REQUEST_S)
            try:
                first = msgspec.json.decode(_request(client), type=_Request).first
            except (msgspec.DecodeError, UnicodeDecodeError, TimeoutError) as error:
                said = {"error": f'send one line like {{"from": 0}}, the first index that you want ({error})'}
                client.sendall(msgspec.json.encode(said) + b"\n")
            else:
                client.settimeout(None)
                for chunk in self._lines.read_from_line(first):
                    if not self._wait_to_send():
                        break
                    client.sendall(chunk)
        with self._lock:
            self._clients.pop(threading.current_thread(), None)

    def _wait_to_send(self) -> bool:
        """Whether lines may be sent, once they may or nobody can wait any longer."""
        while not self._may_send():
            if self._closing.wait(_TURN_S):
                return False
        return True


def _listen(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    if host not in _LOOPBACK or not port.isdecimal() or int(port) > 65535:
        raise InvalidInput(
            f"--listen {address}: give unix:PATH, or a port of this machine as in 127.0.0.1:7070; decisions are served "
            "to no other machine"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, int(port)), family=family)


def _request(client: socket.socket) -> bytes:
    """The first line that a client sends, or what came before it left."""
    data = b""
    while b"\n" not in data and len(data) < _MAX_REQUEST_BYTES:
        more = client.recv(_MAX_REQUEST_BYTES)
        if not more:
            break
        data += more
    return data.partition(b"\n")[0]


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
