"""Checks decisions that answer news between two bars against the standing decisions, the settings and their news.

The last price is not derived: ticks may have come since the bar, and the ledger does not hold them.
"""

from collections import deque
from collections.abc import Callable

from msgspec import UNSET

from htfi.domain.decision import Decision, NewsTrigger, news_decision_id
from htfi.domain.time import NS_PER_S
from htfi.forecasting.between_bars import remaining_ticks
from htfi.market.config import is_intraday
from htfi.narrative.config import TriggersConfig
from htfi.narrative.triggering import VERSION, reasons_of
from htfi.pipeline.record.entry import decode_entry

_HOUR_NS = 3600 * NS_PER_S


class TriggerAuditor:
    """It gets every decision of a ledger in order. `entry` gives the bytes of an earlier one."""

    def __init__(self, config: TriggersConfig, entry: Callable[[int], bytes]) -> None:
        self._config, self._entry = config, entry
        self._num = 0
        self._standing: dict[str, int] = {}  # series → the entry of its newest decision on a bar
        self._answered_ns: dict[str, int] = {}
        self._recent_ns: deque[int] = deque()  # answers in the last hour

    def problems(self, decision: Decision) -> list[str]:
        """What does not follow from the decisions before it; empty where all does."""
        index, self._num = self._num, self._num + 1
        trigger = decision.news_trigger
        if (trigger is UNSET) == decision.is_between_bars:
            return ["what triggered it is recorded in part"]
        if decision.amends:
            return []  # compared with the decision that it amends
        if trigger is UNSET:
            self._standing[decision.series] = index
            return []
        found = self._rule_problems(decision) + _reason_problems(decision, trigger, self._config)
        standing_index = self._standing.get(decision.series)
        if standing_index is None:
            return [*found, "it answers news before its series had a decision"]
        return found + _standing_problems(decision, trigger, decode_entry(self._entry(standing_index)))

    def _rule_problems(self, decision: Decision) -> list[str]:
        config, at_ns, found = self._config, decision.as_of_ns, list[str]()
        if not config.enabled:
            found.append("the settings let no news trigger a decision")
        if decision.models.get("triggers") != VERSION:
            found.append(f"it was triggered by rules other than {VERSION}")
        if decision.id != news_decision_id(decision.series, at_ns):
            found.append("it is not named after its series and instant")
        last_ns = self._answered_ns.get(decision.series)
        if last_ns is not None and at_ns < last_ns + round(config.min_interval_s * NS_PER_S):
            found.append("it came before the minimum interval had passed")
        while self._recent_ns and self._recent_ns[0] <= at_ns - _HOUR_NS:
            self._recent_ns.popleft()
        if len(self._recent_ns) >= config.max_per_hour:
            found.append("it goes beyond the number of such decisions in one hour")
        self._answered_ns[decision.series] = at_ns
        self._recent_ns.append(at_ns)
        return found


def _reason_problems(decision: Decision, trigger: NewsTrigger, config: TriggersConfig) -> list[str]:
    """Whether its items matter for the reasons that are recorded; items beyond those it considered are not known."""
    news_context, found = decision.news_context, list[str]()
    if news_context is None or not trigger.items:
        return ["it answers no news"]
    if news_context.suspicion:
        found.append("it answers news of a symbol under suspicion")
    known = {item.id: item for item in (*news_context.considered, *news_context.set_aside)}
    for item in trigger.items:
        audited = known.get(item.id)
        if audited is None:
            continue
        reading = None if audited.reading is UNSET else audited.reading
        tagged = audited.is_tagged
        reasons = reasons_of(
            audited.verdict, audited.first_report, audited.scores, reading, config, is_tagged=tagged
        )
        if not reasons or reasons != item.reasons:
            found.append(f"why {item.id} matters does not follow from its scores")
    return found


def _standing_problems(decision: Decision, trigger: NewsTrigger, standing: Decision) -> list[str]:
    """Whether its numbers are those of the decision on the newest bar, from a later instant to the same ends."""
    if standing.id != trigger.replaces:
        return [f"it replaces {trigger.replaces}, but {standing.id} stood"]
    found: list[str] = []
    bar, before = decision.circumstances, standing.circumstances
    if (bar.bar_start_ns, bar.bar_end_ns) != (before.bar_start_ns, before.bar_end_ns):
        found.append(f"its bar is not that of {standing.id}")
    elapsed, length_ns = trigger.elapsed_bars, bar.bar_end_ns - bar.bar_start_ns
    if elapsed:
        expected = round((decision.as_of_ns - bar.bar_end_ns) / max(length_ns, 1), 6)
        if not 0.0 < elapsed < 1.0 or elapsed != expected or not is_intraday(decision.interval):
            found.append("the part of the bar that had passed does not follow from its instant")
    numbers, numbers_before = decision.forecast, standing.forecast
    is_same = (
        numbers.horizons == numbers_before.horizons
        and numbers.levels == numbers_before.levels
        and numbers.weights == numbers_before.weights
        and numbers.calibration == numbers_before.calibration
        and numbers.expert_ticks
        == {
            name: remaining_ticks(ticks, elapsed, numbers.horizons)
            for name, ticks in numbers_before.expert_ticks.items()
        }
    )
    if not is_same:
        found.append(f"its numbers do not follow from those of {standing.id}")
    return found
