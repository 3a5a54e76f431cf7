"""Whether what circuit breakers did follows from the recorded decisions. `htfi ledger verify --recompute` calls it.

The decisions of a ledger are observed again, in its order, by the breakers of the bundles in the governance log; what
changes must stand in that log, and nothing else. Items of news are not in the ledger as they were screened: changes
of the breakers that watch them are compared with their limits and with each other alone.
"""

from collections.abc import Iterable, Sequence

from htfi.domain.decision import Decision
from htfi.domain.governance import BreakerState
from htfi.governance.breakers.config import BreakerConfig
from htfi.governance.breakers.observations import observe_decisions
from htfi.governance.breakers.panel import ITEM_BREAKERS, item_threshold
from htfi.governance.breakers.states import FIRM_SCOPE
from htfi.governance.bundles.bundle import parse_bundle
from htfi.governance.config import PolicyConfig
from htfi.governance.control.entries import BreakerMoved, BundleAdopted, GovernanceEntry, Reenabled
from htfi.pipeline.governance_ports import NoGovernanceLog
from htfi.pipeline.governed import RunGovernance


class BreakerAuditor:
    """Derives the changes of breakers again, from decisions in the ledger's order.

    `entries` are those of the governance log with their leaf hashes (hex).
    """

    def __init__(self, policy: PolicyConfig, entries: Sequence[tuple[bytes, str]] = ()) -> None:
        """Raises: IntegrityError where an entry is none of this version."""
        self._governance = RunGovernance(policy, NoGovernanceLog(entries))
        recorded = [entry for entry in self._governance.logged if isinstance(entry, BreakerMoved)]
        self.num_of_items = sum(one.breaker in ITEM_BREAKERS for one in recorded)
        self._recorded = [one for one in recorded if one.breaker not in ITEM_BREAKERS]
        self._num_matched = 0
        self._index = 0
        self._point: list[Decision] = []

    @property
    def is_needed(self) -> bool:
        """Whether breakers were watching, or the log says so."""
        return any(isinstance(entry, BundleAdopted | BreakerMoved) for entry in self._governance.logged)

    @property
    def num_derived(self) -> int:
        """How many changes of the governance log were derived again."""
        return self._num_matched

    @property
    def num_after(self) -> int:
        """How many changes of the governance log no decision follows yet."""
        return len(self._recorded) - self._num_matched

    def problems(self, decision: Decision) -> list[str]:
        """What changes before this decision and does not follow, or is missing; empty where all does."""
        found: list[str] = []
        if self._point and not self._is_same_point(decision):
            found = self._close_point()
        if not decision.is_checkpoint_release:  # nothing in it is new to the breakers
            self._point.append(decision)
        self._index += 1
        return found

    def finish(self) -> list[str]:
        """What remains to be said after the last decision."""
        found = self._close_point() if self._point else []
        return found + _item_problems(self._governance.logged)

    def _is_same_point(self, decision: Decision) -> bool:
        first = self._point[0]
        return (
            not (first.amends or decision.amends)
            and (first.as_of_ns, first.inputs.digest, first.is_between_bars)
            == (decision.as_of_ns, decision.inputs.digest, decision.is_between_bars)
            and all(one.series != decision.series for one in self._point)
        )

    def _close_point(self) -> list[str]:
        """Observe the decisions in hand, as the run did before it recorded them."""
        point, self._point = self._point, []
        first = self._index - len(point)
        expected: list[BreakerMoved] = []
        if self._governance.has_breakers(first):
            bundle = self._governance.state_now.bundle_digest
            expected = self._governance.observe(observe_decisions(point, bundle), first)
        start = stop = self._num_matched
        while stop < len(self._recorded) and self._recorded[stop].before <= first:
            stop += 1
        recorded = self._recorded[start:stop]
        for derived, held in zip(expected, recorded, strict=False):
            if derived != held:
                return [_difference(derived, held)]
            self._num_matched += 1
        if len(expected) > len(recorded):
            return [
                f"{_words(expected[len(recorded)])} by the decisions, but the governance log does not hold it"
            ]
        if len(recorded) > len(expected):
            return [
                f"it holds that {_words(recorded[len(expected)])}, which does not follow from the decisions"
            ]
        return []


def _difference(derived: BreakerMoved, held: BreakerMoved) -> str:
    """What two changes differ in, which stand at the same place."""
    if (derived.breaker, derived.scope, derived.state) != (held.breaker, held.scope, held.state):
        return f"{_words(derived)} by the decisions, but the governance log holds that {_words(held)}"
    for name in ("before", "at_ns", "statistic", "threshold", "evidence"):
        first, second = getattr(derived, name), getattr(held, name)
        if first != second:
            return (
                f"{_words(held)}: its {name} is {first} by the decisions, but {second} in the governance log"
            )
    return f"{_words(held)}, which does not follow from the decisions"


def _words(change: BreakerMoved) -> str:
    state = change.state.value.replace("_", "-")
    return f"breaker {change.breaker} of {change.scope} becomes {state} before decision {change.before}"


def _item_problems(entries: Iterable[GovernanceEntry]) -> list[str]:
    """What of the changes of breakers that watch items does not go with their limits, or with each other."""
    not_closed: dict[tuple[str, str], BreakerMoved] = {}  # the newest change of each
    config: BreakerConfig | None = None
    for entry in entries:
        match entry:
            case BundleAdopted():
                config = parse_bundle(entry.text).tables.breakers if entry.text else None
            case Reenabled():
                not_closed = {
                    key: one
                    for key, one in not_closed.items()
                    if key[1] != entry.scope or entry.breaker not in ("", key[0])
                }
            case BreakerMoved() if entry.breaker in ITEM_BREAKERS:
                key = entry.breaker, entry.scope
                problem = _step_problem(entry, not_closed.pop(key, None), config)
                if problem:
                    return [f"{_words(entry)}: {problem}"]
                if entry.state is not BreakerState.CLOSED:
                    not_closed[key] = entry
            case _:
                pass
    return []


def _step_problem(
    entry: BreakerMoved, before: BreakerMoved | None, config: BreakerConfig | None
) -> str | None:
    if config is None:
        return "no bundle in force has breakers"
    state = None if before is None else before.state
    if entry.state is BreakerState.OPEN:
        threshold = item_threshold(config, entry.breaker)
        if entry.threshold != threshold:
            return (
                f"its threshold is {threshold:g} by the bundle, but {entry.threshold:g} in the governance log"
            )
        if not entry.statistic >= threshold:
            return f"its statistic is {entry.statistic:g}, below its threshold"
        return "it was open already" if state is BreakerState.OPEN else None
    if before is None or entry.scope == FIRM_SCOPE:
        return "it was not open" if before is None else "a person alone closes it"
    if entry.state is BreakerState.CLOSED:
        return None if state is BreakerState.HALF_OPEN else "it was not half-open"
    if state is not BreakerState.OPEN:
        return "it was not open"
    cool_down_ns = round(config.of(entry.breaker).cool_down_minutes * 60e9)
    return None if entry.at_ns - before.at_ns >= cool_down_ns else "it did not cool down before"
