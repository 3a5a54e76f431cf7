"""`htfi bench ticks`: the cost of one event, a replay, a decision and a run, beside polars, pandas and river."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np

from htfi import sample
from htfi.domain.counts import counted
from htfi.domain.errors import DependencyUnavailable, InvalidInput, MissingExtra
from htfi.domain.events import Quote, Trade
from htfi.market.config import MarketConfig
from htfi.market.kernel import COMPILED
from htfi.market.state import MarketState
from htfi_eval.bench.floors import Floor, with_floor
from htfi_eval.bench.ticks.decisions import bar_to_release, time_long_run, time_sample_run
from htfi_eval.bench.ticks.floors import EmptyMarket, copying_floor, decoding_floor, recording_floor
from htfi_eval.bench.ticks.peers import BATCH_PEERS, EVENT_PEERS, TickPeer
from htfi_eval.bench.ticks.replay import count_rows, events_of, read_batches
from htfi_eval.bench.ticks.startup import time_start
from htfi_eval.commands import figures_options, runs_option
from htfi_eval.report import write_outputs
from htfi_eval.results import Evaluation

STAGED = Path("../shared/data/hf")
WEEK = "us_equity_ticks_{}_20131007_11.parquet"
NUM_EVENTS = 200_000  # timed one by one, from the middle of the stream
NUM_SYMBOLS, NUM_BARS = 100, 300  # of the timed decisions
MANY_SYMBOLS, MANY_BARS = 1_000, 100
SEED = 7
MIN_RUNS = 5

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TickFiles:
    """The files that are replayed, and their name in the table."""

    trades: Path
    quotes: Path | None
    label: str

    @property
    def files(self) -> list[Path]:
        return [self.trades] if self.quotes is None else [self.trades, self.quotes]


@click.command("ticks", short_help="Latency of an event and a decision, throughput and memory of a replay.")
@click.option(
    "--trades", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Parquet of trades."
)
@click.option(
    "--quotes", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Parquet of quotes."
)
@runs_option(MIN_RUNS)
@figures_options
def command(
    trades: Path | None, quotes: Path | None, num_runs: int, json_file: Path | None, history_file: Path | None
) -> None:
    """Measure one event, a replay, a decision and a whole run, each on one core.

    Without files the staged week in ../shared/data/hf is used where there is one, else the embedded morning. Rows:
    an event that updates all features, bars and the regime, and one that also reads them; a replay by columns from
    Parquet files, and the share of its kernel; the trades alone, beside libraries that compute bars, realised and
    bipower variance and a volatility; peak memory of a replay; the time from the close of all bars to the release
    of their decisions; the size of a ledger entry; from the start of a process, its stages up to the first decision,
    with news that models read and without, and the whole of `htfi run` on the embedded sample. Beside a figure stands
    its floor: what the machine needs for the work that cannot be left out, measured in the same run.

    \b
    Examples:
      htfi bench ticks
      htfi bench ticks --trades trades.parquet --quotes quotes.parquet
      htfi bench ticks --json build/goals/ticks.json
    """
    ticks = choose_files(trades, quotes)
    memory_rows, peak_mb = _memory_rows(ticks)  # first: children of a small process
    event_rows, event_p50_us, event_p99_us = _event_rows(ticks, num_runs)
    batch_rows, events_per_s = _batch_rows(ticks, num_runs)
    decision_rows, decision_metrics = _decision_rows(num_runs)
    run_rows, run_metrics = _run_rows(num_runs)
    metrics: dict[str, float | None] = {
        "event_p50_us": event_p50_us,
        "event_p99_us": event_p99_us,
        "batch_events_per_s": events_per_s,
        "replay_peak_mb": peak_mb,
    }
    result = Evaluation(
        name="ticks", kind="bench", metrics={**metrics, **decision_metrics, **run_metrics}, seed=SEED,
        rows=[*event_rows, *batch_rows, *memory_rows, *decision_rows, *run_rows],
        notes=[_data_note(ticks, num_runs)], data=ticks.label,
    )  # fmt: skip
    write_outputs(result, json_file=json_file, history_file=history_file)


def choose_files(trades: Path | None, quotes: Path | None, staged: Path = STAGED) -> TickFiles:
    """The given files, else the staged week, else the sample. Raises: InvalidInput."""
    if trades is not None:
        return TickFiles(
            trades, quotes, " + ".join(file.name for file in (trades, quotes) if file is not None)
        )
    if quotes is not None:
        raise InvalidInput(f"--quotes {quotes} needs --trades beside it")
    week = [staged / WEEK.format(kind) for kind in ("trades", "quotes")]
    if all(file.exists() for file in week):
        return TickFiles(week[0], week[1], "staged week")
    morning = {file.stem: file for file in sample.paths()}
    return TickFiles(morning["ibm_trades"], morning["ibm_quotes"], "embedded sample")


def _data_note(ticks: TickFiles, num_runs: int) -> str:
    kernel = "compiled" if COMPILED else "INTERPRETED"
    num_rows = sum(count_rows(file) for file in ticks.files)
    return f"{ticks.label}, {num_rows:,} rows; kernel {kernel}; {counted(num_runs, 'run')}"


def _event_rows(ticks: TickFiles, num_runs: int) -> tuple[list[Row], float, float]:
    """Every event timed alone, on Event objects. The metrics are those of the row that also reads what it updated."""
    events = events_of(ticks.files, NUM_EVENTS)
    if not events:
        raise InvalidInput(f"{ticks.trades} has no ticks")
    updates = [_timed_events(events, reads=False) for _ in range(num_runs)]
    reads = [_timed_events(events, reads=True) for _ in range(num_runs)]
    p50_us, p99_us = _percentile(reads, 50), _percentile(reads, 99)
    rows = [
        _event_row("event: update", events, updates, reads=False),
        _event_row("event: update, read", events, reads, reads=True),
    ]
    for peer in EVENT_PEERS:
        row = _in_table(peer.name, lambda peer=peer: _latency_row(peer.name, peer.runs(events, num_runs)))
        if "p50 µs" in row:
            row["ours ×"] = row["p50 µs"] / p50_us
        rows.append(row)
    return rows, p50_us, p99_us


def _event_row(what: str, events: Sequence[Trade | Quote], runs: Sequence[Any], *, reads: bool) -> Row:
    idle = [_timed_events(events, reads=reads, market=EmptyMarket()) for _ in runs]
    floor = Floor(_percentile(idle, 50), "the clock, and calls that do nothing")
    return with_floor(_latency_row(what, runs), "p50 µs", floor)


def _timed_events(
    events: Sequence[Trade | Quote], *, reads: bool, market: MarketState | EmptyMarket | None = None
) -> Any:
    """Microseconds of each event in a new market or in `market`, the clock's own ~0.05 µs included. Shape: [events]."""
    market = market or MarketState(MarketConfig())
    taken_ns = np.empty(len(events), np.int64)
    clock = time.perf_counter_ns
    for place, event in enumerate(events):
        began = clock()
        if ended := market.advance(event.available_at_ns):
            market.close_bars(ended)
        if filled := market.observe(event):
            market.close_bars(filled)
        if reads:
            market.features(event.symbol, "60s")
            market.regime(event.symbol, "60s")
        taken_ns[place] = clock() - began
    return taken_ns / 1e3


