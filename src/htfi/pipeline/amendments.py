"""Amendments of provisional decisions: which decisions await one, and how it is made.

An amendment is a second decision on the same numbers, with another view weighed into them: the target's, which came
late, or that of a reading in depth. `LateViews` owns the pending ones.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from htfi.domain.decision import Decision, FidelityPlan, Rung, amendment_id
from htfi.domain.errors import IntegrityError
from htfi.domain.governance import Hold
from htfi.domain.news_view import NewsView
from htfi.forecasting.forecaster import Forecaster
from htfi.governance.policy import judge
from htfi.narrative.influence import bound_view, recorded_limits
from htfi.narrative.merging import remerge
from htfi.narrative.question import Question, question_id
from htfi.narrative.rationale.amendment import (
    AMENDS,
    CONFIRMS,
    OTHER_DIRECTION_AFTER_NEWS,
    OTHER_DIRECTION_IN_DEPTH,
    SAME_DIRECTION_AFTER_NEWS,
    SAME_DIRECTION_IN_DEPTH,
    amend_rationale,
)
from htfi.narrative.rationale.versions import phrasing_of
from htfi.pipeline.checkpoints import as_released
from htfi.pipeline.components import RunContext
from htfi.pipeline.governance_facts import subject_of
from htfi.pipeline.governed import RunGovernance
from htfi.pipeline.view_cache import late_question_id
from htfi.pipeline.weighing import no_opinion, recorded_opinion
from htfi.scheduling.fidelity import deep_read_plan, verification_plan

POLL_STEP_S = 0.005


class DependentDecision(msgspec.Struct, frozen=True):
    """A decision that keeps a provisional view: its entry in the ledger, and its reader's weight then.

    So no later outcome changes the amendment.
    `age` counts the bars of the series before the decision's, `weight` [H] is as in `NewsTilt`. Where it is not
    `has_own_reading`, the view was kept from an earlier decision of the series.
    """

    index: int
    first_id: str
    age: int
    weight: list[float]
    has_own_reading: bool = msgspec.field(default=True, name="is_read_for")


class PendingAmendment(msgspec.Struct, frozen=True):
    """A question without an answer yet, and the decisions that keep the provisional view instead.

    First the one that it was read for, then those of its series that kept it, oldest first.
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
    """Pending amendments by the id of their question (`late_question_id`), oldest first; one for each series.

    At most `max_decisions` are kept once recovery is done. The oldest are abandoned and counted, with all that keep
    their views.
    """

    def __init__(self, max_decisions: int) -> None:
        self._max_decisions = max_decisions
        self.by_question: OrderedDict[str, list[PendingAmendment]] = OrderedDict()
        self._by_read_time: dict[tuple[str, int], PendingAmendment] = {}  # by series and instant
        self.num_decisions = 0  # that await an amendment
        self.num_abandoned = 0

    @property
    def questions(self) -> dict[Rung, list[Question]]:
        """The pending questions, by the rung at which they were asked."""
        found: dict[Rung, list[Question]] = {}
        for pending, *_ in self.by_question.values():
            found.setdefault(pending.rung, []).append(pending.question)
        return found

    def add(self, pending: PendingAmendment) -> None:
        """Note a decision that awaits its amendment; one of an instant is enough for its series."""
        key = _read_key(pending)
        if key not in self._by_read_time:
            self._by_read_time[key] = pending
            self.num_decisions += len(pending.dependents)
            self.by_question.setdefault(_question_name(pending), []).append(pending)

    def find_by_read_time(self, series: str, read_ns: int) -> PendingAmendment | None:
        """The pending amendment of a view that was read for a series at an instant."""
        return self._by_read_time.get((series, read_ns))

    def add_dependent(self, pending: PendingAmendment, dependent: DependentDecision) -> None:
        """Note a decision that keeps a provisional view; one of an instant is enough."""
        if all(other.first_id != dependent.first_id for other in pending.dependents):
            pending.dependents.append(dependent)
            self.num_decisions += 1

    def drop_oldest(self) -> None:
        """Abandon the oldest beyond the limit. Not while a crash is recovered from: the ledger may yet amend them."""
        while self.num_decisions > self._max_decisions:
            self.count_abandoned(self.pop_answered(next(iter(self.by_question))))

    def count_abandoned(self, answered: Sequence[PendingAmendment]) -> None:
        """Count decisions that will not be amended."""
        self.num_abandoned += sum(len(pending.dependents) for pending in answered)

    def pop_answered(self, name: str) -> list[PendingAmendment]:
        """Take out what this question's answer amends."""
        answered = self.by_question.pop(name, [])
        for pending in answered:
            self._forget(pending)
        return answered

    def pop_recorded(self, decision: Decision) -> PendingAmendment:
        """Take out what a recorded amendment amends. Raises: IntegrityError."""
        for name, answered in self.by_question.items():
            for pending in answered:
                if pending.first_id == decision.amends:
                    answered.remove(pending)
                    self._forget(pending)
                    if not answered:
                        del self.by_question[name]
                    return pending
        raise IntegrityError(
            f"{decision.id} in the ledger amends {decision.amends}, which awaits no amendment: "
            "the inputs, the settings or the code changed since; use a new folder"
        )

    def _forget(self, pending: PendingAmendment) -> None:
        del self._by_read_time[_read_key(pending)]
        self.num_decisions -= len(pending.dependents)

    def state(self) -> dict[str, Any]:
        answered = [pending for pendings in self.by_question.values() for pending in pendings]
        return {
            "waiting": [msgspec.to_builtins(pending) for pending in answered],
            "num_given_up": self.num_abandoned,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.by_question.clear()
        self._by_read_time.clear()
        self.num_decisions = 0
        for pending in state["waiting"]:
            self.add(msgspec.convert(pending, PendingAmendment))
        self.num_abandoned = state["num_given_up"]


def _question_name(pending: PendingAmendment) -> str:
    return late_question_id(pending.rung, question_id(pending.question))


def _read_key(pending: PendingAmendment) -> tuple[str, int]:
    return pending.series, pending.question.as_of_ns


def make_amendment(
    first: Decision,
    dependent: DependentDecision,
    question: Question,
    view: NewsView,
    template: str,
    forecaster: Forecaster,
    context: RunContext,
    governance: RunGovernance,
    index: int,
    recorded: tuple[Hold, ...] | None = None,
) -> Decision:
    """The decision that replaces a provisional one: the same numbers, with this view weighed and judged.

    `view` is what was read; the readings of other items that went into the first view go into this one as well.
    `template` is the part of the rationale that compares the view with the first one, where another decision that kept
    that one is amended already. It will stand in the ledger at `index`; `recorded` is what its view was set aside for
    where the ledger holds it. The generation trace is recorded once, with the decision that the view was read for.
    """
    read = view if dependent.has_own_reading else replace(view, trace=None)
    view = bound_view(
        remerge(read, first.view, first.news_context, first.as_of_ns),
        recorded_limits(first.news_context),
    )
    plan = _amendment_plan(first.plan, context)
    opinion = recorded_opinion(first, view)
    subject = subject_of(replace(first, view=view, plan=plan))
    set_aside = governance.view_holds(index, subject) if recorded is None else recorded
    if set_aside:
        opinion = no_opinion(opinion)
    before = first.forecast.tilt
    is_same = before is not None and before.narrator == opinion.narrator  # then its weight stays
    weight = before.weight if before is not None and is_same else dependent.weight
    forecast = forecaster.replace_opinion(
        first.series,
        dependent.age,
        first.forecast,
        opinion,
        weight,
        is_tracked=not first.is_between_bars,
    )
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
        ending=template or comparison_part(first, view),
        phrasing=phrasing_of(first.models),
    )
    amendment = replace(
        first,
        id=amendment_id(first.id),
        plan=plan,
        forecast=forecast,
        view=view,
        rationale=rationale,
        amends=first.id,
    )
    return judge_amendment(amendment, governance, index, set_aside)


