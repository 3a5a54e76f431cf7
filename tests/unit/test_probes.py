"""The probe server: answers, and what it does with clients that are none."""

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest

from checks import sooner_than
from htfi.adapters.probes.server import MAX_REQUEST_BYTES, ProbeResult, ProbeServer
from htfi.domain.errors import DependencyUnavailable, InvalidInput


class Node:
    """Stands in for a process whose conditions change."""

    def __init__(self) -> None:
        self.is_ready = False

    def live(self) -> ProbeResult:
        return ProbeResult(True)

    def ready(self) -> ProbeResult:
        return ProbeResult(self.is_ready, "" if self.is_ready else "the target is being opened")


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.fixture
def probes(node: Node) -> Iterator[ProbeServer]:
    with ProbeServer("127.0.0.1:0", node.live, node.ready, answer_s=0.3, num_connections=8) as server:
        yield server


def _ask(port: int, path: str, method: str = "GET") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=3)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_readiness_follows_the_node(node: Node, probes: ProbeServer) -> None:
    status, body = _ask(probes.port, "/ready")
    assert status == 503
    assert json.loads(body) == {"ok": False, "words": "the target is being opened"}
    node.is_ready = True
    assert _ask(probes.port, "/ready?verbose=1")[0] == 200
    assert json.loads(_ask(probes.port, "/live")[1])["ok"] is True


def test_head_carries_no_body_and_other_requests_are_refused(probes: ProbeServer) -> None:
    assert _ask(probes.port, "/live", "HEAD") == (200, b"")
    assert _ask(probes.port, "/live", "POST")[0] == 405
    assert _ask(probes.port, "/secrets")[0] == 404


def test_a_condition_that_raises_is_a_no() -> None:
    def broken() -> ProbeResult:
        raise RuntimeError("the engine's thread is gone")

    with ProbeServer("127.0.0.1:0", broken, broken) as probes:
        status, body = _ask(probes.port, "/live")
    assert status == 503
    assert "the engine's thread is gone" in json.loads(body)["words"]


def test_garbage_and_silence_are_cut_off_and_real_questions_answered(probes: ProbeServer) -> None:
    for garbage in (
        b"\x16\x03\x01\x02\x00\x01" * 50,
        b"A" * (2 * MAX_REQUEST_BYTES),
        b"GET\r\n\r\n",
        b"\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", probes.port), timeout=3) as client:
            client.sendall(garbage)
            client.shutdown(socket.SHUT_WR)
            try:
                said = client.recv(100)
            except ConnectionResetError:
                said = b""
        assert said == b"" or said.startswith(b"HTTP/1.1 400")
    silent = [socket.create_connection(("127.0.0.1", probes.port), timeout=3) for _ in range(8)]
    for client in silent:  # each is hung up on, without having said anything
        with client, suppress(ConnectionResetError):
            assert client.recv(1) == b""
    assert _ask(probes.port, "/live")[0] == 200


def test_an_address_that_cannot_be_is_refused_in_one_line(node: Node, probes: ProbeServer) -> None:
    with pytest.raises(InvalidInput, match="write HOST:PORT"):
        ProbeServer("8080", node.live, node.ready)
    with pytest.raises(DependencyUnavailable, match=f"cannot listen on 127.0.0.1:{probes.port} for probes"):
        ProbeServer(f"127.0.0.1:{probes.port}", node.live, node.ready)


def test_close_hangs_up_on_whoever_is_connected_and_frees_the_port(node: Node) -> None:
    probes = ProbeServer("127.0.0.1:0", node.live, node.ready, answer_s=30.0)
    with socket.create_connection(("127.0.0.1", probes.port), timeout=3), sooner_than(30.0):
        probes.close()
        probes.close()
    ProbeServer(f"127.0.0.1:{probes.port}", node.live, node.ready).close()
