"""Derives recorded decisions again from their own record: tilt, quantiles, words, verdict. Auditors call it.

What needs the inputs themselves (features, expert quantiles, weights) is recomputed by running the same inputs
into a fresh folder: the roots must be equal, unless a reading depended on network conditions.
"""

from collections import deque
from collections.abc import Callable

from msgspec import UNSET
from msgspec.structs import replace

from htfi.domain.decision import Decision, NewsTilt, Rung, amendment_id
from htfi.domain.errors import InvalidInput
from htfi.domain.news_view import NewsView
from htfi.domain.plan import PlanReason
from htfi.forecasting.opinions import DivergenceRanks
from htfi.governance.config import PolicyConfig
from htfi.governance.policy import judge
from htfi.narrative.config import RoutingConfig, SuspicionConfig
from htfi.narrative.influence import bound_view, limit_problems, recorded_limits
from htfi.narrative.merging import find_contradictions, remerge, unmerged
from htfi.narrative.rationale.amendment import PREPARED, PROVISIONAL_PARTS, differs_only_in_news, has_part
from htfi.narrative.rationale.choice import KNOWN_PARTS
from htfi.narrative.rationale.phrasing import Phrasing, fill
from htfi.narrative.rationale.versions import MODEL_KEY, phrasing_of
from htfi.narrative.rationale.writer import load_slots
from htfi.narrative.routing import routing_problems
from htfi.narrative.sanitising.config import SanitiserConfig
from htfi.pipeline.amendments import comparison_part, recorded_comparison_part
from htfi.pipeline.audit.governed import GovernanceAuditor
from htfi.pipeline.audit.readings import ReadingAuditor
from htfi.pipeline.audit.triggers import TriggerAuditor
from htfi.pipeline.record.entry import decode_entry, encode_like
from htfi.pipeline.weighing import forecast_problems, is_influence_bounded, suspicion_problems, without_view
from htfi.scheduling.config import FidelityConfig
from htfi.scheduling.fidelity import follows, is_high_value, is_prepared, plan_problems


class DivergenceRankAuditor:
    """Ranks recorded divergences again, decision by decision in the ledger's order.

    The run ranked the opinions of a decision point among all before it, and an amendment's likewise. The decisions of
    a point follow each other, have the same inputs and are of different series.
    """

    def __init__(self) -> None:
        self._divergences = DivergenceRanks()
        self._point: tuple[int, str] | None = None
        self._series: set[str] = set()
        self._open: list[NewsTilt] = []  # of the decision point in hand: not yet among those before

    def problems(self, decision: Decision) -> list[str]:
        """Whether the rank of this decision's divergence follows from the decisions before it."""
        point = (decision.as_of_ns, decision.inputs.digest)
        is_apart = bool(decision.amends) or decision.is_between_bars
        if is_apart or point != self._point or decision.series in self._series:
            self._close_point()
        tilt = decision.forecast.tilt
        found = [] if tilt is None else self._rank_problems(tilt)
        if decision.is_between_bars:  # nothing is learnt from those
            self._open.clear()
            return found
        if decision.amends:
            self._close_point()
        else:
            self._point = point
            self._series.add(decision.series)
        return found

    def _rank_problems(self, tilt: NewsTilt) -> list[str]:
        self._open.append(tilt)
        (rank,) = self._divergences.ranks([tilt.narrator], [tilt.divergence])
        if rank == tilt.divergence_rank:
            return []
        return [f"the rank of its divergence is {rank:g}, but {tilt.divergence_rank:g} is recorded"]

    def _close_point(self) -> None:
        if self._open:
            self._divergences.learn(
                [tilt.narrator for tilt in self._open], [tilt.divergence for tilt in self._open]
            )
        self._open.clear()
        self._series.clear()
        self._point = None


# Fields in which an amendment may differ from the decision it amends: all follow from the view, and are derived again.
_AMENDED_FIELDS = frozenset(
    {"id", "plan", "forecast", "view", "rationale", "verdict", "amends", "governance"}
)


