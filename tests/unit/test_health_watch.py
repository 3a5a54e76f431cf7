"""Watches that talk to each other: who is well, who is missed and when, who is back."""

from htfi.domain.peers import PeerState
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
    for node in cluster.nodes.values():
        for peer in cluster.nodes.keys() - {node.name}:
            figures = node.watch.figures(peer)
            assert figures.state is PeerState.WELL
            assert figures.rtt_p50_ms is not None
            assert 9.9 < figures.rtt_p50_ms < 10.5
            assert figures.silence_ms < 120.0


def test_a_killed_cloud_is_suspect_within_half_a_second_and_dead_later() -> None:
    cluster = _trio(2)
    cluster.run(3.0)
    cluster.kill("north")
    cluster.run(0.5)
    assert cluster.nodes["edge"].watch.state("north") is PeerState.SUSPECT
    assert cluster.nodes["south"].watch.state("north") is PeerState.SUSPECT
    cluster.run(6.0)
    assert [what for _, what in cluster.said("edge", "north")] == ["joined", "well", "suspect", "dead"]
