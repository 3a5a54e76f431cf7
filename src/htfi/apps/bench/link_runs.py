"""One request after another over the link, each in every way of placing it. `htfi bench link` asks for the runs."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from msgspec.structs import replace

from htfi.apps.bench.decode_prompts import Kind, kinds, request
from htfi.apps.bench.link_stage import Stage
from htfi.decoding.link.linked_author import LinkedAuthor
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import DependencyUnavailable
from htfi.domain.writing import Refusal, Request, Writing
from htfi.scheduling.placement.figures import Way
from htfi.scheduling.placement.planner import Planner
from htfi.wiring.edge import Edge

PATIENT_MS = 60_000.0  # nothing here is late
_NUM_LEARNING = 2  # requests of each kind and way before the first that counts
_NUM_TRYING = 6  # as planned, besides: a plan that has just started tries ways
_NUM_ATTEMPTS = 4
_READING = 1 << 40  # added to a seed: the same prompt, another answer


class Manner(Enum):
    """How a request is placed: as planned, or in one way whatever the plan."""

    PLANNED = "planned"
    PLAIN = Way.CLOUD_PLAIN.value
    CLOUD = Way.CLOUD_SPECULATIVE.value
    LOCKSTEP = Way.LOCKSTEP.value
    FLIGHT = Way.FLIGHT.value

    @property
    def only(self) -> Way | None:
        return None if self is Manner.PLANNED else Way(self.value)


PLACED = (Manner.PLANNED, Manner.PLAIN, Manner.CLOUD, Manner.LOCKSTEP, Manner.FLIGHT)
FORCED = PLACED[1:]


@dataclass(frozen=True, slots=True)
class Measured:
    """One answer. Times from the asking; `num_bytes` both ways, sealed frames; `chosen` is the way that was planned."""

    request: str
    tokens: tuple[int, ...]
    first_ms: float
    total_ms: float
    num_bytes: int
    chosen: str


Run = dict[Manner, Measured]


@dataclass(slots=True)
class Bench:
    """An edge, and planners that do not learn from each other: the plan's own, and the one of forced requests."""

    stage: Stage
    edge: Edge
    vocabulary: Vocabulary
    number: int  # of the next story
    planned: Planner
    forced: Planner
    asked: dict[str, Request]  # by id

    @classmethod
    def on(cls, stage: Stage, edge: Edge, first_number: int) -> "Bench":
        return cls(stage, edge, edge.alone.vocabulary, first_number, edge.places.planner, Planner(), {})

    def run(self, kind: Kind, turn: int, manners: Sequence[Manner] = PLACED) -> Run:
        """A fresh story's request in all manners, another first each time; its prompt has been read before."""
        asked = self.fresh(kind)
        first = turn % len(manners)
        return {manner: self.write(asked, manner) for manner in (*manners[first:], *manners[:first])}

    def learn(self, manners: Sequence[Manner] = PLACED) -> None:
        """Let plans find out what things cost here."""
        for turn in range(_NUM_LEARNING):
            for kind in asked_kinds():
                self.run(kind, turn, manners)
        for _ in range(_NUM_TRYING):
            for kind in asked_kinds():
                self.write(self.fresh(kind), Manner.PLANNED)

    def write(self, asked: Request, manner: Manner) -> Measured:
        """One answer of the target. On a machine that others use a cloud may be given up for a moment: then once more.

        Raises: DependencyUnavailable where it is refused, or again not answered by the target.
        """
        for attempt in range(_NUM_ATTEMPTS - 1):
            try:
                return self._write(replace(asked, id=f"{asked.id} {manner.name} {attempt}"), manner, asked.id)
            except DependencyUnavailable:
                time.sleep(1.0)
        return self._write(asked, manner, asked.id)

    def _write(self, asked: Request, manner: Manner, name: str) -> Measured:
        places, author = self.edge.places, self.edge.author
        places.only = manner.only
        places.planner = self.planned if manner is Manner.PLANNED else self.forced
        before, places.came = _num_bytes(author), None
        began_s = time.perf_counter()
        (answer,) = author.write([asked])
        total_ms = 1e3 * (time.perf_counter() - began_s)
        if not isinstance(answer, Writing) or answer.is_provisional or places.came is None:
            why = answer.reason if isinstance(answer, Refusal) else answer.place
            raise DependencyUnavailable(f"a request ended without the target: {why}")
        num_bytes = _num_bytes(author) - before
        return Measured(name, answer.tokens, places.came.first_ms, total_ms, num_bytes, answer.place)

    def fresh(self, kind: Kind) -> Request:
        """The next story's request, its prompt read here and there by asking it with another seed."""
        self.number += 1
        asked = request(kind, self.number, self.vocabulary)
        asked = replace(asked, deadline_ms=PATIENT_MS, id=f"{kind.name} {self.number}")
        self.asked[asked.id] = asked
        self.write(replace(asked, seed=asked.seed + _READING), Manner.CLOUD)
        return asked


def asked_kinds() -> tuple[Kind, ...]:
    """A view, a path and words, all at temperature 1; the one that is there to lose on is left out."""
    return tuple(kind for kind in kinds() if kind.temperature == 1.0)


def measure(
    bench: Bench, rtt_ms: float, jitter: float, num_runs: int, tell: Callable[[], None]
) -> dict[str, list[Run]]:
    """Runs by kind at one round trip."""
    bench.stage.enter(rtt_ms, jitter)
    bench.learn()
    found: dict[str, list[Run]] = {}
    for turn in range(num_runs):
        for kind in asked_kinds():
            found.setdefault(kind.name, []).append(bench.run(kind, turn))
        tell()
    return found


def _num_bytes(author: LinkedAuthor) -> int:
    return author.traffic.sent_bytes + author.traffic.received_bytes
