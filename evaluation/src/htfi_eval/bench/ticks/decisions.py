"""Times decisions through the real loop, from a bar's close to their release, and a whole run of the sample."""

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from htfi.domain.decision import Receipt
from htfi.domain.errors import DependencyUnavailable
from htfi.domain.events import Trade
from htfi.domain.time import NS_PER_DAY, NS_PER_S, format_ns
from htfi.pipeline.decided import DecidedSeries
from htfi.wiring.ledger import open_ledger, open_ledger_readonly
from htfi.wiring.loop import build_loop
from htfi.wiring.outputs import DecisionJournal
from htfi.wiring.run import deferred_garbage_collection
from htfi.wiring.settings import load_settings, override
from htfi_eval.item_feed import ItemFeed

BAR_S = 60
TRADES_PER_BAR = 4
LONG_SERIES, LONG_DAYS = 100, 120
START_NS = 1_380_000_000 * NS_PER_S // (BAR_S * NS_PER_S) * (BAR_S * NS_PER_S)


class _TimedJournal(DecisionJournal):
    """The journal, with the time at which its last lines were written."""

    written_ns = 0

    def flush(self) -> None:
        super().flush()
        self.written_ns = time.perf_counter_ns()


class _TimedSubscriber:
    """A subscriber that notes the time of the last decision it got."""

    released_ns = 0

    def __call__(self, _receipt: Receipt, _decided: DecidedSeries) -> None:
        self.released_ns = time.perf_counter_ns()


def _trades(num_symbols: int, num_bars: int, seed: int) -> Iterator[Trade]:
    """Trades of `num_symbols` symbols over `num_bars` minutes, at seeded random prices."""
    rng, prices = random.Random(seed), [100.0] * num_symbols
    step_ns = BAR_S * NS_PER_S // (TRADES_PER_BAR * num_symbols)
    for k in range(num_bars * TRADES_PER_BAR * num_symbols):
        symbol = k % num_symbols
        prices[symbol] *= 1 + rng.gauss(0, 2e-4)
        at_ns = START_NS + k * step_ns
        yield Trade(at_ns, at_ns, "bench", k + 1, f"S{symbol:03d}", prices[symbol], 100.0)


@dataclass(frozen=True, slots=True)
class ReleaseTiming:
    """Milliseconds of every moment at which all bars closed, to the last decision that a subscriber got and to the last
    line of decisions.jsonl; and the mean size of a decision's ledger entry.
    """

    elapsed_ms: list[float]
    written_ms: list[float]
    entry_bytes: float


def bar_to_release(num_symbols: int, num_bars: int, seed: int) -> ReleaseTiming:
    """From the event that closes the bars of all symbols to the last released decision, without waiting for the disk.

    Released is what a subscriber in the process got, with its receipt; the lines of decisions.jsonl follow.

    There is no news, so every entry is a decision without a reading.
    """
    settings = override(override(load_settings(), "market", bar="60s"), "pipeline", group_ms=0.0)
    elapsed_ms: list[float] = []
    written_ms: list[float] = []
    with tempfile.TemporaryDirectory(prefix="htfi-bench-") as folder:
        ledger = open_ledger(Path(folder), origin="htfi.bench", durable=False)
        outlet, subscriber = _TimedJournal(Path(folder)), _TimedSubscriber()
        loop = build_loop(settings, ItemFeed(), ledger, outlet, subscriber=subscriber)
        with deferred_garbage_collection():
            for item in _trades(num_symbols, num_bars, seed):
                decided = loop.recorder.num_decided
                began_ns = time.perf_counter_ns()
                loop.step(item)
                if loop.recorder.num_decided - decided == num_symbols:
                    elapsed_ms.append((subscriber.released_ns - began_ns) / 1e6)
                    written_ms.append((outlet.written_ns - began_ns) / 1e6)
        sizes = [len(ledger.entry(index)) for index in range(ledger.size)]
        outlet.close()
        ledger.close()
    return ReleaseTiming(elapsed_ms, written_ms, sum(sizes) / len(sizes))


@dataclass(frozen=True, slots=True)
class WholeRun:
    """One `htfi run` with default settings, from the start of its process."""

    total_s: float
    disk_bytes_per_decision: float  # of all files in its folder


def time_sample_run() -> WholeRun:
    """The embedded sample. Raises: DependencyUnavailable where the run fails."""
    with tempfile.TemporaryDirectory(prefix="htfi-bench-") as parent:
        return _time_run(Path(parent) / "run", "the embedded sample")


def time_long_run(seed: int) -> WholeRun:
    """Daily bars of `LONG_SERIES` series, in a file that counts as long. Raises: DependencyUnavailable."""
    with tempfile.TemporaryDirectory(prefix="htfi-bench-") as parent:
        prices = Path(parent) / "prices.csv"
        _write_daily_bars(prices, seed)
        return _time_run(Path(parent) / "run", "daily bars", str(prices))


def _write_daily_bars(file: Path, seed: int) -> None:
    rng, closes = random.Random(seed), [100.0] * LONG_SERIES
    with file.open("w", encoding="utf-8") as rows:
        rows.write("start,symbol,interval,open,high,low,close\n")
        for day in range(LONG_DAYS):
            start = format_ns(START_NS + day * NS_PER_DAY)
            for symbol in range(LONG_SERIES):
                opened = closes[symbol]
                closes[symbol] = close = opened * (1 + rng.gauss(0, 0.01))
                bar = f"{opened:.4f},{max(opened, close):.4f},{min(opened, close):.4f},{close:.4f}"
                rows.write(f"{start},S{symbol:03d},1d,{bar}\n")


def _time_run(folder: Path, what: str, *files: str) -> WholeRun:
    began_s = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "htfi", "run", *files, "--plain", "--out", str(folder)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    total_s = time.perf_counter() - began_s
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise DependencyUnavailable(f"htfi run on {what} failed: {reason}")
    num_bytes = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    log = open_ledger_readonly(folder)
    num_decisions = log.size
    log.close()
    return WholeRun(total_s, num_bytes / num_decisions)
