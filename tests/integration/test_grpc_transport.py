"""The port's contract, held by streams over TLS and in plaintext; and what this adapter adds to it."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from checks import sooner_than
from htfi.adapters.grpc.dialler import redial_s
from htfi.adapters.grpc.library import TransportLimits
from htfi.adapters.grpc.transport import GrpcTransport
from htfi.decoding.link.frames import MAX_FRAME_BYTES, FrameChannel, RefusalReason, RefusedFrame, decode, seal
from htfi.decoding.link.ports import StreamEvent, Transport
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from link_nodes import Nodes, Notes, certify, files, link, next_of, until

UP, FRAME, DOWN = StreamEvent.UP, StreamEvent.FRAME, StreamEvent.DOWN
_OVERHEAD_BYTES = 5  # of a seal


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certify(tmp_path_factory.mktemp("tls"))


@pytest.fixture(params=["tls", "plaintext"])
def nodes(request: pytest.FixtureRequest, folder: Path) -> Iterator[Nodes]:
    made = Nodes(folder if request.param == "tls" else None)
    yield made
    made.close()


@pytest.fixture
def secure(folder: Path) -> Iterator[Nodes]:
    made = Nodes(folder)
    yield made
    made.close()


def test_a_stream_opens_under_the_names_of_both_ends(nodes: Nodes) -> None:
    cloud = nodes.cloud()
    edge = nodes.edge({"cloud1": cloud.port})
    ports: tuple[Transport, Transport] = (cloud, edge)
    assert [next_of(cloud, UP).node, next_of(edge, UP).node] == ["edge1", "cloud1"]
    assert all(port.receive(0) is None for port in ports)


def test_frames_arrive_whole_in_order_and_once_both_ways(nodes: Nodes) -> None:
    cloud = nodes.cloud()
    edge = nodes.edge({"cloud1": cloud.port})
    ends = [(cloud, next_of(cloud, UP).stream), (edge, next_of(edge, UP).stream)]
    rng = np.random.Generator(np.random.PCG64(3))
    sizes = [*rng.integers(1, 3000, 200).tolist(), MAX_FRAME_BYTES - _OVERHEAD_BYTES, 1]
    bodies = [rng.bytes(size) for size in sizes]
    for node, stream in ends:
        assert all(node.send(stream, link(body)) for body in bodies)
    for node, stream in ends:
        got = [next_of(node, FRAME) for _ in bodies]
        assert [arrival.body for arrival in got] == bodies
        assert {arrival.stream for arrival in got} == {stream}
        assert node.receive(0.05) is None
    carried = edge.traffic()[ends[1][1]]
    num_bytes = sum(sizes) + _OVERHEAD_BYTES * len(sizes)
    assert (carried.num_sent, carried.sent_bytes) == (len(bodies), num_bytes)
    assert (carried.num_received, carried.received_bytes, carried.num_bad) == (len(bodies), num_bytes, 0)


def test_nothing_can_be_sent_on_a_stream_that_ended_or_never_was(nodes: Nodes) -> None:
    cloud = nodes.cloud()
    edge = nodes.edge({"cloud1": cloud.port})
    stream = next_of(edge, UP).stream
    next_of(cloud, UP)
    assert not edge.send("cloud1#99", link(b"x"))
    edge.drop("cloud1#99", "no such")
    cloud.close()
    assert next_of(edge, DOWN).stream == stream
    assert not edge.send(stream, link(b"x"))
    with pytest.raises(InvalidInput, match="at most"):
        edge.send(stream, bytes(MAX_FRAME_BYTES + 1))


def test_a_dropped_stream_ends_at_both_ends_with_the_words_and_comes_back_under_another_name(
    nodes: Nodes,
) -> None:
    cloud = nodes.cloud()
    edge = nodes.edge({"cloud1": cloud.port})
    first = (next_of(cloud, UP).stream, next_of(edge, UP).stream)
    cloud.drop(first[0], "it asks for too much")
    assert next_of(cloud, DOWN).reason == next_of(edge, DOWN).reason == "it asks for too much"
    second = (next_of(cloud, UP).stream, next_of(edge, UP).stream)
    assert not set(first) & set(second)
    edge.drop(second[1], "silent for 500 ms")
    assert next_of(edge, DOWN).reason == "silent for 500 ms"
    assert next_of(cloud, DOWN).stream == second[0]


def test_an_edge_that_closes_sends_what_waits(nodes: Nodes) -> None:
    cloud = nodes.cloud()
    edge = nodes.edge({"cloud1": cloud.port})
    stream = next_of(edge, UP).stream
    assert all(edge.send(stream, link(b"%d" % k)) for k in range(500))
    edge.close(2.0)
    assert [next_of(cloud, FRAME).body for _ in range(500)] == [b"%d" % k for k in range(500)]
    assert next_of(cloud, DOWN).reason == "edge1 closed the stream"


def test_close_sends_what_waits_and_tells_both_ends(nodes: Nodes) -> None:
    cloud = nodes.cloud()
    edge = nodes.edge({"cloud1": cloud.port})
    stream = next_of(cloud, UP).stream
    next_of(edge, UP)
    assert all(cloud.send(stream, link(b"%d" % k)) for k in range(500))
    with sooner_than(20.0):
        cloud.close(20.0)
        cloud.close(20.0)
    assert [next_of(edge, FRAME).body for _ in range(500)] == [b"%d" % k for k in range(500)]
    assert next_of(edge, DOWN).node == "cloud1"
    assert next_of(cloud, DOWN).node == "edge1"
    with sooner_than(20.0):  # at once: nothing can come any more
        assert cloud.receive(20.0) is None
        assert cloud.receive(20.0) is None


def test_no_thread_is_left_behind(nodes: Nodes) -> None:
    cloud = nodes.cloud()
    edge = nodes.edge({"cloud1": cloud.port, "cloud2": 1})
    next_of(edge, UP)
    edge.close()
    cloud.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "link"]


def test_a_node_serves_and_dials_at_once_and_two_that_dial_each_other_have_two_streams(secure: Nodes) -> None:
    watch1, watch2 = Notes(), Notes()
    cloud1 = secure.cloud("cloud1", watcher=watch1)
    cloud2 = secure.node(
        "cloud2", listen="127.0.0.1:0", peers={"cloud1": f"127.0.0.1:{cloud1.port}"}, watcher=watch2
    )
    edge = secure.edge({"cloud1": cloud1.port, "cloud2": cloud2.port})
    assert {next_of(edge, UP).node, next_of(edge, UP).node} == {"cloud1", "cloud2"}
    until(lambda: len(watch1.opened_) == 2 and len(watch2.opened_) == 2)
    assert {(node, dialled) for _, node, dialled in watch1.opened_} == {("edge1", False), ("cloud2", False)}
    assert {(node, dialled) for _, node, dialled in watch2.opened_} == {("edge1", False), ("cloud1", True)}
    other = secure.node("cloud1", listen="127.0.0.1:0", peers={"cloud2": f"127.0.0.1:{cloud2.port}"})
    next_of(other, UP)
    until(lambda: ("cloud1", False) in {(node, dialled) for _, node, dialled in watch2.opened_})
    assert not watch2.ended_


def test_the_watch_goes_on_while_the_caller_is_busy(secure: Nodes) -> None:
    at_cloud, at_edge = Notes(), Notes()
    cloud = secure.cloud(watcher=at_cloud)
    secure.edge({"cloud1": cloud.port}, watcher=at_edge)
    until(lambda: bool(at_edge.opened_))
    # Nobody receives at either end: a pass of the model is going on.
    at_edge.to_send = [(at_edge.opened_[0][0], seal(FrameChannel.HEALTH, b"beat"))]
    until(lambda: [body for _, body in at_cloud.bodies] == [b"beat"])
    assert [arrival.event for arrival in iter(lambda: cloud.receive(0), None)] == [UP]


def test_a_body_that_the_watcher_rejects_is_refused_by_name(secure: Nodes) -> None:
    class Strict(Notes):
        def received(self, stream: str, node: str, body: bytes) -> None:
            raise InvalidInput("not a heartbeat")

    cloud = secure.cloud(watcher=Strict())
    edge = secure.edge({"cloud1": cloud.port})
    edge.send(next_of(edge, UP).stream, seal(FrameChannel.HEALTH, b"?"))
    assert decode(next_of(edge, FRAME).body) == RefusedFrame(
        -1, 0, RefusalReason.MALFORMED, -1, "not a heartbeat"
    )


def test_a_watcher_that_fails_ends_the_transport_and_its_caller_is_told(secure: Nodes) -> None:
    class Broken(Notes):
        def due(self) -> list[tuple[str, bytes]]:
            return [] if not self.opened_ else [("", b"")] * (1 // 0)

    cloud = secure.cloud(watcher=Broken())
    edge = secure.edge({"cloud1": cloud.port})
    next_of(edge, UP)
    next_of(edge, DOWN)
    next_of(cloud, DOWN)
    with pytest.raises(ZeroDivisionError):
        cloud.receive(5.0)


def test_a_watcher_that_fails_over_a_new_stream_ends_the_transport_as_well(secure: Nodes) -> None:
    class Broken(Notes):
        def opened(self, stream: str, node: str, dialled: bool) -> None:
            raise ZeroDivisionError("a fault of ours")

    cloud = secure.cloud(watcher=Broken())
    secure.edge({"cloud1": cloud.port})
    next_of(cloud, UP)
    with pytest.raises(ZeroDivisionError, match="a fault of ours"):
        next_of(cloud, UP)


def test_totals_outlive_their_streams(nodes: Nodes) -> None:
    cloud = nodes.cloud()
    edge = nodes.edge({"cloud1": cloud.port})
    for number in range(1, 4):
        stream = next_of(edge, UP).stream
        edge.send(stream, link(b"12345"))
        at_cloud = next_of(cloud, FRAME).stream
        cloud.drop(at_cloud, "next")
        next_of(edge, DOWN)
        next_of(cloud, DOWN)
        assert (cloud.total().num_received, cloud.total().received_bytes) == (number, 10 * number)


def test_a_second_stream_of_a_node_replaces_one_that_fell_silent(nodes: Nodes) -> None:
    cloud = nodes.cloud(bounds=TransportLimits(fresh_s=0.05))
    nodes.edge({"cloud1": cloud.port})
    first = next_of(cloud, UP).stream
    time.sleep(0.2)
    newer = nodes.edge({"cloud1": cloud.port})
    arrivals = [cloud.receive(5.0), cloud.receive(5.0)]
    assert [(arrival.event, arrival.stream == first) for arrival in arrivals if arrival] == [
        (DOWN, True),
        (UP, False),
    ]
    assert arrivals[0] is not None
    assert arrivals[0].reason == "edge1 opened a newer stream"
    next_of(newer, UP)


def test_two_processes_with_one_certificate_do_not_throw_each_other_out(secure: Nodes) -> None:
    notes = Notes()
    cloud = secure.cloud(bounds=TransportLimits(fresh_s=0.5))
    older = secure.edge({"cloud1": cloud.port})
    stream = next_of(older, UP).stream
    beating = threading.Event()

    def beat() -> None:
        while not beating.wait(0.05):
            older.send(stream, link(b"beat"))

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        next_of(cloud, FRAME)
        secure.edge({"cloud1": cloud.port}, trouble=notes.trouble)
        until(lambda: bool(notes.troubles))
        time.sleep(0.5)
    finally:
        beating.set()
        thread.join()
    (told,) = notes.troubles
    assert "edge1 is connected already: do two processes use its certificate?" in told[1]
    assert stream in older.traffic()


def test_a_cloud_that_comes_back_is_found_again_and_each_change_told_once(secure: Nodes) -> None:
    notes = Notes()
    cloud = secure.cloud()
    edge = secure.edge({"cloud1": cloud.port}, trouble=notes.trouble)
    next_of(edge, UP)
    cloud.close()
    next_of(edge, DOWN)
    until(lambda: bool(notes.troubles))
    time.sleep(0.7)  # several dials
    secure.cloud(port=cloud.port)
    next_of(edge, UP)
    until(lambda: len(notes.troubles) == 2)
    assert notes.troubles == [
        ("cloud1", f"127.0.0.1:{cloud.port}: connection refused"),
        ("cloud1", ""),
    ]


def test_an_edge_uses_a_new_certificate_without_a_restart(tmp_path: Path) -> None:
    ours = Nodes(certify(tmp_path))
    strangers = Nodes(certify(tmp_path / "other"))
    try:
        cloud = strangers.cloud()
        notes = Notes()
        edge = ours.edge({"cloud1": cloud.port}, trouble=notes.trouble)
        until(lambda: bool(notes.troubles))
        for name in ("ca.pem", "edge1.pem", "edge1.key"):
            (tmp_path / name).write_bytes((tmp_path / "other" / name).read_bytes())
        assert next_of(edge, UP).node == "cloud1"
    finally:
        ours.close()
        strangers.close()


def test_dials_wait_longer_up_to_a_bound_and_not_in_step() -> None:
    rng = np.random.Generator(np.random.PCG64(0))
    waits_s = [[redial_s(k, TransportLimits(), rng) for _ in range(100)] for k in range(30)]
    assert all(0.05 <= wait_s <= 0.1 for wait_s in waits_s[0])
    assert all(1.0 <= wait_s <= 2.0 for wait_s in waits_s[29])
    assert len(set(waits_s[29])) == 100


@pytest.mark.parametrize("address", ["8080", "127.0.0.1", "127.0.0.1:99999", ":7000", "host:port"])
def test_an_address_that_cannot_be_is_refused(address: str) -> None:
    with pytest.raises(InvalidInput, match="write HOST:PORT"):
        Nodes(None).node("cloud1", listen=address)


@pytest.mark.parametrize("address", ["0.0.0.0:0", "192.0.2.7:7000", "[::]:0", "cloud.example:7000"])
def test_plaintext_stays_on_this_machine(address: str) -> None:
    with pytest.raises(InvalidInput, match="without TLS only loopback"):
        Nodes(None).node("cloud1", listen=address)
    with pytest.raises(InvalidInput, match="without TLS only loopback"):
        Nodes(None).node("edge1", peers={"cloud1": address})


def test_a_port_in_use_is_one_line(secure: Nodes) -> None:
    taken = secure.cloud()
    with pytest.raises(DependencyUnavailable, match=f"cannot listen on 127.0.0.1:{taken.port}"):
        secure.cloud("cloud2", port=taken.port)


def test_a_transport_is_a_context(folder: Path) -> None:
    rng = np.random.Generator(np.random.PCG64(0))
    with GrpcTransport("cloud1", tls=files(folder, "cloud1"), rng=rng, listen="127.0.0.1:0") as cloud:
        assert cloud.receive(0) is None
    assert cloud.receive(5.0) is None