class AmendmentAuditor:
    """Which decisions of a run await an amendment, and how opinions diverged, in the ledger's order."""

    def __init__(self, entry: Callable[[int], bytes]) -> None:
        """`entry` gives the bytes of an earlier one."""
        self._entry = entry
        self._awaiting: dict[str, int] = {}
        self._dependents: dict[
            tuple[str, int], list[str]
        ] = {}  # by series and instant of the view that they keep
        self._lead: Decision | None = None  # the amendment whose view the due ones keep
        self._due: deque[str] = deque()  # what is amended next
        self._num = 0
        self._ranks = DivergenceRankAuditor()

    @property
    def num_awaiting(self) -> int:
        """Decisions that await an amendment which the ledger does not hold."""
        return len(self._awaiting)

    def problems(self, decision: Decision) -> list[str]:
        """What does not hold between this decision and those before it; empty where all does."""
        index, self._num = self._num, self._num + 1
        if decision.is_checkpoint_release:
            return []  # derived again from the decision that it releases
        found = self._ranks.problems(decision) + self._missing_amendment(decision)
        if not decision.amends:
            self._note(decision, index)
            return found
        first_index = self._awaiting.pop(decision.amends, None)
        if first_index is None:
            return [
                *found,
                f"it amends {decision.amends}, which is not an earlier provisional decision, or is already amended",
            ]
        first = decode_entry(self._entry(first_index))
        if self._due:
            self._due.popleft()
            return found + _amendment_problems(first, decision, self._lead)
        self._lead = decision
        if first.view is not None:
            self._due.extend(self._dependents.pop((first.series, first.view.read_at_ns), ()))
        return found + _amendment_problems(first, decision)

    def _missing_amendment(self, decision: Decision) -> list[str]:
        """An amendment that should stand here: all that kept a view are amended right after its first decision."""
        if not self._due or decision.amends == self._due[0]:
            return []
        missing = self._due[0]
        self._due.clear()
        lead = self._lead.amends if self._lead is not None else ""
        return [
            f"the amendment of {missing} is missing before it: that decision keeps the view of {lead} as well"
        ]

    def _note(self, decision: Decision, index: int) -> None:
        if not decision.awaits_amendment or decision.view is None:
            return
        if decision.has_own_reading or decision.plan.rung_after_release is not None:
            self._awaiting.setdefault(decision.id, index)
        elif "readings" in decision.models:  # before that, what kept a provisional view was not amended
            self._awaiting[decision.id] = index
            self._dependents.setdefault((decision.series, decision.view.read_at_ns), []).append(decision.id)


def _amendment_problems(first: Decision, decision: Decision, lead: Decision | None = None) -> list[str]:
    """`lead` is the amendment of the decision whose view the first one kept; None where it was read for it."""
    problems: list[str] = []
    changed = [
        name
        for name in Decision.__struct_fields__
        if name not in _AMENDED_FIELDS and getattr(first, name) != getattr(decision, name)
    ]
    if without_view(first.forecast) != without_view(decision.forecast):
        changed.append("forecast")
    if changed:
        problems.append(f"it changes more than the view of {first.id}: {', '.join(changed)}")
    tilt, before = decision.forecast.tilt, first.forecast.tilt
    if (
        tilt is not None
        and before is not None
        and tilt.narrator == before.narrator
        and tilt.weight != before.weight
    ):
        problems.append("its narrator's weight is not that of the amended forecast")
    if not follows(first.plan, decision.plan):
        problems.append(f"its plan does not follow from that of {first.id}")
    if decision.id != amendment_id(first.id):
        problems.append(f"it is not named after {first.id}")
    if not differs_only_in_news(first.rationale, decision.rationale):
        problems.append(f"its rationale differs from that of {first.id} in more than the news")
    if lead is not None and lead.view is not None:
        if decision.view != _view_in_place_of(first, lead.view):
            problems.append(f"its view is not the one of {lead.id}")
        if recorded_comparison_part(decision) != recorded_comparison_part(lead):
            problems.append("it states wrongly whether it confirms the provisional view")
    elif decision.view is None or decision.view.provisional or decision.view.read_at_ns != first.as_of_ns:
        problems.append("it has no view by the target of that time")
    elif not has_part(decision.rationale, comparison_part(first, decision.view)):
        problems.append("it states wrongly whether it confirms the provisional view")
    return problems


