"""What the router knows of venues: displayed prices, flows of trades, latencies, and how often orders were filled.

`RouterState` takes in what happens, a method for each kind; memory is bounded by the venues it was made with. Averages
over events fade exponentially, so that what is learnt follows a venue that changes; the same events give the same
state. Prices in ticks, quantities in lots.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from htfi.domain.time import NS_PER_S

FLOW_S = 60.0  # over how long flows of trades and of price changes are averaged
MEMORY = 0.98  # of what is learnt of fills and latencies, at each new one
AWAY_NS = 5 * NS_PER_S  # how long a venue that could not be reached counts as displaying nothing
PRIOR_LOTS = 2.0  # shares of orders that a forecast of fills is trusted for before anything was seen


@dataclass(frozen=True, slots=True)
class VenueTerms:
    """A venue as it is agreed with: fees in basis points of the value (negative: a rebate), expected round trip.

    `is_protected`: orders elsewhere may not trade at prices worse than it displays.
    """

    name: str
    take_fee_bps: float = 0.0
    make_fee_bps: float = 0.0
    round_trip_ns: int = 0
    is_protected: bool = True


@dataclass(slots=True)
class Flow:
    """An average per second of something that happens now and then, over the last `FLOW_S` or so."""

    rate: float = 0.0
    at_ns: int = 0
    began_ns: int = 0

    def add(self, amount: float, at_ns: int) -> None:
        self.rate = self.now(at_ns) + amount / FLOW_S
        self.at_ns = at_ns
        self.began_ns = self.began_ns or at_ns

    def now(self, at_ns: int) -> float:
        """The rate at an instant, per second."""
        if not self.at_ns:
            return 0.0
        return self.rate * math.exp(-max(0, at_ns - self.at_ns) / NS_PER_S / FLOW_S)

    def unbiased(self, at_ns: int) -> float:
        """The same while it has been watched for less than its memory."""
        if not self.began_ns:
            return 0.0
        watched = max(1.0, (at_ns - self.began_ns) / NS_PER_S)
        return self.now(at_ns) / (1.0 - math.exp(-watched / FLOW_S))


@dataclass(slots=True)
class FillRecord:
    """How orders of a kind were filled, against what was expected: shares of orders, newer ones counting more."""

    expected: float = 0.0
    found: float = 0.0

    def add(self, expected: float, found: float) -> None:
        self.expected = MEMORY * self.expected + expected
        self.found = MEMORY * self.found + found

    @property
    def factor(self) -> float:
        """By what an expected share is to be multiplied."""
        return (self.found + PRIOR_LOTS) / (self.expected + PRIOR_LOTS)


@dataclass(slots=True)
class AdverseMoves:
    """How far, in ticks, the market moved against a fill that had rested; newer fills count more."""

    weight: float = 0.0
    total: float = 0.0

    def add(self, ticks: float, lots: int) -> None:
        self.weight = MEMORY * self.weight + lots
        self.total = MEMORY * self.total + lots * ticks

    @property
    def mean(self) -> float:
        return self.total / self.weight if self.weight else 0.0


@dataclass(slots=True)
class VenueState:
    """One venue: what it displays, and what was learnt of it."""

    terms: VenueTerms
    bid: int = 0
    bid_lots: int = 0
    ask: int = 0
    ask_lots: int = 0
    at_ns: int = 0  # of its newest data
    away_until_ns: int = 0  # after it could not be reached
    sells: Flow = field(default_factory=Flow)  # lots a second that trade at the bid or below
    buys: Flow = field(default_factory=Flow)  # at the ask or above
    changes: Flow = field(default_factory=Flow)  # of its best prices
    takes: FillRecord = field(default_factory=FillRecord)
    rests: FillRecord = field(default_factory=FillRecord)
    adverse: AdverseMoves = field(default_factory=AdverseMoves)
    round_trip_ns: float = 0.0

    @property
    def is_crossed(self) -> bool:
        """Whether its own bid is not below its own ask: one of them is out of date."""
        return bool(self.bid and self.ask) and self.bid >= self.ask

    def shows(self, bid: int, bid_lots: int, ask: int, ask_lots: int) -> bool:
        """Whether it displays these prices already, in whatever size."""
        return (
            bid == self.bid
            and ask == self.ask
            and bool(bid_lots) == bool(self.bid_lots)
            and bool(ask_lots) == bool(self.ask_lots)
        )

    def opposite(self, sign: int) -> tuple[int, int]:
        """Price and lots that an order of that sign would take."""
        return (self.ask, self.ask_lots) if sign > 0 else (self.bid, self.bid_lots)

    def own(self, sign: int) -> tuple[int, int]:
        """Price and lots that an order of that sign would join."""
        return (self.bid, self.bid_lots) if sign > 0 else (self.ask, self.ask_lots)

    def flow(self, sign: int) -> Flow:
        """Trades that fill a resting order of that sign."""
        return self.sells if sign > 0 else self.buys

    def take_chance(self, at_ns: int) -> float:
        """Chance 0–1 that what is displayed is still there when an order arrives."""
        lead_s = self.round_trip_ns / 2 / NS_PER_S
        return min(1.0, math.exp(-self.changes.now(at_ns) * lead_s) * self.takes.factor)

    def rest_chance(self, sign: int, ticks: int, lots: int, at_ns: int, for_s: float) -> float:
        """Chance 0–1 that so many lots which join the queue at a price are filled within a time."""
        price, displayed = self.own(sign)
        if price and sign * (price - ticks) > 0:
            return 0.0  # the venue's own queue is better
        ahead = displayed if price == ticks else 0
        flow = self.flow(sign)
        # Before any trade was seen, what is displayed is taken to trade once within the memory of a flow.
        rate = flow.unbiased(at_ns) if flow.began_ns else max(displayed, lots) / FLOW_S
        expected = rate * for_s
        if expected <= 0.0:
            return 0.0
        return min(1.0, math.exp(-(ahead + lots) / expected) * self.rests.factor)


@dataclass(slots=True)
class RouterState:
    """The venues of one instrument, in a fixed order.

    A venue whose newest data is older than `max_age_ns`, that crosses itself, or that could not be reached just now
    counts as displaying nothing: no order gets there, and a quote that may be gone protects nobody (rule 611(b)(1)).
    """

    venues: Mapping[str, VenueState]
    max_age_ns: int = 0  # 0: any age
    newest_ns: int = 0

    @classmethod
    def of(cls, terms: Iterable[VenueTerms]) -> "RouterState":
        return cls({one.name: VenueState(one, round_trip_ns=float(one.round_trip_ns)) for one in terms})

    def quoted(self, name: str, bid: int, bid_lots: int, ask: int, ask_lots: int, at_ns: int) -> None:
        """A venue displays these; 0 lots: nothing on that side."""
        venue = self.venues[name]
        if bid != venue.bid or ask != venue.ask:
            venue.changes.add(0.5, at_ns)
        venue.bid, venue.bid_lots, venue.ask, venue.ask_lots = bid, bid_lots, ask, ask_lots
        venue.at_ns = self.newest_ns = at_ns

    def traded(self, name: str, ticks: int, lots: int, at_ns: int) -> None:
        """Others have traded at a venue."""
        venue = self.venues[name]
        if venue.bid and ticks <= venue.bid:
            venue.sells.add(lots, at_ns)
        elif venue.ask and ticks >= venue.ask:
            venue.buys.add(lots, at_ns)

    def answered(self, name: str, round_trip_ns: int) -> None:
        """A venue has answered a request after so long."""
        venue = self.venues[name]
        before = venue.round_trip_ns or float(round_trip_ns)
        venue.round_trip_ns = 0.9 * before + 0.1 * round_trip_ns

    def lost(self, name: str, at_ns: int) -> None:
        """A venue could not be reached."""
        self.venues[name].away_until_ns = at_ns + AWAY_NS

    def took(self, name: str, expected: float, found: float) -> None:
        """An order that took was filled to a share `found`, where `expected` was expected."""
        self.venues[name].takes.add(expected, found)

    def spent(self, name: str, sign: int, ticks: int, lots: int | None) -> None:
        """An order of ours has taken so many lots at a price, or all of it (None): until the venue displays anew."""
        venue = self.venues[name]
        price, displayed = venue.opposite(sign)
        if sign * (price - ticks) > 0:
            return  # it displays a worse price by now
        left = 0 if lots is None else max(0, displayed - lots)
        if sign > 0:
            venue.ask_lots = left
        else:
            venue.bid_lots = left

    def rested(self, name: str, expected: float, found: float) -> None:
        """An order that rested was filled to a share `found` by when it was closed."""
        self.venues[name].rests.add(expected, found)

    def usable(self, at_ns: int) -> list[VenueState]:
        """Venues whose data can be relied on at an instant."""
        oldest_ns = at_ns - self.max_age_ns if self.max_age_ns else 0
        return [
            one
            for one in self.venues.values()
            if one.at_ns >= oldest_ns and one.away_until_ns <= at_ns and not one.is_crossed
        ]

    def best(self, sign: int) -> tuple[int, int]:
        """The best protected price that an order of that sign would take, and all lots there; 0: none."""
        price, lots = 0, 0
        for venue in self.usable(self.newest_ns):
            ticks, displayed = venue.opposite(sign)
            if not venue.terms.is_protected or not ticks or not displayed:
                continue
            if not price or sign * (ticks - price) < 0:
                price, lots = ticks, displayed
            elif ticks == price:
                lots += displayed
        return price, lots
