"""What the transport's messages cost on the wire, counted by a relay between two nodes."""

import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from htfi.adapters.grpc.transport import GrpcTransport
from htfi.decoding.link.ports import StreamEvent
from link_nodes import Nodes, certify, link, next_of

UP, FRAME = StreamEvent.UP, StreamEvent.FRAME
_HTTP2 = {0: "DATA", 1: "HEADERS", 4: "SETTINGS", 6: "PING", 8: "WINDOW_UPDATE"}  # RFC 9113 6


class CountingRelay:
    """Passes one connection on to a port and keeps what went each way."""

    def __init__(self, port: int) -> None:
        self.up, self.down = bytearray(), bytearray()
        self._to = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._ends: list[socket.socket] = [self._listening]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        for thread in self._threads:
            thread.join(5.0)

    def forget(self) -> None:
        self.up.clear()
        self.down.clear()

    def _accept(self) -> None:
        with suppress(OSError):
            edge, _ = self._listening.accept()
            cloud = socket.create_connection(("127.0.0.1", self._to))
            self._ends += [edge, cloud]
            for ends, kept in (((edge, cloud), self.up), ((cloud, edge), self.down)):
                thread = threading.Thread(target=self._pump, args=(*ends, kept))
                self._threads.append(thread)
                thread.start()

    def _pump(self, source: socket.socket, sink: socket.socket, kept: bytearray) -> None:
        sink.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(OSError):
            while data := source.recv(65536):
                kept += data
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)


@pytest.fixture(params=["tls", "plaintext"])
def is_secure(request: pytest.FixtureRequest) -> bool:
    return request.param == "tls"


@pytest.fixture
def pair(
    is_secure: bool, tmp_path: Path
) -> Iterator[tuple[GrpcTransport, str, GrpcTransport, str, CountingRelay]]:
    nodes = Nodes(certify(tmp_path) if is_secure else None)
    cloud = nodes.cloud()
    relay = CountingRelay(cloud.port)
    edge = nodes.edge({"cloud1": relay.port})
    at_edge, at_cloud = next_of(edge, UP).stream, next_of(cloud, UP).stream
    for _ in range(3):
        edge.send(at_edge, link(b"warm"))
        cloud.send(at_cloud, link(next_of(cloud, FRAME).body))
        next_of(edge, FRAME)
    time.sleep(0.1)
    relay.forget()
    yield edge, at_edge, cloud, at_cloud, relay
    nodes.close()
    relay.close()


def test_an_answered_message_costs_its_headers_and_two_window_updates_and_nothing_alone(
    is_secure: bool, pair: tuple[GrpcTransport, str, GrpcTransport, str, CountingRelay]
) -> None:
    edge, at_edge, cloud, at_cloud, relay = pair
    sealed, num = link(bytes(35)), 100
    for _ in range(num):
        edge.send(at_edge, sealed)
        next_of(cloud, FRAME)
        cloud.send(at_cloud, sealed)
        next_of(edge, FRAME)
    time.sleep(0.1)
    most = len(sealed) + 5 + 9 + 2 * 13 + (22 if is_secure else 0)
    assert num * len(sealed) < len(relay.up) <= num * most
    assert num * len(sealed) < len(relay.down) <= num * most
    if not is_secure:
        for data in (relay.up, relay.down):
            assert _frames(data)["DATA"] == num
            assert set(_frames(data)) <= {"DATA", "WINDOW_UPDATE"}


def test_messages_that_go_one_way_cost_their_headers_alone(
    is_secure: bool, pair: tuple[GrpcTransport, str, GrpcTransport, str, CountingRelay]
) -> None:
    edge, _, cloud, at_cloud, relay = pair
    sealed, num = link(bytes(35)), 400
    for _ in range(num):
        assert cloud.send(at_cloud, sealed)
    for _ in range(num):
        next_of(edge, FRAME)
    time.sleep(0.1)
    assert len(relay.down) <= num * (len(sealed) + 5 + 9 + (22 if is_secure else 0)) + 100
    assert len(relay.up) < 500


def test_a_quiet_stream_costs_nothing(
    pair: tuple[GrpcTransport, str, GrpcTransport, str, CountingRelay],
) -> None:
    relay = pair[-1]
    time.sleep(0.5)
    assert len(relay.up) + len(relay.down) == 0


def _frames(data: bytes | bytearray) -> Counter[str]:
    found: Counter[str] = Counter()
    at = 0
    while at < len(data):
        found[_HTTP2.get(data[at + 3], f"type {data[at + 3]}")] += 1
        at += 9 + int.from_bytes(data[at : at + 3], "big")
    return found
