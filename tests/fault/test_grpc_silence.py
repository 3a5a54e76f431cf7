"""Streams on which a node falls silent: they are ended and dialled anew, where it is not we who slept."""

import time
from collections.abc import Sequence

import pytest

from htfi.adapters.grpc.library import TransportLimits
from htfi.decoding.link.frames import FrameChannel, seal
from htfi.decoding.link.ports import StreamEvent
from htfi_eval.faulty_link.conditions import CLEAR, Direction, LinkConditions
from htfi_eval.faulty_link.link import FaultyLink
from link_nodes import Nodes, Notes, link, next_of, until

UP, FRAME, DOWN = StreamEvent.UP, StreamEvent.FRAME, StreamEvent.DOWN
BRISK = TransportLimits(silent_s=0.6, dial_s=0.5, longest_redial_s=0.2)


class Heart(Notes):
    """Beats each tick on every stream that is open, and knows when the last beat of the other came."""

    received_s = 0.0

    def received(self, stream: str, node: str, body: bytes) -> None:
        super().received(stream, node, body)
        self.received_s = time.monotonic()

    def due(self) -> Sequence[tuple[str, bytes]]:
        ended = {stream for stream, _, _ in self.ended_}
        return [
            (stream, seal(FrameChannel.HEALTH, b"beat"))
            for stream, _, _ in self.opened_
            if stream not in ended
        ]


@pytest.fixture
def nodes() -> "Nodes":
    return Nodes(None)


@pytest.mark.parametrize("only", [None, Direction.UP, Direction.DOWN], ids=["both", "up", "down"])
def test_a_stream_whose_bytes_were_swallowed_is_ended_and_another_carries_frames(
    nodes: Nodes, only: Direction | None
) -> None:
    try:
        hearts = Heart(), Heart()
        cloud = nodes.cloud(watcher=hearts[0], bounds=BRISK)
        with FaultyLink(("127.0.0.1", cloud.port), seed=1) as network:
            edge = nodes.edge({"cloud1": network.address[1]}, watcher=hearts[1], bounds=BRISK)
            first = next_of(edge, UP).stream
            next_of(cloud, UP)
            time.sleep(0.1)
            network.conditions = LinkConditions(is_dark=True, only=only)
            assert edge.send(first, link(b"lost"))
            time.sleep(0.2)
            network.conditions = CLEAR  # and yet what lost bytes stays dark
            deaf, heart = (edge, hearts[1]) if only is not Direction.UP else (cloud, hearts[0])
            last_s = heart.received_s
            assert "was silent for 0.6 s" in next_of(deaf, DOWN).reason
            assert time.monotonic() - last_s > 0.55
            second, at_cloud = next_of(edge, UP).stream, next_of(cloud, UP).stream
            assert edge.send(second, link(b"there"))
            assert next_of(cloud, FRAME).body == b"there"
            assert cloud.send(at_cloud, link(b"back"))
            assert next_of(edge, FRAME).body == b"back"
    finally:
        nodes.close()


def test_a_stream_that_brings_nothing_from_its_opening_on_is_ended_too(nodes: Nodes) -> None:
    try:
        cloud = nodes.cloud(watcher=Notes())
        edge = nodes.edge({"cloud1": cloud.port}, watcher=Heart(), bounds=BRISK)
        next_of(edge, UP)
        assert "was silent" in next_of(edge, DOWN).reason
        next_of(edge, UP)
    finally:
        nodes.close()


def test_a_node_that_never_beats_and_to_whom_nobody_beats_may_be_silent(nodes: Nodes) -> None:
    try:
        cloud = nodes.cloud(bounds=BRISK)
        edge = nodes.edge({"cloud1": cloud.port}, bounds=BRISK)
        stream = next_of(edge, UP).stream
        next_of(cloud, UP)
        time.sleep(2 * BRISK.silent_s)
        assert edge.send(stream, link(b"at last"))
        assert next_of(cloud, FRAME).body == b"at last"
    finally:
        nodes.close()


def test_of_two_streams_between_two_nodes_one_may_bear_all_beats(nodes: Nodes) -> None:
    class Last(Heart):
        def due(self) -> Sequence[tuple[str, bytes]]:
            return list(super().due())[-1:]

    try:
        with FaultyLink(("127.0.0.1", 9), LinkConditions(refuses=True), seed=1) as network:
            peers = {"cloud1": f"127.0.0.1:{network.address[1]}"}
            second = nodes.cloud("cloud2", peers=peers, watcher=Last(), bounds=BRISK)
            peers = {"cloud2": f"127.0.0.1:{second.port}"}
            first = nodes.cloud("cloud1", peers=peers, watcher=Last(), bounds=BRISK)
            network.set_target(("127.0.0.1", first.port))
            network.conditions = CLEAR
            for node in (first, first, second, second):
                next_of(node, UP)
            time.sleep(3 * BRISK.silent_s)
            assert first.receive(0) is second.receive(0) is None
    finally:
        nodes.close()


def test_a_pause_of_our_own_is_no_silence_of_others(nodes: Nodes) -> None:
    """The clock of one node jumps, as it does over a SIGSTOP."""
    jump_s = 0.0

    def clock() -> float:
        return time.monotonic() + jump_s

    try:
        cloud = nodes.cloud(watcher=Heart())
        edge = nodes.edge({"cloud1": cloud.port}, watcher=Heart(), bounds=BRISK, clock=clock)
        next_of(edge, UP)
        for _ in range(5):
            time.sleep(0.1)
            jump_s += 10.0
        time.sleep(0.3)
        assert edge.receive(0) is None
    finally:
        nodes.close()


def test_a_caller_that_does_not_receive_is_no_silence_of_the_peer(nodes: Nodes) -> None:
    bounds = TransportLimits(silent_s=0.6, inbox_bytes=1 << 18)
    try:
        cloud = nodes.cloud(watcher=Heart(), bounds=bounds)
        edge = nodes.edge({"cloud1": cloud.port}, watcher=Heart())
        stream = next_of(edge, UP).stream
        sealed, num_sent = link(bytes(60_000)), 0
        until_s = time.monotonic() + 1.6
        while time.monotonic() < until_s:
            num_sent += edge.send(stream, sealed)
            time.sleep(0.005)
        assert next_of(cloud, UP).node == "edge1"
        for _ in range(num_sent):
            arrival = cloud.receive(5.0)
            assert arrival is not None
            assert arrival.event is FRAME, arrival.reason
    finally:
        nodes.close()


def test_frames_of_requests_are_told_to_the_watcher_but_not_each(nodes: Nodes) -> None:
    notes = Notes()
    try:
        cloud = nodes.cloud(watcher=notes, bounds=TransportLimits(tick_ms=200.0))
        edge = nodes.edge({"cloud1": cloud.port})
        stream = next_of(edge, UP).stream
        at_cloud = next_of(cloud, UP).stream
        for _ in range(200):
            edge.send(stream, link(b"x"))
            assert next_of(cloud, FRAME).body == b"x"
        assert set(notes.seen_) == {at_cloud}
        assert 1 <= len(notes.seen_) < 20
        num_before = len(notes.seen_)
        time.sleep(0.3)
        edge.send(stream, link(b"x"))
        until(lambda: len(notes.seen_) > num_before)
    finally:
        nodes.close()
