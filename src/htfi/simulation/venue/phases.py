"""When a venue trades: its hours, the auctions around them, and halts after a price has left its band. Pure.

Days are Monday to Friday; holidays are not known. A band is what LULD and the volatility halts of European venues have:
a price too far from the mean of the last minutes halts the instrument, and an auction opens it again.
"""

from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock_time
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from htfi.domain.errors import InvalidInput
from htfi.domain.orders import SessionPhase
from htfi.domain.time import NS_PER_S

_SATURDAY = 5


@dataclass(frozen=True, slots=True)
class TradingHours:
    """From `opens` to `closes` in a time zone, with calls of some seconds before each."""

    opens: clock_time
    closes: clock_time
    zone: ZoneInfo
    opening_call_s: float = 0.0
    closing_call_s: float = 0.0

    def phase_at(self, at_ns: int) -> SessionPhase:
        """Closed from the close to midnight, local time."""
        return max(change for change in self._changes(self._day(at_ns)) if change[0] <= at_ns)[1]

    def next_change_ns(self, at_ns: int) -> int:
        """The next instant after `at_ns` at which the phase changes by the clock."""
        day = self._day(at_ns)
        while True:
            later = [change_ns for change_ns, _ in self._changes(day) if change_ns > at_ns]
            if later:
                return min(later)
            day += timedelta(days=1)

    def _day(self, at_ns: int) -> date:
        return datetime.fromtimestamp(at_ns // NS_PER_S, UTC).astimezone(self.zone).date()

    def _changes(self, day: date) -> list[tuple[int, SessionPhase]]:
        """Instants of a local day from which each phase holds; of calls without length none."""
        midnight = self._ns(day, clock_time())
        if day.weekday() >= _SATURDAY:
            return [(midnight, SessionPhase.CLOSED)]
        opens, closes = self._ns(day, self.opens), self._ns(day, self.closes)
        found = [
            (midnight, SessionPhase.PRE_OPEN),
            (opens, SessionPhase.CONTINUOUS),
            (closes, SessionPhase.CLOSED),
        ]
        if self.opening_call_s:
            found.append((opens - round(self.opening_call_s * NS_PER_S), SessionPhase.OPENING_AUCTION))
        if self.closing_call_s:
            found.append((closes - round(self.closing_call_s * NS_PER_S), SessionPhase.CLOSING_AUCTION))
        return sorted(found)

    def _ns(self, day: date, at: clock_time) -> int:
        return round(datetime.combine(day, at, self.zone).timestamp()) * NS_PER_S


def hours_of(text: str, opening_call_s: float = 0.0, closing_call_s: float = 0.0) -> TradingHours | None:
    """From words such as '09:30-16:00 America/New_York'; None where there are none. Raises: InvalidInput."""
    if not text:
        return None
    span, _, zone = text.partition(" ")
    opens, _, closes = span.partition("-")
    try:
        first, last = clock_time.fromisoformat(opens), clock_time.fromisoformat(closes)
        found = TradingHours(first, last, ZoneInfo(zone or "UTC"), opening_call_s, closing_call_s)
    except (ValueError, ZoneInfoNotFoundError, OSError):
        raise InvalidInput(
            f"venue.hours is '{text[:60]}': hours and a zone are expected, such as '09:30-16:00 America/New_York'"
        ) from None
    if first >= last:
        raise InvalidInput(f"venue.hours is '{text[:60]}': it must open before it closes, on one day")
    return found


@dataclass(slots=True)
class InstrumentPhase:
    """Where one instrument stands.

    `is_called`: the next price of continuous trading is that of an auction; `is_matching`: orders trade as they come.
    """

    hours: TradingHours | None
    band_share: float
    band_window_ns: int
    halt_ns: int
    phase: SessionPhase = SessionPhase.CONTINUOUS
    is_called: bool = False
    is_matching: bool = True
    _changes_ns: int | None = None  # by the clock
    _halted_until_ns: int = 0
    _prices: deque[tuple[int, int]] = field(default_factory=deque[tuple[int, int]])
    _sum: int = 0

    def next_change_ns(self) -> int | None:
        """When time alone changes the phase; None where it never does."""
        if self.phase is SessionPhase.HALTED:
            until = self._halted_until_ns
            return until if self._changes_ns is None else min(until, self._changes_ns)
        return self._changes_ns

    def begin(self, at_ns: int) -> None:
        """The phase at the first instant that is known; later calls do nothing."""
        if self.hours is not None and self._changes_ns is None:
            self._enter(self.hours.phase_at(at_ns))
            self._changes_ns = self.hours.next_change_ns(at_ns)

    def pass_to(self, at_ns: int) -> None:
        """The change that is due at `at_ns`, which `next_change_ns` gave."""
        if self._changes_ns is not None and at_ns >= self._changes_ns and self.hours is not None:
            self._enter(self.hours.phase_at(at_ns))
            self._changes_ns = self.hours.next_change_ns(at_ns)
        elif self.phase is SessionPhase.HALTED and at_ns >= self._halted_until_ns:
            self._enter(SessionPhase.CONTINUOUS if self.hours is None else self.hours.phase_at(at_ns))

    def see(self, at_ns: int, price: int) -> bool:
        """Take in a price of continuous trading; whether it halts the instrument."""
        if not self.band_share or self.phase is not SessionPhase.CONTINUOUS:
            return False
        while self._prices and self._prices[0][0] < at_ns - self.band_window_ns:
            self._sum -= self._prices.popleft()[1]
        num = len(self._prices)
        if num and abs(price * num - self._sum) > self.band_share * self._sum:
            self._enter(SessionPhase.HALTED)
            self._halted_until_ns = at_ns + self.halt_ns
            return True
        self._prices.append((at_ns, price))
        self._sum += price
        return False

    def end_call(self) -> None:
        """The auction has traded."""
        self.is_called, self.is_matching = False, self.phase is SessionPhase.CONTINUOUS

    def _enter(self, phase: SessionPhase) -> None:
        """A band begins anew in each phase."""
        self.phase = phase
        self.is_called = self.is_called or phase is not SessionPhase.CONTINUOUS
        self.is_matching = not self.is_called
        self._prices.clear()
        self._sum = 0
