"""What a bad link costs: how long a silence goes unnoticed, and whether any request is lost. `htfi bench link` asks."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from msgspec import structs

from htfi.apps.bench.decode_prompts import Kind
from htfi.apps.bench.link_runs import Bench
from htfi.apps.bench.link_stage import CLOUD
from htfi.domain.errors import DependencyUnavailable
from htfi.domain.peers import PeerState
from htfi.domain.writing import Refusal, Writing
from htfi.simulation.faulty_link.weather import CLEAR, Weather

_RTT_MS = 20.0
_PATIENCE_S = 30.0
_LATE_MS = 250.0  # a run's usual deadline
_SILENCES = (replace(CLEAR, rtt_ms=_RTT_MS, is_dark=True), replace(CLEAR, rtt_ms=_RTT_MS, is_stalled=True))


class Lost(NamedTuple):
    """Of `num_asked` requests, those whose target's answer never came, and those that the draft answered first."""

    num_asked: int
    num_lost: int
    num_provisional: int
    num_unlike: int  # whose final tokens are not those of calm weather


def noticed_ms(bench: Bench, num_times: int) -> list[float]:
    """From the moment that no byte passes to the cloud's being suspected, by turns swallowed and held back."""
    found: list[float] = []
    watch, link = bench.edge.watch, bench.stage.link
    for turn in range(num_times):
        link.weather = Weather(rtt_ms=_RTT_MS)
        _until(lambda: watch.state(CLOUD) is PeerState.WELL, "the cloud does not come back")
        time.sleep(0.5 + 0.013 * turn)  # beats and silences in no step
        began_s = time.perf_counter()
        link.weather = _SILENCES[turn % len(_SILENCES)]
        _until(lambda: watch.state(CLOUD) in (PeerState.SUSPECT, PeerState.DEAD), "silence is not noticed")
        found.append(1e3 * (time.perf_counter() - began_s))
        link.weather = Weather(rtt_ms=_RTT_MS)
        link.reset()  # what was swallowed stays swallowed
    _until(lambda: watch.state(CLOUD) is PeerState.WELL, "the cloud does not come back")
    return found


def lost(bench: Bench, kind: Kind, num_requests: int) -> Lost:
    """Requests at a run's deadline while the link resets, stalls and goes dark, then time to amend them."""
    author, link = bench.edge.author, bench.stage.link
    bench.edge.places.only, bench.edge.places.planner = None, bench.planned
    link.weather = Weather(rtt_ms=_RTT_MS)
    bench.edge.author.wait_ready(_PATIENCE_S)
    asked = [structs.replace(bench.fresh(kind), deadline_ms=_LATE_MS) for _ in range(num_requests)]
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
                link.weather = replace(CLEAR, rtt_ms=_RTT_MS, is_dark=True)
            case 7:
                link.weather = Weather(rtt_ms=_RTT_MS)
                link.reset()
            case _:
                pass
        (answer,) = author.write([request])
        if isinstance(answer, Writing) and answer.is_provisional:
            num_provisional += 1
        elif isinstance(answer, Writing):
            final[request.id] = answer.tokens
    link.weather = Weather(rtt_ms=_RTT_MS)
    until_s = time.perf_counter() + _PATIENCE_S
    while len(final) < num_requests and time.perf_counter() < until_s:
        for name, late in author.late():
            if not isinstance(late, Refusal):
                final[name] = late.tokens
        time.sleep(0.01)
    num_unlike = sum(tokens != expected[name] for name, tokens in final.items())
    return Lost(num_requests, num_requests - len(final), num_provisional, num_unlike)


def _whole(answer: Writing | Refusal) -> tuple[int, ...]:
    if isinstance(answer, Refusal) or answer.is_provisional:
        raise DependencyUnavailable(f"a request in calm weather ended without the target: {answer}")
    return answer.tokens


def _until(holds: Callable[[], bool], why: str) -> None:
    until_s = time.perf_counter() + _PATIENCE_S
    while not holds():
        if time.perf_counter() > until_s:
            raise DependencyUnavailable(why)
        time.sleep(0.001)