def judge_amendment(
    amendment: Decision, governance: RunGovernance, index: int, set_aside: tuple[Hold, ...] | None = None
) -> Decision:
    """An amendment that will stand in the ledger at `index`, judged by what governance knows now.

    `set_aside` is what its view was set aside for; None: what it states itself.
    """
    subject = subject_of(amendment)
    subject = subject if set_aside is None else subject._replace(set_aside=set_aside)
    governed = replace(amendment, governance=governance.fact(index, subject))
    return replace(governed, verdict=judge(governed, governance.policy))


def is_set_aside(amendment: Decision) -> bool:
    """Whether governance held the readers of its view when it was made: it is recorded and withheld."""
    return amendment.governance is not UNSET and amendment.governance.is_view_set_aside


def released_decision(first: Decision, governance: RunGovernance, index: int) -> Decision:
    """The decision that releases one which had waited for people, judged again. It will stand in the ledger at `index`.

    Raises: IntegrityError where no answer gives a right to it.
    """
    release = governance.release_of(first.id, index)
    if release is None:
        raise IntegrityError(
            f"{first.id} waits for people, and the governance log holds no answer that releases it: "
            "the log was replaced or cut; restore it, or use a new folder"
        )
    released = as_released(first, release)
    governed = replace(released, governance=governance.fact(index, subject_of(released)))
    return replace(governed, verdict=judge(governed, governance.policy))


def _amendment_plan(first: FidelityPlan, context: RunContext) -> FidelityPlan:
    """The plan of an amendment, from that of the decision it takes the place of."""
    if first.rung_after_release is None:
        return first
    return (
        deep_read_plan(first, context.fidelity)
        if first.rung_after_release is Rung.DEEP
        else verification_plan(first, context.fidelity)
    )


def comparison_part(first: Decision, view: NewsView) -> str:
    """The part of an amendment's rationale that compares its view with the first one's."""
    before = first.view
    if first.plan.rung_after_release is not None:
        same = before is not None and _sign(before.direction) == _sign(view.direction)
        if first.plan.rung_after_release is Rung.DEEP:
            return SAME_DIRECTION_IN_DEPTH if same else OTHER_DIRECTION_IN_DEPTH
        return SAME_DIRECTION_AFTER_NEWS if same else OTHER_DIRECTION_AFTER_NEWS
    return CONFIRMS if before is not None and is_same_opinion(before, view) else AMENDS


def recorded_comparison_part(amended: Decision) -> str:
    """That part of a recorded amendment's rationale."""
    return amended.rationale.template.rsplit("+", 1)[-1]


def _sign(direction: float) -> int:
    return (direction > 0.0) - (direction < 0.0)


def is_same_opinion(before: NewsView, after: NewsView) -> bool:
    """Whether the target has written the very tokens of a provisional view, or without tokens the same opinion."""
    if before.trace is not None and after.trace is not None:
        return before.trace.tokens == after.trace.tokens
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
    """A wait for late views: each call sleeps a step and returns whether time is left, counted from the first call.

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
