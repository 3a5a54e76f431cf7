"""One request after another over the link, each in every way of placing it. `htfi bench link` asks for the runs."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from msgspec.structs import replace

from htfi.decoding.link.client.generator import LinkedGenerator
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import DependencyUnavailable
from htfi.domain.generation import Completion, GenerationRequest, RequestRefused
from htfi.scheduling.placement.figures import Placement
from htfi.scheduling.placement.planner import PlacementPlanner
from htfi.wiring.cluster.edge import EdgeNode
from htfi_eval.bench.decode.prompts import PromptKind, prompt_kinds, request
from htfi_eval.bench.link.setup import LinkSetup

DEADLINE_MS = 60_000.0  # nothing here is late
_NUM_LEARNING = 2  # requests of each kind and way before the first that counts
_NUM_EXPLORING = 6  # as planned, besides: a plan that has just started tries ways
_NUM_ATTEMPTS = 4
_PRIMING_SEED_OFFSET = 1 << 40  # added to a seed: the same prompt, another answer


class PlacementChoice(Enum):
    """How a request is placed: as planned, or in one way whatever the plan."""

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
    """One answer. Times from the asking; `num_bytes` both ways, sealed frames; `chosen` is the way that was planned."""

    request: str
    tokens: tuple[int, ...]
    first_ms: float
    total_ms: float
    num_bytes: int
    chosen: str


PlacementRun = dict[PlacementChoice, LinkMeasurement]


@dataclass(slots=True)
class LinkBench:
    """An edge, and planners that do not learn from each other: the plan's own, and the one of forced requests."""

    stage: LinkSetup
    edge: EdgeNode
    vocabulary: Vocabulary
    number: int  # of the next story
    planned: PlacementPlanner
    forced: PlacementPlanner
    asked: dict[str, GenerationRequest]  # by id

    @classmethod
    def connect(cls, stage: LinkSetup, edge: EdgeNode, first_number: int) -> "LinkBench":
        return cls(
            stage,
            edge,
            edge.local_author.vocabulary,
            first_number,
            edge.placer.planner,
            PlacementPlanner(),
            {},
        )

    def run(
        self, kind: PromptKind, turn: int, manners: Sequence[PlacementChoice] = ALL_PLACEMENTS
    ) -> PlacementRun:
        """A fresh story's request in all manners, another first each time; its prompt has been read before."""
        asked = self.next_request(kind)
        first = turn % len(manners)
        return {manner: self.write(asked, manner) for manner in (*manners[first:], *manners[:first])}

    def learn(self, manners: Sequence[PlacementChoice] = ALL_PLACEMENTS) -> None:
        """Let plans find out what things cost here."""
        for turn in range(_NUM_LEARNING):
            for kind in measured_kinds():
                self.run(kind, turn, manners)
        for _ in range(_NUM_EXPLORING):
            for kind in measured_kinds():
                self.write(self.next_request(kind), PlacementChoice.PLANNED)

    def write(self, asked: GenerationRequest, manner: PlacementChoice) -> LinkMeasurement:
        """One answer of the target. On a machine that others use a cloud may be given up for a moment: then once more.

        Raises: DependencyUnavailable where it is refused, or again not answered by the target.
        """
        for attempt in range(_NUM_ATTEMPTS - 1):
            try:
                return self._write(replace(asked, id=f"{asked.id} {manner.name} {attempt}"), manner, asked.id)
            except DependencyUnavailable:
                time.sleep(1.0)
        return self._write(asked, manner, asked.id)

    def _write(self, asked: GenerationRequest, manner: PlacementChoice, name: str) -> LinkMeasurement:
        places, author = self.edge.placer, self.edge.author
        places.forced_route = manner.only
        places.planner = self.planned if manner is PlacementChoice.PLANNED else self.forced
        before, places.last_finished = _num_bytes(author), None
        began_s = time.perf_counter()
        (answer,) = author.write([asked])
        total_ms = 1e3 * (time.perf_counter() - began_s)
        if not isinstance(answer, Completion) or answer.is_provisional or places.last_finished is None:
            why = answer.reason if isinstance(answer, RequestRefused) else answer.place
            raise DependencyUnavailable(f"a request ended without the target: {why}")
        num_bytes = _num_bytes(author) - before
        return LinkMeasurement(
            name, answer.tokens, places.last_finished.first_ms, total_ms, num_bytes, answer.place
        )

    def next_request(self, kind: PromptKind) -> GenerationRequest:
        """The next story's request, its prompt read here and there by asking it with another seed."""
        self.number += 1
        asked = request(kind, self.number, self.vocabulary)
        asked = replace(asked, deadline_ms=DEADLINE_MS, id=f"{kind.name} {self.number}")
        self.asked[asked.id] = asked
        self.write(replace(asked, seed=asked.seed + _PRIMING_SEED_OFFSET), PlacementChoice.CLOUD)
        return asked


def measured_kinds() -> tuple[PromptKind, ...]:
    """A view, a path and words, all at temperature 1; the one that is there to lose on is left out."""
    return tuple(kind for kind in prompt_kinds() if kind.temperature == 1.0)


def measure(
    bench: LinkBench, rtt_ms: float, jitter: float, num_runs: int, tell: Callable[[], None]
) -> dict[str, list[PlacementRun]]:
    """Runs by kind at one round trip."""
    bench.stage.set_round_trip(rtt_ms, jitter)
    bench.learn()
    found: dict[str, list[PlacementRun]] = {}
    for turn in range(num_runs):
        for kind in measured_kinds():
            found.setdefault(kind.name, []).append(bench.run(kind, turn))
        tell()
    return found


def _num_bytes(author: LinkedGenerator) -> int:
    return author.traffic.sent_bytes + author.traffic.received_bytes
