"""Makes Event objects of tick files, as a feed would hand them over one by one. `htfi bench ticks` times them."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from htfi.domain.events import Quote, Trade
from htfi.market.batch import ASK_ROW, BID_ROW, TRADE_ROW, TickBatch
from htfi_eval.bench.ticks.files import count_rows, read_batches

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
