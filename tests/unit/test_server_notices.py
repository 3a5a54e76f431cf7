"""What an edge's transport says to a desk by itself: that a frame of the cloud came damaged."""

from htfi.decoding.link.frames import RefusalReason, RefusedFrame
from outcome_pair import requests
from server_world import Edge, deliver, desk, run, truth

(ASKED,) = requests(1)
DAMAGED = RefusedFrame(-1, 0, RefusalReason.MALFORMED, -1, "its checksum does not fit")


def test_an_edge_that_hears_damaged_frames_is_counted_and_not_blamed():
    cloud = desk()
    edge = Edge(cloud)
    edge.say(*[DAMAGED] * 100)
    edge.say(edge.opening(ASKED))
    run(cloud, edge)
    assert tuple(edge.done[1]) == truth(ASKED).tokens
    assert not edge.refused()
    assert not cloud.drops()
    assert cloud.metrics.num_notices == 100


def test_a_refusal_of_a_request_is_still_what_no_edge_sends():
    cloud = desk()
    edge = Edge(cloud)
    edge.say(RefusedFrame(1, 0, RefusalReason.BUSY, -1, "not now"))
    deliver(cloud, edge)
    assert [refused.reason for refused in edge.refused()] == [RefusalReason.MALFORMED]
    assert cloud.metrics.num_notices == 0
