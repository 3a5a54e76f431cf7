"""Builds the bars of one symbol on one clock. kernel feeds it prices and closes it.

A time bar covers [k·Δ, (k+1)·Δ) since 1970, UTC; one that saw no price does not exist. A volume or dollar bar ends with
the trade that fills it, which belongs to it whole.
"""

from htfi.domain.events import Bar
from htfi.market.config import BarClock, ClockKind

SOURCE = "market"  # the `source` of bars that are built here


class OpenBar:
    """The bar in the making. `is_open`: it holds a price. Bars of trades and bars of mids never mix."""

    def __init__(self, symbol: str, clock: BarClock, rank: int) -> None:
        self.symbol = symbol
        self.interval = clock.interval
        self.is_timed = clock.kind is ClockKind.TIME
        self.counts_money = clock.kind is ClockKind.DOLLAR
        self.rank = rank  # the clock's place in the settings: the last word in the order of bars
        self.step_ns = int(clock.size) if self.is_timed else 0
        self.target = 0.0 if self.is_timed else clock.size
        self.is_open = False
        self.has_trades = False
        self.start_ns = 0
        self.last_ns = 0
        self.open = 0.0
        self.high = 0.0
        self.low = 0.0
        self.close = 0.0
        self.volume = 0.0
        self.filled = 0.0  # volume or currency so far
        self.flow = 0.0
        self.depth = 0.0
        self.num_flows = 0
        self.closed_flow = 0.0
        self.has_closed_flow = False

    def trade(self, now_ns: int, price: float, size: float) -> bool:
        """Take a trade in; whether it fills the bar. The first trade clears a bar of mids."""
        if not self.has_trades:
            self.has_trades = True
            self.is_open = False
        self._price(now_ns, price)
        self.volume += size
        if self.is_timed:
            return False
        self.filled += price * size if self.counts_money else size
        return self.filled >= self.target

    def middle(self, now_ns: int, mid: float) -> None:
        """Take a mid in: a time bar of a symbol that has not traded yet."""
        self._price(now_ns, mid)

    def add_flow(self, flow: float, depth: float) -> None:
        """Order flow since the last bar closed, and the depth that it met."""
        self.flow += flow
        self.depth += depth
        self.num_flows += 1

    def _price(self, now_ns: int, price: float) -> None:
        if not self.is_open:
            self.is_open = True
            self.start_ns = now_ns // self.step_ns * self.step_ns if self.is_timed else now_ns
            self.open = self.high = self.low = price
            self.volume = self.filled = 0.0
        if price > self.high:
            self.high = price
        if price < self.low:
            self.low = price
        self.close = price
        self.last_ns = now_ns

    def closing(self, available_at_ns: int, row: int) -> Bar:
        """The bar, finished; the next one starts empty."""
        end_ns = self.start_ns + self.step_ns if self.is_timed else self.last_ns
        bar = Bar(
            available_at_ns,
            end_ns,
            SOURCE,
            row,
            self.symbol,
            self.interval,
            self.start_ns,
            end_ns,
            self.open,
            self.high,
            self.low,
            self.close,
            self.volume,
        )
        self.is_open = False
        self.closed_flow = self.open_flow()
        self.has_closed_flow = self.num_flows > 0
        self.drop_flow()
        return bar

    def drop_flow(self) -> None:
        self.flow = self.depth = 0.0
        self.num_flows = 0

    def open_flow(self) -> float:
        """Σ e_n since the last bar closed, over the mean depth."""
        return self.flow * self.num_flows / self.depth if self.depth > 0.0 else 0.0

    def state(self) -> list[float]:
        return [
            *(
                self.is_open,
                self.has_trades,
                self.start_ns,
                self.last_ns,
                self.num_flows,
                self.has_closed_flow,
            ),
            *(self.open, self.high, self.low, self.close, self.volume, self.filled),
            *(self.flow, self.depth, self.closed_flow),
        ]

    def restore(self, state: list[float]) -> None:
        self.is_open, self.has_trades, self.has_closed_flow = bool(state[0]), bool(state[1]), bool(state[5])
        self.start_ns, self.last_ns, self.num_flows = int(state[2]), int(state[3]), int(state[4])
        self.open, self.high, self.low, self.close, self.volume, self.filled = state[6:12]
        self.flow, self.depth, self.closed_flow = state[12:15]
