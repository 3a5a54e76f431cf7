"""What became of provisional views: which decisions that carry one await the target, and what takes their place.

The loop owns one `Awaited`. An amendment is a second decision on the same numbers, with another view weighed into
them: the target's, heard late, or that of a reading in depth. Which of the target's and when is the weather's doing, so
after a crash amendments are made again from the ledger and not asked for.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from htfi.domain.decision import Decision, FidelityPlan, NewsView, Rung, amendment_id
from htfi.domain.errors import IntegrityError
from htfi.forecasting.forecaster import Forecaster
from htfi.governance.policy import judge
from htfi.narrative.influence import bound_view, recorded_limits
from htfi.narrative.merging import mean_trust, remerge
from htfi.narrative.question import Question, question_id
from htfi.narrative.rationale.amendment import (
    AMENDS,
    BORNE_OUT,
    CONFIRMS,
    DEEPENED,
    OTHERWISE,
    OVERTURNED,
    amend_rationale,
)
from htfi.narrative.rationale.versions import phrasing_of
from htfi.pipeline.components import RunContext
from htfi.pipeline.view_cache import late_question_id
from htfi.pipeline.weighing import recorded_opinion
from htfi.scheduling.fidelity import deep_read_plan, verification_plan

POLL_STEP_S = 0.005


class DependentDecision(msgspec.Struct, frozen=True):
    """A decision that carries a view which is awaited: its entry in the ledger, and what the reader's views had earned
    by then, so that no outcome that came since moves the amendment.

    `age` counts the bars of the series before the decision's, `weight` [H] is as in `Tilt`. Not `is_read_for`: the
    view was kept from an earlier decision of the series.
    """

    index: int
    first_id: str
    age: int
    weight: list[float]
    is_read_for: bool = True


class PendingAmendment(msgspec.Struct, frozen=True):
    """What was asked for a series and is not answered, and all decisions that carry what stands in for the answer:
    the one that it was read for, then those that kept it, oldest first.
    """

    series: str
    rung: Rung
    question: Question
    dependents: list[DependentDecision]

    @property
    def first_id(self) -> str:
        """The id of the decision that it was read for."""
        return self.dependents[0].first_id


class PendingAmendments:
    """What is awaited, by the name of its question (`awaited_name`), oldest first: one for each series that asked it.

    At most `most` decisions are kept once the ledger has been caught up with; the oldest are given up with all that
    carry their views, and counted.
    """

    def __init__(self, most: int) -> None:
        self._max_decisions = most
        self.by_question: OrderedDict[str, list[PendingAmendment]] = OrderedDict()
        self._by_read_time: dict[tuple[str, int], PendingAmendment] = {}  # by series and instant
        self.num_decisions = 0  # that await an amendment
        self.num_abandoned = 0

    @property
    def questions(self) -> dict[Rung, list[Question]]:
        """What is awaited, by the rung at which it was asked."""
        found: dict[Rung, list[Question]] = {}
        for one, *_ in self.by_question.values():
            found.setdefault(one.rung, []).append(one.question)
        return found

    def add(self, awaiting: PendingAmendment) -> None:
        """Note a decision that awaits its amendment; one of an instant is enough for its series."""
        key = _read_key(awaiting)
        if key not in self._by_read_time:
            self._by_read_time[key] = awaiting
            self.num_decisions += len(awaiting.dependents)
            self.by_question.setdefault(_question_name(awaiting), []).append(awaiting)

    def find_by_read_time(self, series: str, read_ns: int) -> PendingAmendment | None:
        """What is awaited of a view that was read for a series at an instant."""
        return self._by_read_time.get((series, read_ns))

    def add_dependent(self, awaiting: PendingAmendment, carrier: DependentDecision) -> None:
        """Note a decision that keeps a view which is awaited; one of an instant is enough."""
        if all(one.first_id != carrier.first_id for one in awaiting.dependents):
            awaiting.dependents.append(carrier)
            self.num_decisions += 1

    def drop_oldest(self) -> None:
        """Give up the oldest beyond the limit. Not while redeciding: the ledger may yet amend them."""
        while self.num_decisions > self._max_decisions:
            self.count_abandoned(self.pop_answered(next(iter(self.by_question))))

    def count_abandoned(self, several: Sequence[PendingAmendment]) -> None:
        """Count decisions that will not be amended."""
        self.num_abandoned += sum(len(one.dependents) for one in several)

    def pop_answered(self, name: str) -> list[PendingAmendment]:
        """What awaited this question's answer, and awaits it no more."""
        several = self.by_question.pop(name, [])
        for awaiting in several:
            self._forget(awaiting)
        return several

    def pop_recorded(self, decision: Decision) -> PendingAmendment:
        """What awaited the view of a recorded amendment. Raises: IntegrityError."""
        for name, several in self.by_question.items():
            for awaiting in several:
                if awaiting.first_id == decision.amends:
                    several.remove(awaiting)
                    self._forget(awaiting)
                    if not several:
                        del self.by_question[name]
                    return awaiting
        raise IntegrityError(
            f"{decision.id} in the ledger amends {decision.amends}, which awaits nothing: "
            "the inputs, the settings or the code changed since; use a new folder"
        )

    def _forget(self, awaiting: PendingAmendment) -> None:
        del self._by_read_time[_read_key(awaiting)]
        self.num_decisions -= len(awaiting.dependents)

    def state(self) -> dict[str, Any]:
        several = [one for found in self.by_question.values() for one in found]
        return {"waiting": [msgspec.to_builtins(one) for one in several], "num_given_up": self.num_abandoned}

    def restore(self, state: dict[str, Any]) -> None:
        self.by_question.clear()
        self._by_read_time.clear()
        self.num_decisions = 0
        for one in state["waiting"]:
            self.add(msgspec.convert(one, PendingAmendment))
        self.num_abandoned = state["num_given_up"]


