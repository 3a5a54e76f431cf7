"""Settings of the views prepared before announcements: how long before, and how much time they may take."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.settings import HOUR_MS, check_bounds

_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class BufferingConfig:
    """Views are prepared `lead_s` before an announcement, from what is known by then, and dropped `window_s` after it.

    A reading counts as `reading_ms` and all of an announcement as `budget_ms`, so that a replay prepares the same
    views, however fast its machine. An item may arrive `early_s` before the announcement's time, because clocks differ.
    """

    lead_s: Annotated[float, Meta(gt=0.0, le=_DAY_S)] = 300.0
    window_s: Annotated[float, Meta(gt=0.0, le=_DAY_S)] = 1_800.0
    early_s: Annotated[float, Meta(ge=0.0, le=_DAY_S)] = 1.0
    budget_ms: Annotated[float, Meta(ge=0.0, le=HOUR_MS)] = 2_000.0
    reading_ms: Annotated[float, Meta(ge=0.01, le=HOUR_MS)] = 80.0

    def __post_init__(self) -> None:
        check_bounds("buffering", self)
        if not self.early_s < self.lead_s:
            raise InvalidInput("buffering: early_s must be less than lead_s")

    @property
    def max_readings(self) -> int:
        """How many readings are prepared for one announcement."""
        return int(self.budget_ms / self.reading_ms)
