"""`htfi bench reading`: what reading the news costs a run, as its time with news over that without."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from importlib import import_module
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import click
import msgspec
import numpy as np

from htfi.domain.errors import DependencyUnavailable
from htfi_eval.bench.headlines import (
    NUM_HEADLINES,
    NUM_QUICK,
    RELEASE_NOTE,
    release_metrics,
    release_rows,
    run_both,
)
from htfi_eval.bench.news_timing import REUTERS, load_news_texts
from htfi_eval.bench.processes import available_cores
from htfi_eval.commands import ProgressLine, figures_options, quick_option, runs_option, seed_option
from htfi_eval.report import write_outputs
from htfi_eval.results import Evaluation

STAGED = Path("../shared/data")
EQUITIES = Path("panels/us_equities_daily_2006_2017.parquet")
FX = Path("panels/fx_hourly_2012_201910.parquet")
RELEASES = Path("calendar/ff_merged_2007_201910.parquet")
PAIRS = ("USDCAD", "USDCHF", "AUDUSD", "USDJPY", "GBPUSD", "EURGBP", "EURJPY", "GBPJPY")
NUM_EQUITIES = 50  # those that the news names most
EQUITY_YEARS = (2007, 2009)
FX_MONTHS = (datetime(2015, 1, 1, tzinfo=UTC), datetime(2015, 7, 1, tzinfo=UTC))
NUM_SIMULATED, SIMULATED_DAYS = 30, 504
CHECKPOINT = "checkpoint"  # of a run's ledger: its second line is the number of entries
ITEMS_PER_BAR = 0.2  # of the simulated set: as many as Reuters has on the staged equities
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
SEED = 11


@dataclass(frozen=True, slots=True)
class NewsSet:
    """A file of prices and a file of news in a folder. `is_wire`: news on anything, not on the run's symbols alone."""

    name: str
    folder: Path
    num_items: int
    is_wire: bool = False

    @property
    def files(self) -> tuple[Path, Path]:
        return self.folder / "prices.parquet", self.folder / "news.jsonl"


@dataclass(frozen=True, slots=True)
class RunTimes:
    """Seconds of one run, from start to end: by the clock, and of processor time, its other process included."""

    clock_s: float
    processor_s: float
    num_entries: int


@dataclass(frozen=True, slots=True)
class RunCost:
    """One run without news and one with it, one after the other."""

    plain: RunTimes
    news: RunTimes

    @property
    def ratio(self) -> float:
        return self.news.clock_s / self.plain.clock_s

    @property
    def processor_ratio(self) -> float:
        return self.news.processor_s / self.plain.processor_s


def measure_cost(of: NewsSet) -> RunCost:
    """Two runs in processes of their own. Raises: DependencyUnavailable where one fails."""
    prices, news = of.files
    return RunCost(_run_times((prices,)), _run_times((prices, news)))


def _run_times(files: Sequence[Path]) -> RunTimes:
    """Of `htfi run` with its usual settings, one thread a process, and the entries of its ledger."""
    with TemporaryDirectory(prefix="htfi-bench-") as name:
        out = Path(name) / "run"
        words = ["run", *map(str, files), "--out", str(out), "--plain", "--no-report"]
        start_s = perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "htfi", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, **ONE_THREAD},
        )
        assert process.stderr is not None
        with process.stderr as stream:
            told = stream.read().decode(errors="replace")
        _, status, used = os.wait4(process.pid, 0)
        clock_s = perf_counter() - start_s
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise DependencyUnavailable(f"the run whose cost is measured failed: {told.strip()[-400:]}")
        _, size, *_ = (out / CHECKPOINT).read_text(encoding="utf-8").splitlines()
        return RunTimes(clock_s, used.ru_utime + used.ru_stime, int(size))


def staged_sets(data: Path, folder: Path) -> list[NewsSet]:
    """Daily equities with Reuters' items on them, the same with all of Reuters, hourly currencies with releases as
    headlines; those whose files are staged.
    """
    found: list[NewsSet] = []
    if (data / EQUITIES).is_file() and (data / REUTERS).is_file():
        found += _equity_sets(data, folder)
    if (data / FX).is_file() and (data / RELEASES).is_file():
        found.append(_fx_set(data, folder))
    return found