def _batch_rows(ticks: TickFiles, num_runs: int) -> tuple[list[Row], float]:
    """From Parquet files to features, and the kernel's share of it; then the trades alone, beside peers."""
    whole: list[float] = []
    kernel: list[float] = []
    num_rows = 0
    for _ in range(num_runs):
        num_rows, whole_s, kernel_s = timed_replay(ticks.files)
        whole.append(num_rows / whole_s)
        kernel.append(num_rows / kernel_s)
    num_trades = count_rows(ticks.trades)
    alone = [num_trades / timed_replay([ticks.trades])[1] for _ in range(num_runs)]
    rows = [
        with_floor(
            _rate_row("batch: from files", num_rows, whole), "M/s", decoding_floor(ticks.files, num_runs)
        ),
        with_floor(_rate_row("batch: kernel", num_rows, kernel), "M/s", copying_floor(ticks.files, num_runs)),
        with_floor(
            _rate_row("trades: from file", num_trades, alone), "M/s", decoding_floor([ticks.trades], num_runs)
        ),
    ]
    for peer in BATCH_PEERS:
        row = _in_table(peer.name, lambda peer=peer: _peer_rates(peer, ticks.trades, num_trades, num_runs))
        if "M/s" in row:
            row["ours ×"] = median(alone) / 1e6 / row["M/s"]
        rows.append(row)
    return rows, median(whole)


def _peer_rates(peer: TickPeer, trades: Path, num_trades: int, num_runs: int) -> Row:
    return _rate_row(peer.name, num_trades, [num_trades / taken_s for taken_s in peer.runs(trades, num_runs)])


def timed_replay(files: Sequence[Path]) -> tuple[int, float, float]:
    """Rows, total seconds, and seconds in the market kernel."""
    market = MarketState(MarketConfig())
    num_rows, kernel_s = 0, 0.0
    began = time.perf_counter()
    for batch in read_batches(files):
        entered = time.perf_counter()
        market.observe_batch(batch)
        kernel_s += time.perf_counter() - entered
        num_rows += len(batch)
    return num_rows, time.perf_counter() - began, kernel_s


