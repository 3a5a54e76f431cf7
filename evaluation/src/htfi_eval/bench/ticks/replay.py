"""Reads tick files as columns or as events, in order of time and constant memory, and replays them.

`python -m htfi_eval.bench.ticks.replay` replays files in its own process and prints the cost as JSON: `htfi bench
ticks` starts it for a clean figure of peak memory.
"""

import json
import math
import resource
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.domain.events import Quote, Trade
from htfi.market.config import MarketConfig
from htfi.market.state import ASK_ROW, BID_ROW, QUOTE_ROW, TRADE_ROW, MarketState, TickBatch

CHUNK_ROWS = 65_536
_SIDES = {"b": BID_ROW, "a": ASK_ROW, "s": ASK_ROW}
_TEXT = ("symbol", "exchange", "venue", "side")


@dataclass(frozen=True, slots=True, eq=False)
class _TickRows:
    """One file's rows. Shapes: [n] each."""

    ts: NDArray[np.int64]
    kind: NDArray[np.uint8]
    symbol: NDArray[np.int32]
    venue: NDArray[np.int32]
    price: NDArray[np.float64]
    size: NDArray[np.float64]
    ask_price: NDArray[np.float64]
    ask_size: NDArray[np.float64]

    def cut(self, start: int, end: int) -> "_TickRows":
        return _TickRows(*(getattr(self, item.name)[start:end] for item in fields(self)))


class _CodeTable:
    """Codes for texts, in order of first occurrence."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}

    def encode(self, column: Any) -> NDArray[np.int32]:
        """Codes of a dictionary-encoded arrow column without nulls."""
        places = [self.codes.setdefault(str(text), len(self.codes)) for text in column.dictionary.to_pylist()]
        return np.array(places or [0], np.int32)[column.indices.to_numpy(zero_copy_only=False)]


def read_batches(files: Sequence[Path], chunk_rows: int = CHUNK_ROWS) -> Iterator[TickBatch]:
    """The files' rows in order of time; at one instant in the order of the files. Raises: InvalidInput.

    Columns: ts (timestamp with zone, or integer nanoseconds), symbol, price, size, and where there are any exchange
    (or venue) and side; or bid, bid_size, ask, ask_size in place of side, price and size.
    """
    symbols, venues = _CodeTable(), _CodeTable()
    streams = [_FileReader(file, chunk_rows, symbols, venues) for file in files]
    while True:
        for stream in streams:
            stream.fill()
        open_ends = [int(stream.rows.ts[-1]) for stream in streams if not stream.is_finished]
        if open_ends:
            limit = min(open_ends)  # more rows of the limit's instant may follow
            parts = [stream.take_before(limit) for stream in streams]
        else:
            parts = [stream.take_all() for stream in streams]
        batch = _merged(parts, tuple(symbols.codes), tuple(venues.codes))
        if len(batch):
            yield batch
        if not open_ends:
            return


def count_rows(file: Path) -> int:
    """The file's rows, by its footer. Raises: InvalidInput."""
    pa, pq = _arrow()
    try:
        return int(pq.read_metadata(file).num_rows)
    except (OSError, pa.ArrowException) as error:
        raise InvalidInput(f"{file}: cannot be read as Parquet: {error}") from error


def _arrow() -> tuple[Any, Any]:
    """pyarrow, imported late, as Any: it ships no types."""
    return import_module("pyarrow"), import_module("pyarrow.parquet")


class _FileReader:
    """One file, read one chunk ahead."""

    def __init__(self, file: Path, chunk_rows: int, symbols: _CodeTable, venues: _CodeTable) -> None:
        self.rows = _joined([])
        self.is_finished = False
        self._chunks = _read_rows(file, chunk_rows, symbols, venues)
        self._needs_more = True
        self._file = file

    def fill(self) -> None:
        """Read the next chunk if needed, unless the file has ended."""
        if not self._needs_more or self.is_finished:
            return
        chunk = next(self._chunks, None)
        if chunk is None:
            self.is_finished = True
            return
        rows = _joined([self.rows, chunk])
        if (rows.ts[1:] < rows.ts[:-1]).any():
            raise InvalidInput(f"{self._file}: rows are not in order of ts: sort the file by ts")
        self.rows = rows
        self._needs_more = False

    def take_before(self, limit_ns: int) -> _TickRows:
        """Rows before the limit; a file that reaches it needs its next chunk."""
        end = int(np.searchsorted(self.rows.ts, limit_ns))
        taken, self.rows = self.rows.cut(0, end), self.rows.cut(end, len(self.rows.ts))
        self._needs_more = len(self.rows.ts) == 0 or int(self.rows.ts[-1]) == limit_ns
        return taken

    def take_all(self) -> _TickRows:
        return self.rows


