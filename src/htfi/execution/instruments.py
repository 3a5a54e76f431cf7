"""Instruments as orders see them: prices in whole ticks, quantities in whole lots, money in whole nanos.

Floats end here: `nearest_ticks` is the one place where a price of the forecasting path becomes a price of an order.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from htfi.domain.errors import InvalidInput
from htfi.domain.orders import InstrumentTerms, OrderSide

NANOS = 10**9  # of a unit of currency, and of a unit of price: 1 is 1e-9
_MAX_TICKS = 10**15


@dataclass(frozen=True, slots=True)
class Instrument:
    """What may be traded: its grid of prices and what one lot is worth.

    `tick_nanos` is a tick in nanos of the currency; a lot at a price is worth price × lot size × multiplier.
    """

    symbol: str
    tick: Decimal
    tick_nanos: int
    lot_size: int
    multiplier: Decimal
    currency: str
    value_nanos: int  # of one lot at a price of one tick
    tick_size: float  # the tick for prices of the forecasting path

    def ticks(self, price: Decimal) -> int:
        """A price in ticks. Raises: InvalidInput where it lies between two."""
        if not price.is_finite():
            raise InvalidInput(f"{self.symbol}: a price of {price} is not finite")
        nanos = price * NANOS
        whole = int(nanos)
        if whole != nanos or whole % self.tick_nanos:
            raise InvalidInput(
                f"{self.symbol}: a price of {price} lies between two ticks of {self.tick.normalize():f}"
            )
        return whole // self.tick_nanos

    def price(self, ticks: int) -> Decimal:
        """The price of so many ticks."""
        return ticks * self.tick

    def value(self, ticks: int, lots: int) -> int:
        """What so many lots are worth at a price, in nanos of the currency; signed as its arguments are."""
        return ticks * lots * self.value_nanos

    def nearest_ticks(self, price: float, rounding: Literal["down", "up", "nearest"] = "nearest") -> int:
        """A price of the forecasting path on the grid. Raises: InvalidInput where it is no number or too large."""
        ticks = price / self.tick_size
        if not -_MAX_TICKS <= ticks <= _MAX_TICKS:  # NaN is in no bounds
            raise InvalidInput(f"{self.symbol}: a price of {price} is no price")
        nearest = round(ticks)
        if rounding == "nearest" or abs(ticks - nearest) < 1e-6:  # a float of a price on the grid
            return nearest
        return math.floor(ticks) if rounding == "down" else math.ceil(ticks)

    def passive_ticks(self, price: float, side: OrderSide) -> int:
        """A price on the grid that is no more aggressive: below for a buyer, above for a seller."""
        return self.nearest_ticks(price, "down" if side.sign > 0 else "up")


def instrument_of(terms: InstrumentTerms) -> Instrument:
    """An instrument of its terms. Raises: InvalidInput where they give no whole values."""
    tick = terms.tick if terms.tick is not None else Decimal("0.01")
    if not terms.instrument:
        raise InvalidInput("an instrument needs a name")
    if not tick.is_finite() or tick <= 0 or tick * NANOS != int(tick * NANOS):
        raise InvalidInput(
            f"{terms.instrument}: a tick of {tick} must be above 0, with nine decimals at most"
        )
    if terms.lot_size < 1:
        raise InvalidInput(f"{terms.instrument}: a lot of {terms.lot_size} units must be 1 or more")
    if not terms.multiplier.is_finite() or terms.multiplier <= 0:
        raise InvalidInput(f"{terms.instrument}: a multiplier of {terms.multiplier} must be above 0")
    value = tick * NANOS * terms.lot_size * terms.multiplier
    if value != int(value):
        raise InvalidInput(
            f"{terms.instrument}: a tick of one lot is worth {value / NANOS}, more decimals than nine"
        )
    return Instrument(
        terms.instrument,
        tick,
        int(tick * NANOS),
        terms.lot_size,
        terms.multiplier,
        terms.currency,
        int(value),
        float(tick),
    )


def instruments_of(all_terms: Iterable[InstrumentTerms]) -> Mapping[str, Instrument]:
    """Instruments by symbol; of several terms of one the last counts."""
    return {terms.instrument: instrument_of(terms) for terms in all_terms}