def _equity_sets(data: Path, folder: Path) -> list[NewsSet]:
    first, last = EQUITY_YEARS
    prices = _table(data / EQUITIES)
    rows = [row for row in _rows(data / REUTERS) if first <= row["published_at"].year <= last]
    rows.sort(key=lambda row: row["published_at"])
    mentions = Counter(symbol for row in rows for symbol in _symbols(row))
    begin, end = date(first, 1, 1), date(last + 1, 1, 1)
    mask = [begin <= day < end for day in prices["date"].to_pylist()]
    prices = prices.filter(mask).drop_columns(["exchange"])
    num_days: Counter[str] = Counter(prices["symbol"].to_pylist())
    whole = max(num_days.values())
    symbols = [symbol for symbol, _ in mentions.most_common() if num_days[symbol] == whole][:NUM_EQUITIES]
    prices = prices.filter([symbol in symbols for symbol in prices["symbol"].to_pylist()])
    items = [
        {
            "id": f"r{place}",
            "published_at": row["published_at"].isoformat(),
            "headline": row["headline"],
            "body": row["lead"],
            "symbols": _symbols(row),
        }
        for place, row in enumerate(rows)
    ]
    own = [item for item in items if not set(symbols).isdisjoint(item["symbols"])]
    title = f"{len(symbols)} US equities, daily, {first}–{last}"
    return [
        _write(folder / "equities", f"{title}, Reuters' items on them", prices, own),
        _write(folder / "wire", f"{title}, all of Reuters", prices, items, is_wire=True),
    ]


def _symbols(row: dict[str, Any]) -> list[str]:
    named: str | None = row["symbols"]
    return (named or "").split()


def _fx_set(data: Path, folder: Path) -> NewsSet:
    first, last = FX_MONTHS
    prices = _table(data / FX)
    symbols, instants = prices["symbol"].to_pylist(), prices["ts"].to_pylist()
    mask = [symbol in PAIRS and first <= at < last for symbol, at in zip(symbols, instants, strict=True)]
    prices = prices.filter(mask).drop_columns(["res"])
    items = [
        {
            "id": f"c{place}",
            "published_at": row["published_at"].isoformat(),
            "headline": _release_headline(row),
            "symbols": [pair for pair in PAIRS if row["currency"] in pair],
        }
        for place, row in enumerate(_rows(data / RELEASES))
        if row["time_exact"] and first <= row["published_at"] < last
    ]
    title = f"{len(PAIRS)} currency pairs, hourly, {first:%Y-%m} to {last:%Y-%m}, economic releases"
    return _write(folder / "fx", title, prices, items)


def _release_headline(row: dict[str, Any]) -> str:
    parts = [f"{row['currency']}: {row['event']} {row['actual'] or ''}".rstrip()]
    parts += [
        f"{word} {row[name]}"
        for word, name in (("expected", "forecast"), ("previous", "previous"))
        if row[name]
    ]
    return ", ".join(parts)


def simulated_set(folder: Path, seed: int, num_days: int = SIMULATED_DAYS) -> NewsSet:
    """Random walks with headlines of the simulated market, each on one of the symbols."""
    pa: Any = import_module("pyarrow")  # which ships no types
    rng = np.random.Generator(np.random.PCG64(seed))
    symbols = [f"S{place:02d}" for place in range(NUM_SIMULATED)]
    closes = 100.0 * np.exp(np.cumsum(0.015 * rng.standard_normal((num_days, NUM_SIMULATED)), axis=0))
    spread = 1.0 + 0.01 * rng.random((num_days, NUM_SIMULATED))
    days = np.datetime64("2012-01-02") + np.arange(num_days)
    table = pa.table(
        {
            "date": np.repeat(days, NUM_SIMULATED),
            "symbol": symbols * num_days,
            "open": closes.ravel(),
            "high": (closes * spread).ravel(),
            "low": (closes / spread).ravel(),
            "close": closes.ravel(),
            "volume": np.full(closes.size, 1_000),
        }
    )
    num_items = round(ITEMS_PER_BAR * closes.size)
    texts = load_news_texts(None, num_items, seed).pairs
    seconds: list[int] = np.sort(rng.integers(num_days * 86_400, size=num_items)).tolist()
    about: list[int] = rng.integers(NUM_SIMULATED, size=num_items).tolist()
    items: list[dict[str, Any]] = [
        {
            "id": f"n{place}",
            "published_at": str(np.datetime64("2012-01-02T00:00:00") + np.timedelta64(second, "s")) + "Z",
            "headline": texts[place % len(texts)][0],
            "symbols": [symbols[of]],
        }
        for place, (second, of) in enumerate(zip(seconds, about, strict=True))
    ]
    return _write(
        folder / "simulated", f"{NUM_SIMULATED} simulated series, daily, {num_days} days", table, items
    )


