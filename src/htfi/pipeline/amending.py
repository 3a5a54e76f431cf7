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
from htfi.narrative.leverage import bounded, shares_in
from htfi.narrative.merging import again, own, trust_in
from htfi.narrative.question import Question, question_id
from htfi.pipeline.decide import band, facts
from htfi.pipeline.reading import awaited_name
from htfi.pipeline.rooms import Terms
from htfi.pipeline.weighing import opinion_in
from htfi.scheduling.fidelity import deep_plan, verifying_plan

STEP_S = 0.005


class Carrier(msgspec.Struct, frozen=True):
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


class Awaiting(msgspec.Struct, frozen=True):
    """What was asked for a series and is not answered, and all decisions that carry what stands in for the answer:
    the one that it was read for, then those that kept it, oldest first.
    """

    series: str
    rung: Rung
    question: Question
    carriers: list[Carrier]

    @property
    def first_id(self) -> str:
        """The id of the decision that it was read for."""
        return self.carriers[0].first_id


class Awaited:
    """What is awaited, by the name of its question (`awaited_name`), oldest first: one for each series that asked it.

    At most `most` decisions are kept once the ledger has been caught up with; the oldest are given up with all that
    carry their views, and counted.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.waiting: OrderedDict[str, list[Awaiting]] = OrderedDict()
        self._carried: dict[tuple[str, int], Awaiting] = {}  # by series and instant
        self.num_decisions = 0  # that await an amendment
        self.num_given_up = 0

    @property
    def questions(self) -> dict[Rung, list[Question]]:
        """What is awaited, by the rung at which it was asked."""
        found: dict[Rung, list[Question]] = {}
        for one, *_ in self.waiting.values():
            found.setdefault(one.rung, []).append(one.question)
        return found

    def add(self, awaiting: Awaiting) -> None:
        """Note a decision that awaits its amendment; one of an instant is enough for its series."""
        key = _key(awaiting)
        if key not in self._carried:
            self._carried[key] = awaiting
            self.num_decisions += len(awaiting.carriers)
            self.waiting.setdefault(_name(awaiting), []).append(awaiting)

    def carried(self, series: str, read_ns: int) -> Awaiting | None:
        """What is awaited of a view that was read for a series at an instant."""
        return self._carried.get((series, read_ns))

    def carry(self, awaiting: Awaiting, carrier: Carrier) -> None:
        """Note a decision that keeps a view which is awaited; one of an instant is enough."""
        if all(one.first_id != carrier.first_id for one in awaiting.carriers):
            awaiting.carriers.append(carrier)
            self.num_decisions += 1

    def trim(self) -> None:
        """Give up the oldest beyond the limit. Not while redeciding: the ledger may yet amend them."""
        while self.num_decisions > self._most:
            self.give_up(self.take(next(iter(self.waiting))))

    def give_up(self, several: Sequence[Awaiting]) -> None:
        """Count decisions that will not be amended."""
        self.num_given_up += sum(len(one.carriers) for one in several)

    def take(self, name: str) -> list[Awaiting]:
        """What awaited this question's answer, and awaits it no more."""
        several = self.waiting.pop(name, [])
        for awaiting in several:
            self._forget(awaiting)
        return several

    def take_first(self, decision: Decision) -> Awaiting:
        """What awaited the view of a recorded amendment. Raises: IntegrityError."""
        for name, several in self.waiting.items():
            for awaiting in several:
                if awaiting.first_id == decision.amends:
                    several.remove(awaiting)
                    self._forget(awaiting)
                    if not several:
                        del self.waiting[name]
                    return awaiting
        raise IntegrityError(
            f"{decision.id} in the ledger amends {decision.amends}, which awaits nothing: "
            "the inputs, the settings or the code changed since; use a new folder"
        )

    def _forget(self, awaiting: Awaiting) -> None:
        del self._carried[_key(awaiting)]
        self.num_decisions -= len(awaiting.carriers)

    def state(self) -> dict[str, Any]:
        several = [one for found in self.waiting.values() for one in found]
        return {"waiting": [msgspec.to_builtins(one) for one in several], "num_given_up": self.num_given_up}

    def restore(self, state: dict[str, Any]) -> None:
        self.waiting.clear()
        self._carried.clear()
        self.num_decisions = 0
        for one in state["waiting"]:
            self.add(msgspec.convert(one, Awaiting))
        self.num_given_up = state["num_given_up"]


def _name(awaiting: Awaiting) -> str:
    return awaited_name(awaiting.rung, question_id(awaiting.question))


def _key(awaiting: Awaiting) -> tuple[str, int]:
    return awaiting.series, awaiting.question.as_of_ns


def amend(
    first: Decision,
    carrier: Carrier,
    question: Question,
    view: View,
    told: str,
    forecaster: Forecaster,
    terms: Terms,
) -> Decision:
    """The decision that takes the place of one that awaited it: the same numbers, with this view weighed and judged.

    `view` is what was read; the readings of other items that went into the first view go into this one as well. `told`
    is the part of the rationale that says how the view stands to the one before, where another decision that carried
    that one was amended; how it was worded is recorded once, with the decision that it was read for.
    """
    read = view if carrier.is_read_for else replace(view, wording=None)
    view = bounded(
        again(read, trust_in(first.hearing, read.cited), first.view, first.as_of_ns), shares_in(first.hearing)
    )
    opinion = opinion_in(first, view)
    forecast = forecaster.reweigh(first.series, carrier.age, first.forecast, opinion, carrier.weight)
    low, high = band(forecast)
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
        ending=told or ending(first, view),
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


def ending_of(amended: Decision) -> str:
    """That part of an amendment's rationale."""
    return amended.rationale.template.rsplit("+", 1)[-1]


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
