"""Settings of policy: the limits that its rules judge by; and whose record a run's is. Wiring composes them."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from htfi.domain.events import MAX_LOG_RETURN
from htfi.domain.settings import Share, check_bounds, setting

ANY_SYMBOL = "*"


@dataclass(frozen=True, slots=True)
class PolicyConfig:
    """Limits that every forecast is judged by. All are recorded, so a decision states its limits."""

    allowed_symbols: tuple[str, ...] = setting((ANY_SYMBOL,), "symbols that may be forecast; '*' allows all")
    restricted_symbols: tuple[str, ...] = setting((), "symbols whose forecasts are always withheld")
    max_quote_age_s: Annotated[float, Meta(gt=0.0, le=1e9)] = setting(60.0, "largest age of the newest quote")
    max_bar_age_lengths: Annotated[float, Meta(gt=0.0, le=1e6)] = setting(
        1.0, "how late a bar may arrive", "bar lengths"
    )
    min_bar_age_s: Annotated[float, Meta(gt=0.0, le=1e9)] = setting(
        5.0, "delay of a bar that is always allowed"
    )
    max_bar_lead_s: Annotated[float, Meta(gt=0.0, le=1e9)] = setting(
        1.0, "how far a bar may end in the future"
    )
    max_band_width: Annotated[float, Meta(gt=0.0, le=2 * MAX_LOG_RETURN)] = setting(
        0.50, "widest 90% band of the shortest horizon", "log return"
    )
    max_jump_sigmas: Annotated[float, Meta(gt=0.0, le=1e6)] = setting(
        25.0, "price jump that quotes must confirm, if it is above both limits", "standard deviations"
    )
    max_jump_return: Annotated[float, Meta(gt=0.0, le=2 * MAX_LOG_RETURN)] = setting(
        0.20, "price jump that quotes must confirm, if it is above both limits", "log return"
    )
    max_quarantine_share: Share = setting(
        0.05, "largest share of a source's latest rows in quarantine", "0–1"
    )

    def __post_init__(self) -> None:
        check_bounds("policy", self)


@dataclass(frozen=True, slots=True)
class RecordConfig:
    """Whose record a run's is: rules of a governance folder decide by it who may read it."""

    tenant: str = setting("", "tenant whose record it is; empty: the installation's own")
    desks: tuple[str, ...] = setting((), "desks that it belongs to; none: to no desk")

    def __post_init__(self) -> None:
        check_bounds("record", self)
