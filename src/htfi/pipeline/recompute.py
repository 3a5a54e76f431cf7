"""Derives a recorded decision again from its own record: tilt, quantiles, words, verdict. Auditors call it.

What needs the inputs themselves (features, expert quantiles, weights) is recomputed by running the same inputs
into a fresh folder: the roots must be equal, where no reading depended on a link's weather.
"""

from collections import deque
from collections.abc import Callable

from msgspec.structs import replace

from htfi.domain.decision import Decision, Plan, Rung, View, amendment_id, decode_decision, encode_decision
from htfi.governance.config import PolicyConfig
from htfi.governance.policy import judge
from htfi.narrative.amended import PREPARED, PROVISIONAL, same_but_for_news, tells
from htfi.narrative.leverage import bounded, share_problems, shares_in
from htfi.narrative.merging import again, contradictions, own, trust_in
from htfi.narrative.rationale import (
    band_unit,
    fill,
    tell_band,
    tell_divergence,
    tell_prepared,
    tell_tilt,
    tell_view,
)
from htfi.narrative.routing import problems as routing_problems
from htfi.narrative.routing_config import RoutingConfig
from htfi.narrative.sanitising.config import SanitiserConfig
from htfi.narrative.secure_config import SecureConfig
from htfi.narrative.words import move_unit
from htfi.pipeline.amending import ending, ending_of
from htfi.pipeline.bound_readings import BoundReadings
from htfi.pipeline.decide import band, facts
from htfi.pipeline.preparing import PREPARED_FOR
from htfi.pipeline.ranks import Ranks
from htfi.pipeline.suspicion import problems as suspicion_problems
from htfi.pipeline.weighing import is_bounded, untold
from htfi.pipeline.weighing import problems as forecast_problems
from htfi.scheduling.fidelity import THEN_ITSELF, is_for_worth

# What an amendment does not have of its first decision: all of it follows from the view, and is derived again.
_OWN = frozenset({"id", "plan", "forecast", "view", "rationale", "verdict", "amends"})


class Amendments:
    """Which decisions of a run await an amendment, and how opinions diverged, told in the ledger's order."""

    def __init__(self, entry: Callable[[int], bytes]) -> None:
        """`entry` gives the bytes of one that was told before."""
        self._entry = entry
        self._awaiting: dict[str, int] = {}
        self._carriers: dict[
            tuple[str, int], list[str]
        ] = {}  # by series and instant of the view that they keep
        self._lead: Decision | None = None  # the amendment whose view those that are due carry
        self._due: deque[str] = deque()  # what is amended next
        self._num = 0
        self._ranks = Ranks()

    @property
    def num_awaiting(self) -> int:
        """Decisions that await an amendment which the ledger does not hold."""
        return len(self._awaiting)

    def problems(self, decision: Decision) -> list[str]:
        """What does not hold between this decision and those before it; empty where all does."""
        index, self._num = self._num, self._num + 1
        found = self._ranks.problems(decision) + self._missed(decision)
        if not decision.amends:
            self._note(decision, index)
            return found
        first_index = self._awaiting.pop(decision.amends, None)
        if first_index is None:
            return [
                *found,
                f"it amends {decision.amends}, which is no earlier provisional decision, or is amended already",
            ]
        first = decode_decision(self._entry(first_index))
        if self._due:
            self._due.popleft()
            return found + _amended(first, decision, self._lead)
        self._lead = decision
        if first.view is not None:
            self._due.extend(self._carriers.pop((first.series, first.view.read_ns), ()))
        return found + _amended(first, decision)

    def _missed(self, decision: Decision) -> list[str]:
        """What should stand here: all that carried a view are amended right after the one that it was read for."""
        if not self._due or decision.amends == self._due[0]:
            return []
        missing = self._due[0]
        self._due.clear()
        lead = self._lead.amends if self._lead is not None else ""
        return [f"the amendment of {missing} is missing before it: that carries the view of {lead} as well"]

    def _note(self, decision: Decision, index: int) -> None:
        if not decision.awaits or decision.view is None:
            return
        if decision.is_read_for or decision.plan.then is not None:
            self._awaiting.setdefault(decision.id, index)
        elif "readings" in decision.models:  # before that, what kept a provisional view was not amended
            self._awaiting[decision.id] = index
            self._carriers.setdefault((decision.series, decision.view.read_ns), []).append(decision.id)


def _amended(first: Decision, decision: Decision, lead: Decision | None = None) -> list[str]:
    """`lead` is the amendment of the decision whose view the first one kept; None where it was read for it."""
    problems: list[str] = []
    changed = [
        name
        for name in Decision.__struct_fields__
        if name not in _OWN and getattr(first, name) != getattr(decision, name)
    ]
    if untold(first.forecast) != untold(decision.forecast):
        changed.append("forecast")
    if changed:
        problems.append(f"it changes more than the view of {first.id}: {', '.join(changed)}")
    told, before = decision.forecast.tilt, first.forecast.tilt
    if (
        told is not None
        and before is not None
        and told.narrator == before.narrator
        and told.weight != before.weight
    ):
        problems.append("its narrator's weight is not what it was when the forecast was made")
    if not _follows(first.plan, decision.plan):
        problems.append(f"its plan does not follow from that of {first.id}")
    if decision.id != amendment_id(first.id):
        problems.append(f"it is not named after {first.id}")
    if not same_but_for_news(first.rationale, decision.rationale):
        problems.append(f"its rationale is not that of {first.id} but for the news")
    if lead is not None and lead.view is not None:
        if decision.view != _kept_in(first, lead.view):
            problems.append(f"its view is not the one of {lead.id}")
        if ending_of(decision) != ending_of(lead):
            problems.append("whether it confirms the provisional view is told wrongly")
    elif decision.view is None or decision.view.provisional or decision.view.read_ns != first.as_of_ns:
        problems.append("it has no view of the target's own on that instant")
    elif not tells(decision.rationale, ending(first, decision.view)):
        problems.append("whether it confirms the provisional view is told wrongly")
    return problems