def _question_name(awaiting: PendingAmendment) -> str:
    return late_question_id(awaiting.rung, question_id(awaiting.question))


def _read_key(awaiting: PendingAmendment) -> tuple[str, int]:
    return awaiting.series, awaiting.question.as_of_ns


def make_amendment(
    first: Decision,
    carrier: DependentDecision,
    question: Question,
    view: NewsView,
    told: str,
    forecaster: Forecaster,
    terms: RunContext,
) -> Decision:
    """The decision that takes the place of one that awaited it: the same numbers, with this view weighed and judged.

    `view` is what was read; the readings of other items that went into the first view go into this one as well. `told`
    is the part of the rationale that says how the view stands to the one before, where another decision that carried
    that one was amended; how it was worded is recorded once, with the decision that it was read for.
    """
    read = view if carrier.is_read_for else replace(view, wording=None)
    view = bound_view(
        remerge(read, mean_trust(first.hearing, read.cited), first.view, first.as_of_ns),
        recorded_limits(first.hearing),
    )
    opinion = recorded_opinion(first, view)
    forecast = forecaster.replace_opinion(first.series, carrier.age, first.forecast, opinion, carrier.weight)
    low, high = forecast.central_band
    rationale = amend_rationale(
        first.rationale,
        symbol=first.symbol,
        as_of_ns=first.as_of_ns,
        last_price=first.last_price,
        low=low,
        high=high,
        headlines=[item for item in question.items if item.id in view.cited],
        view=view,
        tilt=forecast.tilt,
        ending=told or amendment_template(first, view),
        phrasing=phrasing_of(first.models),
    )
    amendment = replace(
        first,
        id=amendment_id(first.id),
        plan=_amendment_plan(first.plan, terms),
        forecast=forecast,
        view=view,
        rationale=rationale,
        amends=first.id,
    )
    return replace(amendment, verdict=judge(amendment, terms.policy))


def _amendment_plan(first: FidelityPlan, terms: RunContext) -> FidelityPlan:
    """The plan of an amendment, from that of the decision it takes the place of."""
    if first.then is None:
        return first
    return (
        deep_read_plan(first, terms.fidelity)
        if first.then is Rung.DEEP
        else verification_plan(first, terms.fidelity)
    )


def amendment_template(first: Decision, view: NewsView) -> str:
    """The part of an amendment's rationale that says how its view stands to the first one's."""
    before = first.view
    if first.plan.then is not None:
        same = before is not None and _sign(before.direction) == _sign(view.direction)
        if first.plan.then is Rung.DEEP:
            return DEEPENED if same else OVERTURNED
        return BORNE_OUT if same else OTHERWISE
    return CONFIRMS if before is not None and is_same_opinion(before, view) else AMENDS


def recorded_amendment_template(amended: Decision) -> str:
    """That part of an amendment's rationale."""
    return amended.rationale.template.rsplit("+", 1)[-1]


def _sign(direction: float) -> int:
    return (direction > 0.0) - (direction < 0.0)


def is_same_opinion(before: NewsView, after: NewsView) -> bool:
    """Whether the target has written the very tokens of a provisional view, or without tokens the same opinion."""
    if before.wording is not None and after.wording is not None:
        return before.wording.tokens == after.wording.tokens
    return _opinion_fields(before) == _opinion_fields(after)


def _opinion_fields(view: NewsView) -> Sequence[object]:
    return (
        view.direction,
        view.size_sigmas,
        view.volatility_multiplier,
        view.cited,
        view.cause,
        view.consistency,
        view.words,
    )


def wait_until(
    limit_ms: float, clock: Callable[[], float], sleep: Callable[[float], None], step_s: float = POLL_STEP_S
) -> Callable[[], bool]:
    """A wait for what is late: each call sleeps a step and says whether time is left, counted from the first.

    `clock` in seconds, monotonic.
    """
    until_s: float | None = None

    def wait() -> bool:
        nonlocal until_s
        now_s = clock()
        if until_s is None:
            until_s = now_s + limit_ms / 1e3
        if now_s >= until_s:
            return False
        sleep(min(step_s, until_s - now_s))
        return True

    return wait
