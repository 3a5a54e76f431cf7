"""What became of provisional decisions: which still await the target, and the decision that takes their place.

The loop owns one `Awaited`. An amendment is a second decision on the same forecast, with the target's view; which one
and when is the weather's doing, so after a crash amendments are made again from the ledger and not asked for.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from htfi.domain.decision import Decision, Rung, View, amendment_id
from htfi.domain.errors import IntegrityError
from htfi.narrative.amended import amend_rationale
from htfi.narrative.question import Question, briefly, question_id

STEP_S = 0.005


class Awaiting(msgspec.Struct, frozen=True):
    """A provisional decision: its entry in the ledger, and what was asked for which series."""

    index: int
    first_id: str
    series: str
    rung: Rung
    question: Question


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

    def add(self, index: int, question: Question, decision: Decision) -> None:
        """Note a decision that awaits its amendment; one of an instant is enough for its series."""
        name = question_id(question)
        if name not in self.waiting and all(one.first_id != decision.id for one in self.waiting.values()):
            rung = decision.plan.rung
            self.waiting[name] = Awaiting(index, decision.id, decision.series, rung, briefly(question))

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


def amend(first: Decision, question: Question, view: View) -> Decision:
    """The decision that takes the place of a provisional one: its forecast and all else, with the target's view."""
    rationale = amend_rationale(
        first.rationale,
        symbol=first.symbol,
        as_of_ns=first.as_of_ns,
        headlines=[item for item in question.items if item.id in view.cited],
        view=view,
        confirms=first.view is not None and says_the_same(first.view, view),
    )
    return replace(first, id=amendment_id(first.id), view=view, rationale=rationale, amends=first.id)


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
