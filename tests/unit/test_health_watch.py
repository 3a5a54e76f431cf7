"""Watches that talk to each other: who is well, who is missed and when, who is back."""

import numpy as np
import pytest

from checks import nonempty
from htfi.domain.errors import InvalidInput
from htfi.domain.peers import PeerState
from htfi.scheduling.health import membership
from htfi.scheduling.health.config import HealthConfig
from htfi.scheduling.health.messages import (
    Heartbeat,
    NodeHealthMetrics,
    NodeStatus,
    PeerProbe,
    ProbeReply,
    decode_message,
    encode_message,
)
from htfi.scheduling.health.monitor import PeerMonitor
from watch_cluster import Cluster


def _trio(seed: int) -> Cluster:
    """An edge, two clouds; clouds also know each other."""
    cluster = Cluster(seed)
    for name in ("edge", "north", "south"):
        cluster.start(name)
    for a, b in (("edge", "north"), ("edge", "south"), ("north", "south")):
        cluster.connect(a, b)
    return cluster


def test_peers_that_beat_are_well_and_their_round_trips_known() -> None:
    cluster = _trio(1)
    cluster.run(3.0)
    for node in nonempty(cluster.nodes.values()):
        for peer in nonempty(cluster.nodes.keys() - {node.name}):
            figures = node.watch.figures(peer)
            assert figures.state is PeerState.HEALTHY
            assert figures.rtt_p50_ms is not None
            assert 9.9 < figures.rtt_p50_ms < 10.5
            assert figures.num_rtts >= 20


def test_a_killed_cloud_is_suspect_within_half_a_second_and_dead_later() -> None:
    cluster = _trio(2)
    cluster.run(3.0)
    cluster.kill("north")
    cluster.run(0.5)
    assert cluster.nodes["edge"].watch.state("north") is PeerState.SUSPECT
    assert cluster.nodes["south"].watch.state("north") is PeerState.SUSPECT
    cluster.run(6.0)
    assert [what for _, what in cluster.said("edge", "north")] == ["joined", "well", "suspect", "dead"]


def _watch(**settings: object) -> PeerMonitor:
    config = HealthConfig(**settings)  # type: ignore[arg-type]
    return PeerMonitor("edge", config, np.random.Generator(np.random.PCG64(3)), 0.0)


def _beat(
    seq: int, echo: int = 0, held_us: int = 0, life: int = 7, vitals: NodeHealthMetrics | None = None
) -> bytes:
    return encode_message(Heartbeat(seq, echo, held_us, life, 0, NodeStatus.ALIVE, vitals, ()))


def test_an_echo_tells_the_round_trip_less_what_the_peer_held_it() -> None:
    watch = _watch()
    watch.stream_opened("north", "north#1", 0.0)
    ((_, body),) = watch.tick(0.0)
    sent = decode_message(body)
    assert isinstance(sent, Heartbeat)
    watch.receive("north", _beat(1, sent.seq, 30_000), 0.050)
    figures = watch.figures("north")
    assert figures.rtts_ms == (pytest.approx(20.0),)
    watch.receive("north", _beat(2, sent.seq, 105_000), 0.125)  # the same echo tells nothing new
    watch.receive("north", _beat(3, 12345, 0), 0.2)  # nor does one of another life
    assert watch.figures("north").num_rtts == 1


def test_beats_go_out_each_75_ms_though_ticks_come_late() -> None:
    watch = _watch()
    watch.stream_opened("north", "north#1", 0.0)
    num_beats = sum(len(watch.tick(index * 0.0261)) for index in range(1_000))
    assert num_beats == pytest.approx(1_000 * 0.0261 / 0.075, rel=0.05)


def test_vitals_that_do_not_change_ride_on_few_beats_and_a_new_stream_gets_them_first() -> None:
    watch = _watch()
    watch.report_metrics(NodeHealthMetrics(queue=2))
    watch.stream_opened("north", "north#1", 0.0)
    told = [decode_message(body) for index in range(300) for _, body in watch.tick(index * 0.025)]
    with_vitals = [
        beat for beat in told if isinstance(beat, Heartbeat) and beat.metrics == NodeHealthMetrics(queue=2)
    ]
    assert told[0] in with_vitals
    assert 6 <= len(with_vitals) <= 8  # of 100
    watch.stream_opened("north", "north#2", 7.5)
    ((_, body),) = watch.tick(7.5)
    again = decode_message(body)
    assert isinstance(again, Heartbeat)
    assert again.metrics == NodeHealthMetrics(queue=2)
    assert watch.stream("north") == "north#2"


def test_a_peer_whose_old_stream_ends_while_a_newer_stands_stays_well() -> None:
    watch = _watch()
    watch.stream_opened("north", "north#1", 0.0)
    watch.receive("north", _beat(1), 0.01)
    watch.stream_opened("north", "north#2", 0.05)
    watch.stream_ended("north", "replaced", 0.06, "north#1")
    assert watch.state("north") is PeerState.HEALTHY
    watch.stream_ended("north", "gone", 0.07)
    assert watch.state("north") is PeerState.SUSPECT
    assert watch.stream("north") is None
    assert watch.receive("north", _beat(2), 0.08) == []  # a body that lay about: it has no stream
    assert watch.state("north") is PeerState.SUSPECT


