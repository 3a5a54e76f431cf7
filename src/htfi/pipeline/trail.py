"""What a run knew of each series when it asked about its news, from the decisions that it recorded: the recent returns
that were put to a model, the view that was kept, and who had read it. An auditor follows it in the ledger's order.
"""

from collections import deque
from typing import NamedTuple

from msgspec.structs import replace

from htfi.decoding.prices import NUM_KEPT, ScaledReturns
from htfi.domain.decision import Decision, Rung, View
from htfi.narrative.merging import own

_MAX_BARS = 4_096  # that a series is looked back on, for what was read ahead of a release


class Known(NamedTuple):
    """Of a series when it was asked about: recent returns in units of volatility, and its bar's length."""

    context: tuple[float, ...]
    bar_ns: int


class Kept(NamedTuple):
    """The view that the series' next decisions carry, without its wording, and the decision that it was read for.

    `items` are the news that it is of, as far as that decision tells them; None where it does not.
    """

    view: View
    read_for: str
    items: tuple[str, ...] | None


class _Past(NamedTuple):
    as_of_ns: int
    scaled: float | None  # the return that was learnt with it
    bar_ns: int


class Trail:
    """Of all series. Tell it every decision in the ledger's order."""

    def __init__(self) -> None:
        self.kept: dict[str, Kept] = {}
        self._scaled = ScaledReturns()
        self._past: dict[str, deque[_Past]] = {}
        self._awaiting: dict[str, Known] = {}

    def known(self, decision: Decision) -> Known:
        """What its reader was told besides the news; of an amendment, what that of the first one was told."""
        if decision.amends:
            return self._awaiting.get(decision.amends, Known((), 0))
        sigma, last = self._scaled.sigma(decision.series), decision.features.get("return_last")
        context = self._scaled.of(decision.series)
        if sigma and last is not None:
            context = (*context, last / sigma)
        return Known(context, _bar_ns(decision))

    def known_at(self, series: str, at_ns: int) -> Known:
        """What a reader was told that read ahead: what was learnt of the decisions until then."""
        past = [one for one in self._past.get(series, ()) if one.as_of_ns <= at_ns]
        scaled = [one.scaled for one in past if one.scaled is not None]
        return Known(tuple(scaled[-NUM_KEPT:]), past[-1].bar_ns if past else 0)

    def take(self, decision: Decision) -> None:
        """Go on with what this decision left behind."""
        read = own(decision.view) if decision.view is not None else None
        if decision.amends:
            self._awaiting.pop(decision.amends, None)
            if read is not None:
                self._amended(decision, read)
            return
        if decision.awaits:
            self._awaiting.setdefault(decision.id, self.known(decision))
        if (
            read is not None
            and decision.is_read_for
            and (read.wording is not None or not self._keeps(decision))
        ):
            self.kept[decision.series] = _kept(decision, read)
        before = self._scaled.sigma(decision.series)
        self._scaled.learn(decision.series, decision.features.get("return_last", 0.0))
        learnt = self._scaled.of(decision.series)[-1] if before else None
        past = self._past.setdefault(decision.series, deque(maxlen=_MAX_BARS))
        past.append(_Past(decision.as_of_ns, learnt, _bar_ns(decision)))

    def _keeps(self, decision: Decision) -> bool:
        """Whether it is a further decision of an instant, which keeps the view of the one before it."""
        kept = self.kept.get(decision.series)
        return kept is not None and kept.view.as_of_ns == decision.as_of_ns

    def _amended(self, decision: Decision, read: View) -> None:
        kept = self.kept.get(decision.series)
        if not decision.is_read_for:
            return
        if decision.plan.rung is Rung.DEEP:
            is_kept = kept is None or kept.view.as_of_ns <= read.as_of_ns
        else:
            is_kept = kept is not None and kept.view.provisional and kept.view.as_of_ns == read.as_of_ns
        if is_kept:
            self.kept[decision.series] = _kept(decision, read)


def _bar_ns(decision: Decision) -> int:
    return decision.circumstances.bar_end_ns - decision.circumstances.bar_start_ns


def _kept(decision: Decision, read: View) -> Kept:
    items = None
    if read.wording is not None and not read.prepared and decision.hearing is not None:
        items = tuple(item.id for item in decision.hearing.considered[: read.wording.num_items])
    return Kept(replace(read, wording=None), decision.id, items)
