"""Settings of predictive buffering: how long before a release views are made ready, and how much may be spent on it."""

from dataclasses import dataclass

from htfi.domain.errors import InvalidInput

_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class BufferingConfig:
    """Views are made ready `lead_s` before a release, from what is known by then, and dropped `window_s` after it.

    A reading is reckoned at `reading_ms` and a release's at `budget_ms` together, so that a replay makes the same
    ready, however fast its machine. An item may be `early_s` before its hour: clocks differ.
    """

    lead_s: float = 300.0
    window_s: float = 1_800.0
    early_s: float = 1.0
    budget_ms: float = 2_000.0
    reading_ms: float = 80.0

    def __post_init__(self) -> None:
        if not (0.0 < self.lead_s <= _DAY_S and 0.0 < self.window_s <= _DAY_S):
            raise InvalidInput("buffering: lead_s and window_s must lie in 0..86400 (a day), above 0")
        if not 0.0 <= self.early_s < self.lead_s:
            raise InvalidInput("buffering: early_s must be at least 0 and less than lead_s")
        if not (0.0 <= self.budget_ms <= 3_600_000.0 and 0.01 <= self.reading_ms <= 3_600_000.0):
            raise InvalidInput(
                "buffering: budget_ms must lie in 0..3600000 (an hour), reading_ms in 0.01..3600000"
            )

    @property
    def most_readings(self) -> int:
        """How many readings are made ready for one release."""
        return int(self.budget_ms / self.reading_ms)
