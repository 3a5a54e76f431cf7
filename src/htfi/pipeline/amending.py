"""What became of provisional decisions: which still await the target, and the decision that takes their place.

The loop owns one `Awaited`. An amendment is a second decision on the same numbers, with another view weighed into
them: the target's, heard late, or that of a reading in depth. Which of the target's and when is the weather's doing, so
after a crash amendments are made again from the ledger and not asked for.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from htfi.domain.decision import Decision, Plan, Rung, View, amendment_id
from htfi.domain.errors import IntegrityError
from htfi.forecasting.forecaster import Forecaster
from htfi.governance.policy import judge
from htfi.narrative.amended import (
    AMENDS,
    BORNE_OUT,
    CONFIRMS,
    DEEPENED,
    OTHERWISE,
    OVERTURNED,
    amend_rationale,
)
from htfi.narrative.merging import again, own
from htfi.narrative.question import Question, briefly, question_id
from htfi.pipeline.decide import band, facts
from htfi.pipeline.rooms import Terms
from htfi.pipeline.weighing import opinion_in
from htfi.scheduling.fidelity import deep_plan, verifying_plan

STEP_S = 0.005


class Awaiting(msgspec.Struct, frozen=True):
    """A provisional decision: its entry in the ledger, what was asked for which series, and what its reader's views
    had earned by then, so that no outcome that came since moves the amendment.

    `age` counts the bars of the series before the decision's, `weight` [H] is as in `Tilt`.
    """

    index: int
    first_id: str
    series: str
    rung: Rung
    question: Question
    age: int
    weight: list[float]


class Awaited:
    """Provisional decisions by the id of their question, oldest first.

    At most `most` are kept once the ledger has been caught up with; the oldest are given up, and counted.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.waiting: OrderedDict[str, Awaiting] = OrderedDict()
        self.num_given_up = 0

    @property
    def questions(self) -> dict[Rung, list[Question]]:
        """What is awaited, by the rung at which it was asked."""
        found: dict[Rung, list[Question]] = {}
        for one in self.waiting.values():
            found.setdefault(one.rung, []).append(one.question)
        return found

    def add(self, awaiting: Awaiting) -> None:
        """Note a decision that awaits its amendment; one of an instant is enough for its series."""
        name = question_id(awaiting.question)
        if name not in self.waiting and all(
            one.first_id != awaiting.first_id for one in self.waiting.values()
        ):
            self.waiting[name] = awaiting

    def trim(self) -> None:
        """Give up the oldest beyond the limit. Not while redeciding: the ledger may yet amend them."""
        while len(self.waiting) > self._most:
            self.waiting.popitem(last=False)
            self.num_given_up += 1

    def take(self, name: str) -> Awaiting | None:
        """The decision that awaited this question's answer, which is awaited no more."""
        return self.waiting.pop(name, None)

    def take_first(self, decision: Decision) -> Awaiting:
        """The decision that a recorded amendment takes the place of. Raises: IntegrityError."""
        for name, awaiting in self.waiting.items():
            if awaiting.first_id == decision.amends:
                return self.waiting.pop(name)
        raise IntegrityError(
            f"{decision.id} in the ledger amends {decision.amends}, which awaits nothing: "
            "the inputs, the settings or the code changed since; use a new folder"
        )

    def state(self) -> dict[str, Any]:
        return {
            "waiting": [[name, msgspec.to_builtins(one)] for name, one in self.waiting.items()],
            "num_given_up": self.num_given_up,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.waiting = OrderedDict((name, msgspec.convert(one, Awaiting)) for name, one in state["waiting"])
        self.num_given_up = state["num_given_up"]


def await_view(
    index: int, rung: Rung, question: Question, decision: Decision, weight: list[float], age: int
) -> Awaiting:
    """What is kept of a decision until it is amended."""
    return Awaiting(index, decision.id, decision.series, rung, briefly(question), age, weight)


def amend(first: Decision, awaiting: Awaiting, view: View, forecaster: Forecaster, terms: Terms) -> Decision:
    """The decision that takes the place of a provisional one: the same numbers, with this view weighed and judged.

    `view` is what was read; the readings of other items that went into the first view go into this one as well.
    """
    view = again(view, first.view)
    opinion = opinion_in(first, view)
    forecast = forecaster.reweigh(first.series, awaiting.age, first.forecast, opinion, awaiting.weight)
    low, high = band(forecast)
    rationale = amend_rationale(
        first.rationale,
        symbol=first.symbol,
        as_of_ns=first.as_of_ns,
        last_price=first.last_price,
        low=low,
        high=high,
        headlines=[item for item in awaiting.question.items if item.id in view.cited],
        view=view,
        tilt=forecast.tilt,
        ending=ending(first, view),
    )
    known = facts(first.symbol, first.as_of_ns, first.regime, first.features, forecast, first.circumstances)
    return replace(
        first,
        id=amendment_id(first.id),
        plan=_plan_again(first.plan, terms),
        forecast=forecast,
        view=view,
        rationale=rationale,
        verdict=judge(known, terms.policy),
        amends=first.id,
    )


def _plan_again(first: Plan, terms: Terms) -> Plan:
    """The plan of an amendment, from that of the decision it takes the place of."""
    if first.then is None:
        return first
    return (
        deep_plan(first, terms.fidelity) if first.then is Rung.DEEP else verifying_plan(first, terms.fidelity)
    )


def own_view(decision: Decision) -> View | None:
    """What was read for a decision, before other readings were joined to it; None where nothing was."""
    return own(decision.view) if decision.view is not None else None


def ending(first: Decision, view: View) -> str:
    """The part of an amendment's rationale that says how its view stands to the first one's."""
    before = first.view
    if first.plan.then is not None:
        same = before is not None and _sign(before.direction) == _sign(view.direction)
        if first.plan.then is Rung.DEEP:
            return DEEPENED if same else OVERTURNED
        return BORNE_OUT if same else OTHERWISE
    return CONFIRMS if before is not None and says_the_same(before, view) else AMENDS


def _sign(direction: float) -> int:
    return (direction > 0.0) - (direction < 0.0)


def says_the_same(before: View, after: View) -> bool:
    """Whether the target has written the very tokens of a provisional view, or without tokens the same opinion."""
    if before.wording is not None and after.wording is not None:
        return before.wording.tokens == after.wording.tokens
    return _opinion(before) == _opinion(after)


def _opinion(view: View) -> Sequence[object]:
    return (
        view.direction,
        view.size_sigmas,
        view.volatility_multiplier,
        view.cited,
        view.cause,
        view.consistency,
        view.words,
    )


def patience(
    limit_ms: float, clock: Callable[[], float], sleep: Callable[[float], None], step_s: float = STEP_S
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
