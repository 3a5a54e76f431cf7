"""What models read in the news, and what came: the strongest views, how often they were right, what they were worth.

The narrative audit on the page: of the whole run, and of each reading that is shown. Every text is escaped here.
"""

import heapq
import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from html import escape
from typing import NamedTuple

from msgspec import UnsetType

from htfi.domain.decision import Decision
from htfi.domain.generation import RuleTrace
from htfi.domain.generation_trace import GenerationTrace
from htfi.narrative.audit import AuditSection, explain_decision
from htfi.narrative.audit_summary import AuditSummary
from htfi.narrative.merging import unmerged
from htfi.narrative.rationale.amendment import news_text
from htfi.pipeline.audit.attribution import WordWeight, headline_weights
from htfi.wiring.models.loading import token_text

NUM_STRONGEST = 12
MIN_NATS = 0.05  # of a word that is marked
NUM_RECENT = 8  # readings of a series
NUM_STEPS = 3  # of a mark's strength

_ReadingName = tuple[int, str, str]  # instant, reader, words


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
    shown: tuple["ShownHeadline", ...] = ()


class ShownHeadline(NamedTuple):
    """A headline that a model was shown; the weights of its words are None where the record holds none."""

    text: str
    words: tuple[WordWeight, ...] | None


class RecentReadings:
    """The headlines of each series' newest readings: a view may be kept, and merged, for many decisions."""

    def __init__(self) -> None:
        self._shown: dict[str, OrderedDict[_ReadingName, tuple[ShownHeadline, ...]]] = {}

    def add(self, decision: Decision) -> None:
        """Keep what a model was shown for this decision, if one read for it."""
        name = _reading_name(decision)
        trace = decision.view.trace if decision.view is not None else None
        if name is None or trace is None:
            return
        newest = self._shown.setdefault(
            decision.series, OrderedDict[_ReadingName, tuple[ShownHeadline, ...]]()
        )
        newest[name] = _shown_headlines(trace)
        if len(newest) > NUM_RECENT:
            newest.popitem(last=False)

    def shown_for(self, decision: Decision) -> tuple[ShownHeadline, ...]:
        """The headlines that the decision's view was read from; empty where none of the newest readings is of it."""
        name = _reading_name(decision)
        newest = self._shown.get(decision.series)
        return () if name is None or newest is None else newest.get(name, ())


def _reading_name(decision: Decision) -> _ReadingName | None:
    """What tells a model's reading from the others of its series."""
    read = unmerged(decision.view) if decision.view is not None else None
    return None if read is None else (read.as_of_ns, read.reader, read.words)


def fresh_reading(decision: Decision, shown: tuple[ShownHeadline, ...] = ()) -> ReadingOutcome | None:
    """The view that was taken for this decision, from the headlines `shown`; None where there is none, no opinion, or
    one taken earlier.
    """
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
        audit_sections(decision) if view.direction else (),  # no table shows those without one
        None if view.trace is None or isinstance(view.trace.rule, UnsetType) else view.trace.rule,
        shown,
    )


def _shown_headlines(trace: GenerationTrace) -> tuple[ShownHeadline, ...]:
    items = () if isinstance(trace.shown, UnsetType) else trace.shown
    weights = () if isinstance(trace.states, UnsetType) else trace.states.words
    if not weights:
        return tuple(ShownHeadline(item.headline, None) for item in items)
    return tuple(
        ShownHeadline(item.headline, headline_weights(item.headline, of_item))
        for item, of_item in zip(items, weights, strict=False)
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


def headlines_html(shown: Sequence[ShownHeadline]) -> str:
    """The headlines that a model was shown; the words that carried its view are marked, the more the stronger.

    Empty where the record holds no weights.
    """
    known = [one for one in shown if one.words is not None]
    most = max((word.nats for one in known for word in one.words or ()), default=0.0)
    if not known:
        return ""
    lines = "".join(f"<li>{_weighed(one, most)}</li>" for one in known)
    return f'<ul class="shown">{lines}</ul>'


def _weighed(one: ShownHeadline, most: float) -> str:
    html, at = "", 0
    for word in one.words or ():
        if word.nats < MIN_NATS:
            continue
        step = min(NUM_STEPS, 1 + int(NUM_STEPS * word.nats / most))
        html += (
            f'{escape(one.text[at : word.begin])}<mark class="w{step}" title="{word.nats:+.2f} nats">'
            f"{escape(one.text[word.begin : word.end])}</mark>"
        )
        at = word.end
    return html + escape(one.text[at:])


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
