"""The memory world: time, steps and streams behave as a transport's do, and the same seed gives the same story."""

from collections.abc import Callable

import pytest

from htfi.decoding.link import frames
from htfi.decoding.link.frames import FrameChannel, RefusalReason, RefusedFrame, seal
from htfi.decoding.link.ports import StreamArrival, StreamEvent
from htfi.decoding.link.simulated.faults import NO_FAULTS, FrameFaults
from htfi.decoding.link.simulated.network import MemoryTransport, SimulatedNetwork, network_of_two
from htfi.domain.errors import InvalidInput

DELAY = FrameFaults(delay_ms=10)


def sealed(number: int) -> bytes:
    return seal(FrameChannel.LINK, number.to_bytes(4, "big"))


def number(arrival: StreamArrival | None) -> int:
    assert arrival is not None
    assert arrival.event is StreamEvent.FRAME, arrival
    return int.from_bytes(arrival.body, "big")


def echo(world: SimulatedNetwork, cloud: MemoryTransport, pass_s: float = 0.0) -> Callable[[], None]:
    """A cloud that sends back each frame, after a pass that lasts so long for all that wait."""

    def step() -> None:
        heard: list[StreamArrival] = []
        while (arrival := cloud.receive(0.0)) is not None:
            heard.append(arrival)
        world.consume_time(pass_s)
        for arrival in heard:
            if arrival.event is StreamEvent.FRAME:
                cloud.send(arrival.stream, seal(FrameChannel.LINK, arrival.body))

    return step


def opened(
    seed: int = 0, weather: FrameFaults = DELAY, pass_s: float = 0.0
) -> tuple[SimulatedNetwork, MemoryTransport, str]:
    world, edge, cloud = network_of_two(seed, weather)
    world.attach("cloud", echo(world, cloud, pass_s))
    up = edge.receive(1.0)
    assert up is not None
    assert (up.node, up.event) == ("cloud", StreamEvent.UP)
    return world, edge, up.stream


def test_a_frame_there_and_back_takes_both_ways_and_the_pass() -> None:
    world, edge, stream = opened(pass_s=0.005)
    began_s = world.now_s
    assert edge.send(stream, sealed(7))
    assert edge.receive(0.02) is None
    assert world.now_s == pytest.approx(began_s + 0.02)
    assert number(edge.receive(1.0)) == 7
    assert world.now_s == pytest.approx(began_s + 0.025)


def test_waiting_for_nothing_takes_exactly_the_time_that_was_given() -> None:
    world, edge, _ = opened()
    began_s = world.clock()
    assert edge.receive(0.3) is None
    assert edge.receive(0.0) is None
    assert world.clock() == pytest.approx(began_s + 0.3)


def test_frames_that_come_while_a_node_computes_wait_for_its_next_step() -> None:
    world, edge, stream = opened(pass_s=0.05)
    began_s = world.now_s
    edge.send(stream, sealed(1))
    world.consume_time(0.02)  # the edge computes as well
    edge.send(stream, sealed(2))
    assert number(edge.receive(1.0)) == 1
    assert world.now_s == pytest.approx(began_s + 0.01 + 0.05 + 0.01)
    assert number(edge.receive(1.0)) == 2
    assert world.now_s == pytest.approx(began_s + 0.01 + 0.05 + 0.05 + 0.01)


def test_a_step_is_called_again_when_it_asked_for_it() -> None:
    world = SimulatedNetwork()
    called_s: list[float] = []

    def step() -> float | None:
        called_s.append(world.now_s)
        world.consume_time(0.1)
        assert world.now_s == pytest.approx(called_s[-1] + 0.1), "its own clock goes on"
        return 0.4 if len(called_s) < 4 else None

    world.node("cloud", step)
    world.advance(10.0)
    assert called_s == pytest.approx([0.0, 0.5, 1.0, 1.5])


def test_a_step_that_never_waits_is_found_out() -> None:
    world = SimulatedNetwork(3)
    world.node("cloud", lambda: 0.0)
    with pytest.raises(InvalidInput, match="time stands still"):
        world.advance(1.0)


def test_a_step_cannot_wait_and_nobody_waits_for_ever() -> None:
    world, edge, cloud = network_of_two()
    seen: list[StreamArrival | None] = []
    world.attach("cloud", lambda: seen.append(cloud.receive(5.0)))
    world.advance(1.0)
    assert world.now_s == 1.0
    assert [one and one.event for one in seen] == [None, StreamEvent.UP]
    assert edge.receive(0.0) is not None
    with pytest.raises(InvalidInput, match="waits for ever"):
        edge.receive(float("inf"))


def test_both_sides_hear_that_a_stream_ended_and_it_is_dialled_again_by_another_name() -> None:
    world, edge, stream = opened()
    edge.send(stream, sealed(1))
    world.cut("edge", "cloud")
    down, up = edge.receive(1.0), edge.receive(1.0)
    assert down is not None
    assert up is not None
    assert (down.stream, down.event, down.reason) == (stream, StreamEvent.DOWN, "the connection was reset")
    assert up.event is StreamEvent.UP
    assert up.stream != stream
    assert not edge.send(stream, sealed(2))
    assert edge.send(up.stream, sealed(3))
    assert number(edge.receive(1.0)) == 3, "what was on its way on the old stream is lost"


def test_who_drops_a_stream_hears_of_it_at_once() -> None:
    world, edge, stream = opened()
    began_s = world.now_s
    edge.drop(stream, "it lies")
    down = edge.receive(1.0)
    assert down is not None
    assert (down.event, down.reason, world.now_s) == (StreamEvent.DOWN, "it lies", began_s)


