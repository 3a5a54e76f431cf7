"""Requests over the link: each in every placement, while the round trip changes, and while the link fails."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from msgspec import structs

from htfi.decoding.link.client.generator import LinkedGenerator
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import DependencyUnavailable
from htfi.domain.generation import Completion, GenerationRequest, RequestRefused
from htfi.domain.peers import PeerState
from htfi.scheduling.placement.figures import Placement
from htfi.scheduling.placement.planner import PlacementPlanner
from htfi.wiring.cluster.edge import EdgeNode
from htfi_eval.bench.decode.prompts import PromptKind, prompt_kinds, request
from htfi_eval.bench.link.setup import CLOUD, LinkSetup, link_conditions
from htfi_eval.faulty_link.conditions import CLEAR, LinkConditions

DEADLINE_MS = 60_000.0  # no request is late
_NUM_LEARNING = 2  # requests of each kind and placement before the first that counts
_NUM_EXPLORING = 6  # more planned requests: a new planner explores
_NUM_ATTEMPTS = 4
_PRIMING_SEED_OFFSET = 1 << 40  # added to a seed: the same prompt, another answer


class PlacementChoice(Enum):
    """The placement of a request: as planned, or forced."""

    PLANNED = "planned"
    PLAIN = Placement.CLOUD_PLAIN.value
    CLOUD = Placement.CLOUD_SPECULATIVE.value
    LOCKSTEP = Placement.LOCKSTEP.value
    FLIGHT = Placement.PIPELINED.value

    @property
    def only(self) -> Placement | None:
        return None if self is PlacementChoice.PLANNED else Placement(self.value)


ALL_PLACEMENTS = (
    PlacementChoice.PLANNED,
    PlacementChoice.PLAIN,
    PlacementChoice.CLOUD,
    PlacementChoice.LOCKSTEP,
    PlacementChoice.FLIGHT,
)
FORCED_PLACEMENTS = ALL_PLACEMENTS[1:]


@dataclass(frozen=True, slots=True)
class LinkMeasurement:
    """One answer. Times run from the request; `num_bytes`: encrypted frames, both ways; `chosen`: the placement."""

    request: str
    tokens: tuple[int, ...]
    first_ms: float
    total_ms: float
    num_bytes: int
    chosen: str


PlacementRun = dict[PlacementChoice, LinkMeasurement]


@dataclass(slots=True)
class LinkBench:
    """An edge with two planners that learn separately: one for planned and one for forced requests."""

    stage: LinkSetup
    edge: EdgeNode
    vocabulary: Vocabulary
    number: int  # of the next story
    planned: PlacementPlanner
    forced: PlacementPlanner
    requests: dict[str, GenerationRequest]  # by id

    @classmethod
    def connect(cls, stage: LinkSetup, edge: EdgeNode, first_number: int) -> "LinkBench":
        return cls(
            stage,
            edge,
            edge.local_generator.vocabulary,
            first_number,
            edge.placer.edge_placer.planner,
            PlacementPlanner(),
            {},
        )

    def run(
        self, kind: PromptKind, turn: int, placements: Sequence[PlacementChoice] = ALL_PLACEMENTS
    ) -> PlacementRun:
        """The request of a new story in all placements, in rotating order; its prompt was read before."""
        request = self.next_request(kind)
        first = turn % len(placements)
        return {
            placement: self.write(request, placement)
            for placement in (*placements[first:], *placements[:first])
        }

    def learn(self, placements: Sequence[PlacementChoice] = ALL_PLACEMENTS) -> None:
        """Let the planners learn the costs of this link."""
        for turn in range(_NUM_LEARNING):
            for kind in measured_kinds():
                self.run(kind, turn, placements)
        for _ in range(_NUM_EXPLORING):
            for kind in measured_kinds():
                self.write(self.next_request(kind), PlacementChoice.PLANNED)

    def write(self, request: GenerationRequest, placement: PlacementChoice) -> LinkMeasurement:
        """One answer of the target.

        On a busy machine the cloud may be suspected for a moment; then the request is repeated.
        Raises: DependencyUnavailable where it is refused, or again not answered by the target.
        """
        for attempt in range(_NUM_ATTEMPTS - 1):
            try:
                return self._write(
                    structs.replace(request, id=f"{request.id} {placement.name} {attempt}"),
                    placement,
                    request.id,
                )
            except DependencyUnavailable:
                time.sleep(1.0)
        return self._write(request, placement, request.id)

    def _write(self, request: GenerationRequest, placement: PlacementChoice, name: str) -> LinkMeasurement:
        places, generator = self.edge.placer, self.edge.generator
        places.edge_placer.forced_route = placement.only
        places.edge_placer.planner = self.planned if placement is PlacementChoice.PLANNED else self.forced
        before, places.last_finished = _num_bytes(generator), None
        began_s = time.perf_counter()
        (answer,) = generator.write([request])
        total_ms = 1e3 * (time.perf_counter() - began_s)
        if not isinstance(answer, Completion) or answer.is_provisional or places.last_finished is None:
            why = answer.reason if isinstance(answer, RequestRefused) else answer.place
            raise DependencyUnavailable(f"a request ended without the target: {why}")
        num_bytes = _num_bytes(generator) - before
        return LinkMeasurement(
            name, answer.tokens, places.last_finished.first_ms, total_ms, num_bytes, answer.place
        )

    def next_request(self, kind: PromptKind) -> GenerationRequest:
        """The next story's request; edge and cloud read its prompt first, with another seed."""
        self.number += 1
        made = request(kind, self.number, self.vocabulary)
        made = structs.replace(made, deadline_ms=DEADLINE_MS, id=f"{kind.name} {self.number}")
        self.requests[made.id] = made
        self.write(structs.replace(made, seed=made.seed + _PRIMING_SEED_OFFSET), PlacementChoice.CLOUD)
        return made


