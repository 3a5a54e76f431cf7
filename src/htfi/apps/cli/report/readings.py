"""What models read in the news, and what came: the strongest views, how often they were right, what they were worth."""

import heapq
import itertools
from typing import NamedTuple

from htfi.apps.cli.report.audit import account_of
from htfi.domain.decision import Decision
from htfi.narrative.audit import Section

NUM_KEPT = 12


class Read(NamedTuple):
    """One view at the moment it was taken. `outcome` is the log return of the next bar."""

    strength: float  # size in sigmas times confidence
    series: str
    as_of_ns: int
    reader: str
    direction: float
    size_sigmas: float
    volatility_multiplier: float
    confidence: float
    outcome: float
    rationale: str
    account: tuple[Section, ...] = ()


def read_in(decision: Decision) -> Read | None:
    """The view that was taken for this decision; None where there is none, no opinion, or one taken earlier."""
    view = decision.view
    if view is None or view.confidence <= 0.0 or view.as_of_ns != decision.as_of_ns:
        return None
    return Read(
        view.size_sigmas * view.confidence,
        decision.series,
        decision.as_of_ns,
        view.reader,
        view.direction,
        view.size_sigmas,
        view.volatility_multiplier,
        view.confidence,
        0.0,
        decision.rationale.text,
        account_of(decision),
    )


class WeighedTally:
    """Forecasts that one narrator's views have changed, at one horizon: CRPS of the numbers alone and as released."""

    __slots__ = ("num", "numbers", "released", "weight")

    def __init__(self) -> None:
        self.num = 0
        self.numbers = self.released = 0.0
        self.weight = 0.0  # at the last of them

    def take(self, numbers: float, released: float, weight: float) -> None:
        self.num += 1
        self.numbers += numbers
        self.released += released
        self.weight = weight


class ReaderTally:
    """One reader: views taken, those that name a direction, those of them that the next bar bore out."""

    __slots__ = ("num_called", "num_right", "num_views")

    def __init__(self) -> None:
        self.num_views = self.num_called = self.num_right = 0


class ReadingsTally:
    """Weighs every view once, with what came; memory is bounded."""

    def __init__(self) -> None:
        self.readers: dict[str, ReaderTally] = {}
        self.weighed: dict[tuple[str, int], WeighedTally] = {}  # by narrator and horizon
        self._kept: list[tuple[float, int, Read]] = []
        self._tie = itertools.count()

    def weigh(self, read: Read, outcome: float) -> None:
        """Take a view with the log return of the bar after it."""
        tally = self.readers.setdefault(read.reader, ReaderTally())
        tally.num_views += 1
        if not read.direction:
            return
        tally.num_called += 1
        tally.num_right += read.direction * outcome > 0.0
        heapq.heappush(self._kept, (read.strength, next(self._tie), read._replace(outcome=outcome)))
        if len(self._kept) > NUM_KEPT:
            heapq.heappop(self._kept)

    def strongest(self) -> list[Read]:
        return [read for _, _, read in sorted(self._kept, reverse=True)]
