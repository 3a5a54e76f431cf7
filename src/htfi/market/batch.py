"""Columns of trades and quotes: made by readers, taken in by `MarketState.observe_batch`."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput, ShapeMismatch
from htfi.market.kernel import ASK_ROW, BID_ROW, QUOTE_ROW, TRADE_ROW

__all__ = ["ASK_ROW", "BID_ROW", "QUOTE_ROW", "TRADE_ROW", "TickBatch"]


def _none() -> NDArray[np.float64]:
    return np.empty(0)


@dataclass(frozen=True, slots=True, eq=False)
class TickBatch:
    """Events in order of `available_at_ns`, which `MarketState` takes in row by row.

    Shapes: columns [n]; ask_price and ask_size [n], or [0] where no row is a QUOTE_ROW.
    `kind`: TRADE_ROW (price, size), BID_ROW, ASK_ROW (one side: price, size; size 0 withdraws it), or QUOTE_ROW (bid
    in price and size, ask in ask_price and ask_size). NaN is a value that the message did not carry.
    `symbol`, `venue`: places in `symbols`, `venues`. Raises: ShapeMismatch, InvalidInput.
    """

    symbols: tuple[str, ...]
    venues: tuple[str, ...]
    available_at_ns: NDArray[np.int64]
    kind: NDArray[np.uint8]
    symbol: NDArray[np.int32]
    venue: NDArray[np.int32]
    price: NDArray[np.float64]
    size: NDArray[np.float64]
    ask_price: NDArray[np.float64] = field(default_factory=_none)
    ask_size: NDArray[np.float64] = field(default_factory=_none)

    def __post_init__(self) -> None:
        count = len(self.available_at_ns)
        columns = {
            "kind": self.kind,
            "symbol": self.symbol,
            "venue": self.venue,
            "price": self.price,
            "size": self.size,
        }
        for name, column in columns.items():
            if len(column) != count:
                raise ShapeMismatch(
                    f"TickBatch.{name} has {len(column)} rows where available_at_ns has {count}"
                )
        if count == 0:
            return
        _check_codes("symbol", self.symbol, len(self.symbols))
        _check_codes("venue", self.venue, len(self.venues))
        if int(self.kind.max()) > QUOTE_ROW:
            raise InvalidInput(f"TickBatch.kind holds {int(self.kind.max())}: the kinds are 0 to {QUOTE_ROW}")
        has_quotes = bool((self.kind == QUOTE_ROW).any())
        if len(self.ask_price) != len(self.ask_size) or len(self.ask_price) not in (
            (count,) if has_quotes else (0, count)
        ):
            raise ShapeMismatch(
                f"TickBatch.ask_price and ask_size need {count} rows, not {len(self.ask_price)}"
            )

    def __len__(self) -> int:
        return len(self.available_at_ns)


def _check_codes(name: str, codes: NDArray[np.int32], count: int) -> None:
    if int(codes.min()) < 0 or int(codes.max()) >= count:
        raise InvalidInput(f"TickBatch.{name} holds a code outside 0 to {count - 1}")
