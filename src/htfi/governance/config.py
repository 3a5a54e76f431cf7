"""Settings of policy: the limits that its rules judge by. Wiring composes them; `judge` reads them."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from htfi.domain.events import MAX_LOG_RETURN
from htfi.domain.settings import Share, check_bounds

ANY_SYMBOL = "*"


@dataclass(frozen=True, slots=True)
class PolicyConfig:
    """Limits; each is part of the settings' digest, so a decision names the limits it was judged by.

    `allowed_symbols` lists what may be forecast: '*' allows all, nothing allows none. `restricted_symbols`
    are withheld whatever the first list holds. Ages are in seconds, except that a bar may be late by
    `max_bar_age_lengths` times its own length. Band width and return are natural-log returns.
    """

    allowed_symbols: tuple[str, ...] = (ANY_SYMBOL,)
    restricted_symbols: tuple[str, ...] = ()
    max_quote_age_s: Annotated[float, Meta(gt=0.0, le=1e9)] = 60.0
    max_bar_age_lengths: Annotated[float, Meta(gt=0.0, le=1e6)] = 1.0
    min_bar_age_s: Annotated[float, Meta(gt=0.0, le=1e9)] = 5.0
    max_bar_lead_s: Annotated[float, Meta(gt=0.0, le=1e9)] = 1.0
    max_band_width: Annotated[float, Meta(gt=0.0, le=2 * MAX_LOG_RETURN)] = 0.50
    max_jump_sigmas: Annotated[float, Meta(gt=0.0, le=1e6)] = 25.0
    max_jump_return: Annotated[float, Meta(gt=0.0, le=2 * MAX_LOG_RETURN)] = 0.20
    max_quarantine_share: Share = 0.05

    def __post_init__(self) -> None:
        check_bounds("policy", self)