def measured_kinds() -> tuple[PromptKind, ...]:
    """A view, a path and text at temperature 1; the scrambled kind is left out."""
    return tuple(kind for kind in prompt_kinds() if kind.temperature == 1.0)


def measure(
    bench: LinkBench, rtt_ms: float, jitter: float, num_runs: int, report_run: Callable[[], None]
) -> dict[str, list[PlacementRun]]:
    """Runs by kind at one round trip."""
    bench.stage.set_round_trip(rtt_ms, jitter)
    bench.learn()
    found: dict[str, list[PlacementRun]] = {}
    for turn in range(num_runs):
        for kind in measured_kinds():
            found.setdefault(kind.name, []).append(bench.run(kind, turn))
        report_run()
    return found


def _num_bytes(generator: LinkedGenerator) -> int:
    return generator.traffic.sent_bytes + generator.traffic.received_bytes


STEPS_MS = (5.0, 120.0, 20.0)
StepPasses = list[list[list[LinkMeasurement]]]


def measure_steps(bench: LinkBench, jitter: float, num_each: int) -> StepPasses:
    """Passes over the changing round trips, the planned one first, then one per placement: [pass][step][request].

    All passes have the same requests. The link changes between two requests without notice; the time to detect that
    counts against the planner.
    """
    by_step = [
        [bench.next_request(kind) for _ in range(num_each) for kind in measured_kinds()] for _ in STEPS_MS
    ]
    passes: StepPasses = []
    for placement in (PlacementChoice.PLANNED, *FORCED_PLACEMENTS):
        bench.stage.set_round_trip(STEPS_MS[0], jitter)
        passes.append([])
        for rtt_ms, requests in zip(STEPS_MS, by_step, strict=True):
            bench.stage.link.conditions = link_conditions(rtt_ms, jitter)
            passes[-1].append([bench.write(request, placement) for request in requests])
    return passes


def steps_regret(passes: Sequence[Sequence[Sequence[LinkMeasurement]]]) -> float:
    """The planner's time over that of the best placement of each step, minus one."""
    planned, *forced = [[sum(one.total_ms for one in of) for of in steps] for steps in passes]
    return sum(planned) / sum(min(of) for of in zip(*forced, strict=True)) - 1.0


