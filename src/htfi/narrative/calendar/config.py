"""Settings of the views prepared before announcements: how long before, and how much time they may take."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.settings import HOUR_MS, check_bounds, setting

_DAY_S = 86_400.0


EARLY_S = 1.0  # an item may come that long before its announcement: clocks differ
READING_MS = 80.0  # of one reading on any machine, so that a replay prepares the same views


@dataclass(frozen=True, slots=True)
class BufferingConfig:
    """Views that are prepared before a scheduled announcement."""

    lead_s: Annotated[float, Meta(gt=0.0, le=_DAY_S)] = setting(
        300.0, "how long before a scheduled announcement views are prepared"
    )
    window_s: Annotated[float, Meta(gt=0.0, le=_DAY_S)] = setting(
        1_800.0, "how long after it prepared views are kept"
    )
    budget_ms: Annotated[float, Meta(ge=0.0, le=HOUR_MS)] = setting(
        2_000.0, "reading time spent on one announcement"
    )

    def __post_init__(self) -> None:
        check_bounds("buffering", self)
        if not self.lead_s > EARLY_S:
            raise InvalidInput(f"buffering: lead_s must be more than {EARLY_S:g} s")

    @property
    def max_readings(self) -> int:
        """How many readings are prepared for one announcement."""
        return int(self.budget_ms / READING_MS)
