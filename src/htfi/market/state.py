"""The market's state: events and bars in; closed bars, features and a regime out.

The main path feeds it one event at a time, replays by columns (`TickBatch`). Both use the same kernel.
"""

import math
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from htfi.domain.decision import Regime
from htfi.domain.errors import IntegrityError, InvalidInput, ShapeMismatch
from htfi.domain.events import Bar, MacroAnnouncement, Quote, Trade
from htfi.domain.time import parse_duration
from htfi.market.config import MarketConfig
from htfi.market.kernel import ASK_ROW, BID_ROW, COMPILED, QUOTE_ROW, TRADE_ROW, Kernel
from htfi.market.regime import LEVELS
from htfi.market.series import SeriesTable

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


MAX_MACRO_FEATURES = (
    128  # those released last are features: each decision records them, and an entry has an end
)


class LastPrice(NamedTuple):
    """The newest price of a symbol by its ticks, the mid or the last trade, and the instant of its newest tick."""

    price: float
    at_ns: int


@dataclass(frozen=True, slots=True, eq=False)
class MarketColumns:
    """What is known of n series at an instant.

    Shapes: features [n, F], in the order of `names`, NaN where undefined; all else [n]. `levels` are places in
    `regime.LEVELS`; `quote_age_ns` is −1 for a symbol that was never quoted; `quote_mid` is NaN where no sound quotes
    came since the bar began, or the bar is made of them.
    """

    names: tuple[str, ...]
    features: NDArray[np.float64]
    levels: NDArray[np.int8]
    quote_age_ns: NDArray[np.int64]
    quote_mid: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.levels)

    def take(self, rows: NDArray[np.intp]) -> "MarketColumns":
        """Of these series alone, in this order."""
        return MarketColumns(
            self.names, self.features[rows], self.levels[rows], self.quote_age_ns[rows], self.quote_mid[rows]
        )

    def feature(self, name: str) -> NDArray[np.float64]:
        """One feature [n]."""
        return self.features[:, self.names.index(name)]

    def features_at(self, row: int) -> dict[str, float]:
        """The features of one series that are defined."""
        values = zip(self.names, self.features[row].tolist(), strict=True)
        return {name: value for name, value in values if value == value}

    def regime(self, row: int) -> Regime:
        return LEVELS[int(self.levels[row])]

    def regimes(self) -> list[Regime]:
        """The regime of each series."""
        return [LEVELS[level] for level in self.levels.tolist()]