def _kept_in(first: Decision, amended: View) -> View | None:
    """The view of an amendment in the place of the one that a decision kept."""
    read = own(amended)
    if read is None:
        return None
    trust = trust_in(first.hearing, read.cited)
    merged = again(replace(read, wording=None), trust, first.view, first.as_of_ns)
    return bounded(merged, shares_in(first.hearing)) if is_bounded(first) else merged


def _follows(first: Plan, plan: Plan) -> bool:
    """Whether the plan of an amendment follows from the first one's."""
    if first.then is None:
        return plan == first
    told = first.then is Rung.DEEP or plan.reason == first.reason + THEN_ITSELF
    return plan.rung is first.then and plan.then is None and told


def recompute(
    entry: bytes,
    settings_digest: str,
    policy: PolicyConfig,
    amendments: Amendments | None = None,
    routing: RoutingConfig | None = None,
    secure: SecureConfig | None = None,
    readings: BoundReadings | None = None,
    sanitiser: SanitiserConfig | None = None,
) -> list[str]:
    """What does not come out as recorded, in words; empty when all does.

    `amendments` knows the entries before this one; without it what amends another is not held against that. Without
    `routing` the routes of news items are not taken again, without `secure` a weight is not held against suspicion,
    without `sanitiser` what an item may move is taken as it stands; `readings`, which knows the earlier entries too,
    holds a reading against its decision.
    Raises: msgspec.ValidationError where the entry is no decision.
    """
    decision = decode_decision(entry)
    forecast = decision.forecast
    problems: list[str] = []
    if decision.settings_digest != settings_digest:
        problems.append("it was made under other settings than those at hand")
    if encode_decision(decision) != entry:
        problems.append("the entry is not in canonical form")
    problems += forecast_problems(decision)
    problems += _words(decision)
    if routing is not None and decision.hearing is not None and not decision.amends:
        problems += routing_problems(decision.hearing, decision.plan, routing)
    if sanitiser is not None and decision.hearing is not None:
        problems += share_problems(decision.hearing, sanitiser)
    if secure is not None:
        problems += suspicion_problems(decision, secure)
    known = facts(
        decision.symbol,
        decision.as_of_ns,
        decision.regime,
        decision.features,
        forecast,
        decision.circumstances,
    )
    if readings is not None:
        problems += readings.problems(decision)
    if judge(known, policy) != decision.verdict:
        problems.append("the verdict does not follow from the policy")
    return problems + (amendments.problems(decision) if amendments is not None else [])


def _words(decision: Decision) -> list[str]:
    rationale, problems = decision.rationale, list[str]()
    if fill(rationale.template, rationale.slots) != rationale.text:
        problems.append("the rationale does not follow from its template and slots")
    view = decision.view
    told = tell_view(view, decision.symbol) if view is not None else {}
    if any(rationale.slots.get(slot) != words for slot, words in told.items()):
        problems.append("what the rationale says of the news does not follow from the view")
    low, high = band(decision.forecast)
    unit = band_unit(rationale.slots) if decision.amends else move_unit(high - low)
    told = tell_band(decision.last_price, low, high, unit)
    tilt = decision.forecast.tilt
    told |= tell_tilt(tilt, unit) if tilt is not None else {}
    if (tilt is not None) != tells(rationale, "weighed"):
        problems.append("whether the view is weighed is told wrongly")
    if tells(rationale, "deepening") and tilt is not None:
        told["divergence"] = tell_divergence(tilt)
    if any(rationale.slots.get(slot) != words for slot, words in told.items()):
        problems.append(
            "what the rationale says of the band and of the view's weight does not follow from the forecast"
        )
    contested = view is not None and bool(contradictions(view.parts, view.as_of_ns))
    if tells(rationale, "contested") != contested:
        problems.append("whether its readings contradict each other is told wrongly")
    if tells(rationale, "suspected") != (decision.hearing is not None and bool(decision.hearing.suspicion)):
        problems.append("whether manipulation is suspected is told wrongly")
    then = decision.plan.then
    consulting = is_for_worth(decision.plan)
    if tells(rationale, "consulting") != consulting:
        problems.append("whether the best reader follows is told wrongly")
    if tells(rationale, "deepening") != (then is Rung.DEEP and not consulting):
        problems.append("whether a reading in depth follows is told wrongly")
    served = then is not None and then is not Rung.DEEP
    if tells(rationale, PREPARED) != served or served != decision.plan.reason.startswith(PREPARED_FOR):
        if not decision.amends:
            problems.append("whether the reading was prepared is told wrongly")
    elif served and view is not None:
        if decision.plan.reason != PREPARED_FOR + view.prepared:
            problems.append("the plan does not say what the view was prepared for")
        if rationale.slots.get("prepared") != tell_prepared(view):
            problems.append("what the reading was prepared for is told wrongly")
    if tells(rationale, *PROVISIONAL) != (view is not None and view.provisional):
        problems.append("whether the reading is provisional is told wrongly")
    return problems
