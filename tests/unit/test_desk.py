"""The cloud's desk: what it answers, whom it refuses and why, what it does when edges come and go."""

import pytest

from desk_world import Edge, Time, deliver, desk, run, truth
from htfi.decoding.link.frames import PROTOCOL, Lead, Refused, Settled, Why
from outcome_pair import PATH, VIEW, requests


@pytest.mark.parametrize("lead", list(Lead))
@pytest.mark.parametrize("has_draft", [False, True])
def test_answer_is_the_embedded_authors_whoever_leads(lead: Lead, has_draft: bool):
    time = Time()
    cloud = desk(has_draft=has_draft, time=time)
    edge = Edge(cloud)
    asked = [*requests(3), *requests(3, VIEW)]
    for handle, request in enumerate(asked):
        edge.say(edge.opening(request, handle, lead))
    run(cloud, edge)
    time.now_s += 1.0  # in lock-step no window comes
    for _ in range(100):
        run(cloud, edge)
        time.now_s += 1.0
    assert {handle: tuple(text) for handle, text in edge.done.items()} == {
        handle: truth(request).tokens for handle, request in enumerate(asked)
    }
    assert not edge.refused()
    assert cloud.is_idle
