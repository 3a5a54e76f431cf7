"""A node of the measurement of bundles: a process with a governance folder and loopback sockets to the other nodes.

It runs the health monitor of an edge or a cloud and the agreement on bundles on it. A frame is its length (4 bytes)
and a body of health monitoring. It writes `linked` once it has a stream to every other node, and a line for each
change that it puts in force: the time by the machine's monotonic clock (ns) and the digest. Its arguments: folder, own
name, and name=port of every node.
"""

import socket
import struct
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

from htfi.scheduling.health.config import TICK_MS, HealthConfig
from htfi.scheduling.health.messages import NodeHealthMetrics
from htfi.scheduling.health.node import NodeMonitor
from htfi.wiring.cluster.bundles import ClusterBundles

_LENGTH = struct.Struct("!I")


class _Node:
    """The sockets of a node. Of each pair the one whose name is less connects."""

    def __init__(self, folder: Path, name: str, ports: dict[str, int]) -> None:
        self._name, self._ports = name, ports
        self._sockets: dict[str, socket.socket] = {}
        bundles = ClusterBundles(folder, name, on_applied=_announce)
        metrics = NodeHealthMetrics()
        self._monitor = NodeMonitor(name, HealthConfig(), lambda: metrics, bytes, exchange=bundles)

    def run(self) -> None:
        server = socket.create_server(("127.0.0.1", self._ports[self._name]))
        threading.Thread(target=self._accept, args=(server,), daemon=True).start()
        for peer, port in self._ports.items():
            if self._name < peer:
                threading.Thread(target=self._dial, args=(peer, port), daemon=True).start()
        while True:
            for stream, body in self._monitor.due():
                link = self._sockets.get(stream)
                if link is not None:
                    _send(link, body)
            time.sleep(TICK_MS / 1e3)

    def _accept(self, server: socket.socket) -> None:
        while True:
            link, _ = server.accept()
            threading.Thread(target=self._follow, args=(link, ""), daemon=True).start()

    def _dial(self, peer: str, port: int) -> None:
        while True:
            try:
                link = socket.create_connection(("127.0.0.1", port))
            except OSError:
                time.sleep(0.02)
                continue
            # On loopback a socket can reach itself while nobody listens there, and would keep the port from the peer.
            if link.getsockname() == link.getpeername():
                link.close()
                continue
            _send(link, self._name.encode())
            self._follow(link, peer)

    def _follow(self, link: socket.socket, peer: str) -> None:
        """Handle what comes over a link to its end. The first frame to who accepted it names the other node."""
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        is_dialled = bool(peer)
        with link, link.makefile("rb") as frames:
            if not is_dialled:
                peer = _read_frame(frames).decode()
            self._sockets[peer] = link
            self._monitor.opened(peer, peer, is_dialled)
            if len(self._sockets) == len(self._ports) - 1:
                _write_line("linked")
            while body := _read_frame(frames):
                self._monitor.received(peer, peer, body)
            self._monitor.ended(peer, peer, "closed")


def _read_frame(frames: IO[bytes]) -> bytes:
    """The next body; empty at the end of the stream, which a peer that was killed may end by a reset."""
    try:
        header = frames.read(_LENGTH.size)
        return frames.read(_LENGTH.unpack(header)[0]) if len(header) == _LENGTH.size else b""
    except OSError:
        return b""


def _send(link: socket.socket, body: bytes) -> None:
    with suppress(OSError):  # its reader ends the stream
        link.sendall(_LENGTH.pack(len(body)) + body)


def _write_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _announce(digest: str) -> None:
    _write_line(f"{time.monotonic_ns()} {digest}")


def main() -> None:
    folder, name, *named = sys.argv[1:]
    ports = {node: int(port) for node, _, port in (text.partition("=") for text in named)}
    node = _Node(Path(folder), name, ports)
    node.run()


if __name__ == "__main__":
    main()
