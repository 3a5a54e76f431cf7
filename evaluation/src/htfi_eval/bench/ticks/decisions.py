"""Measures the time from a bar's close to its released decision, through the real loop. `htfi bench ticks` calls it."""

import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from htfi.domain.events import FeedItem, Trade
from htfi.domain.time import NS_PER_S
from htfi.pipeline.ports import Position
from htfi.wiring.ledger import open_ledger
from htfi.wiring.outputs import DecisionJournal
from htfi.wiring.run import build_loop, deferred_garbage_collection
from htfi.wiring.settings import load_settings, override

BAR_S = 60
TRADES_PER_BAR = 4
START_NS = 1_380_000_000 * NS_PER_S // (BAR_S * NS_PER_S) * (BAR_S * NS_PER_S)


class _LastReleaseJournal(DecisionJournal):
    """The journal, remembering when it last handed decisions out."""

    released_ns = 0

    def flush(self) -> None:
        super().flush()
        self.released_ns = time.perf_counter_ns()


class _TradeFeed:
    """A feed of trades of `num_symbols` symbols over `num_bars` minutes, at seeded random prices."""

    def __init__(self, num_symbols: int, num_bars: int, seed: int) -> None:
        self._num_symbols = num_symbols
        self._num_bars = num_bars
        self._rng = random.Random(seed)

    def __iter__(self) -> Iterator[FeedItem]:
        rng, row = self._rng, 0
        prices = [100.0] * self._num_symbols
        step_ns = BAR_S * NS_PER_S // (TRADES_PER_BAR * self._num_symbols)
        for k in range(self._num_bars * TRADES_PER_BAR * self._num_symbols):
            symbol, row = k % self._num_symbols, row + 1
            prices[symbol] *= 1 + rng.gauss(0, 2e-4)
            at_ns = START_NS + k * step_ns
            yield Trade(at_ns, at_ns, "bench", row, f"S{symbol:03d}", prices[symbol], 100.0)

    def position(self) -> Position:
        return {}

    def progress(self) -> float | None:
        return None

    def stop(self) -> None: ...

    def close(self) -> None: ...


def bar_to_release_ms(num_symbols: int, num_bars: int, seed: int, *, durable: bool = False) -> list[float]:
    """Milliseconds of every moment at which all symbols' bars closed: from the event that ends them to the last
    released decision. Without `durable` the ledger does not wait for the disk.
    """
    settings = override(override(load_settings(), "market", bar="60s"), "pipeline", group_ms=0.0)
    elapsed_ms: list[float] = []
    with tempfile.TemporaryDirectory(prefix="htfi-bench-") as folder:
        ledger = open_ledger(Path(folder), origin="htfi.bench", durable=durable)
        outlet = _LastReleaseJournal(Path(folder))
        feed = _TradeFeed(num_symbols, num_bars, seed)
        loop = build_loop(settings, feed, ledger, outlet)
        with deferred_garbage_collection():
            for item in feed:
                decided = loop.recorder.num_decided
                began_ns = time.perf_counter_ns()
                loop.step(item)
                if loop.recorder.num_decided - decided == num_symbols:
                    elapsed_ms.append((outlet.released_ns - began_ns) / 1e6)
        outlet.close()
        ledger.close()
    return elapsed_ms
