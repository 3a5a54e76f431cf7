"""What governance holds back now: a pure state over the entries of a run's governance log.

`apply` gives the state after an entry; `holds_on` says what of it keeps a decision back. The pipeline judges by it, and
auditors derive it again.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from msgspec import UNSET, UnsetType

from htfi.domain.decision import Rung
from htfi.domain.governance import (
    DEFAULT_DESK,
    FIRM,
    MAX_CAUSE_CHARS,
    BreakerState,
    Hold,
    HoldKind,
    Scope,
    ScopeLevel,
    SwapFacts,
    parse_scope,
)
from htfi.domain.news_view import NewsView
from htfi.governance.bundles.bundle import parse_bundle
from htfi.governance.bundles.tables import BundleTables
from htfi.governance.checkpoints.config import CheckpointConfig
from htfi.governance.checkpoints.reasons import CheckpointFacts, why_checked
from htfi.governance.config import ANY_SYMBOL
from htfi.governance.control.entries import (
    Attested,
    BreakerMoved,
    BundleAdopted,
    CheckpointMoved,
    GovernanceEntry,
    Reenabled,
    ReenablingRefused,
    RetentionEnded,
    Stopped,
)
from htfi.governance.fairness.swap_test import swap_hold

_NO_BUNDLE = BundleTables()


class HoldSubject(NamedTuple):
    """What a hold may reach: a series, the experts that its decision used, the swap test of its view, and its readers.

    Where the view is not weighed into the forecast, what reaches its readers alone holds the view back, not the
    decision. `set_aside` is what its view was set aside for when it was weighed: that stands though the hold has ended
    since, for the forecast is what it is. `checks` gives what a checkpoint judges by, None where no checkpoint applies.
    `releases` is the id of the decision that this one releases. `is_amendment`: it is there for its view alone.
    """

    series: str
    models: Collection[str]
    swaps: SwapFacts | UnsetType = UNSET
    readers: Collection[str] = ()
    is_view_weighed: bool = False
    checks: Callable[[], CheckpointFacts] | None = None
    releases: str = ""
    set_aside: tuple[Hold, ...] = ()
    is_amendment: bool = False


@dataclass(frozen=True, slots=True)
class ControlState:
    """Stops by scope, breakers that are not closed, the bundle in force; `requests` have been taken.

    `stops` and the values of `breakers`, by name and scope, hold the cause in words.
    """

    stops: Mapping[str, str] = field(default_factory=dict[str, str])
    breakers: Mapping[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    bundle: BundleAdopted | None = None
    requests: frozenset[str] = frozenset()
    half_open: frozenset[tuple[str, str]] = frozenset()  # of these breakers

    @property
    def is_clear(self) -> bool:
        """Whether nothing is held back."""
        return not (
            self.stops
            or self.breakers
            or (self.bundle is not None and self.bundle.stale)
            or (self.tables is not None and ANY_SYMBOL not in self.tables.models.permitted)
        )

    @property
    def tables(self) -> BundleTables | None:
        """What the bundle in force sets; None where there is none."""
        if self.bundle is None or not self.bundle.text:
            return None
        return parse_bundle(self.bundle.text).tables

    @property
    def checkpoints(self) -> CheckpointConfig | None:
        """The checkpoints of the bundle in force; None where no decision waits for people."""
        tables = self.tables
        return tables.checkpoints if tables is not None and tables.checkpoints.asks else None

    @property
    def bundle_digest(self) -> str:
        """Of the bundle in force; empty where there is none."""
        return self.bundle.digest if self.bundle is not None and self.bundle.text else ""


def bundle_words(state: ControlState) -> str:
    """Which limits hold, for a person to read."""
    bundle = state.bundle
    if bundle is not None and bundle.stale:
        return f"No bundle is in force: {bundle.stale}"
    if bundle is None or not bundle.text:
        return "No policy bundle is in force: the limits of the settings hold"
    return f"Policy bundle {bundle.number} is in force, digest {bundle.digest[:16]}"


def held_words(state: ControlState) -> str:
    """What is stopped and which breakers are not closed, in one line; empty where nothing is held back."""
    held = [f"stop of {scope}" for scope in state.stops]
    held += [f"{breaker} of {scope}" for breaker, scope in state.breakers]
    more = f" and {len(held) - 3} more" if len(held) > 3 else ""
    return ", ".join(held[:3]) + more


def apply(state: ControlState, entry: GovernanceEntry) -> ControlState:
    """The state after an entry."""
    match entry:
        case Stopped():
            cause = f"{entry.cause.value} by {entry.by}: {entry.why}"
            stops = dict(state.stops) | {entry.scope: cause}
            return replace(state, stops=stops, requests=state.requests | {entry.request})
        case Reenabled():
            return replace(
                state,
                stops={
                    scope: cause
                    for scope, cause in state.stops.items()
                    if entry.breaker or scope != entry.scope
                },
                breakers={
                    key: cause
                    for key, cause in state.breakers.items()
                    if key[1] != entry.scope or entry.breaker not in ("", key[0])
                },
                requests=state.requests | {entry.request},
            )
        case BundleAdopted():
            return replace(state, bundle=entry)
        case BreakerMoved():
            breakers = dict(state.breakers)
            key = (entry.breaker, entry.scope)
            breakers.pop(key, None)
            half_open = state.half_open - {key}
            if entry.state is BreakerState.HALF_OPEN:
                half_open |= {key}
            if entry.state is not BreakerState.CLOSED:
                breakers[key] = f"{entry.breaker} is {entry.state.value}: {entry.evidence}"
            return replace(state, breakers=breakers, half_open=half_open)
        case ReenablingRefused() | CheckpointMoved() | RetentionEnded() | Attested():
            return state


def holds_on(state: ControlState, subject: HoldSubject) -> tuple[Hold, ...]:
    """What keeps a decision on this subject back. The bundle says which desks a symbol belongs to."""
    unfair = None if subject.swaps is UNSET else swap_hold(subject.series, subject.swaps)
    last = tuple(hold for hold in (unfair, _checkpoint_hold(state, subject)) if hold is not None)
    if state.is_clear:
        return last
    tables = state.tables or _NO_BUNDLE
    desks = desks_of(state, subject.series.partition("/")[0])
    models = {*subject.models, *subject.readers} if subject.is_view_weighed else subject.models
    found = _stops_and_breakers(state, lambda scope: scope.covers(subject.series, desks, models))
    if state.bundle is not None and state.bundle.stale:
        found.append(Hold(HoldKind.BUNDLE, str(FIRM), state.bundle.stale))
    return (*found, *_refusals(tables, models), *last)


def desks_of(state: ControlState, symbol: str) -> tuple[str, ...]:
    """The desks that a symbol belongs to by the bundle in force."""
    tables = state.tables or _NO_BUNDLE
    return tuple(tables.desks.by_symbol().get(symbol, (DEFAULT_DESK,)))


def _checkpoint_hold(state: ControlState, subject: HoldSubject) -> Hold | None:
    """What has a decision wait for people; None where nothing has."""
    if subject.checks is None or (config := state.checkpoints) is None:
        return None
    reasons = why_checked(subject.checks(), config)
    if not reasons:
        return None
    words = "; ".join(reason.words for reason in reasons)[:MAX_CAUSE_CHARS]
    return Hold(HoldKind.CHECKPOINT, f"series:{subject.series}", f"waits for people: {words}")


def view_holds_on(state: ControlState, subject: HoldSubject) -> tuple[Hold, ...]:
    """What reaches the readers of the subject's view by their names: a view so held must not be weighed.

    It does not look at what the view was set aside for before.
    """
    if not subject.readers or state.is_clear:
        return ()
    found = _stops_and_breakers(
        state, lambda scope: scope.level is ScopeLevel.MODEL and scope.name in subject.readers
    )
    return (*found, *_refusals(state.tables or _NO_BUNDLE, subject.readers))


def is_reader_held(state: ControlState, names: Collection[str]) -> bool:
    """Whether a view by the reader of these names must not be weighed, be it asked or not."""
    return bool(view_holds_on(state, HoldSubject("", (), readers=names)))


def is_reader_left_out(state: ControlState, names: Collection[str], *, is_watched: bool) -> bool:
    """Whether a reader of these names is not to be asked: another, or nobody, reads in its place.

    A reader whose breaker is half-open is asked, and so is one whose breaker is open where it `is_watched`: what it
    says does not count (`view_holds_on`), but its breaker has something to observe.
    """
    if state.is_clear:
        return False

    def reaches(scope: str) -> bool:
        parsed = parse_scope(scope)
        return parsed.level is ScopeLevel.MODEL and parsed.name in names

    if any(map(reaches, state.stops)) or _refusals(state.tables or _NO_BUNDLE, names):
        return True
    return not is_watched and any(reaches(key[1]) and key not in state.half_open for key in state.breakers)


def _stops_and_breakers(state: ControlState, reaches: Callable[[Scope], bool]) -> list[Hold]:
    found = [
        Hold(HoldKind.STOP, scope, cause)
        for scope, cause in sorted(state.stops.items())
        if reaches(parse_scope(scope))
    ]
    return found + [
        Hold(HoldKind.BREAKER, scope, cause)
        for (_, scope), cause in sorted(state.breakers.items())
        if reaches(parse_scope(scope))
    ]


def _refusals(tables: BundleTables, models: Collection[str]) -> list[Hold]:
    return [
        Hold(HoldKind.BUNDLE, f"model:{name}", "the policy bundle does not permit this model")
        for name in sorted(models)
        if tables.models.refuses(name)
    ]


def readers_of(view: NewsView | None, rung: Rung) -> frozenset[str]:
    """What scopes `model:NAME` may name of a view: its reader by rung and version, and the readers of its parts."""
    if view is None:
        return frozenset()
    return frozenset({f"reader.{rung.value}", view.reader, *(part.reader for part in view.parts)})