_RTT_MS = 20.0
_TIMEOUT_S = 30.0
_DEADLINE_MS = 250.0  # a run's usual deadline
_SILENCES = (replace(CLEAR, rtt_ms=_RTT_MS, is_dark=True), replace(CLEAR, rtt_ms=_RTT_MS, is_stalled=True))


class LostRequests(NamedTuple):
    """Of `num_asked` requests: those without an answer of the target, and those answered first by the draft."""

    num_asked: int
    num_lost: int
    num_provisional: int
    num_unlike: int  # whose final tokens differ from those without faults


def detection_ms(bench: LinkBench, num_times: int) -> list[float]:
    """From the moment the link stops to the cloud being suspected; bytes are dropped and delayed in turn."""
    found: list[float] = []
    watch, link = bench.edge.monitor, bench.stage.link
    for turn in range(num_times):
        link.conditions = LinkConditions(rtt_ms=_RTT_MS)
        _wait_until(lambda: watch.state(CLOUD) is PeerState.HEALTHY, "the cloud does not come back")
        time.sleep(0.5 + 0.013 * turn)  # so that heartbeats and silences are not in step
        began_s = time.perf_counter()
        link.conditions = _SILENCES[turn % len(_SILENCES)]
        _wait_until(
            lambda: watch.state(CLOUD) in (PeerState.SUSPECT, PeerState.DEAD), "the silence is not detected"
        )
        found.append(1e3 * (time.perf_counter() - began_s))
        link.conditions = LinkConditions(rtt_ms=_RTT_MS)
        link.reset()  # dropped bytes stay dropped
    _wait_until(lambda: watch.state(CLOUD) is PeerState.HEALTHY, "the cloud does not come back")
    return found


def count_lost_requests(bench: LinkBench, kind: PromptKind, num_requests: int) -> LostRequests:
    """Requests at a run's deadline while the link resets, stalls and goes silent, then time for amendments."""
    generator, link = bench.edge.generator, bench.stage.link
    placer = bench.edge.placer.edge_placer
    placer.forced_route, placer.planner = None, bench.planned
    link.conditions = LinkConditions(rtt_ms=_RTT_MS)
    bench.edge.generator.wait_ready(_TIMEOUT_S)
    requests = [
        structs.replace(bench.next_request(kind), deadline_ms=_DEADLINE_MS) for _ in range(num_requests)
    ]
    calm = [structs.replace(one, id=f"calm {one.id}", deadline_ms=60_000.0) for one in requests]
    expected = {
        one.id: _whole(generator.write([again])[0]) for one, again in zip(requests, calm, strict=True)
    }
    final: dict[str, tuple[int, ...]] = {}
    num_provisional = 0
    for number, one in enumerate(requests):
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
        (answer,) = generator.write([one])
        if isinstance(answer, Completion) and answer.is_provisional:
            num_provisional += 1
        elif isinstance(answer, Completion):
            final[one.id] = answer.tokens
    link.conditions = LinkConditions(rtt_ms=_RTT_MS)
    until_s = time.perf_counter() + _TIMEOUT_S
    while len(final) < num_requests and time.perf_counter() < until_s:
        for name, late in generator.take_late_completions():
            if name in expected and not isinstance(late, RequestRefused):  # earlier requests may be late too
                final[name] = late.tokens
        time.sleep(0.01)
    num_unlike = sum(tokens != expected[name] for name, tokens in final.items())
    return LostRequests(num_requests, num_requests - len(final), num_provisional, num_unlike)


def _whole(answer: Completion | RequestRefused) -> tuple[int, ...]:
    if isinstance(answer, RequestRefused) or answer.is_provisional:
        raise DependencyUnavailable(f"a request without faults ended without the target: {answer}")
    return answer.tokens


def _wait_until(holds: Callable[[], bool], why: str) -> None:
    until_s = time.perf_counter() + _TIMEOUT_S
    while not holds():
        if time.perf_counter() > until_s:
            raise DependencyUnavailable(why)
        time.sleep(0.001)
