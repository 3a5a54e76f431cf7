"""A body from a peer is understood, or refused in one line with nothing changed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from htfi.domain.errors import InvalidInput
from htfi.scheduling.health.config import HealthConfig
from htfi.scheduling.health.messages import (
    MAX_BODY_BYTES,
    MAX_PART_BYTES,
    MAX_PARTS,
    VERSION,
    BundlePart,
    HealthMessage,
    Heartbeat,
    LeaseGrant,
    LeaseRelinquish,
    LeaseRequest,
    MembershipClaim,
    NodeHealthMetrics,
    NodeStatus,
    PeerProbe,
    ProbeReply,
    decode_message,
    encode_message,
    sanitise_metrics,
)
from htfi.scheduling.health.monitor import PeerMonitor

counts = st.integers(0, 1 << 48)
incarnations = st.integers(0, 1 << 40)
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=64)
figures = st.floats(0.0, 1e9)
vitals = st.builds(
    NodeHealthMetrics,
    counts,
    figures,
    counts,
    figures,
    figures,
    figures,
    st.tuples(figures, figures, figures, figures),
    figures,
    counts,
    st.none() | st.floats(-300.0, 300.0),
    st.floats(0.0, 1.0),
    figures,
    st.booleans(),
)
messages: st.SearchStrategy[HealthMessage] = st.one_of(
    st.builds(
        Heartbeat,
        counts,
        counts,
        counts,
        counts,
        incarnations,
        st.sampled_from((NodeStatus.ALIVE, NodeStatus.DEGRADED, NodeStatus.DRAINING)),
        st.none() | vitals,
        st.lists(
            st.builds(MembershipClaim, names, incarnations, st.sampled_from(NodeStatus)), max_size=6
        ).map(tuple),
    ),
    st.builds(PeerProbe, counts, names),
    st.builds(ProbeReply, counts, names, st.integers(-1, 1 << 32)),
    st.builds(LeaseRequest, names, counts, counts),
    st.builds(LeaseGrant, names, counts, counts, st.booleans(), names, counts),
    st.builds(LeaseRelinquish, names, counts, counts),
    st.builds(
        BundlePart,
        counts,
        st.integers(0, MAX_PARTS - 1),
        st.integers(1, MAX_PARTS),
        st.binary(max_size=MAX_PART_BYTES),
    ),
)


def _watch() -> PeerMonitor:
    config = HealthConfig(voters=("edge", "north", "south"))
    watch = PeerMonitor("edge", config, np.random.Generator(np.random.PCG64(1)), 0.0)
    watch.stream_opened("north", "north#1", 0.0)
    watch.request_leadership("desk:alpha")
    return watch


def _outlook(watch: PeerMonitor) -> object:
    return [(peer, watch.figures(peer)) for peer in watch.peers()], watch.leads("desk:alpha", 0.5)


@given(messages)
def test_what_is_said_is_understood(message: HealthMessage) -> None:
    assert decode_message(encode_message(message)) == message


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(messages, max_size=30))
def test_no_message_breaks_a_watch_and_what_it_says_after_is_readable(told: list[HealthMessage]) -> None:
    watch = _watch()
    said: list[bytes] = []
    for index, message in enumerate(told):
        now_s = index * 0.02
        answers = (*watch.receive("north", encode_message(message), now_s), *watch.tick(now_s))
        said += [body for _, body in answers]
    assert [encode_message(decode_message(body)) for body in said] == said


@given(
    st.lists(st.floats(), min_size=11, max_size=11),
    st.lists(st.integers(), min_size=3, max_size=3),
    st.booleans(),
)
def test_whatever_a_sensor_says_peers_can_read_it(
    told: list[float], counted: list[int], is_draining: bool
) -> None:
    a, b, c, d, e, f, g, h, i, j, k = (np.float64(each) for each in told)
    queue, num_rows, progress = counted
    broken = NodeHealthMetrics(queue, a, num_rows, b, c, d, (e, f, g, h), i, progress, j, k, a, is_draining)
    beat = Heartbeat(1, 0, 0, 1, 0, NodeStatus.ALIVE, sanitise_metrics(broken), ())
    assert decode_message(encode_message(beat)) == beat


@given(vitals)
def test_proper_vitals_stay_as_they_are(each: NodeHealthMetrics) -> None:
    assert sanitise_metrics(each) == each


def _refusal(watch: PeerMonitor, body: bytes) -> str | None:
    try:
        watch.receive("north", body, 0.0)
    except InvalidInput as error:
        return str(error)
    return None


@settings(max_examples=examples(300))
@given(st.binary(max_size=200) | st.binary(max_size=200).map(lambda rest: bytes((VERSION,)) + rest))
def test_any_bytes_are_understood_or_refused_in_a_line_with_nothing_changed(body: bytes) -> None:
    watch = _watch()
    before = _outlook(watch)
    words = _refusal(watch, body)
    assert words is None or ("\n" not in words and len(words) < 200)
    assert words is None or (_outlook(watch), watch.changes()) == (before, [])


@settings(max_examples=examples(200))
@given(messages, st.integers(0, 10_000), st.integers(1, 255))
def test_a_byte_that_flips_breaks_nothing(message: HealthMessage, place: int, flip: int) -> None:
    body = bytearray(encode_message(message))
    body[place % len(body)] ^= flip
    words = _refusal(_watch(), bytes(body))
    assert words is None or "\n" not in words


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "0 bytes"),
        (bytes(MAX_BODY_BYTES + 1), "2 to 4096"),
        (bytes((VERSION + 1,)) + encode_message(PeerProbe(1, "x"))[1:], "speaks version 2, this node 1"),
        (encode_message(PeerProbe(1, "")), "not a message"),
        (encode_message(PeerProbe(-1, "x")), "not a message"),
        (encode_message(ProbeReply(1, "x" * 65, 5)), "not a message"),
        (
            encode_message(Heartbeat(1, 0, 0, 1, 0, NodeStatus.DEAD, None, ())),
            "reports its own status as dead",
        ),
        (
            encode_message(
                Heartbeat(1, 0, 0, 1, 0, NodeStatus.ALIVE, NodeHealthMetrics(power_w=float("nan")), ())
            ),
            "not a message",
        ),
        (
            encode_message(
                Heartbeat(1, 0, 0, 1, 0, NodeStatus.ALIVE, NodeHealthMetrics(step_p50_ms=float("inf")), ())
            ),
            "not a message",
        ),
        (
            encode_message(
                Heartbeat(
                    1,
                    0,
                    0,
                    1,
                    0,
                    NodeStatus.ALIVE,
                    None,
                    (MembershipClaim("x", 0, NodeStatus.DEGRADED),) * 18,
                )
            ),
            "not a message",
        ),
    ],
)
def test_what_no_watch_says_is_refused_by_name(body: bytes, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        _watch().receive("north", body, 0.1)