def test_a_peer_that_connects_and_says_nothing_is_never_well() -> None:
    watch = _watch()
    watch.stream_opened("north", "north#1", 0.0)
    states = []
    for index in range(120):
        watch.tick(index * 0.025)
        states.append(watch.state("north"))
    assert set(states[:79]) == {PeerState.UNKNOWN}
    assert states[-1] is PeerState.SUSPECT


def test_frames_other_than_beats_keep_a_peer_from_silence() -> None:
    watch = _watch()
    watch.stream_opened("north", "north#1", 0.0)
    watch.receive("north", _beat(1), 0.0)
    for index in range(200):
        watch.tick(index * 0.025)
        watch.activity_seen("north", index * 0.025)
    assert watch.state("north") is PeerState.HEALTHY
    for index in range(200, 300):
        watch.tick(index * 0.025)
    assert watch.state("north") is PeerState.SUSPECT


def test_a_beat_delivered_again_is_no_sign_of_life() -> None:
    watch = _watch()
    watch.stream_opened("north", "north#1", 0.0)
    for index in range(40):
        watch.receive("north", _beat(1), index * 0.025)
        watch.tick(index * 0.025)
    assert watch.state("north") is PeerState.SUSPECT


def test_one_beat_after_a_silence_is_not_trusted_yet_and_three_are() -> None:
    watch = _watch()
    watch.stream_opened("north", "north#1", 0.0)
    watch.receive("north", _beat(1), 0.0)
    for index in range(40):
        watch.tick(index * 0.025)
    assert watch.state("north") is PeerState.SUSPECT
    for seq in (2, 3, 4, 5):  # a burst that a stall had held back
        watch.receive("north", _beat(seq), 1.0)
    assert watch.state("north") is PeerState.SUSPECT
    for seq, at_s in ((6, 1.075), (7, 1.150)):
        watch.tick(at_s - 0.03)
        watch.receive("north", _beat(seq), at_s)
    assert watch.state("north") is PeerState.HEALTHY


def test_an_answer_to_an_old_question_vouches_for_nobody() -> None:
    watch = _watch()
    for peer in ("north", "south"):
        watch.stream_opened(peer, f"{peer}#1", 0.0)
        watch.receive(peer, _beat(1), 0.0)
    tokens: list[int] = []
    for index in range(1, 160):
        now_s = index * 0.025
        for to, body in watch.tick(now_s):
            message = decode_message(body)
            if isinstance(message, PeerProbe):
                assert (to, message.node) == ("south", "north")
                tokens.append(message.token)
        if index % 3 == 0:
            watch.receive("south", _beat(1 + index), now_s)
    assert watch.figures("north").reason.startswith("silent for")
    watch.receive("south", encode_message(ProbeReply(tokens[-3], "north", 10)), 4.0)
    assert "still receives its heartbeats" not in watch.figures("north").reason
    watch.receive("south", encode_message(ProbeReply(tokens[-1], "north", -1)), 4.0)
    assert "still receives its heartbeats" not in watch.figures("north").reason
    watch.receive("south", encode_message(ProbeReply(tokens[-1], "north", 10)), 4.0)
    assert watch.figures("north").reason.endswith("south still receives its heartbeats")


def test_changes_that_nobody_drains_do_not_pile_up() -> None:
    watch = _watch()
    watch.stream_opened("north", "north#0", 0.0)
    watch.receive("north", _beat(1), 0.0)
    for index in range(3_000):
        watch.stream_ended("north", "reset", index * 0.01)
        watch.stream_opened("north", f"north#{index}", index * 0.01)
    assert len(watch.changes()) <= 1_024
    assert watch.changes() == []


def test_a_node_that_is_long_dead_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(membership, "FORGET_MS", 5_000.0)
    watch = _watch()
    watch.stream_opened("north", "north#1", 0.0)
    watch.receive("north", _beat(1), 0.0)
    watch.stream_ended("north", "reset", 0.1)
    for index in range(600):
        watch.tick(0.1 + index * 0.025)
    assert watch.peers() == []
    assert watch.state("north") is PeerState.UNKNOWN


def test_names_and_settings_that_cannot_be_are_refused_in_a_line() -> None:
    with pytest.raises(InvalidInput, match=r"health\.voters is empty"):
        _watch().request_leadership("desk:alpha")
    with pytest.raises(InvalidInput, match="role's name"):
        _watch(voters=("north",)).request_leadership("")
    with pytest.raises(InvalidInput, match="node's name"):
        PeerMonitor("x" * 65, HealthConfig(), np.random.Generator(np.random.PCG64(3)), 0.0)
    watch = _watch()
    watch.stream_opened("y" * 65, "s", 0.0)
    assert [change.what for change in watch.changes()] == ["refused"]
    assert watch.tick(0.0) == []
    for settings in (
        {"heartbeat_ms": 0.0},
        {"heartbeat_ms": float("nan")},
        {"heartbeat_ms": 49.0},
        {"silence_ms": 150.0},
        {"suspect_ms": 0.0},
        {"lease_ms": -1.0},
        {"clock_drift": 0.5},
        {"voters": ("north", "north")},
        {"voters": ("",)},
        {"hot_c": float("inf")},
    ):
        with pytest.raises(InvalidInput, match="health"):
            _watch(**settings)