def _write(
    folder: Path, name: str, prices: Any, items: Iterable[dict[str, Any]], *, is_wire: bool = False
) -> NewsSet:
    parquet: Any = import_module("pyarrow.parquet")
    folder.mkdir()
    listed = list(items)
    found = NewsSet(name, folder, len(listed), is_wire)
    prices_file, news_file = found.files
    parquet.write_table(prices, prices_file)
    news_file.write_bytes(b"".join(msgspec.json.encode(item) + b"\n" for item in listed))
    return found


def _table(file: Path) -> Any:
    parquet: Any = import_module("pyarrow.parquet")
    return parquet.read_table(file)


def _rows(file: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = _table(file).to_pylist()
    return rows


@click.command("reading", short_help="What reading the news costs a run.")
@runs_option(3)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=STAGED,
    show_default=True,
    help="Folder of staged data; without it, simulated prices and headlines alone.",
)
@seed_option(SEED, "the simulated set")
@quick_option
@figures_options
def command(
    num_runs: int, data: Path, seed: int, quick: bool, json_file: Path | None, history_file: Path | None
) -> None:
    """Time of `htfi run` with news over that of the same run without.

    Both runs of a pair have the usual settings and follow each other, from start to end; the ratio is the median over
    pairs. It is by the clock, since a run reads news on a second core where there is one; by processor time, which
    other work on the machine lengthens less, it stands beside. `run_cost_ratio` is the largest over the sets whose news
    is on the run's own symbols; a whole wire, most of which names none of them, is a figure of its own. Then a live run
    is timed from a headline to its release, as in `htfi bench headlines`.

    \b
    Examples:
      htfi bench reading
      htfi bench reading --runs 5 --json build/goals/reading.json
    """
    with TemporaryDirectory(prefix="htfi-bench-") as name:
        folder = Path(name)
        sets = [simulated_set(folder, seed, 60 if quick else SIMULATED_DAYS)]
        sets += [] if quick else staged_sets(data, folder)
        progress, done = ProgressLine("runs in pairs"), 0
        costs: dict[str, list[RunCost]] = {of.name: [] for of in sets}
        num = 1 if quick else num_runs
        for _ in range(num):
            for of in sets:
                costs[of.name].append(measure_cost(of))
                done += 1
                progress(done, num * len(sets))
    ratios = {of.name: median(cost.ratio for cost in costs[of.name]) for of in sets}
    processor = {of.name: median(cost.processor_ratio for cost in costs[of.name]) for of in sets}
    rows = [
        {
            "prices, news": of.name,
            "entries": costs[of.name][0].plain.num_entries,
            "items": of.num_items,
            "without news s": median(cost.plain.clock_s for cost in costs[of.name]),
            "with news s": median(cost.news.clock_s for cost in costs[of.name]),
            "ratio": ratios[of.name],
            "ratio of processor time": processor[of.name],
        }
        for of in sets
    ]
    own, wires = ([of.name for of in sets if of.is_wire == is_wire] for is_wire in (False, True))
    metrics: dict[str, float | None] = {
        "run_cost_ratio": max(ratios[name] for name in own),
        "run_cost_processor_ratio": max(processor[name] for name in own),
        "wire_cost_ratio": max((ratios[name] for name in wires), default=None),
    }
    answers = run_both(NUM_QUICK if quick else NUM_HEADLINES, seed)
    rows += release_rows(answers)
    metrics |= release_metrics(answers)
    notes = [f"{len(available_cores())} cores; medians of {num} pairs of runs", RELEASE_NOTE]
    if len(sets) == 1 and not quick:
        notes.append("staged data were not found: these figures are of simulated prices and headlines")
    result = Evaluation(
        name="reading",
        kind="bench",
        metrics=metrics,
        rows=rows,
        notes=notes,
        seed=seed,
        data="; ".join(of.name for of in sets),
    )
    write_outputs(result, json_file=json_file, history_file=history_file)