def count_columns(file: Path, chunk_rows: int = CHUNK_ROWS) -> int:
    """The file's rows, its columns read in chunks and put to no use. Raises: InvalidInput."""
    _, batches = _open_columns(file, chunk_rows)
    with _read_to_its_end(file):
        return sum(int(batch.num_rows) for batch in batches)


def _read_rows(file: Path, chunk_rows: int, symbols: _CodeTable, venues: _CodeTable) -> Iterator[_TickRows]:
    venue, batches = _open_columns(file, chunk_rows)
    with _read_to_its_end(file):
        for batch in batches:
            yield _decode(file, batch, venue, symbols, venues)


@contextmanager
def _read_to_its_end(file: Path) -> Generator[None]:
    pa, _ = _arrow()
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise InvalidInput(f"{file}: cannot be read to its end: {error}") from error


def _open_columns(file: Path, chunk_rows: int) -> tuple[str | None, Iterator[Any]]:
    """The name of the venues' column, and the columns of ticks in chunks. Raises: InvalidInput."""
    pa, pq = _arrow()
    try:
        names: list[str] = pq.read_schema(file).names
        source = pq.ParquetFile(file, read_dictionary=[name for name in _TEXT if name in names])
    except (OSError, pa.ArrowException) as error:
        raise InvalidInput(f"{file}: cannot be read as Parquet: {error}") from error
    two_sided = ("ts", "symbol", "bid", "bid_size", "ask", "ask_size")
    needed = two_sided if "bid" in names else ("ts", "symbol", "price", "size")
    missing = [name for name in needed if name not in names]
    if missing:
        raise InvalidInput(f"{file}: no column {', '.join(missing)}: ticks need {', '.join(needed)}")
    venue = next((name for name in ("exchange", "venue") if name in names), None)
    columns = [*needed, *(name for name in (venue, "side") if name in names)]
    return venue, source.iter_batches(chunk_rows, columns=columns, use_threads=False)


def _decode(file: Path, batch: Any, venue: str | None, symbols: _CodeTable, venues: _CodeTable) -> _TickRows:
    count: int = batch.num_rows
    nothing = np.empty(0)
    symbol = symbols.encode(_dictionary(batch.column("symbol")))
    venue_code = venues.encode(_dictionary(batch.column(venue))) if venue else np.zeros(count, np.int32)
    if not venue:
        venues.codes.setdefault("", 0)
    ts = _nanoseconds(file, batch.column("ts"))
    if "bid" in batch.schema.names:
        kind = np.full(count, QUOTE_ROW, np.uint8)
        sides = [_floats(batch.column(name)) for name in ("bid", "bid_size", "ask", "ask_size")]
        return _TickRows(ts, kind, symbol, venue_code, *sides)
    if "side" in batch.schema.names:
        kind = _sides(file, _dictionary(batch.column("side")))
    else:
        kind = np.full(count, TRADE_ROW, np.uint8)
    price, size = _floats(batch.column("price")), _floats(batch.column("size"))
    return _TickRows(ts, kind, symbol, venue_code, price, size, nothing, nothing)


def _dictionary(column: Any) -> Any:
    """The column dictionary-encoded, nulls as ''."""
    pa, _ = _arrow()
    if column.null_count:
        column = column.cast(pa.string()).fill_null("")
    return column if pa.types.is_dictionary(column.type) else column.dictionary_encode()


def _sides(file: Path, column: Any) -> NDArray[np.uint8]:
    texts = [str(text).lower()[:1] for text in column.dictionary.to_pylist()]
    unknown = [text for text in texts if text not in _SIDES]
    if unknown:
        raise InvalidInput(f"{file}: side '{unknown[0]}' is neither bid (b) nor ask (a)")
    kinds = np.array([_SIDES[text] for text in texts] or [BID_ROW], np.uint8)
    return kinds[column.indices.to_numpy(zero_copy_only=False)]


def _nanoseconds(file: Path, column: Any) -> NDArray[np.int64]:
    pa, _ = _arrow()
    if column.null_count:
        raise InvalidInput(f"{file}: a row has no ts")
    if pa.types.is_timestamp(column.type):
        if column.type.tz is None:
            raise InvalidInput(f"{file}: ts has no zone: store it as a timestamp in UTC")
        per_unit = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[column.type.unit]
        return column.cast(pa.int64()).to_numpy() * per_unit
    if not pa.types.is_int64(column.type):
        raise InvalidInput(
            f"{file}: ts is {column.type}: store it as a timestamp in UTC or int64 nanoseconds"
        )
    return column.to_numpy()


