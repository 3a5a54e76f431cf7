"""Keeps one symbol's best quotes by venue and their NBBO, mid and order-flow imbalance. kernel drives it.

A size of 0 withdraws a side. Where the NBBO crosses, a venue is stale: quotes that cross a newer one and are older
than the patience are withdrawn until their venue speaks again; while fresh quotes cross, the mid is held.
"""

import math
from array import array

_LN2 = math.log(2.0)
_MAX_SIZE = 1e15  # beyond any market; keeps sums of products finite
_SMALLEST, _LARGEST = 1e-12, 1e18  # a price outside is not a price


class Book:
    """NBBO of one symbol. `is_sound`: both sides stand, uncrossed, with a spread that is not a stub.

    `flow` is Cont, Kukanov and Stoikov's e_n of the last quote, 0 where it or the one before was unsound.
    """

    def __init__(self, patience_ns: int, max_spread_fraction: float, half_life_ns: int) -> None:
        self.patience_ns = patience_ns
        self.max_spread_fraction = max_spread_fraction
        self.decay_per_ns = _LN2 / half_life_ns
        self.num_venues = 0
        self.reserve(4)
        self.bid = 0.0
        self.bid_size = 0.0
        self.ask = 0.0
        self.ask_size = 0.0
        self.is_sound = False
        self.mid = 0.0  # the last sound one
        self.mid_ns = 0
        self.flow = 0.0
        self.depth = 0.0
        self.decayed_flow = 0.0
        self.decayed_depth = 0.0
        self.decayed_weight = 0.0
        self.decayed_ns = 0

    def reserve(self, num_venues: int) -> None:
        """Make space for so many venues; what is there stays."""
        grown = num_venues - self.num_venues
        if self.num_venues == 0:
            self.bid_price, self.bid_sizes = array("d", bytes(8 * grown)), array("d", bytes(8 * grown))
            self.ask_price, self.ask_sizes = array("d", bytes(8 * grown)), array("d", bytes(8 * grown))
            self.bid_ns, self.ask_ns = array("q", bytes(8 * grown)), array("q", bytes(8 * grown))
        elif grown > 0:
            more, more_ns = array("d", bytes(8 * grown)), array("q", bytes(8 * grown))
            self.bid_price, self.bid_sizes = (
                array("d", self.bid_price) + more,
                array("d", self.bid_sizes) + more,
            )
            self.ask_price, self.ask_sizes = (
                array("d", self.ask_price) + more,
                array("d", self.ask_sizes) + more,
            )
            self.bid_ns, self.ask_ns = array("q", self.bid_ns) + more_ns, array("q", self.ask_ns) + more_ns
        self.num_venues = max(num_venues, self.num_venues)

    def clear(self) -> None:
        """A session has ended: no quote of it stands, and flow starts from zero."""
        for venue in range(self.num_venues):
            self.bid_sizes[venue] = 0.0
            self.ask_sizes[venue] = 0.0
        self.bid = self.bid_size = self.ask = self.ask_size = 0.0
        self.is_sound = False
        self.flow = self.decayed_flow = self.decayed_depth = self.decayed_weight = 0.0

    def quote(
        self,
        now_ns: int,
        venue: int,
        has_bid: bool,
        has_ask: bool,
        bid: float,
        bid_size: float,
        ask: float,
        ask_size: float,
    ) -> None:
        """Take in one venue's quote: `has_bid` and `has_ask` say which sides it carries."""
        was_sound, old_bid, old_bid_size = self.is_sound, self.bid, self.bid_size
        old_ask, old_ask_size = self.ask, self.ask_size
        if venue >= self.num_venues:
            self.reserve(max(venue + 1, 2 * self.num_venues))
        if has_bid:
            self.bid_price[venue] = bid
            self.bid_sizes[venue] = _size(bid, bid_size)
            self.bid_ns[venue] = now_ns
            self._find_bid()
        if has_ask:
            self.ask_price[venue] = ask
            self.ask_sizes[venue] = _size(ask, ask_size)
            self.ask_ns[venue] = now_ns
            self._find_ask()
        has_both = self.bid_size > 0.0 and self.ask_size > 0.0
        if has_both and self.bid >= self.ask:
            self._drop_stale(now_ns)
            has_both = self.bid_size > 0.0 and self.ask_size > 0.0
        spread = self.ask - self.bid
        middle = 0.5 * self.bid + 0.5 * self.ask
        self.is_sound = has_both and spread >= 0.0 and spread <= self.max_spread_fraction * middle
        self.flow = 0.0
        if not self.is_sound:
            return
        self.mid = middle
        self.mid_ns = now_ns
        if was_sound:
            flow = 0.0
            if self.bid >= old_bid:
                flow += self.bid_size
            if self.bid <= old_bid:
                flow -= old_bid_size
            if self.ask <= old_ask:
                flow -= self.ask_size
            if self.ask >= old_ask:
                flow += old_ask_size
            self.flow = flow
        self.depth = 0.5 * (self.bid_size + self.ask_size)
        fade = math.exp(-self.decay_per_ns * (now_ns - self.decayed_ns))
        self.decayed_flow = fade * self.decayed_flow + self.flow
        self.decayed_depth = fade * self.decayed_depth + self.depth
        self.decayed_weight = fade * self.decayed_weight + 1.0
        self.decayed_ns = now_ns

    def _find_bid(self) -> None:
        best, total = 0.0, 0.0
        for venue in range(self.num_venues):
            size = self.bid_sizes[venue]
            if size > 0.0:
                price = self.bid_price[venue]
                if price > best:
                    best, total = price, size
                elif price == best:
                    total += size
        self.bid, self.bid_size = best, total

    def _find_ask(self) -> None:
        best, total = 0.0, 0.0
        for venue in range(self.num_venues):
            size = self.ask_sizes[venue]
            if size > 0.0:
                price = self.ask_price[venue]
                if total == 0.0 or price < best:
                    best, total = price, size
                elif price == best:
                    total += size
        self.ask, self.ask_size = best, total

    def _drop_stale(self, now_ns: int) -> None:
        """Withdraw what meets or crosses a newer quote and is older than the patience, on the side that spoke first."""
        bid, ask, newest_bid, newest_ask = self.bid, self.ask, 0, 0
        for venue in range(self.num_venues):
            if self.bid_sizes[venue] > 0.0 and self.bid_price[venue] >= ask:
                newest_bid = max(newest_bid, self.bid_ns[venue])
            if self.ask_sizes[venue] > 0.0 and self.ask_price[venue] <= bid:
                newest_ask = max(newest_ask, self.ask_ns[venue])
        limit = now_ns - self.patience_ns
        for venue in range(self.num_venues):
            if newest_bid >= newest_ask:
                if self.ask_price[venue] <= bid and self.ask_ns[venue] < limit:
                    self.ask_sizes[venue] = 0.0
            elif self.bid_price[venue] >= ask and self.bid_ns[venue] < limit:
                self.bid_sizes[venue] = 0.0
        self._find_bid()
        self._find_ask()

    def spread_bps(self) -> float:
        """Of a sound book, in basis points of the mid."""
        return 1e4 * (self.ask - self.bid) / self.mid

    def microprice_gap_bps(self) -> float:
        """Microprice less mid, in basis points of the mid; the microprice leans to the side with less size."""
        share = self.bid_size / (self.bid_size + self.ask_size)
        return 1e4 * (share - 0.5) * (self.ask - self.bid) / self.mid

    def imbalance(self, now_ns: int) -> float:
        """Σ e_n · 2^(−age / half-life), over the mean depth weighted alike."""
        if self.decayed_weight <= 0.0 or self.decayed_depth <= 0.0:
            return 0.0
        fade = math.exp(-self.decay_per_ns * (now_ns - self.decayed_ns)) if now_ns > self.decayed_ns else 1.0
        return fade * self.decayed_flow * self.decayed_weight / self.decayed_depth

    def state(self) -> list[float]:
        scalars: list[float] = [
            self.num_venues,
            self.bid,
            self.bid_size,
            self.ask,
            self.ask_size,
            self.is_sound,
        ]
        scalars += [self.mid, self.mid_ns, self.flow, self.depth, self.decayed_flow, self.decayed_depth]
        scalars += [self.decayed_weight, self.decayed_ns]
        for venue in range(self.num_venues):
            scalars += [self.bid_price[venue], self.bid_sizes[venue], self.bid_ns[venue]]
            scalars += [self.ask_price[venue], self.ask_sizes[venue], self.ask_ns[venue]]
        return scalars

    def restore(self, state: list[float]) -> None:
        self.reserve(int(state[0]))
        self.bid, self.bid_size, self.ask, self.ask_size = state[1:5]
        self.is_sound, self.mid, self.mid_ns = bool(state[5]), state[6], int(state[7])
        self.flow, self.depth, self.decayed_flow, self.decayed_depth, self.decayed_weight = state[8:13]
        self.decayed_ns = int(state[13])
        for venue in range(int(state[0])):
            at = 14 + 6 * venue
            self.bid_price[venue], self.bid_sizes[venue], self.bid_ns[venue] = (
                state[at],
                state[at + 1],
                int(state[at + 2]),
            )
            self.ask_price[venue], self.ask_sizes[venue] = state[at + 3], state[at + 4]
            self.ask_ns[venue] = int(state[at + 5])


def _size(price: float, size: float) -> float:
    """A usable size: none at a price that is none; 1 where the message gives no size (NaN)."""
    if not _SMALLEST <= price <= _LARGEST:
        return 0.0
    if size != size:
        return 1.0
    return min(max(size, 0.0), _MAX_SIZE)
