"""Answers by the clouds' target in full precision: pursued over the same streams, its own token for token."""

import pytest
from msgspec.structs import replace

from htfi.decoding.config import EdgeConfig, VerificationServerConfig
from htfi.decoding.link.client.generator import FullPrecisionGenerator
from htfi.decoding.link.frames import OpenFrame, RefusalReason
from htfi.decoding.link.parts import request_name
from htfi.decoding.link.server.requests import check_open
from htfi.decoding.link.simulated.faults import NO_FAULTS, FrameFaults
from htfi.decoding.sampling import SamplingParams
from htfi.domain.generation import Completion, GenerationRequest, RequestRefused
from linked_servers import Cluster
from linked_world import VIEW, local, question

FULL = 7  # seed of the network that stands for the target in full precision
NUM = 8
STORMY = FrameFaults(delay_ms=5.0, jitter_ms=4.0, ends=0.03, redial_s=0.05, corrupts=0.01, loses=0.02)


def asked(num: int) -> list[GenerationRequest]:
    return [replace(question(seed, VIEW), max_draft=0) for seed in range(num)]


def heard(
    cluster: Cluster, author: FullPrecisionGenerator, seconds: float
) -> dict[str, Completion | RequestRefused]:
    found: dict[str, Completion | RequestRefused] = {}
    until_s = cluster.world.now_s + seconds
    while cluster.world.now_s < until_s:
        found.update(author.take_late_completions())
        cluster.world.advance(cluster.world.now_s + 0.02)
    return found


@pytest.mark.parametrize("weather", [NO_FAULTS, STORMY], ids=["calm", "stormy"])
@pytest.mark.parametrize("seeds", [(FULL,), (None, FULL)], ids=["one cloud", "one of two"])
def test_they_are_the_targets_in_full_beside_those_of_the_usual_target(
    weather: FrameFaults, seeds: tuple[int | None, ...]
) -> None:
    cluster = Cluster(3, weather, num_clouds=len(seeds), full_seeds=seeds)
    author = FullPrecisionGenerator(cluster.author, "full@1")
    cluster.author.wait_ready(2.0)
    requests = asked(NUM)
    author.request_completions(requests)
    usual = cluster.author.write([replace(request, deadline_ms=1e5) for request in requests])
    found = heard(cluster, author, 30.0)
    target, full = local().write(requests), local(FULL).write(requests)
    for request, in_time, here, in_full in zip(requests, usual, target, full, strict=True):
        told = found[request.id]
        assert isinstance(told, Completion)
        assert isinstance(in_time, Completion)
        assert told.tokens == in_full.tokens
        assert in_time.tokens == here.tokens
    assert any(one.tokens != other.tokens for one, other in zip(target, full, strict=True))
    assert cluster.author.take_late_completions() == []


def test_where_no_cloud_has_it_all_are_refused_in_time_and_nothing_else_is_given_up() -> None:
    cluster = Cluster(1, full_seeds=(None,), config=EdgeConfig(late_answer_timeout_ms=500.0, max_late=2))
    author = FullPrecisionGenerator(cluster.author, "full@1")
    cluster.author.wait_ready(1.0)
    requests = asked(2)
    author.request_completions(requests)
    cluster.author.request_completions([replace(request, id=f"{request.id}/usual") for request in requests])
    found, usual = heard(cluster, author, 2.0), cluster.author.take_late_completions()
    assert set(found) == {request.id for request in requests}
    assert all(isinstance(told, RequestRefused) for told in found.values())
    assert [isinstance(told, Completion) for _, told in usual] == [True, True]


def test_a_cloud_without_it_refuses_one_that_is_asked_all_the_same() -> None:
    sampling = SamplingParams(1.0, 0, 1.0)
    names = [request_name((b"p" * 16,), b"f" * 16, 1, sampling, in_full=in_full) for in_full in (False, True)]
    assert names[0] != names[1]
    request = OpenFrame(
        1, names[1], 1, (b"p" * 16,), b"f" * 16, 1, *sampling, "view", 1000, 0, 0, (), b"", 0, True
    )
    assert check_open(request, VerificationServerConfig(), has_full=True) is None
    refused = check_open(request, VerificationServerConfig(), has_full=False)
    assert refused is not None
    assert refused[0] is RefusalReason.UNANSWERABLE
    (why, _) = check_open(replace(request, in_full=False), VerificationServerConfig(), has_full=True) or (
        None,
        "",
    )
    assert why is RefusalReason.MALFORMED


def test_nobody_waits_for_it() -> None:
    cluster = Cluster(1, full_seeds=(FULL,))
    (told,) = FullPrecisionGenerator(cluster.author, "full@1").write(asked(1))
    assert isinstance(told, RequestRefused)
