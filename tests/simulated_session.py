"""What a simulated session of trades and quotes is made of; `order_flow` runs it."""

from dataclasses import dataclass

from htfi.domain.errors import InvalidInput

MAX_EVENTS = 20_000_000


@dataclass(frozen=True, slots=True)
class FlowShock:
    """An event within the session: at `at_s` the price moves by `move` (log return, signed); rate of trades, spread
    and volatility are multiplied, and what exceeds 1 halves every `half_life_s`."""

    at_s: float
    move: float = 0.0
    intensity: float = 5.0
    spread: float = 3.0
    volatility: float = 3.0
    half_life_s: float = 120.0

    def __post_init__(self) -> None:
        if not abs(self.move) <= 2.0:
            raise InvalidInput(
                f"a shock at {self.at_s} s moves the price by {self.move}; a log return within 2 is needed"
            )
        for what in ("intensity", "spread", "volatility"):
            if not 0.1 <= getattr(self, what) <= 100.0:
                raise InvalidInput(
                    f"a shock multiplies {what} by {getattr(self, what)}; it must lie in 0.1–100"
                )
        if not 0.1 <= self.half_life_s <= 1e6:
            raise InvalidInput(f"a shock has a half-life of {self.half_life_s} s; it must lie in 0.1–1000000")


@dataclass(frozen=True, slots=True)
class SimulatedSession:
    """One symbol's session. `sigma` is the deviation of the log return over the whole session. `sigma_parts`, where
    given, are those of its equal parts instead (such as a bar's worth each from `MarketPath.shocked_sigma`)."""

    symbol: str
    start_ns: int
    sigma: float = 0.012
    sigma_parts: tuple[float, ...] = ()
    start_price: float = 100.0
    tick: float = 0.01
    duration_s: float = 23_400.0
    trades_per_s: float = 1.0
    quotes_per_trade: float = 3.0
    mean_trade_size: float = 150.0
    mean_queue_size: float = 600.0
    spread_bps: float = 1.0
    day_shape: float = 0.5
    vol_of_vol: float = 0.3
    answering_share: float = 0.6
    trade_share: float = 0.5
    latency_ns: int = 200_000
    venue: str = "SIM"

    def __post_init__(self) -> None:
        if not self.symbol:
            raise InvalidInput("a session needs a symbol")
        for what, value, low, high in (
            ("sigma", self.sigma, 1e-6, 2.0), ("start price", self.start_price, 1e-9, 1e12),
            ("tick", self.tick, 1e-12, self.start_price / 10), ("duration in s", self.duration_s, 1.0, 1e6),
            ("rate of trades per s", self.trades_per_s, 1e-4, 1e5),
            ("quotes per trade", self.quotes_per_trade, 0.1, 100),
            ("mean trade size", self.mean_trade_size, 1.0, 1e12),
            ("mean queue size", self.mean_queue_size, 1.0, 1e12),
            ("spread in bps", self.spread_bps, 0.0, 1000.0), ("depth of the day's shape", self.day_shape, 0.0, 0.9),
            ("volatility of volatility", self.vol_of_vol, 0.0, 1.0),
            ("share of answering trades", self.answering_share, 0.0, 0.95),
            ("share of variance by trades", self.trade_share, 0.0, 1.0), ("latency in ns", self.latency_ns, 0, 10**12),
            *(("sigma of a part", part, 1e-7, 2.0) for part in self.sigma_parts),
        ):  # fmt: skip
            if not low <= value <= high:
                raise InvalidInput(
                    f"{what} of session {self.symbol} is {value}; it must lie in {low:g}–{high:g}"
                )
        if self.trades_per_s * self.duration_s * (2.0 + self.quotes_per_trade) > MAX_EVENTS:
            raise InvalidInput(
                f"session {self.symbol} would have over {MAX_EVENTS:,} events; lower its rate or duration"
            )
