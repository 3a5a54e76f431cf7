"""Derives a recorded decision again from its own record: quantiles, words, verdict. Auditors call it.

What needs the inputs themselves (features, expert quantiles, weights) is recomputed by running the same inputs
into a fresh folder: the roots must be equal, where no reading depended on a link's weather.
"""

from collections.abc import Callable

from htfi.domain.decision import Decision, Rationale, amendment_id, decode_decision, encode_decision
from htfi.forecasting.fusion import combine
from htfi.governance.config import PolicyConfig
from htfi.governance.policy import judge
from htfi.narrative.amended import CONFIRMS, PROVISIONAL, same_but_for_news, tells
from htfi.narrative.rationale import fill, tell_view
from htfi.pipeline.amending import says_the_same
from htfi.pipeline.decide import facts

_OWN = frozenset(
    {"id", "view", "rationale", "amends"}
)  # what an amendment does not have of its first decision


class Amendments:
    """Which provisional decisions of a run await theirs, told entry by entry in the ledger's order."""

    def __init__(self, entry: Callable[[int], bytes]) -> None:
        """`entry` gives the bytes of one that was told before."""
        self._entry = entry
        self._awaiting: dict[str, int] = {}
        self._num = 0

    def problems(self, decision: Decision) -> list[str]:
        """What does not hold between this decision and those before it; empty where all does."""
        index, self._num = self._num, self._num + 1
        if not decision.amends:
            if decision.awaits:
                self._awaiting.setdefault(decision.id, index)
            return []
        first = self._awaiting.pop(decision.amends, None)
        if first is None:
            return [
                f"it amends {decision.amends}, which is no earlier provisional decision, or is amended already"
            ]
        return _amended(decode_decision(self._entry(first)), decision)


def _amended(first: Decision, decision: Decision) -> list[str]:
    problems: list[str] = []
    changed = [
        name
        for name in Decision.__struct_fields__
        if name not in _OWN and getattr(first, name) != getattr(decision, name)
    ]
    if changed:
        problems.append(f"it changes more than the view of {first.id}: {', '.join(changed)}")
    if decision.id != amendment_id(first.id):
        problems.append(f"it is not named after {first.id}")
    if not same_but_for_news(first.rationale, decision.rationale):
        problems.append(f"its rationale is not that of {first.id} but for the news")
    if decision.view is None or decision.view.provisional or decision.view.as_of_ns != first.as_of_ns:
        problems.append("it has no view of the target's own on that instant")
    elif first.view is not None:
        said = says_the_same(first.view, decision.view)
        if said != tells(decision.rationale, CONFIRMS):
            problems.append("whether it confirms the provisional view is told wrongly")
    return problems


def recompute(
    entry: bytes, settings_digest: str, policy: PolicyConfig, amendments: Amendments | None = None
) -> list[str]:
    """What does not come out as recorded, in words; empty when all does.

    `amendments` knows the entries before this one; without it what amends another is not held against that.
    Raises: msgspec.ValidationError where the entry is no decision.
    """
    decision = decode_decision(entry)
    forecast = decision.forecast
    problems: list[str] = []
    if decision.settings_digest != settings_digest:
        problems.append("it was made under other settings than those at hand")
    if encode_decision(decision) != entry:
        problems.append("the entry is not in canonical form")
    fused = combine(forecast.experts, forecast.weights, forecast.calibration, forecast.levels)
    if fused != forecast.quantiles:
        problems.append("the fused quantiles do not follow from the experts' and their weights")
    problems += _words(decision, decision.rationale)
    known = facts(
        decision.symbol,
        decision.as_of_ns,
        decision.regime,
        decision.features,
        forecast,
        decision.circumstances,
    )
    if judge(known, policy) != decision.verdict:
        problems.append("the verdict does not follow from the policy")
    return problems + (amendments.problems(decision) if amendments is not None else [])


def _words(decision: Decision, rationale: Rationale) -> list[str]:
    problems: list[str] = []
    if fill(rationale.template, rationale.slots) != rationale.text:
        problems.append("the rationale does not follow from its template and slots")
    view = decision.view
    told = tell_view(view, decision.symbol) if view is not None else {}
    if any(rationale.slots.get(slot) != words for slot, words in told.items()):
        problems.append("what the rationale says of the news does not follow from the view")
    if tells(rationale, *PROVISIONAL) != (view is not None and view.provisional):
        problems.append("whether the reading is provisional is told wrongly")
    return problems
