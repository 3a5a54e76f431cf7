"""A scheduled event of the economy, a company or an exchange, as a calendar states it."""

from typing import Literal

import msgspec


class ScheduledEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a calendar. Times are nanoseconds since 1970 UTC."""

    time_ns: int  # when it happens; with is_exact=False the start of its day (UTC)
    kind: (
        str  # canonical, such as 'us_payrolls', 'fomc_decision', 'earnings', 'market_closed'; '' unrecognised
    )
    name: str  # the calendar's own words
    currency: str = ""  # ISO 4217 of the economy; '' for a company's or an exchange's
    symbol: str = ""  # a company's events
    impact: Literal["", "low", "medium", "high"] = ""
    is_exact: bool = True
    known_ns: int = 0  # from when the line was known; 0: always
    actual: float | None = None
    forecast: float | None = None
    previous: float | None = None
    actual_known_ns: int = 0  # from when the actual may be used; 0: from time_ns
    is_by_rule: bool = False  # follows from a rule ('the first business day'), and no source stated it
    withdrawn_ns: int = 0  # from when the line no longer held, because it was moved or cancelled; 0: never

    def is_expected(self, now_ns: int) -> bool:
        """Whether somebody at `now_ns` knows of it, and has not heard that it was moved or cancelled."""
        return self.known_ns <= now_ns and not 0 < self.withdrawn_ns <= now_ns
