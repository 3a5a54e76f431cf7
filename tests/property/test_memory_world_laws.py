"""Laws of the memory world over random weather: what a transport promises, and that a seed is a story."""

from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from htfi.decoding.link.frames import FrameChannel, seal
from htfi.decoding.link.ports import StreamEvent
from htfi.decoding.link.simulated.faults import FrameFaults
from htfi.decoding.link.simulated.network import MemoryTransport, SimulatedNetwork

NODES = ("edge-1", "edge-2")
_chance = st.sampled_from([0.0, 0.01, 0.2])
honest = st.builds(
    FrameFaults,
    delay_ms=st.sampled_from([0.0, 3.0, 40.0]),
    jitter_ms=st.sampled_from([0.0, 1.0, 30.0]),
    ends=_chance,
    redial_s=st.sampled_from([0.0, 0.1]),
    takes_bytes=st.sampled_from([100, 1 << 20]),
)
hostile = st.builds(
    FrameFaults, delay_ms=st.just(3.0), jitter_ms=st.just(2.0), ends=_chance, corrupts=_chance, loses=_chance,
    duplicates=_chance, overtakes=_chance,
)  # fmt: skip


def run(
    seed: int, weather: FrameFaults, num_frames: int = 60
) -> tuple[dict[str, list[int]], list[tuple[str, str, int]], str]:
    """Two edges send numbers to a cloud: what each sent, by node; what the cloud got, in order; the story."""
    world = SimulatedNetwork(seed, weather)
    got: list[tuple[str, str, int]] = []
    cloud = world.node("cloud")

    def step() -> None:
        while (arrival := cloud.receive(0.0)) is not None:
            # a longer one refuses a refusal of ours that was spoilt
            if arrival.event is StreamEvent.FRAME and len(arrival.body) == 4:
                got.append((arrival.node, arrival.stream, int.from_bytes(arrival.body, "big")))
        world.consume_time(0.001)

    world.attach("cloud", step)
    edges: dict[str, MemoryTransport] = {name: world.node(name) for name in NODES}
    for name in NODES:
        world.connect(name, "cloud")
    streams: dict[str, str] = {}
    sent: dict[str, list[int]] = {name: [] for name in NODES}
    for at in range(num_frames):
        for name, edge in edges.items():
            while (arrival := edge.receive(0.002)) is not None:
                if arrival.event is StreamEvent.UP:
                    streams[name] = arrival.stream
            if edge.send(streams.get(name, ""), seal(FrameChannel.LINK, at.to_bytes(4, "big"))):
                sent[name].append(at)
    world.frame_faults = FrameFaults()
    world.advance(world.now_s + 5.0)
    return sent, got, world.describe()


@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), weather=honest)
def test_frames_come_whole_in_order_and_once_or_the_stream_ends(seed: int, weather: FrameFaults) -> None:
    sent, got, story = run(seed, weather)
    for name in NODES:
        streams = {stream for node, stream, _ in got if node == name}
        for stream in streams:
            numbers = [number for node, one, number in got if (node, one) == (name, stream)]
            assert numbers == sorted(set(numbers)), story
            assert set(numbers) <= set(sent[name]), story
        received = [number for node, _, number in got if node == name]
        assert received == sent[name] or weather.ends > 0, story


@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), weather=hostile)
def test_the_same_seed_and_weather_tell_the_same_story(seed: int, weather: FrameFaults) -> None:
    assert run(seed, weather) == run(seed, weather)


@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), weather=hostile)
def test_whatever_the_weather_only_frames_that_were_sent_arrive(seed: int, weather: FrameFaults) -> None:
    sent, got, story = run(seed, weather)
    assert all(number in sent[node] for node, _, number in got), story
