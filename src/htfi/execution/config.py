"""Settings of trading: how large positions become, in whose name orders are sent, what the instruments are."""

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Annotated, Literal

from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.orders import InstrumentTerms
from htfi.domain.settings import Share, check_bounds, setting, setting_from

Strategy = Literal["forecast", "trend", "reversal"]
AlgorithmName = Literal["direct", "twap", "vwap", "pov", "shortfall", "peg", "sniper"]
_Name = Annotated[str, Meta(max_length=64)]
_GivenName = Annotated[str, Meta(min_length=1, max_length=64)]
_NAMES = ("venue", "algo", "trader", "desk", "client", "account")


@dataclass(frozen=True, slots=True)
class InstrumentConfig:
    """Table `[trading.instruments.SYMBOL]`: the grid of an instrument. Numbers as text keep their decimals."""

    tick: str = "0.01"
    lot_size: Annotated[int, Meta(ge=1, le=10**9)] = 1
    multiplier: str = "1"
    currency: _Name = "USD"

    def terms(self, symbol: str, venue: str, at_ns: int) -> InstrumentTerms:
        """As an event. Raises: InvalidInput, naming the value that is no number."""
        return InstrumentTerms(
            at_ns=at_ns,
            instrument=symbol,
            venue=venue,
            currency=self.currency,
            tick=_decimal(f"trading.instruments.{symbol}.tick", self.tick),
            lot_size=self.lot_size,
            multiplier=_decimal(f"trading.instruments.{symbol}.multiplier", self.multiplier),
        )


@dataclass(frozen=True, slots=True)
class TradingConfig:
    """How forecasts become orders. Weights are shares of the capital."""

    capital: Annotated[float, Meta(gt=0.0, le=1e15)] = setting(
        1_000_000.0, "what positions are sized by", "currency"
    )
    sizing: Literal["kelly", "volatility"] = setting(
        "kelly",
        "kelly: growth of the capital under the forecast; volatility: a constant risk in its direction",
    )
    strategy: Strategy = setting(
        "forecast",
        "the side to take: the forecast's; trend: of the own move; reversal: against the largest moves",
    )
    lookback_bars: Annotated[int, Meta(ge=1, le=1_000)] = setting(63, "of trend and reversal")
    rebalance_bars: Annotated[int, Meta(ge=1, le=1_000)] = setting(
        1, "an instrument's position is changed on every so many bars, under trend and reversal"
    )
    kelly_fraction: Share = setting(0.25, "part of the position that growth alone would ask for", "0–1")
    target_volatility: Annotated[float, Meta(gt=0.0, le=10.0)] = setting(
        0.10, "of a position by the year, under sizing = volatility, trend and reversal", "0–1"
    )
    max_weight: Annotated[float, Meta(ge=0.0, le=100.0)] = setting(
        0.25, "largest position in one instrument", "share of the capital"
    )
    max_gross: Annotated[float, Meta(ge=0.0, le=100.0)] = setting(
        1.0, "largest sum of all positions", "share of the capital"
    )
    max_shortfall: Annotated[float, Meta(gt=0.0, le=10.0)] = setting(
        0.05, "largest expected shortfall of the book over the horizon", "share of the capital"
    )
    shortfall_level: Annotated[float, Meta(ge=0.5, lt=1.0)] = setting(0.975, "level of that shortfall", "0–1")
    horizon_bars: Annotated[int, Meta(ge=1, le=1_000)] = setting(
        1, "the horizon of the forecast that is acted on"
    )
    allow_short: bool = setting(True, "whether positions below zero are taken")
    cost_bps: Annotated[float, Meta(ge=0.0, le=1_000.0)] = setting(
        2.0, "cost of a trade that sizing expects", "basis points"
    )
    limit_bps: Annotated[float, Meta(ge=0.0, le=1_000.0)] = setting(
        10.0, "how far beyond the last price an order's limit lies", "basis points"
    )
    venue: _GivenName = setting("XSIM", "where orders go, an ISO 10383 code; XSIM is the simulated venue")
    algorithm: AlgorithmName = setting(
        "direct",
        "how orders are executed: direct sends them whole, the others work them by table `algorithms`",
    )
    algo: _GivenName = setting(
        "direct", "the algorithm that orders name; under 'direct' the one that works them"
    )
    trader: _GivenName = setting("paper", "the trader that orders name")
    desk: _Name = setting("default", "the desk that orders name")
    client: _Name = setting("own", "the client that orders name; own: the firm itself")
    account: _GivenName = setting("paper", "the account that orders name")
    symbols: tuple[str, ...] = setting(("*",), "what is traded of what is forecast; '*' is all")
    instruments: dict[str, InstrumentConfig] = setting_from(
        dict[str, InstrumentConfig], "tick, lot_size, multiplier and currency of instruments, by symbol"
    )

    def __post_init__(self) -> None:
        check_bounds("trading", self)
        for name in _NAMES:
            text: str = getattr(self, name)
            if ":" in text or not text.isprintable() or text != text.strip():
                raise InvalidInput(
                    f"trading.{name} is '{text}': a name without colon or spaces around it is expected"
                )
        for symbol, one in self.instruments.items():
            one.terms(symbol, self.venue, 0)

    def terms(self, symbol: str, at_ns: int) -> InstrumentTerms:
        """What is known of an instrument; of one that is not named, a tick of 0.01 and a lot of 1."""
        return self.instruments.get(symbol, InstrumentConfig()).terms(symbol, self.venue, at_ns)

    @property
    def working_algo(self) -> str:
        """What orders that an algorithm works name."""
        return self.algorithm if self.algo == "direct" else self.algo

    def trades(self, symbol: str) -> bool:
        return "*" in self.symbols or symbol in self.symbols


def _decimal(name: str, text: str) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise InvalidInput(f"{name} is '{text[:40]}': a number is expected, such as '0.01'") from None
    if not value.is_finite() or value <= 0:
        raise InvalidInput(f"{name} is {value}: a number above 0 is expected")
    return value
