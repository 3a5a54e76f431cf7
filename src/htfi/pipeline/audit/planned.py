"""Whether readers are left out, and views set aside, that governance held back when a decision was planned.

`GovernanceAuditor` asks it.
A decision is planned before it is recorded: what came between the two applies to it in the governance log, but was not
known to its plan. How much that can be is bounded: what is asked for comes in a group of decisions that is open, and
what a breaker does at the decision point in hand.
"""

from collections.abc import Mapping, Sequence

from msgspec import UNSET

from htfi.domain.decision import Decision, Rung
from htfi.governance.control.entries import BreakerMoved, GovernanceEntry
from htfi.governance.control.state import (
    ControlState,
    apply,
    is_reader_held,
    is_reader_left_out,
    view_holds_on,
)
from htfi.narrative.merging import unmerged
from htfi.pipeline.governance_facts import subject_of
from htfi.scheduling.fidelity import is_prepared, is_watched

_BEFORE_HELD = (
    "as by development versions of htfi 0.1.0 before commit 9842f199, which did not record the readers that are left "
    "out: such a ledger cannot be derived again by this version, but by the one that made it; all else of it is "
    "verified without --recompute"
)


class PlannedHoldsAuditor:
    """It gets every decision of a ledger in order, with its index.

    At most `max_group` decisions are recorded together.
    """

    def __init__(self, entries: Sequence[GovernanceEntry], max_group: int) -> None:
        self._entries, self._max_group = entries, max_group
        self._states = [ControlState()]  # before each entry and after the last
        for entry in entries:
            self._states.append(apply(self._states[-1], entry))
        self._point: tuple[int, str, bool] | None = None
        self._series: set[str] = set()
        self._start = self._planned_before = (
            0  # of the point in hand: its index, and how many were planned before
        )
        self._num_planned = 0
        self._planned_at: dict[int, int] = {}  # by entry: how many had been planned before its first decision
        self._num_reached = 0

    def problems(self, decision: Decision, index: int) -> list[str]:
        """What of its plan, of the view that it keeps or of why it is set aside does not follow from the entries."""
        while self._num_reached < len(self._entries) and self._entries[self._num_reached].before <= index:
            self._planned_at[self._num_reached] = self._num_planned
            self._num_reached += 1
        if decision.is_checkpoint_release:  # derived again from the decision that it releases
            return []
        if decision.amends:
            self._point, self._start, self._planned_before = None, index, self._num_planned
            return self._set_aside_problems(decision)
        self._open_point(decision, index)
        self._num_planned += 1
        if decision.news_context is None:
            return []
        return self._plan_problems(decision) + self._set_aside_problems(decision)

    def _open_point(self, decision: Decision, index: int) -> None:
        point = (decision.as_of_ns, decision.inputs.digest, decision.is_between_bars)
        if point != self._point or decision.series in self._series:
            self._point, self._start, self._planned_before = point, index, self._num_planned
            self._series.clear()
        self._series.add(decision.series)

    def _plan_problems(self, decision: Decision) -> list[str]:
        states = self._states_when_planned(decision)
        if all(state.is_clear for state in states) and not decision.plan.left_out:
            return []
        news = decision.news_context
        newest = news.considered[0].id if news is not None and news.considered else ""
        names = _reader_names(decision.models)
        expected = [_left_out(state, names, is_watched(newest)) for state in states]
        found = _deep_problems(decision, names, states, is_watched(newest))
        if decision.plan.inputs is UNSET:  # nothing was to be read: it keeps a view, or has none
            return found + _kept_problems(decision, names, expected)
        if decision.plan.left_out in expected:
            return found
        is_set_aside = decision.governance is not UNSET and decision.governance.is_view_set_aside
        instead = f"; its view is set aside instead, {_BEFORE_HELD}" if is_set_aside else ""
        return (
            found
            + [
                f"it leaves out the reader of the rung {rung.value}, which nothing in the governance log holds back"
                for rung in Rung
                if rung in decision.plan.left_out - expected[-1]
            ]
            + [
                f"it does not leave out the reader of the rung {rung.value}, which the governance log holds back"
                + instead
                for rung in Rung
                if rung in expected[-1] - decision.plan.left_out
            ]
        )

    def _set_aside_problems(self, decision: Decision) -> list[str]:
        """Whether its view is set aside for what held its readers when it was weighed, or since."""
        found = () if decision.governance is UNSET else decision.governance.set_aside
        if not found:
            return []
        subject = subject_of(decision)
        first = self._first_unknown(decision, self._num_reached)
        if any(
            view_holds_on(state, subject) == found for state in self._states[first : self._num_reached + 1]
        ):
            return []
        return ["its view is set aside, though nothing in the governance log holds its readers so"]

    def _states_when_planned(self, decision: Decision) -> Sequence[ControlState]:
        """The states of governance that may have been in force when the point of this decision was planned."""
        most = self._num_reached
        while most and self._entries[most - 1].before > self._start:
            most -= 1
        return self._states[self._first_unknown(decision, most) : most + 1]

    def _first_unknown(self, decision: Decision, most: int) -> int:
        """The first of the entries before `most` that may have come after the point in hand was planned."""
        return next((place for place in range(most) if self._may_have_come_after(place, decision)), most)

    def _may_have_come_after(self, place: int, decision: Decision) -> bool:
        """Whether an entry may have come after the point in hand was planned."""
        entry = self._entries[place]
        if isinstance(entry, BreakerMoved):  # what waited was recorded before it
            return entry.before == self._start and entry.at_ns >= decision.as_of_ns
        return self._planned_before - self._planned_at[place] < self._max_group


def _reader_names(models: Mapping[str, str]) -> dict[Rung, tuple[str, str]]:
    """What a scope may call the reader of each rung."""
    return {
        rung: (role, models[role])
        for rung in Rung
        if rung is not Rung.TEMPLATE and (role := f"reader.{rung.value}") in models
    }


def _left_out(state: ControlState, names: Mapping[Rung, tuple[str, str]], watched: bool) -> frozenset[Rung]:
    """The rungs that a plan leaves out: of depth, which reads after the release, wherever it is held."""
    return frozenset(
        rung
        for rung, reader in names.items()
        if (
            is_reader_held(state, reader)
            if rung is Rung.DEEP
            else is_reader_left_out(state, reader, is_watched=watched)
        )
    )


def _deep_problems(
    decision: Decision,
    names: Mapping[Rung, tuple[str, str]],
    states: Sequence[ControlState],
    watched: bool,
) -> list[str]:
    """Whether it is to be read again in depth by a reader that all of `states` hold back."""
    if decision.plan.rung_after_release is not Rung.DEEP or Rung.DEEP not in names:
        return []
    if not all(is_reader_left_out(state, names[Rung.DEEP], is_watched=watched) for state in states):
        return []
    return ["it is read again in depth by a reader that the governance log holds back"]


def _kept_problems(
    decision: Decision, names: Mapping[Rung, tuple[str, str]], expected: Sequence[frozenset[Rung]]
) -> list[str]:
    read = None if decision.view is None or is_prepared(decision.plan) else unmerged(decision.view)
    if read is None:
        return []
    held = frozenset[Rung].intersection(*expected)
    return [
        f"it keeps the view of the reader of the rung {rung.value}, which the governance log holds back"
        for rung, (_, version) in names.items()
        if rung in held and version == read.reader
    ]
