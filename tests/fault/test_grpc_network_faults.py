"""The link's transport on a bad network: what arrives is what was sent, in order and once, or the stream ends."""

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from htfi.adapters.grpc.library import TransportLimits
from htfi.adapters.grpc.transport import GrpcTransport
from htfi.decoding.link.ports import StreamEvent
from htfi_eval.faulty_link.conditions import CLEAR, LinkConditions
from htfi_eval.faulty_link.link import FaultyLink
from link_nodes import PATIENCE_S, Nodes, certify, link, next_of

UP, FRAME, DOWN = StreamEvent.UP, StreamEvent.FRAME, StreamEvent.DOWN
WEATHERS = (LinkConditions(corrupt_rate=3e-4), LinkConditions(resets_after_bytes=20_000))
TWICE = LinkConditions(duplicate_rate=0.03)  # whole HTTP/2 frames, too: TLS alone numbers what it carries
BRISK = TransportLimits(longest_redial_s=0.2, dial_s=1.0)


class Receiver:
    """Follows the streams of one node and checks each frame against what its peer sends: numbers, counted up."""

    def __init__(self, node: GrpcTransport) -> None:
        self.node = node
        self.open: dict[str, int] = {}
        self.num_frames = self.num_streams = 0

    def follow(self) -> None:
        while (arrival := self.node.receive(0)) is not None:
            if arrival.event is UP:
                assert arrival.stream not in self.open
                self.open[arrival.stream] = -1
                self.num_streams += 1
            elif arrival.event is DOWN:
                del self.open[arrival.stream]
                assert arrival.reason
            elif len(arrival.body) == 40:  # not a refusal
                number = int(arrival.body)
                assert number > self.open[arrival.stream], "twice, or out of order"
                self.open[arrival.stream] = number
                self.num_frames += 1


@pytest.mark.parametrize("is_secure", [True, False], ids=["tls", "plaintext"])
def test_no_frame_comes_changed_twice_or_late_and_the_stream_comes_back(
    is_secure: bool, tmp_path: Path
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")  # noqa: T201 - a fault test tells how to have it again
    nodes = Nodes(certify(tmp_path) if is_secure else None)
    try:
        cloud = nodes.cloud(bounds=BRISK)
        with FaultyLink(("127.0.0.1", cloud.port), seed=seed) as network:
            edge = nodes.edge({"cloud1": network.address[1]}, bounds=BRISK)
            ends = (Receiver(cloud), Receiver(edge))
            for weather in (*WEATHERS, TWICE) if is_secure else WEATHERS:
                _exchange(ends, lambda: all(end.open for end in ends))
                network.conditions = weather
                until_s = time.monotonic() + 0.4
                _exchange(ends, lambda until_s=until_s: time.monotonic() > until_s)
                network.conditions = CLEAR
                network.reset()
                num_before = [end.num_frames for end in ends]
                _exchange(
                    ends,
                    lambda before=num_before: all(
                        end.num_frames > num + 20 for end, num in zip(ends, before, strict=True)
                    ),
                )
            assert ends[1].num_streams > len(WEATHERS)
    finally:
        nodes.close()


_numbers = iter(range(1 << 60))


def _exchange(ends: tuple[Receiver, Receiver], is_over: Callable[[], bool]) -> None:
    """Both ends send and follow until it is over."""
    until_s = time.monotonic() + PATIENCE_S
    while not is_over():
        assert time.monotonic() < until_s, "it does not come back"
        for end in ends:
            end.follow()
            for stream in end.open:
                end.node.send(stream, link(b"%040d" % next(_numbers)))
        time.sleep(0.002)


def test_a_far_cloud_is_reached_and_frames_take_one_way(tmp_path: Path) -> None:
    nodes = Nodes(certify(tmp_path))
    try:
        cloud = nodes.cloud()
        with FaultyLink(("127.0.0.1", cloud.port), LinkConditions(rtt_ms=200.0), seed=1) as network:
            edge = nodes.edge({"cloud1": network.address[1]})
            stream, at_cloud = next_of(edge, UP).stream, next_of(cloud, UP).stream
            began_s = time.monotonic()
            for number in range(100):  # no message waits for the answer to another
                edge.send(stream, link(b"%d" % number))
            assert [next_of(cloud, FRAME).body for _ in range(100)] == [b"%d" % k for k in range(100)]
            spent_s = time.monotonic() - began_s
            assert 0.1 <= spent_s < 100 * 0.2, "each waited for the answer to the one before"
            cloud.send(at_cloud, link(b"back"))
            next_of(edge, FRAME)
    finally:
        nodes.close()
