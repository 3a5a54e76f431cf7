"""What a round takes on a real socket is what docs/protocol.md says."""

import re
import socket
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from htfi.adapters.certs.authority import CertificateRole, make_certificates
from htfi.adapters.grpc.tls import TlsFiles
from htfi.adapters.grpc.transport import GrpcTransport
from htfi.decoding.link.frames import AcceptedFrame, DraftWindowFrame, encode, pack
from htfi.decoding.link.ports import StreamArrival, StreamEvent

PAGE = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text(encoding="utf-8")
IDS = pack(range(300, 316))
WINDOW = encode(DraftWindowFrame(7, 2, 40, 1 << 31, IDS))
SETTLED = encode(AcceptedFrame(7, 2, 40, 1 << 31, 16, False, IDS))
NUM_WARMING, NUM_ROUNDS = 50, 300


class Meter:
    """A TCP relay to a port that counts bytes both ways."""

    def __init__(self, port: int) -> None:
        self.num_bytes = 0
        self._to = port
        self._ends: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        for end in (self._listener, *self._ends):
            with suppress(OSError):  # its other side has gone
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5.0)
        for end in (self._listener, *self._ends):
            end.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._to))
            self._ends += [near, far]
            for source, sink in ((near, far), (far, near)):
                source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                thread = threading.Thread(target=self._relay, args=(source, sink))
                self._threads.append(thread)
                thread.start()

    def _relay(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(1 << 16):
                self.num_bytes += len(data)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            return


def following(transport: GrpcTransport, happening: StreamEvent) -> StreamArrival:
    arrival = transport.receive(10.0)
    assert arrival is not None
    assert arrival.event is happening
    return arrival


@pytest.mark.parametrize("is_secure", [False, True])
def test_a_round_takes_the_bytes_that_the_page_says(tmp_path, is_secure):
    row = r"\| TLS 1\.3 record.*\| (\d+) \|" if is_secure else r"\| two WINDOW_UPDATE.*\| (\d+) \|"
    (stated,) = re.findall(row, PAGE)
    make_certificates(tmp_path, [("cloud1", CertificateRole.CLOUD), ("edge1", CertificateRole.EDGE)])

    def files(node: str) -> TlsFiles | None:
        return (
            TlsFiles(tmp_path / "ca.pem", tmp_path / f"{node}.pem", tmp_path / f"{node}.key")
            if is_secure
            else None
        )

    rng = np.random.Generator(np.random.PCG64(7))
    with GrpcTransport("cloud1", tls=files("cloud1"), rng=rng, listen="127.0.0.1:0") as cloud:
        meter = Meter(cloud.port)
        try:
            peers = {"cloud1": f"127.0.0.1:{meter.port}"}
            with GrpcTransport("edge1", tls=files("edge1"), rng=rng, peers=peers) as edge:
                up, down = following(edge, StreamEvent.UP).stream, following(cloud, StreamEvent.UP).stream
                for k in range(NUM_WARMING + NUM_ROUNDS):
                    if k == NUM_WARMING:
                        before = meter.num_bytes
                    assert edge.send(up, WINDOW)
                    following(cloud, StreamEvent.FRAME)
                    assert cloud.send(down, SETTLED)
                    following(edge, StreamEvent.FRAME)
                beside = (meter.num_bytes - before) / NUM_ROUNDS - 2 * len(IDS)
        finally:
            meter.close()
    assert beside == pytest.approx(int(stated), abs=3)  # pings, and what is still on its way