def _memory_rows(ticks: TickFiles) -> tuple[list[Row], float]:
    """Peak resident memory of fresh processes that replay half of the stream, and all of it."""
    num_rows = sum(count_rows(file) for file in ticks.files)
    rows: list[Row] = []
    peak_mb = 0.0
    for what, limit in (("half", max(num_rows // 2, 1)), ("whole", 0)):
        done = _child_replay(limit, ticks.files)
        peak_mb = done["peak_bytes"] / 1e6
        rows.append({"what": f"memory: {what}", "rows": done["num_rows"], "peak MB": peak_mb})
    return rows, peak_mb


def _child_replay(limit: int, files: Sequence[Path]) -> dict[str, int]:
    arguments = [
        sys.executable,
        "-m",
        "htfi_eval.bench.ticks.replay",
        str(limit),
        *(str(file) for file in files),
    ]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise DependencyUnavailable(f"the replay of {files[0]} in its own process failed: {reason}")
    return json.loads(done.stdout)


def _decision_rows(num_runs: int) -> tuple[list[Row], dict[str, float]]:
    """From the close of all bars to the release of their decisions, the ledger's disk sync aside."""
    rows: list[Row] = []
    p99_ms: list[float] = []
    sizes: list[float] = []
    for num_symbols, num_bars in ((NUM_SYMBOLS, NUM_BARS), (MANY_SYMBOLS, MANY_BARS)):
        timings = [bar_to_release(num_symbols, num_bars, SEED + run) for run in range(num_runs)]
        runs = [np.array(timing.elapsed_ms) * 1e3 for timing in timings]
        num_bytes = median(timing.entry_bytes for timing in timings)
        row = _latency_row(f"{num_symbols:,} bars to release", runs)
        rows.append(with_floor(row, "p50 µs", recording_floor(num_symbols, round(num_bytes))))
        written = [np.array(timing.written_ms) * 1e3 for timing in timings]
        rows.append(_latency_row(f"{num_symbols:,} bars to decisions.jsonl", written))
        p99_ms.append(_percentile(runs, 99) / 1e3)
        sizes.append(num_bytes)
    rows.append({"what": "ledger entry, no reading", "bytes": sizes[0]})
    return rows, {
        "bar_to_release_p99_ms": p99_ms[0],
        "bar_to_release_1000_p99_ms": p99_ms[1],
        "entry_bytes": sizes[0],
    }


def _run_rows(num_runs: int) -> tuple[list[Row], dict[str, float]]:
    """Whole runs in processes of their own, in turn; one of each before those that count fills the caches on disk."""
    timed = [(time_start(), time_sample_run()) for _ in range(1 + num_runs)][1:]
    starts, runs = [start for start, _ in timed], [run for _, run in timed]
    found = {
        "disk_bytes_per_decision": time_long_run(SEED).disk_bytes_per_decision,
        "first_decision_s": median(start.first_decision_s for start in starts),
        "sample_run_s": median(run.total_s for run in runs),
    }
    interpreter = Floor(median(start.interpreter_s for start in starts), "the start of Python alone")
    stages = {
        "start: and imports": median(start.imports_s for start in starts),
        "start: and models opened": median(start.models_s for start in starts),
        "htfi run: first decision, no news": median(start.without_news_s for start in starts),
        "htfi run: first decision": found["first_decision_s"],
    }
    return [
        {"what": "htfi run: all files, a decision", "bytes": found["disk_bytes_per_decision"]},
        {
            "what": "htfi run: embedded sample, all files, a decision",
            "bytes": median(run.disk_bytes_per_decision for run in runs),
        },
        {"what": "start: interpreter", "s": interpreter.value},
        *(with_floor({"what": what, "s": taken_s}, "s", interpreter) for what, taken_s in stages.items()),
        {"what": "htfi run: embedded sample", "s": found["sample_run_s"]},
    ], found


def _latency_row(what: str, runs: Sequence[Any]) -> Row:
    """Units: microseconds."""
    levels = {"p50 µs": 50.0, "p99 µs": 99.0, "p99.9 µs": 99.9}
    return {
        "what": what,
        "rows": len(runs[0]),
        **{name: _percentile(runs, at) for name, at in levels.items()},
    }


def _percentile(runs: Sequence[Any], level: float) -> float:
    """The median over runs of each run's percentile."""
    return median(float(np.percentile(run, level)) for run in runs)


def _rate_row(what: str, num_rows: int, rates: Sequence[float]) -> Row:
    """Units: millions of rows a second."""
    return {"what": what, "rows": num_rows, "M/s": median(rates) / 1e6}


def _in_table(what: str, measure: Callable[[], Row]) -> Row:
    try:
        return measure()
    except MissingExtra as missing:
        return {"what": f"{what}: {missing}"}
