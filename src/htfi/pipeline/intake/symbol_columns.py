"""Tables with a column of closes for each symbol, or one by field and symbol as yfinance writes them: which they are,
and the rows of every symbol that one of their lines holds. Readers of CSV and the library call it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from htfi.pipeline.intake.bare_columns import is_number, is_time
from htfi.pipeline.intake.cells import Row
from htfi.pipeline.intake.columns import recognise_layout, time_column
from htfi.pipeline.intake.spec import SourceSpec

FIELDS = ("open", "high", "low", "close", "adj close", "adj_close", "volume")  # of yfinance's upper level
_PRICE_WORDS = frozenset(
    {"close", "adj_close", "adjclose", "adjusted_close", "price", "px", "last", "last_price", "trade_price"}
    | {"bid", "ask", "bid_price", "ask_price", "bid_px", "ask_px", "best_bid", "best_ask"}
)
_ONE_LETTER = frozenset("ohlc")
# Words of fields: a name of several words with one of them, such as 'High Price', is no symbol, and by itself only
# where it is written as the symbols beside it are, as LOW and OPEN among tickers.
_FIELD_WORDS = frozenset(
    {"open", "high", "low", "close", "last", "price", "bid", "ask", "volume", "vol", "size", "qty", "quantity",
     "turnover", "change", "return", "returns", "ret", "actual", "forecast", "previous", "consensus", "signal",
     "weight", "position", "pnl", "count", "trades"}
)  # fmt: skip
_WORD = re.compile(r"[a-z]+")
_EMPTY = frozenset({"", ".", "-", "na", "n/a", "nan", "null", "none", "nd", "#n/a"})


@dataclass(frozen=True, slots=True)
class SymbolColumns:
    """Which columns of a line belong to which symbol: symbol → field → the column's name."""

    time: str
    time_name: str  # in the rows that lines are divided into
    by_symbol: Mapping[str, Mapping[str, str]]

    @property
    def names(self) -> list[str]:
        """The columns of the rows that a line is divided into."""
        fields = dict.fromkeys(field for fields in self.by_symbol.values() for field in fields)
        return [self.time_name, "symbol", *fields]

    def rows(self, line: Row) -> Iterator[Row]:
        """A row for each symbol that has a close in this line."""
        for symbol, fields in self.by_symbol.items():
            close = fields.get("close")
            if close is not None and not _is_empty(line[close]):
                yield {
                    self.time_name: line[self.time],
                    "symbol": symbol,
                    **{field: line[column] for field, column in fields.items()},
                }


def is_wide(names: Sequence[Any]) -> bool:
    """Whether each column but that of times is a symbol: none has the name of a field of rows."""
    if len(names) < 2:
        return False
    plain = {str(name).strip().lower().replace(" ", "_") for name in names}
    layout = recognise_layout(names, SourceSpec(""))
    if layout is not None and ("symbol" in layout.fields or layout.kind in ("news", "macro")):
        return False
    if plain & _PRICE_WORDS or plain >= _ONE_LETTER:
        return False
    time = time_column([str(name) for name in names])
    return not _have_fields([str(name) for name in names if str(name) != time])


def _have_fields(names: Sequence[str]) -> bool:
    """Whether some of these columns are fields of one symbol."""
    words = [_WORD.findall(name.lower()) for name in names]
    fields = [name for name, of in zip(names, words, strict=True) if len(of) == 1 and of[0] in _FIELD_WORDS]
    if fields and (not all(map(str.isupper, fields)) or 2 * len(fields) >= len(names)):
        return True
    return len(names) > 1 and any(len(of) > 1 and not _FIELD_WORDS.isdisjoint(of) for of in words)


def find_symbol_columns(header: Sequence[str], sample: Iterable[Row]) -> SymbolColumns | None:
    """The columns of a table of closes with one header line; None where a cell of its first rows is no number."""
    if not is_wide(header):
        return None
    named = time_column(header)
    time = named or header[0]
    rows = list(sample)
    if not named and not all(is_time(str(row[time]).strip()) for row in rows):
        return None
    symbols = [name for name in header if name != time and name.strip()]
    for name in symbols:
        if not all(_is_empty(row[name]) or is_number(str(row[name])) for row in rows):
            return None
    if not any(is_number(str(row[name])) for row in rows for name in symbols):
        return None
    return SymbolColumns(time, named or "ts", {name.strip(): {"close": name} for name in symbols})


def read_two_levels(lines: Sequence[Sequence[str]]) -> tuple[list[str], SymbolColumns] | None:
    """The names and columns of yfinance's three header lines (fields, tickers, the name of the times); else None.

    Either level may come first: 'Price,Close,High' over 'Ticker,AAPL,AAPL', or the other way round.
    """
    if len(lines) < 3 or len({len(line) for line in lines[:3]}) > 1 or any(map(str.strip, lines[2][1:])):
        return None
    upper, lower = lines[0][1:], lines[1][1:]
    levels = next(
        (pair for pair in ((upper, lower), (lower, upper)) if all(_field(name) for name in pair[0])), None
    )
    time = lines[2][0].strip()
    if not levels or not levels[0] or not time or any(map(is_number, (*levels[1], time, time[:4]))):
        return None
    by_symbol: dict[str, dict[str, str]] = {}
    names = [time]
    for field, symbol in zip(*levels, strict=True):
        names.append(f"{field.strip()} {symbol.strip()}")
        by_symbol.setdefault(symbol.strip(), {})[_field(field)] = names[-1]
    for fields in by_symbol.values():
        adjusted = fields.pop("adj_close", "")
        if adjusted:
            fields.setdefault("close", adjusted)
    return names, SymbolColumns(time, time_column([time]) or "ts", by_symbol)


def _field(name: str) -> str:
    """A field as rows name it; '' for any other name."""
    plain = name.strip().lower()
    return plain.replace(" ", "_") if plain in FIELDS else ""


def _is_empty(cell: Any) -> bool:
    return cell is None or str(cell).strip().lower() in _EMPTY