def _view_in_place_of(first: Decision, amended: NewsView) -> NewsView | None:
    """The view of an amendment in the place of the one that a decision kept."""
    read = unmerged(amended)
    if read is None:
        return None
    merged = remerge(replace(read, trace=None), first.view, first.news_context, first.as_of_ns)
    return bound_view(merged, recorded_limits(first.news_context)) if is_influence_bounded(first) else merged


def check_entry(
    entry: bytes,
    settings_digest: str,
    policy: PolicyConfig,
    amendments: AmendmentAuditor | None = None,
    routing: RoutingConfig | None = None,
    secure: SuspicionConfig | None = None,
    readings: ReadingAuditor | None = None,
    sanitiser: SanitiserConfig | None = None,
    fidelity: FidelityConfig | None = None,
    triggers: TriggerAuditor | None = None,
    governance: GovernanceAuditor | None = None,
) -> list[str]:
    """What does not come out as recorded, in words; empty when all does.

    `amendments` knows the entries before this one; without it amendments are not compared with the decisions they
    amend. Without `routing` the routes of news items are not checked, without `secure` not that a suspicion limits the
    weight, without `sanitiser` not what an item may move, without `fidelity` not the rung. `readings`, which knows the
    earlier entries too, checks a reading against its decision, `triggers` a decision between two bars against the
    standing one, `governance` what was held back against the governance log.
    Raises: msgspec.ValidationError where the entry is not a decision.
    """
    decision = decode_entry(entry)
    problems: list[str] = []
    if decision.settings_digest != settings_digest:
        problems.append("it was made under settings other than those in settings.json")
    if encode_like(decision, entry) != entry:
        problems.append("the entry is not in canonical form")
    problems += forecast_problems(decision)
    problems += _rationale_problems(decision)
    if routing is not None and decision.news_context is not None and not decision.amends:
        problems += routing_problems(
            decision.news_context, decision.plan, routing, decision.models.get(MODEL_KEY, "")
        )
    if sanitiser is not None and decision.news_context is not None:
        problems += limit_problems(decision.news_context, sanitiser)
    if fidelity is not None and not decision.amends:
        problems += _plan_problems(decision, fidelity)
    if secure is not None:
        problems += suspicion_problems(decision, secure)
    if readings is not None:
        problems += readings.problems(decision)
    if triggers is not None:
        problems += triggers.problems(decision)
    if governance is not None:
        problems += governance.problems(decision)
        policy = governance.policy
    problems += _verdict_problems(decision, policy)
    return problems + (amendments.problems(decision) if amendments is not None else [])


def _plan_problems(decision: Decision, config: FidelityConfig) -> list[str]:
    """Whether the rung follows from the deadline, the load and the readers that were recorded."""
    readers = (name.removeprefix("reader.") for name in decision.models if name.startswith("reader."))
    is_suspected = decision.news_context is not None and bool(decision.news_context.suspicion)
    available = frozenset(Rung(reader) for reader in readers)
    considered = decision.news_context.considered if decision.news_context is not None else ()
    newest = considered[0].id if considered else ""
    return plan_problems(decision.plan, decision.regime, available, is_suspected, config, newest)


def _verdict_problems(decision: Decision, policy: PolicyConfig) -> list[str]:
    """Whether the verdict follows from the record, by the rules of the version that judged it."""
    try:
        follows = judge(decision, policy) == decision.verdict
    except InvalidInput as error:
        return [str(error)]
    return [] if follows else ["the verdict does not follow from the policy"]