class MarketState:
    """Every symbol's ticks and every series' bars, in constant memory each."""

    def __init__(self, config: MarketConfig) -> None:
        self._config = config
        self._kernel = Kernel(config)
        self._series = SeriesTable(parse_duration(config.session_gap))
        self._macro: dict[str, float] = {}
        self._ranks = {clock.interval: rank for rank, clock in enumerate(config.clocks)}

    def observe(self, event: Trade | Quote | MacroAnnouncement) -> Sequence[Bar]:
        """Take one event in. The volume and dollar bars that it completes, usually none.

        Time bars that it finds overdue, because `advance` was not called, are closed first and returned too.
        """
        if isinstance(event, MacroAnnouncement):
            if math.isfinite(event.value):
                self._store_macro(macro_feature(event.series), event.value)
            return ()
        return self._kernel.observe(event)

    def _store_macro(self, name: str, value: float) -> None:
        self._macro.pop(name, None)  # the newest stands last
        self._macro[name] = value
        if len(self._macro) > MAX_MACRO_FEATURES:
            del self._macro[next(iter(self._macro))]

    def advance(self, to_ns: int) -> list[Bar]:
        """The time bars with end_ns ≤ `to_ns`, by end, symbol and clock; those that saw no price do not exist."""
        return self._kernel.close_due(to_ns)

    def close_bars(self, bars: Sequence[Bar]) -> None:
        """Take in closed bars, built here or fed: the features and the regime of their series follow them."""
        self._series.add(bars)

    def observe_batch(self, batch: TickBatch) -> list[Bar]:
        """What advance, close_bar and observe do for each row in turn, bit for bit; the bars, already taken in."""
        kernel = self._kernel
        symbols = [kernel.symbol(name) for name in batch.symbols]
        venues = np.array([kernel.venue(name) for name in batch.venues], np.int32)
        columns: list[Any] = [venues, batch.available_at_ns, batch.kind, batch.symbol, batch.venue]
        columns += [batch.price, batch.size, batch.ask_price, batch.ask_size]
        if not COMPILED:
            columns = [column.tolist() for column in columns]
        bars = kernel.run(symbols, *columns)
        self.close_bars(bars)
        return bars

    def read(self, bars: Sequence[Bar], at_ns: int) -> MarketColumns:
        """What is known at an instant of the series of these bars. Units: docs/market.md."""
        names = self._kernel.feature_names
        n, num = len(bars), len(names) + len(self._macro)
        features = np.full((n, num), np.nan)
        levels, quote_age_ns, quote_mid = np.empty(n, np.int8), np.empty(n, np.int64), np.empty(n)
        columns: list[Any] = [features.reshape(-1), levels, quote_age_ns, quote_mid]
        self._kernel.read_rows(self._series, bars, self._ranks, at_ns, num, *columns)
        if self._macro:
            features[:, len(names) :] = list(self._macro.values())
            names = (*names, *self._macro)
        return MarketColumns(names, features, levels, quote_age_ns, quote_mid)

    def features(self, symbol: str, interval: str) -> dict[str, float]:
        """What is known of a series now; a feature that is undefined is left out. Units: docs/market.md."""
        series = self._series.find(symbol, interval)
        found = self._kernel.features(series, symbol, self._ranks.get(interval, -1))
        if self._macro:
            found.update(self._macro)
        return found

    def regime(self, symbol: str, interval: str) -> Regime:
        """The worse of the regimes of the symbol's ticks and of the series' bars."""
        series = self._series.find(symbol, interval)
        level = self._kernel.level(symbol, -1 if series is None else series.level())
        return Regime.NORMAL if level < 0 else LEVELS[level]

    def last_price(self, symbol: str) -> LastPrice | None:
        """The newest price of a symbol's ticks in this session; None where there is none."""
        found = self._kernel.index.get(symbol)
        if found is None or not found.reference_kind:  # 0: no price since the session began
            return None
        return LastPrice(found.reference, found.last_ns)

    def state(self) -> dict[str, Any]:
        """Everything that shapes what follows. A market restored from it continues as if it had never stopped."""
        rings = array("d")
        kernel = self._kernel.state(rings)
        series = [
            [symbol, interval, item.state()] for (symbol, interval), item in self._series.series.items()
        ]
        settings = [*self._config.scales, self._config.base_scale, str(self._config.window), self._config.bar]
        return {
            "settings": settings,
            "kernel": kernel,
            "rings": np.array(rings, np.float64),
            "series": series,
            "macro": dict(self._macro),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Raises: IntegrityError, where the state was taken under other settings."""
        settings = [*self._config.scales, self._config.base_scale, str(self._config.window), self._config.bar]
        if list(state["settings"]) != settings:
            raise IntegrityError(
                "the saved market state has other bars or scales: use the settings it was saved under"
            )
        self._kernel = Kernel(self._config)
        self._kernel.restore(state["kernel"], array("d", state["rings"].tobytes()))
        self._series = SeriesTable(parse_duration(self._config.session_gap))
        for symbol, interval, saved in state["series"]:
            self._series.begin(symbol, interval).restore(saved)
        self._macro = dict(state["macro"])


def macro_feature(series: str) -> str:
    """The feature's name for a macro series: 'US.CPI-YoY' → 'macro_us_cpi_yoy'."""
    return "macro_" + re.sub(r"[^a-z0-9]+", "_", series.lower()).strip("_")
