"""What tests of the link's transport share: certificates, nodes on loopback, and waiting for what is to come."""

import socket
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from htfi.adapters.certs.authority import CertificateRole, make_certificates
from htfi.adapters.grpc.tls import TlsFiles
from htfi.adapters.grpc.transport import GrpcTransport
from htfi.decoding.link.frames import FrameChannel, seal
from htfi.decoding.link.ports import StreamArrival, StreamEvent

CLOUDS, EDGES = ("cloud1", "cloud2"), ("edge1", "edge2")
PATIENCE_S = 8.0  # far beyond what anything here takes


def certify(folder: Path) -> Path:
    nodes = [(name, CertificateRole.CLOUD) for name in CLOUDS] + [
        (name, CertificateRole.EDGE) for name in EDGES
    ]
    make_certificates(folder, nodes)
    return folder


def files(folder: Path, node: str) -> TlsFiles:
    return TlsFiles(folder / "ca.pem", folder / f"{node}.pem", folder / f"{node}.key")


class Nodes:
    """Makes transports, in plaintext where there is no folder of certificates; ends them all."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._made: list[GrpcTransport] = []

    def cloud(self, node: str = "cloud1", port: int = 0, **others: Any) -> GrpcTransport:
        return self.node(node, listen=f"127.0.0.1:{port}", **others)

    def edge(self, ports: Mapping[str, int], node: str = "edge1", **others: Any) -> GrpcTransport:
        return self.node(node, peers={name: f"127.0.0.1:{port}" for name, port in ports.items()}, **others)

    def node(self, node: str, **others: Any) -> GrpcTransport:
        tls = None if self.folder is None else files(self.folder, node)
        made = GrpcTransport(node, **{"tls": tls, "rng": np.random.Generator(np.random.PCG64(5)), **others})
        self._made.append(made)
        return made

    def close(self) -> None:
        for made in self._made:
            made.close(0.2)


class Notes:
    """A watcher that writes down what it is told, and `trouble`."""

    def __init__(self) -> None:
        self.opened_: list[tuple[str, str, bool]] = []
        self.ended_: list[tuple[str, str, str]] = []
        self.bodies: list[tuple[str, bytes]] = []
        self.seen_: list[str] = []
        self.troubles: list[tuple[str, str]] = []
        self.to_send: list[tuple[str, bytes]] = []

    def opened(self, stream: str, node: str, dialled: bool) -> None:
        self.opened_.append((stream, node, dialled))

    def ended(self, stream: str, node: str, words: str) -> None:
        self.ended_.append((stream, node, words))

    def received(self, stream: str, node: str, body: bytes) -> None:
        self.bodies.append((stream, body))

    def seen(self, stream: str, node: str) -> None:
        self.seen_.append(stream)

    def due(self) -> Sequence[tuple[str, bytes]]:
        due, self.to_send = self.to_send, []
        return due

    def trouble(self, node: str, words: str) -> None:
        self.troubles.append((node, words))


def opening_bytes() -> bytes:
    """What gRPC sends to open our stream, up to the path and what follows it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        rng = np.random.Generator(np.random.PCG64(1))
        client = GrpcTransport("edge2", tls=None, rng=rng, peers={"cloud1": address})
        try:
            one, _ = server.accept()
            with one:
                one.settimeout(5.0)
                one.sendall(bytes.fromhex("000000040000000000"))  # empty SETTINGS: the client goes on
                heard = b""
                while b"Link/Stream" not in heard:
                    heard += one.recv(1 << 16)
                return heard
        finally:
            client.close()


def link(body: bytes) -> bytes:
    return seal(FrameChannel.LINK, body)


def next_of(node: GrpcTransport, happening: StreamEvent) -> StreamArrival:
    """The next arrival of that kind; others are passed over."""
    until_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < until_s:
        arrival = node.receive(0.1)
        if arrival is not None and arrival.event is happening:
            return arrival
    raise AssertionError(f"{node.node} waited for {happening}, which did not come")


def until(condition: Callable[[], bool]) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until_s, "what was waited for did not happen"
        time.sleep(0.01)