def _rationale_problems(decision: Decision) -> list[str]:
    rationale, problems = decision.rationale, list[str]()
    try:
        phrasing = phrasing_of(decision.models)
    except InvalidInput as unknown:
        return [str(unknown)]
    if fill(rationale.template, rationale.slots, phrasing) != rationale.text:
        problems.append("the rationale does not follow from its template and slots")
    view = decision.view
    expected = phrasing.view_slots(view, decision.symbol) if view is not None else {}
    if any(rationale.slots.get(slot) != words for slot, words in expected.items()):
        problems.append("the rationale's sentences on the news do not follow from the view")
    low, high = decision.forecast.central_band
    unit = phrasing.recorded_unit(rationale.slots) if decision.amends else phrasing.unit(high - low)
    expected = phrasing.band_slots(decision.last_price, low, high, unit)
    tilt = decision.forecast.tilt
    expected |= phrasing.tilt_slots(tilt, unit) if tilt is not None else {}
    if (tilt is not None) != has_part(rationale, "weighed"):
        problems.append("the rationale states wrongly whether the view is weighed")
    if has_part(rationale, "deepening") and tilt is not None:
        expected["divergence"] = phrasing.divergence(tilt)
    if any(rationale.slots.get(slot) != words for slot, words in expected.items()):
        problems.append("the rationale's band and view weight do not follow from the forecast")
    contested = view is not None and bool(find_contradictions(view.parts, view.as_of_ns))
    if has_part(rationale, "contested") != contested:
        problems.append("the rationale states wrongly whether its readings contradict each other")
    if has_part(rationale, "suspected") != (
        decision.news_context is not None and bool(decision.news_context.suspicion)
    ):
        problems.append("the rationale states wrongly whether manipulation is suspected")
    problems += _load_problems(decision) + _known_problems(decision, phrasing)
    then = decision.plan.rung_after_release
    consulting = is_high_value(decision.plan)
    if has_part(rationale, "consulting") != consulting:
        problems.append("the rationale states wrongly whether the best reader follows")
    if has_part(rationale, "deepening") != (then is Rung.DEEP and not consulting):
        problems.append("the rationale states wrongly whether a reading in depth follows")
    served = then is not None and then is not Rung.DEEP
    if has_part(rationale, PREPARED) != served or served != is_prepared(decision.plan):
        if not decision.amends:
            problems.append("the rationale states wrongly whether the reading was prepared")
    elif served and view is not None:
        if (
            decision.plan.reason_codes is UNSET
            and decision.plan.reason_text != f"prepared for {view.prepared}"
        ):
            problems.append("the plan does not state what the view was prepared for")
        if rationale.slots.get("prepared") != phrasing.prepared(view):
            problems.append("the rationale states wrongly what the reading was prepared for")
    if has_part(rationale, *PROVISIONAL_PARTS) != (view is not None and view.provisional):
        problems.append("the rationale states wrongly whether the reading is provisional")
    return problems


def _known_problems(decision: Decision, phrasing: Phrasing) -> list[str]:
    """What the rationale says of the next bar against what the record states of it."""
    if not phrasing.states_known:
        return []
    rationale, known = decision.rationale, decision.known_events
    if has_part(rationale, *KNOWN_PARTS) != (known is not UNSET):
        return ["the rationale states wrongly whether something was known of the next bar"]
    stated = phrasing.known_slots(known, decision.interval) if known is not UNSET else {}
    if any(rationale.slots.get(slot) != words for slot, words in stated.items()):
        return ["the rationale misstates what was known of the next bar"]
    return []


def _load_problems(decision: Decision) -> list[str]:
    plan, rationale = decision.plan, decision.rationale
    if decision.amends or plan.reason_codes is UNSET:
        return []
    is_loaded = PlanReason.HIGH_LOAD in plan.reason_codes and plan.inputs is not UNSET
    if has_part(rationale, "loaded") != is_loaded:
        return ["the rationale misstates whether load lowered the rung"]
    stated = load_slots(plan.rung, plan.inputs) if is_loaded and plan.inputs is not UNSET else {}
    if any(rationale.slots.get(slot) != words for slot, words in stated.items()):
        return ["the rationale misstates the load"]
    return []
