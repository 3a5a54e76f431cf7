"""What a run knew of each series when it asked about its news, from the decisions that it recorded: the recent returns
in a model's prompt, the view that was kept, and its reader. An auditor follows it in the ledger's order.
"""

from collections import deque
from typing import NamedTuple

from msgspec.structs import replace

from htfi.decoding.prices import NUM_RECENT_RETURNS, ScaledReturns
from htfi.domain.decision import Decision, Rung
from htfi.domain.news_view import NewsView, ViewPart
from htfi.narrative.merging import unmerged

_MAX_PAST_BARS = 4_096  # that a series is looked back on, for what was read ahead of a release


class PromptContext(NamedTuple):
    """Of a series when it was asked about: recent returns in units of volatility, and its bar's length."""

    context: tuple[float, ...]
    bar_ns: int


class RetainedView(NamedTuple):
    """The view that the series' next decisions keep, without its trace, and the decision that it was read for.

    `items` are the news that it is of, as far as that decision records them; None where it does not.
    """

    view: NewsView
    read_for: str
    items: tuple[str, ...] | None


class _Awaiting(NamedTuple):
    """Of a decision that awaits its amendment: what its reader was given, and the other readings in its view."""

    context: PromptContext
    parts: tuple[ViewPart, ...]


class _PastBar(NamedTuple):
    as_of_ns: int
    scaled: float | None  # the return that was learnt with it
    bar_ns: int


class RecordedHistory:
    """The history of all series. `add` every decision in the ledger's order."""

    def __init__(self) -> None:
        self.views: dict[str, RetainedView] = {}
        self._scaled = ScaledReturns()
        self._past: dict[str, deque[_PastBar]] = {}
        self._awaiting: dict[str, _Awaiting] = {}

    def prompt_context(self, decision: Decision) -> PromptContext:
        """What its reader was given besides the news; for an amendment, what that of the first decision was given."""
        if decision.amends:
            awaiting = self._awaiting.get(decision.amends)
            return awaiting.context if awaiting is not None else PromptContext((), 0)
        sigma, last = self._scaled.sigma(decision.series), decision.features.get("return_last")
        context = self._scaled.recent(decision.series)
        if sigma and last is not None and not decision.is_between_bars:  # else that return was learnt before
            context = (*context, last / sigma)
        return PromptContext(context, _bar_ns(decision))

    def readings_beside(self, decision: Decision) -> tuple[ViewPart, ...]:
        """The readings of other items that go into an amendment, as they stood in the view that it takes the place of.

        Their trust may be cut there to what they may move beside each other.
        """
        awaiting = self._awaiting.get(decision.amends)
        return awaiting.parts if awaiting is not None else ()

    def prompt_context_at(self, series: str, at_ns: int) -> PromptContext:
        """What a reader that read ahead was given: what was learnt from the decisions until then."""
        past = [entry for entry in self._past.get(series, ()) if entry.as_of_ns <= at_ns]
        scaled = [entry.scaled for entry in past if entry.scaled is not None]
        return PromptContext(tuple(scaled[-NUM_RECENT_RETURNS:]), past[-1].bar_ns if past else 0)

    def add(self, decision: Decision) -> None:
        """Go on with what this decision left behind."""
        read = unmerged(decision.view) if decision.view is not None else None
        if decision.amends:
            self._awaiting.pop(decision.amends, None)
            if read is not None:
                self._amended(decision, read)
            return
        if decision.awaits_amendment:
            parts = decision.view.parts if decision.view is not None else ()
            beside = tuple(part for part in parts if not part.is_worded)
            self._awaiting.setdefault(decision.id, _Awaiting(self.prompt_context(decision), beside))
        if (
            read is not None
            and decision.has_own_reading
            and (read.trace is not None or not self._retains_view(decision))
        ):
            self.views[decision.series] = _retained_view(decision, read)
        if decision.is_between_bars:
            return
        before = self._scaled.sigma(decision.series)
        self._scaled.learn(decision.series, decision.features.get("return_last", 0.0))
        learnt = self._scaled.recent(decision.series)[-1] if before else None
        past = self._past.setdefault(decision.series, deque(maxlen=_MAX_PAST_BARS))
        past.append(_PastBar(decision.as_of_ns, learnt, _bar_ns(decision)))

    def _retains_view(self, decision: Decision) -> bool:
        """Whether it is a further decision of an instant, which keeps the view of the one before it."""
        kept = self.views.get(decision.series)
        return kept is not None and kept.view.as_of_ns == decision.as_of_ns

    def _amended(self, decision: Decision, read: NewsView) -> None:
        kept = self.views.get(decision.series)
        if not decision.has_own_reading:
            return
        if decision.plan.rung is Rung.DEEP:
            is_kept = kept is None or kept.view.as_of_ns <= read.as_of_ns
        else:
            is_kept = kept is not None and kept.view.provisional and kept.view.as_of_ns == read.as_of_ns
        if is_kept:
            self.views[decision.series] = _retained_view(decision, read)


def _bar_ns(decision: Decision) -> int:
    return decision.circumstances.bar_end_ns - decision.circumstances.bar_start_ns


def _retained_view(decision: Decision, read: NewsView) -> RetainedView:
    items = None
    if read.trace is not None and not read.prepared and decision.news_context is not None:
        items = tuple(item.id for item in decision.news_context.considered[: read.trace.num_items])
    return RetainedView(replace(read, trace=None), decision.id, items)