def _floats(column: Any) -> NDArray[np.float64]:
    return column.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)


def _joined(parts: Sequence[_TickRows]) -> _TickRows:
    empty = np.empty(0)
    codes = np.empty(0, np.int32)
    base = _TickRows(np.empty(0, np.int64), np.empty(0, np.uint8), codes, codes, empty, empty, empty, empty)
    filled = [part for part in parts if len(part.ts)]
    if len(filled) < 2:
        return filled[0] if filled else base
    has_asks = any(len(part.ask_price) for part in filled)
    if has_asks:
        filled = [_with_asks(part) for part in filled]
    return _TickRows(
        *(np.concatenate([getattr(part, item.name) for part in filled]) for item in fields(base))
    )


def _with_asks(part: _TickRows) -> _TickRows:
    if len(part.ask_price):
        return part
    nothing = np.full(len(part.ts), np.nan)
    return _TickRows(part.ts, part.kind, part.symbol, part.venue, part.price, part.size, nothing, nothing)


def _merged(parts: Sequence[_TickRows], symbols: tuple[str, ...], venues: tuple[str, ...]) -> TickBatch:
    """One batch in order of time, the parts' order kept at equal instants."""
    rows = _joined(parts)
    columns = [getattr(rows, item.name) for item in fields(rows)]
    ends = [part.ts for part in parts if len(part.ts)]
    if any(int(later[0]) < int(earlier[-1]) for earlier, later in pairwise(ends)):
        order = np.argsort(rows.ts, kind="stable")  # parts are in order: a merge, linear in the rows
        columns = [column[order] if len(column) else column for column in columns]
    return TickBatch(symbols, venues, *columns)


SOURCE = "bench"


def events_of(files: Sequence[Path], num_events: int) -> list[Trade | Quote]:
    """`num_events` in a row from the middle of the files' stream, or all where there are fewer."""
    first = max(sum(count_rows(file) for file in files) - num_events, 0) // 2
    events: list[Trade | Quote] = []
    seen = 0
    for batch in read_batches(files):
        if seen + len(batch) > first:
            events.extend(
                batch_events(batch, max(first - seen, 0), min(len(batch), first + num_events - seen))
            )
        seen += len(batch)
        if seen >= first + num_events:
            break
    return events


def batch_events(batch: TickBatch, start: int, end: int) -> Iterator[Trade | Quote]:
    """The rows [start, end) of a batch as events."""
    has_asks = len(batch.ask_price) > 0
    for row in range(start, end):
        at_ns = int(batch.available_at_ns[row])
        symbol, venue = batch.symbols[int(batch.symbol[row])], batch.venues[int(batch.venue[row])]
        price, size = float(batch.price[row]), float(batch.size[row])
        kind = int(batch.kind[row])
        if kind == TRADE_ROW:
            yield Trade(at_ns, at_ns, SOURCE, row + 1, symbol, price, size, venue)
        elif kind == BID_ROW:
            yield _quote(at_ns, row, symbol, venue, price, size, math.nan, math.nan)
        elif kind == ASK_ROW:
            yield _quote(at_ns, row, symbol, venue, math.nan, math.nan, price, size)
        else:
            ask = float(batch.ask_price[row]) if has_asks else math.nan
            ask_size = float(batch.ask_size[row]) if has_asks else math.nan
            yield _quote(at_ns, row, symbol, venue, price, size, ask, ask_size)


def _quote(
    at_ns: int, row: int, symbol: str, venue: str, bid: float, bid_size: float, ask: float, ask_size: float
) -> Quote:
    return Quote(
        at_ns,
        at_ns,
        SOURCE,
        row + 1,
        symbol,
        _carried(bid),
        _carried(bid_size),
        _carried(ask),
        _carried(ask_size),
        venue,
    )


def _carried(value: float) -> float | None:
    return None if math.isnan(value) else value


def replay(files: list[Path], max_rows: int) -> int:
    """The number of rows replayed: all, or `max_rows` and the rest of their chunk if it is above 0."""
    market = MarketState(MarketConfig())
    num_rows = 0
    for batch in read_batches(files):
        market.observe_batch(batch)
        num_rows += len(batch)
        if 0 < max_rows <= num_rows:
            break
    return num_rows


def peak_bytes() -> int:
    """This process's largest resident set so far.

    On Linux ru_maxrss survives exec, so a child of a large parent reports the parent's; VmHWM is its own.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    num_rows = replay([Path(name) for name in sys.argv[2:]], int(sys.argv[1]))
    sys.stdout.write(json.dumps({"num_rows": num_rows, "peak_bytes": peak_bytes()}))
