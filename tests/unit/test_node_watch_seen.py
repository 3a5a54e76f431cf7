"""A node's watch hears other frames of a peer as well: a long answer that holds beats up is no silence."""

import pytest

from htfi.decoding.link.frames import seal_health
from htfi.domain.peers import PeerState
from htfi.scheduling.health.config import HealthConfig
from htfi.scheduling.health.messages import NodeHealthMetrics
from htfi.scheduling.health.node import NodeMonitor


@pytest.mark.parametrize("is_seen", [True, False])
def test_a_peer_whose_answers_come_is_alive_though_its_beats_do_not(is_seen: bool) -> None:
    now_s = 0.0
    edge = NodeMonitor("edge1", HealthConfig(), NodeHealthMetrics, seal_health, clock=lambda: now_s)
    cloud = NodeMonitor("cloud1", HealthConfig(), NodeHealthMetrics, seal_health, clock=lambda: now_s)
    edge.opened("cloud1#1", "cloud1", True)
    cloud.opened("edge1#1", "edge1", False)
    for _ in range(40):
        now_s += 0.025
        for _, sealed in cloud.due():
            edge.received("cloud1#1", "cloud1", sealed[5:])
        edge.due()
    assert edge.state("cloud1") is PeerState.HEALTHY
    for _ in range(40):
        now_s += 0.025
        edge.due()
        if is_seen:
            edge.seen("cloud1#1", "cloud1")
    assert (edge.state("cloud1") is PeerState.HEALTHY) == is_seen
