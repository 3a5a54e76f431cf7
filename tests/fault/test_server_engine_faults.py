"""A desk whose engine or draft breaks: who was in that pass is told, and the next are answered."""

import numpy as np

from htfi.decoding.config import DecodingConfig
from htfi.decoding.draft_tree import DraftTree
from htfi.decoding.link.frames import DraftMode, RefusalReason
from htfi.decoding.ports import Floats, ForwardOutput, Ids
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from outcome_pair import network, requests
from server_world import Edge, deliver, desk, run, truth
from tiny_network import TinyNetwork


class Breaking:
    """A network that breaks at some passes."""

    def __init__(self, inner: TinyNetwork, breaks: dict[int, Exception | float]) -> None:
        self.shape, self.digest = inner.shape, inner.digest
        self._inner, self._breaks, self._num = inner, breaks, 0

    def forward(self, ids: Ids, positions: Ids, mask: Floats, keys: Floats, values: Floats) -> ForwardOutput:
        self._num += 1
        broken = self._breaks.get(self._num)
        if isinstance(broken, Exception):
            raise broken
        done = self._inner.forward(ids, positions, mask, keys, values)
        if broken is not None:
            return ForwardOutput(np.full_like(done.logits, broken), done.keys, done.values)
        return done


def test_requests_of_a_pass_that_broke_may_be_asked_again_and_are_answered():
    for error, why in (
        (DependencyUnavailable("no memory"), RefusalReason.BUSY),
        (InvalidInput("what?"), RefusalReason.UNANSWERABLE),
    ):
        cloud = desk()
        cloud.scheduler.engine.sessions.network = Breaking(network(), {6: error})
        edge = Edge(cloud)
        asked = requests(3)
        for handle, request in enumerate(asked):
            edge.say(edge.opening(request, handle))
        run(cloud, edge)
        refused = {frame.handle for frame in edge.refused()}
        assert {frame.reason for frame in edge.refused()} == {why}
        assert all((frame.retry_ms > 0) == (why is RefusalReason.BUSY) for frame in edge.refused())
        assert refused
        assert refused | set(edge.done) == {0, 1, 2}
        assert cloud.scheduler.engine.sessions.arena.num_rows == 0
        for handle in refused:
            edge.say(edge.opening(asked[handle], 10 + handle))
        run(cloud, edge)
        for handle in refused:
            assert tuple(edge.done[10 + handle]) == truth(asked[handle]).tokens
        assert not edge.dropped


def test_prompt_that_breaks_the_engine_is_refused_alone():
    cloud = desk()
    cloud.scheduler.engine.sessions.network = Breaking(network(), {1: DependencyUnavailable("gone")})
    edge = Edge(cloud)
    first, second = requests(2)
    edge.say(edge.opening(first, 1))
    deliver(cloud, edge)
    cloud.step()  # its prompt
    assert cloud.metrics.num_waiting == 0
    edge.say(edge.opening(second, 2))
    run(cloud, edge)
    assert [frame.handle for frame in edge.refused()] == [1]
    assert tuple(edge.done[2]) == truth(second).tokens


def test_logits_that_are_no_numbers_refuse_those_answers_and_spoil_no_later_one():
    cloud = desk()
    cloud.scheduler.engine.sessions.network = Breaking(network(), {5: float("nan")})
    edge = Edge(cloud)
    (request,) = requests(1)
    edge.say(edge.opening(request, 1))
    run(cloud, edge)
    assert [frame.reason for frame in edge.refused()] == [RefusalReason.UNANSWERABLE]
    edge.say(edge.opening(request, 2))
    run(cloud, edge)
    assert tuple(edge.done[2]) == truth(request).tokens


def test_draft_that_breaks_leaves_the_answer_to_the_target():
    cloud = desk(has_draft=True)
    draft = cloud.scheduler.strategy.draft
    assert draft is not None

    def broken(*_: object) -> list[DraftTree]:
        raise DependencyUnavailable("the draft is gone")

    draft.speculate = broken  # type: ignore[method-assign]
    edge = Edge(cloud)
    (request,) = requests(1)
    edge.say(edge.opening(request, 1, DraftMode.CLOUD))
    run(cloud, edge)
    assert tuple(edge.done[1]) == truth(request).tokens


def test_memory_for_one_row_serves_many_requests_one_after_the_other():
    per_token = network().shape.kv_bytes_per_token
    cloud = desk(decoding=DecodingConfig(batch_bytes=33 * per_token, cache_bytes=0))
    edge = Edge(cloud)
    asked = requests(4)
    for handle, request in enumerate(asked):
        edge.say(edge.opening(request, handle))
    run(cloud, edge)
    assert [tuple(edge.done[handle]) for handle in range(4)] == [truth(request).tokens for request in asked]
