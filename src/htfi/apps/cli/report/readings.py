"""What models read in the news, and what came: the strongest views, how often they were right, what they were worth.

The narrative audit on the page: of the whole run, and of each reading that is shown. Every text is escaped here.
"""

import heapq
import itertools
from collections.abc import Callable, Iterable
from functools import lru_cache
from html import escape
from typing import NamedTuple

from msgspec import UnsetType

from htfi.domain.decision import Decision, GenerationTrace
from htfi.domain.generation import RuleTrace
from htfi.narrative.audit import AuditSection, explain_decision
from htfi.narrative.audit_summary import AuditSummary
from htfi.narrative.rationale.amendment import news_text
from htfi.wiring.models.loading import token_text

NUM_STRONGEST = 12


class ReadingOutcome(NamedTuple):
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
    news: str  # what the rationale says of it
    audit: tuple[AuditSection, ...] = ()
    rule: RuleTrace | None = None  # that accepted drafted tokens, if not the shared noise


def fresh_reading(decision: Decision) -> ReadingOutcome | None:
    """The view that was taken for this decision; None where there is none, no opinion, or one taken earlier."""
    view = decision.view
    if view is None or view.confidence <= 0.0 or view.as_of_ns != decision.as_of_ns:
        return None
    return ReadingOutcome(
        view.size_sigmas * view.confidence,
        decision.series,
        decision.as_of_ns,
        view.reader,
        view.direction,
        view.size_sigmas,
        view.volatility_multiplier,
        view.confidence,
        0.0,
        news_text(decision.rationale, decision.models),
        audit_sections(decision),
        None if view.trace is None or isinstance(view.trace.rule, UnsetType) else view.trace.rule,
    )


class TiltScore:
    """Forecasts that one narrator's views have changed, at one horizon: CRPS of the numbers alone and as released."""

    __slots__ = ("num", "numbers", "released", "weight")

    def __init__(self) -> None:
        self.num = 0
        self.numbers = self.released = 0.0
        self.weight = 0.0  # at the last of them

    def add(self, numbers: float, released: float, weight: float) -> None:
        self.num += 1
        self.numbers += numbers
        self.released += released
        self.weight = weight


class ReaderScore:
    """One reader: views taken, those that name a direction, those of them that the next bar bore out."""

    __slots__ = ("num_called", "num_right", "num_views")

    def __init__(self) -> None:
        self.num_views = self.num_called = self.num_right = 0


class ReadingScores:
    """Weighs every view once, with what came; memory is bounded."""

    def __init__(self) -> None:
        self.readers: dict[str, ReaderScore] = {}
        self.rules: dict[str, RuleTrace] = {}  # by name, those that accepted drafts without the shared noise
        self.weighed: dict[tuple[str, int], TiltScore] = {}  # by narrator and horizon
        self._kept: list[tuple[float, int, ReadingOutcome]] = []
        self._tie = itertools.count()

    def add(self, read: ReadingOutcome, outcome: float) -> None:
        """Take a view with the log return of the bar after it."""
        tally = self.readers.setdefault(read.reader, ReaderScore())
        if read.rule is not None:
            self.rules[read.rule.name] = read.rule
        tally.num_views += 1
        if not read.direction:
            return
        tally.num_called += 1
        tally.num_right += read.direction * outcome > 0.0
        heapq.heappush(self._kept, (read.strength, next(self._tie), read._replace(outcome=outcome)))
        if len(self._kept) > NUM_STRONGEST:
            heapq.heappop(self._kept)

    def strongest(self) -> list[ReadingOutcome]:
        return [read for _, _, read in sorted(self._kept, reverse=True)]


def audit_sections(decision: Decision) -> tuple[AuditSection, ...]:
    """What happened to the news in a decision, its tokens in words where the model that wrote them is a shipped one."""
    view = decision.view
    spell = _token_text_of(view.trace.target) if view is not None and view.trace is not None else None
    return explain_decision(decision, None, spell)


@lru_cache(maxsize=4)
def _token_text_of(target: str) -> Callable[[int], str] | None:
    return token_text(GenerationTrace(target, "", "", 0, 0.0, 0, (), (), ()))


def summary_html(summary: AuditSummary) -> str:
    """The run's narrative in words; empty where there was no news in it."""
    if not summary.num_with_news:
        return ""
    return f"<h3>What happened to the news</h3>{_sections(summary.sections())}"


def audit_html(sections: Iterable[AuditSection]) -> str:
    """One decision's narrative, folded until a person opens it."""
    return f"<details><summary>audit</summary>{_sections(sections)}</details>"


def _sections(sections: Iterable[AuditSection]) -> str:
    return "<dl>{}</dl>".format(
        "".join(
            f"<dt>{escape(one.title)}</dt><dd>{'<br>'.join(escape(line) for line in one.lines)}</dd>"
            for one in sections
        )
    )
