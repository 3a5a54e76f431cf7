"""What a bad link costs: how long a silence goes unnoticed, and whether any request is lost. `htfi bench link` asks."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from msgspec import structs

from htfi.domain.errors import DependencyUnavailable
from htfi.domain.generation import Completion, RequestRefused
from htfi.domain.peers import PeerState
from htfi_eval.bench.decode.prompts import PromptKind
from htfi_eval.bench.link.runs import LinkBench
from htfi_eval.bench.link.setup import CLOUD
from htfi_eval.faulty_link.conditions import CLEAR, LinkConditions

_RTT_MS = 20.0
_TIMEOUT_S = 30.0
_DEADLINE_MS = 250.0  # a run's usual deadline
_SILENCES = (replace(CLEAR, rtt_ms=_RTT_MS, is_dark=True), replace(CLEAR, rtt_ms=_RTT_MS, is_stalled=True))


class LostRequests(NamedTuple):
    """Of `num_asked` requests, those whose target's answer never came, and those that the draft answered first."""

    num_asked: int
    num_lost: int
    num_provisional: int
    num_unlike: int  # whose final tokens are not those of calm weather


def detection_ms(bench: LinkBench, num_times: int) -> list[float]:
    """From the moment that no byte passes to the cloud's being suspected, by turns swallowed and held back."""
    found: list[float] = []
    watch, link = bench.edge.monitor, bench.stage.link
    for turn in range(num_times):
        link.conditions = LinkConditions(rtt_ms=_RTT_MS)
        _wait_until(lambda: watch.state(CLOUD) is PeerState.HEALTHY, "the cloud does not come back")
        time.sleep(0.5 + 0.013 * turn)  # beats and silences in no step
        began_s = time.perf_counter()
        link.conditions = _SILENCES[turn % len(_SILENCES)]
        _wait_until(
            lambda: watch.state(CLOUD) in (PeerState.SUSPECT, PeerState.DEAD), "silence is not noticed"
        )
        found.append(1e3 * (time.perf_counter() - began_s))
        link.conditions = LinkConditions(rtt_ms=_RTT_MS)
        link.reset()  # what was swallowed stays swallowed
    _wait_until(lambda: watch.state(CLOUD) is PeerState.HEALTHY, "the cloud does not come back")
    return found


def count_lost_requests(bench: LinkBench, kind: PromptKind, num_requests: int) -> LostRequests:
    """Requests at a run's deadline while the link resets, stalls and goes dark, then time to amend them."""
    author, link = bench.edge.author, bench.stage.link
    bench.edge.placer.forced_route, bench.edge.placer.planner = None, bench.planned
    link.conditions = LinkConditions(rtt_ms=_RTT_MS)
    bench.edge.author.wait_ready(_TIMEOUT_S)
    asked = [structs.replace(bench.next_request(kind), deadline_ms=_DEADLINE_MS) for _ in range(num_requests)]
    calm = [structs.replace(one, id=f"calm {one.id}", deadline_ms=60_000.0) for one in asked]
    expected = {one.id: _whole(author.write([again])[0]) for one, again in zip(asked, calm, strict=True)}
    final: dict[str, tuple[int, ...]] = {}
    num_provisional = 0
    for number, request in enumerate(asked):
        match number % 8:
            case 1:
                link.reset()
            case 3:
                link.stall(0.4)
            case 5:
                link.conditions = replace(CLEAR, rtt_ms=_RTT_MS, is_dark=True)
            case 7:
                link.conditions = LinkConditions(rtt_ms=_RTT_MS)
                link.reset()
            case _:
                pass
        (answer,) = author.write([request])
        if isinstance(answer, Completion) and answer.is_provisional:
            num_provisional += 1
        elif isinstance(answer, Completion):
            final[request.id] = answer.tokens
    link.conditions = LinkConditions(rtt_ms=_RTT_MS)
    until_s = time.perf_counter() + _TIMEOUT_S
    while len(final) < num_requests and time.perf_counter() < until_s:
        for name, late in author.take_late_completions():
            if not isinstance(late, RequestRefused):
                final[name] = late.tokens
        time.sleep(0.01)
    num_unlike = sum(tokens != expected[name] for name, tokens in final.items())
    return LostRequests(num_requests, num_requests - len(final), num_provisional, num_unlike)


def _whole(answer: Completion | RequestRefused) -> tuple[int, ...]:
    if isinstance(answer, RequestRefused) or answer.is_provisional:
        raise DependencyUnavailable(f"a request in calm weather ended without the target: {answer}")
    return answer.tokens


def _wait_until(holds: Callable[[], bool], why: str) -> None:
    until_s = time.perf_counter() + _TIMEOUT_S
    while not holds():
        if time.perf_counter() > until_s:
            raise DependencyUnavailable(why)
        time.sleep(0.001)
