"""Bars of many series on one grid of instants. `prices` reads files into it for every evaluation."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.domain.events import Bar
from htfi.domain.scheduled_event import ScheduledEvent
from htfi.domain.time import NS_PER_DAY, parse_duration, parse_timestamp, to_ns

Array = NDArray[np.float64]
Instants = NDArray[np.int64]
Fields = dict[str, Array]

FIELDS = ("open", "high", "low", "close")
VOLUME = "volume"


@dataclass(frozen=True, slots=True, eq=False)
class Prices:
    """Bars of N series at T instants.

    Shapes: ends_ns and available_ns [T], rising; open, high, low, close, volume [T, N], NaN where a bar or a field of
    it is absent. A bar is known from available_ns on. `events` is the calendar that our forecaster is given with them.
    """

    name: str
    symbols: tuple[str, ...]
    interval: str
    ends_ns: Instants
    available_ns: Instants
    open: Array
    high: Array
    low: Array
    close: Array
    notes: tuple[str, ...] = ()
    volume: Array | None = None
    events: tuple[ScheduledEvent, ...] = ()

    def bars(self, t: int) -> list[Bar]:
        """The bars that close at instant t. An absent field takes the close; high and low span the rest."""
        end_ns, available_ns = int(self.ends_ns[t]), int(self.available_ns[t])
        start_ns = end_ns - _length_ns(self.interval)
        close = self.close[t]
        there = np.flatnonzero(np.isfinite(close))
        opens, highs, lows = (_or_else(field[t], close)[there] for field in (self.open, self.high, self.low))
        closes = close[there]
        highs = np.maximum(highs, np.maximum(opens, closes))
        lows = np.minimum(lows, np.minimum(opens, closes))
        volumes = np.nan_to_num(self.volume[t][there]) if self.volume is not None else np.zeros(len(there))
        columns: list[list[float]] = [each.tolist() for each in (opens, highs, lows, closes, volumes)]
        names = [self.symbols[place] for place in there.tolist()]
        name, row, interval = self.name, t + 1, self.interval
        return [
            Bar(
                available_ns,
                end_ns,
                name,
                row,
                symbol,
                interval,
                start_ns,
                end_ns,
                first,
                high,
                low,
                last,
                volume,
            )
            for symbol, first, high, low, last, volume in zip(names, *columns, strict=True)
        ]

    def cut(
        self, symbols: Sequence[str] | None = None, first: str | None = None, last: str | None = None
    ) -> "Prices":
        """Only these symbols and the instants from `first` to `last` (ISO dates or instants, UTC), both included."""
        begin = 0 if first is None else int(np.searchsorted(self.ends_ns, _instant_ns(first, 0)))
        end = (
            len(self.ends_ns)
            if last is None
            else int(np.searchsorted(self.ends_ns, _instant_ns(last, NS_PER_DAY - 1), "right"))
        )
        names = self.symbols if symbols is None else tuple(symbols)
        missing = sorted(set(names) - set(self.symbols))
        if missing:
            raise InvalidInput(
                f"{self.name} has no {', '.join(missing)}: it has {', '.join(self.symbols[:8])} …"
            )
        places = np.array([self.symbols.index(name) for name in names], np.intp)
        there = FIELDS if self.volume is None else (*FIELDS, VOLUME)
        fields = {key: getattr(self, key)[begin:end][:, places] for key in there}
        return replace(
            self,
            symbols=names,
            ends_ns=self.ends_ns[begin:end],
            available_ns=self.available_ns[begin:end],
            **fields,
        )

    def dates(self) -> list[str]:
        """ISO dates [T] of the instants; with the hour, for bars shorter than a day."""
        unit = "D" if _length_ns(self.interval) >= NS_PER_DAY else "m"
        return [str(day) for day in np.datetime_as_string(self.ends_ns.astype("datetime64[ns]"), unit=unit)]


def on_grid(
    name: str,
    symbols: NDArray[Any],
    ends_ns: Instants,
    available_ns: Instants,
    fields: Fields,
    notes: tuple[str, ...],
    interval: str = "1d",
) -> Prices:
    """Rows as a grid; of two rows for one place the later is kept."""
    names, column = np.unique(symbols.astype(str), return_inverse=True)
    instants, row = np.unique(ends_ns, return_inverse=True)
    known = np.zeros(len(instants), np.int64)
    np.maximum.at(known, row, available_ns)
    known = np.maximum.accumulate(known)
    grids: dict[str, Array] = {}
    for key, values in fields.items():
        grid = np.full((len(instants), len(names)), np.nan)
        grid[row, column] = np.where(np.isfinite(values) & (values > 0.0), values, np.nan)
        grids[key] = grid
    symbols_seen: list[str] = names.tolist()
    opens, highs, lows, closes = (grids[key] for key in FIELDS)
    return Prices(
        name,
        tuple(symbols_seen),
        interval,
        instants,
        known,
        opens,
        highs,
        lows,
        closes,
        notes,
        grids.get(VOLUME),
    )


def _or_else(values: Array, instead: Array) -> Array:
    return np.where(np.isfinite(values), values, instead)


def _length_ns(interval: str) -> int:
    try:
        return parse_duration(interval)
    except InvalidInput:
        return 0


def _instant_ns(text: str, into_day_ns: int) -> int:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return parse_timestamp(text)
    return to_ns(datetime(day.year, day.month, day.day, tzinfo=UTC)) + into_day_ns
