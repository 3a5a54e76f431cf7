"""Floors of `htfi bench ticks`: calling, decoding, copying and recording without anything that is computed."""

import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from htfi.domain.events import Bar, Quote, Trade
from htfi_eval.bench.floors import Floor, copy_s, record_times
from htfi_eval.bench.ticks.replay import count_columns, read_batches

NUM_GROUPS = 100  # that are recorded for a median


class EmptyMarket:
    """Takes what a market takes and does nothing with it: what calling costs."""

    def advance(self, _now_ns: int) -> tuple[Bar, ...]:
        return ()

    def observe(self, _event: Trade | Quote) -> tuple[Bar, ...]:
        return ()

    def close_bars(self, bars: Sequence[Bar]) -> None: ...

    def features(self, symbol: str, interval: str) -> None: ...

    def regime(self, symbol: str, interval: str) -> None: ...


def decoding_floor(files: Sequence[Path], num_runs: int) -> Floor:
    """Millions of rows a second, the median over runs."""
    rates: list[float] = []
    for _ in range(num_runs):
        began = time.perf_counter()
        num_rows = sum(map(count_columns, files))
        rates.append(num_rows / (time.perf_counter() - began) / 1e6)
    return Floor(median(rates), "decoding the same columns of the files, by pyarrow in one thread")


def copying_floor(files: Sequence[Path], num_runs: int) -> Floor:
    """Millions of rows a second, the median over runs."""
    rates: list[float] = []
    for _ in range(num_runs):
        num_rows, taken_s = 0, 0.0
        for batch in read_batches(files):
            codes = [batch.available_at_ns, batch.kind, batch.symbol, batch.venue]
            taken_s += copy_s([*codes, batch.price, batch.size, batch.ask_price, batch.ask_size])
            num_rows += len(batch)
        rates.append(num_rows / taken_s / 1e6)
    return Floor(median(rates), "copying the same columns in memory")


def recording_floor(num_entries: int, entry_bytes: int) -> Floor:
    """Microseconds to record the decisions of a moment; computing them has no floor here."""
    noise = random.Random(0)
    entries = [noise.randbytes(entry_bytes) for _ in range(num_entries)]
    with tempfile.TemporaryDirectory(prefix="htfi-bench-") as folder:
        times = record_times(Path(folder) / "floor", [entries] * NUM_GROUPS, durable=False)
    return Floor(median(times) * 1e6, "SHA-256 of as many bytes, one SQLite transaction of them")