def test_a_full_stream_takes_no_more_until_something_has_arrived() -> None:
    world, edge, stream = opened(weather=FrameFaults(delay_ms=10, takes_bytes=20))
    assert [edge.send(stream, sealed(n)) for n in range(4)] == [True, True, False, False]
    assert number(edge.receive(1.0)) == 0
    assert edge.send(stream, sealed(5)), world.describe()


def test_a_corrupted_frame_is_refused_by_name_and_the_stream_survives_a_few() -> None:
    world, edge, stream = opened()
    world.frame_faults = FrameFaults(delay_ms=10, corrupts=1.0)
    for n in range(20):
        edge.send(stream, sealed(n))
    world.advance(world.now_s + 0.009)
    world.frame_faults = DELAY
    refusals = 0
    while (arrival := edge.receive(1.0)) is not None and arrival.event is StreamEvent.FRAME:
        refused = frames.decode(arrival.body)
        assert isinstance(refused, RefusedFrame)
        assert (refused.handle, refused.reason) == (-1, RefusalReason.MALFORMED)
        refusals += 1
    assert arrival is not None
    assert arrival.event is StreamEvent.DOWN
    assert "cannot be read" in arrival.reason
    assert refusals <= 15


def test_frames_can_come_twice_never_or_before_those_sent_earlier() -> None:
    world, edge, stream = opened()
    world.frame_faults = FrameFaults(delay_ms=10, duplicates=1.0)
    edge.send(stream, sealed(1))
    world.advance(world.now_s + 0.005)
    world.frame_faults = DELAY
    assert [number(edge.receive(1.0)) for _ in range(2)] == [1, 1]
    world.frame_faults = FrameFaults(delay_ms=10, loses=1.0)
    edge.send(stream, sealed(2))
    world.frame_faults = FrameFaults(delay_ms=50)
    edge.send(stream, sealed(3))
    world.frame_faults = FrameFaults(delay_ms=10, overtakes=1.0)
    edge.send(stream, sealed(4))
    assert [number(edge.receive(1.0)) for _ in range(2)] == [4, 3], world.describe()


def test_in_the_dark_nobody_is_told_and_afterwards_a_newer_stream_replaces_the_old() -> None:
    world, edge, stream = opened()
    world.frame_faults = FrameFaults(is_dark=True)
    edge.send(stream, sealed(1))
    assert edge.receive(2.0) is None
    edge.drop(stream, "silent for too long")
    assert edge.receive(0.0).event is StreamEvent.DOWN  # pyright: ignore[reportOptionalMemberAccess]
    assert edge.receive(2.0) is None
    world.frame_faults = DELAY
    up = edge.receive(1.0)
    assert up is not None
    assert up.event is StreamEvent.UP
    edge.send(up.stream, sealed(2))
    assert number(edge.receive(1.0)) == 2


def test_a_killed_node_is_missed_and_its_successor_dialled() -> None:
    world, edge, stream = opened(pass_s=0.05)
    edge.send(stream, sealed(1))
    world.advance(world.now_s + 0.03)  # in mid-pass
    world.kill("cloud")
    down = edge.receive(1.0)
    assert down is not None
    assert down.event is StreamEvent.DOWN
    assert edge.receive(1.0) is None
    cloud = world.node("cloud")
    world.attach("cloud", echo(world, cloud))
    up = edge.receive(1.0)
    assert up is not None
    edge.send(up.stream, sealed(2))
    assert number(edge.receive(1.0)) == 2, world.describe()
    with pytest.raises(InvalidInput, match="already"):
        world.node("cloud")


def test_a_frozen_node_answers_everything_in_order_when_it_thaws() -> None:
    world, edge, stream = opened()
    world.pause_node("cloud", 3.0)
    for n in range(5):
        edge.send(stream, sealed(n))
    assert edge.receive(2.9) is None
    assert [number(edge.receive(1.0)) for n in range(5)] == list(range(5))


class Beats:
    """A watch that sends a beat at every tick."""

    def __init__(self) -> None:
        self.streams: set[str] = set()
        self.heard_of: list[tuple[str, bytes]] = []

    def opened(self, stream: str, node: str, dialled: bool) -> None:
        self.streams.add(stream)

    def ended(self, stream: str, node: str, words: str) -> None:
        self.streams.discard(stream)

    def received(self, stream: str, node: str, body: bytes) -> None:
        self.heard_of.append((node, body))

    def due(self) -> list[tuple[str, bytes]]:
        return [(stream, seal(FrameChannel.HEALTH, b"beat")) for stream in self.streams]


def test_a_watch_hears_its_peers_even_while_its_node_computes() -> None:
    world, mine, theirs = SimulatedNetwork(1, DELAY), Beats(), Beats()
    world.node("edge", watch=mine)
    world.node("cloud", lambda: world.consume_time(5.0), theirs)
    world.connect("edge", "cloud")
    world.advance(1.0)
    assert 30 <= len(mine.heard_of) <= 40
    assert 30 <= len(theirs.heard_of) <= 40
    assert set(theirs.heard_of) == {("edge", b"beat")}
    world.pause_node("cloud", 10.0)
    num_heard = len(mine.heard_of)
    world.advance(2.0)
    assert len(mine.heard_of) <= num_heard + 1


def test_weather_that_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidInput, match="corrupts"):
        FrameFaults(corrupts=2.0)
    with pytest.raises(InvalidInput, match="delay_ms"):
        FrameFaults(delay_ms=float("inf"))
    assert str(NO_FAULTS) == "no faults"
