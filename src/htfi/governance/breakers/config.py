"""Limits of the circuit breakers: the table `[breakers]` of a policy bundle, one table for each breaker."""

from dataclasses import dataclass, fields
from typing import Annotated

from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.governance import ScopeLevel
from htfi.domain.settings import check_bounds, setting, setting_from

_LEVELS = tuple(level.value for level in ScopeLevel)
_FalseAlarms = Annotated[float, Meta(gt=0.0, le=1000.0)]
_Minutes = Annotated[float, Meta(ge=0.0, le=525_960.0)]
_Observations = Annotated[int, Meta(ge=1, le=100_000)]


@dataclass(frozen=True, slots=True)
class BreakerLimits:
    """When one breaker trips and how it recovers.

    `scopes` are the levels it acts at, out of those that it can: series, desk and firm for what is seen of bars, model
    for experts and readers. `false_alarms_a_year` is the bound for all of them together, for a desk or a model.
    """

    scopes: tuple[str, ...] = setting(("series",), "levels at which it acts: series, desk, model or firm")
    false_alarms_a_year: _FalseAlarms = setting(0.05, "false alarms allowed for a desk or a model", "a year")
    cool_down_minutes: _Minutes = setting(60.0, "time it stays open at least")
    half_open_observations: _Observations = setting(
        10, "observations without a trip after which it closes", "observations"
    )
    is_on: bool = setting(True, "whether it may trip")

    def __post_init__(self) -> None:
        check_bounds("breakers", self)
        unknown = [scope for scope in self.scopes if scope not in _LEVELS]
        if unknown or not self.scopes:
            raise InvalidInput(
                f"breakers.scopes must name some of {', '.join(_LEVELS)}, not {unknown or 'none'}"
            )


def _limits(*scopes: str) -> BreakerLimits:
    return BreakerLimits(scopes)


@dataclass(frozen=True, slots=True)
class BreakerConfig:
    """All circuit breakers, by name. Each one's meaning is the evidence's first words."""

    bands_left: BreakerLimits = setting_from(
        lambda: _limits("series", "desk"), "outcomes leave the forecast's outermost quantiles"
    )
    frozen_feed: BreakerLimits = setting_from(
        lambda: _limits("series", "desk"), "bars repeat themselves where they usually do not"
    )
    price_unconfirmed: BreakerLimits = setting_from(
        lambda: _limits("series", "desk"), "prices jump and come back, or quotes do not confirm them"
    )
    clock: BreakerLimits = setting_from(
        lambda: _limits("series", "desk"), "bars end at wrong times, or come later than usual"
    )
    market_crash: BreakerLimits = setting_from(
        lambda: _limits("desk"), "returns far beyond what is usual befall a desk at once"
    )
    experts_identical: BreakerLimits = setting_from(
        lambda: _limits("series", "desk"), "experts give one and the same forecast"
    )
    model_disagrees: BreakerLimits = setting_from(
        lambda: _limits("model"), "an expert is far from the others on many series"
    )
    model_swapped: BreakerLimits = setting_from(
        lambda: _limits("firm"), "a model changed without another policy bundle"
    )
    draft_acceptance: BreakerLimits = setting_from(
        lambda: _limits("model"), "the target rejects more of the drafts than usual"
    )
    draft_runaway: BreakerLimits = setting_from(
        lambda: _limits("model"), "more is drafted for an answer than usual"
    )
    answers_shift: BreakerLimits = setting_from(
        lambda: _limits("model"), "answers are of another length or entropy than usual"
    )
    views_shift: BreakerLimits = setting_from(
        lambda: _limits("model"), "directions, sizes or confidences of views are not the usual ones"
    )
    views_repeat: BreakerLimits = setting_from(
        lambda: _limits("model"), "views do not differ where the news does"
    )
    views_flip: BreakerLimits = setting_from(
        lambda: _limits("model"), "views on the same news change their direction"
    )
    confidence_apart: BreakerLimits = setting_from(
        lambda: _limits("model"), "views are right less often than their confidence says"
    )
    sources_contradict: BreakerLimits = setting_from(
        lambda: _limits("series"), "sources of one series contradict each other"
    )
    quarantine_swells: BreakerLimits = setting_from(
        lambda: _limits("firm"), "more news is quarantined than usual"
    )
    headline_reach: BreakerLimits = setting_from(
        lambda: _limits("desk"), "one unconfirmed headline moves many series at once"
    )

    def of(self, breaker: str) -> BreakerLimits:
        """The limits of a breaker. Raises: InvalidInput for an unknown one."""
        if breaker not in MEANINGS:
            raise InvalidInput(f"no breaker is called '{breaker[:40]}': there are {', '.join(MEANINGS)}")
        return getattr(self, breaker)


def unusable_scopes(config: BreakerConfig) -> list[str]:
    """In words, the levels at which a breaker is to act and cannot: it would never trip there."""
    found: list[str] = []
    for name in MEANINGS:
        usable = _BAR_LEVELS if name in _OF_BARS else getattr(BreakerConfig(), name).scopes
        wrong = [scope for scope in config.of(name).scopes if scope not in usable]
        if wrong:
            found.append(
                f"breakers.{name}.scopes: it cannot act at {', '.join(wrong)}, only at {', '.join(usable)}"
            )
    return found


_BAR_LEVELS = (ScopeLevel.SERIES.value, ScopeLevel.DESK.value, ScopeLevel.FIRM.value)
_OF_BARS = frozenset(
    {"bands_left", "frozen_feed", "price_unconfirmed", "clock", "market_crash", "experts_identical"}
)
MEANINGS: dict[str, str] = {one.name: one.metadata["meaning"] for one in fields(BreakerConfig)}
