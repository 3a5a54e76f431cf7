"""Limits of the circuit breakers: the table `[breakers]` of a policy bundle, one table for each breaker."""

from dataclasses import dataclass, fields
from typing import Annotated

from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.settings import check_bounds, setting, setting_from

SCOPE_LEVELS = ("series", "desk", "model", "firm")
_FalseAlarms = Annotated[float, Meta(gt=0.0, le=1000.0)]
_Minutes = Annotated[float, Meta(ge=0.0, le=525_960.0)]
_Observations = Annotated[int, Meta(ge=1, le=100_000)]


@dataclass(frozen=True, slots=True)
class BreakerLimits:
    """When one breaker trips and how it recovers.

    `scopes` are the levels it acts at: series, desk, model or firm. `false_alarms_a_year` is the bound for all of them
    together, for a desk or a model.
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
        unknown = [scope for scope in self.scopes if scope not in SCOPE_LEVELS]
        if unknown or not self.scopes:
            raise InvalidInput(
                f"breakers.scopes must name some of {', '.join(SCOPE_LEVELS)}, not {unknown or 'none'}"
            )


def _limits(*scopes: str, rate: float = 0.05, cool_down: float = 60.0, half_open: int = 10) -> BreakerLimits:
    return BreakerLimits(scopes, rate, cool_down, half_open)


@dataclass(frozen=True, slots=True)
class BreakerConfig:
    """All circuit breakers, by name."""

    bands_left: BreakerLimits = setting_from(
        lambda: _limits("series", "desk"), "outcomes leave the forecast's own outermost quantiles"
    )
    frozen_feed: BreakerLimits = setting_from(
        lambda: _limits("series", "desk"), "bars repeat themselves where they usually do not"
    )
    draft_acceptance: BreakerLimits = setting_from(
        lambda: _limits("model"), "the target rejects more of what the draft proposes than usual"
    )

    def of(self, breaker: str) -> BreakerLimits:
        """The limits of a breaker. Raises: InvalidInput for an unknown one."""
        if breaker not in BREAKERS:
            raise InvalidInput(f"no breaker is called '{breaker[:40]}': there are {', '.join(BREAKERS)}")
        return getattr(self, breaker)


BREAKERS = tuple(one.name for one in fields(BreakerConfig))
