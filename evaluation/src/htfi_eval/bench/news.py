"""`htfi bench narrative`: the time from a raw news item to its scores and facts, and the memory of a run with many."""

import math
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import click
import msgspec
import numpy as np

from htfi.domain.errors import DependencyUnavailable, MissingExtra
from htfi.domain.time import NS_PER_S, format_ns
from htfi.wiring.encoder import shipped_encoder
from htfi.wiring.settings import Settings
from htfi_eval.bench.encoder_floor import EncoderFloors
from htfi_eval.bench.floors import Floor, with_floor
from htfi_eval.bench.news_timing import (
    BATCH,
    ITEMS,
    NUM_ITEMS_PER_RUN,
    STAGE_ITEMS,
    Embed,
    NewsTexts,
    ThroughputRun,
    load_news_texts,
    measure,
    num_tokens,
    open_peer,
    stages_us,
    warm_up,
)
from htfi_eval.bench.processes import available_cores
from htfi_eval.commands import figures_options, runs_option
from htfi_eval.report import write_outputs
from htfi_eval.results import Evaluation

SYMBOLS = ("AAA", "BBB", "CCC", "DDD")  # with prices; news is about these and others
NUM_OTHERS, NUM_PUBLISHERS = 196, 500
MARKET_WIDE_SHARE = 0.3  # of items that concern the whole market
_SPACING_S, _BAR_S, _DAY_S = 30, 3_600, 86_400
_SAMPLED_AT = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000)  # events
_START_S = 1_262_304_000
_CORRECTED = 50  # one item in 50 corrects the previous one
_EVENTS = re.compile(r"([\d,]+) events")


@dataclass(frozen=True, slots=True)
class MemorySample:
    """Resident memory and size of the saved state after `num_events` events."""

    num_events: int
    resident_mb: float
    state_mb: float


@dataclass(frozen=True, slots=True)
class MemoryProfile:
    """`peak_mb`: the peak of resident memory from the start of the process to its last line, the report included;
    `ahead_peak_mb` that of its process that reads news ahead, which shares the pages of libraries with it;
    `together_peak_mb` of both at one time, files that both map counted once.
    """

    num_items: int
    peak_mb: float
    ahead_peak_mb: float
    together_peak_mb: float
    samples: tuple[MemorySample, ...]


def profile_run(texts: NewsTexts, num_items: int, seed: int) -> MemoryProfile:
    """`htfi run` over `num_items` items, with hourly prices and a calendar of daily announcements.

    Raises: DependencyUnavailable where the run fails.
    """
    with TemporaryDirectory(prefix="htfi-bench-") as name:
        folder = Path(name)
        _write(folder, texts, num_items, seed)
        words = ["run", "prices.csv", "news.jsonl", "--settings", "settings.toml", "--out", "run", "--plain"]
        process = subprocess.Popen(
            [sys.executable, "-m", "htfi", *words],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            last, watched = _sample_process(process, num_items, folder / "run" / "state.bin")
        except BaseException:
            process.kill()
            process.wait()
            raise
        if process.wait() != 0:
            raise DependencyUnavailable(f"the run whose memory is measured failed: {last}")
    return watched


def _sample_process(
    process: "subprocess.Popen[str]", num_items: int, state: Path
) -> tuple[str, MemoryProfile]:
    """The last line of output, and the memory of the process and its child up to it; the report is written before it.

    `ru_maxrss` is not a substitute: on Linux it includes the memory of the parent process.
    """
    taken: list[MemorySample] = []
    last, wanted, peak_mb, ahead_peak_mb, together_mb = "", list(_SAMPLED_AT), float("nan"), 0.0, 0.0
    assert process.stdout is not None
    with process.stdout as lines:
        for line in lines:
            last = line.strip() or last
            peak_mb = _peak_mb(process.pid) or peak_mb
            children = _children(process.pid)
            ahead_peak_mb = max((_peak_mb(child) or 0.0 for child in children), default=ahead_peak_mb)
            together_mb = max(together_mb, _together_mb((process.pid, *children)))
            found = _EVENTS.search(line)
            num_events = int(found[1].replace(",", "")) if found else 0
            if wanted and num_events >= wanted[0]:
                wanted = [length for length in wanted if length > num_events]
                state_mb = state.stat().st_size / 1e6 if state.exists() else 0.0
                taken.append(MemorySample(num_events, _resident_mb(process.pid), state_mb))
                print(f"{num_events:,} events: {taken[-1].resident_mb:.0f} MB", file=sys.stderr)  # noqa: T201 - progress
    return last, MemoryProfile(num_items, peak_mb, ahead_peak_mb, together_mb, tuple(taken))


def _children(pid: int) -> list[int]:
    """Empty where the system does not report them."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _resident_mb(pid: int) -> float:
    """NaN where the system does not report it."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return float("nan")
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _together_mb(pids: Sequence[int]) -> float:
    """Resident memory of processes that map the same files: what is each one's own, and the files of the largest.

    Proportional shares (Pss) would count less the more other runs share the libraries.
    """
    own, files = [0], [0]
    for pid in pids:
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        kinds = {name: int(kb) for name, kb in re.findall(r"^Rss(\w+):\s+(\d+) kB", status, re.MULTILINE)}
        own.append(kinds.get("Anon", 0) + kinds.get("Shmem", 0))
        files.append(kinds.get("File", 0))
    return (sum(own) + max(files)) / 2**10


def _peak_mb(pid: int) -> float | None:
    """None where the system does not report it, or the process has ended."""
    try:
        found = re.search(r"^VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) / 2**10 if found else None


def _write(folder: Path, texts: NewsTexts, num_items: int, seed: int) -> None:
    rng = np.random.Generator(np.random.PCG64(seed))
    others = [f"T{number:03d}" for number in range(NUM_OTHERS)]
    about, publishers = rng.random(num_items), rng.integers(NUM_PUBLISHERS, size=num_items)
    which = rng.integers(len(SYMBOLS) + NUM_OTHERS, size=num_items)
    with (folder / "news.jsonl").open("wb") as file:
        for at in range(num_items):
            turn, place = divmod(at, len(texts.pairs))
            headline, lead = texts.pairs[place]
            item: dict[str, object] = {
                "ts": _instant(at * _SPACING_S),
                "id": f"n{at}",
                "headline": f"{headline} ({turn})" if turn else headline,
                "body": lead,
                "publisher": f"publisher {publishers[at]}",
                "symbols": [] if about[at] < MARKET_WIDE_SHARE else [(*SYMBOLS, *others)[which[at]]],
            }
            if at % _CORRECTED == _CORRECTED - 1:
                item["corrects"] = f"n{at - 1}"
            file.write(msgspec.json.encode(item) + b"\n")
    span_s = num_items * _SPACING_S
    closes = 100.0 * np.exp(np.cumsum(0.004 * rng.standard_normal((span_s // _BAR_S, len(SYMBOLS))), axis=0))
    with (folder / "prices.csv").open("w") as rows:
        rows.write("ts,symbol,open,high,low,close,volume\n")
        for bar, row in enumerate(closes):
            for symbol, close in zip(SYMBOLS, row, strict=True):
                high, low = 1.001 * close, 0.999 * close
                rows.write(f"{_instant((bar + 1) * _BAR_S)},{symbol},{close},{high},{low},{close},9\n")
    with (folder / "calendar.toml").open("w") as calendar:
        for day in range(span_s // _DAY_S):
            calendar.write(
                f'[[release]]\nid = "r{day}"\nkind = "payrolls"\nsubject = "us"\nconsensus = 180\n'
            )
            calendar.write(f"at = {_instant(day * _DAY_S + 48_600)}\n\n")
    (folder / "settings.toml").write_text('[narrative]\ncalendar = "calendar.toml"\n')


def _instant(after_s: int) -> str:
    return format_ns((_START_S + after_s) * NS_PER_S)


SEED = 7
STAGED = Path("../shared/data")


@click.command("narrative", short_help="Time and memory from a raw news item to its scores.")
@runs_option(5)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=STAGED,
    show_default=True,
    help="Folder of staged data; without it, headlines of the simulated market.",
)
@click.option(
    "--memory-items",
    default=100_000,
    show_default=True,
    type=click.IntRange(0),
    help="Items of the run whose memory is measured; 0: none.",
)
@click.option("--seed", default=SEED, show_default=True)
@figures_options
def command(
    num_runs: int, data: Path, memory_items: int, seed: int, json_file: Path | None, history_file: Path | None
) -> None:
    """Time the news processor on unseen items: one by one and in batches, on one core and on all cores.

    An item is a headline and its lead, with its symbols where they are staged, and the run has series of the 50 that
    are named most. Both texts are sanitised and linked; the encoder reads the headline, and the lead where the headline
    has fewer than five words; scores and facts come from the same pass. Passages of the lead are read where the item
    may concern a series and the headline leaves something open. A cache hit is the whole call for an item that was read
    before. The peer is the published encoder in transformers, float32, which only
    encodes headlines. Beside a figure stands its floor: what the machine needs for the work that cannot be left out,
    measured in the same run.

    Then `htfi run` goes through many items with hourly prices and a calendar, in a process of its own, and its memory
    is measured on the way and at its peak. This takes minutes; --memory-items 0 leaves it out.

    \b
    Examples:
      htfi bench narrative
      htfi bench narrative --memory-items 10000
      htfi bench narrative --runs 9 --json build/goals/narrative.json
    """
    settings = Settings()
    encoder = shipped_encoder(settings.encoding)
    found = load_news_texts(data, num_runs * NUM_ITEMS_PER_RUN + STAGE_ITEMS, seed)
    peer, no_peer = _peer()
    spare, pairs = found.pairs[:STAGE_ITEMS], found.pairs[STAGE_ITEMS:]
    encoder.read([headline for headline, _ in spare])
    warm_up(settings, spare, found)
    runs = [
        measure(settings, pairs[at * NUM_ITEMS_PER_RUN : (at + 1) * NUM_ITEMS_PER_RUN], found, encoder, peer)
        for at in range(num_runs)
    ]
    stages = [stages_us(settings, pairs[at * NUM_ITEMS_PER_RUN :], encoder) for at in range(num_runs)]
    tokens = num_tokens(encoder, spare)
    floors = EncoderFloors.measure(tokens)
    rows = _rows(runs, floors) + _stage_rows(stages, floors)
    notes = [
        f"items: {found.source}; a run takes {ITEMS} one by one and {BATCH} in batches on each number of cores, "
        f"each item once; {tokens:.1f} tokens per item; medians of {num_runs} runs",
        *([no_peer] if no_peer else []),
    ]
    metrics = {
        "item_p50_ms": median(run.item_p50_ms for run in runs),
        "item_p99_ms": median(run.item_p99_ms for run in runs),
        "item_all_cores_p50_ms": median(run.item_all_cores_p50_ms for run in runs),
        "item_all_cores_p99_ms": median(run.item_all_cores_p99_ms for run in runs),
        "batch_items_per_s": median(run.all_cores_items_per_s for run in runs),
        "batch_in_processes_items_per_s": median(run.processes_items_per_s for run in runs),
        "cache_hit_us": median(run.cache_hit_us for run in runs),
    }
    if memory_items:
        watched = profile_run(load_news_texts(data, memory_items, seed), memory_items, seed)
        metrics["run_memory_mb"] = watched.peak_mb
        metrics["run_memory_together_mb"] = watched.together_peak_mb
        rows += _memory_rows(watched)
    result = Evaluation(
        name="narrative",
        kind="bench",
        metrics=dict(metrics),
        rows=rows,
        notes=notes,
        seed=seed,
        data=found.source,
    )
    write_outputs(result, json_file=json_file, history_file=history_file)


def _peer() -> tuple[Embed | None, str]:
    try:
        return open_peer(), ""
    except MissingExtra as error:
        return None, f"no peer: {error}"
    except ImportError as error:
        return None, f"no peer: {error.name} is not installed"


def _rows(runs: list[ThroughputRun], floors: EncoderFloors) -> list[dict[str, Any]]:
    def of(name: str) -> float:
        return median(getattr(run, name) for run in runs)

    alone: dict[str, Any] = {
        "what": "one by one, one core", "p50 ms": of("item_p50_ms"), "p99 ms": of("item_p99_ms"),
    }  # fmt: skip
    share = of("share_with_body")
    num_cores = len(available_cores())
    on_all: dict[str, Any] = {
        "what": f"one by one, {num_cores} cores", "p50 ms": of("item_all_cores_p50_ms"),
        "p99 ms": of("item_all_cores_p99_ms"),
    }  # fmt: skip
    one_core = {"what": "in batches, one core", "items/s": of("one_core_items_per_s")}
    all_cores = {"what": "in batches, all cores", "items/s": of("all_cores_items_per_s")}
    processes = {"what": "in batches, a process a core", "items/s": of("processes_items_per_s")}
    hit: dict[str, Any] = {"what": "read before, from the cache", "µs/item": of("cache_hit_us")}
    lookup = Floor(of("cache_floor_us"), "SHA-256 of the text, its bytes found in a dict and copied")
    rows: list[dict[str, Any]] = [
        with_floor(alone, "p50 ms", Floor(floors.alone_us.value / 1e3, floors.alone_us.what)),
        {"what": f"of these the headline alone, {1.0 - share:.0%}", "p50 ms": of("headline_p50_ms")},
        {"what": f"of these with passages of the body, {share:.0%}", "p50 ms": of("body_p50_ms")},
        with_floor(on_all, "p50 ms", floors.alone_all_cores_ms),
        with_floor(one_core, "items/s", floors.batch_items_per_s),
        with_floor(all_cores, "items/s", floors.all_cores_items_per_s),
        with_floor(processes, "items/s", floors.all_cores_items_per_s),
        with_floor(hit, "µs/item", lookup),
    ]
    if not math.isnan(runs[0].peer_ms):
        rows += [
            {"what": "transformers fp32, encoding only, one core", "p50 ms": of("peer_ms")},
            {
                "what": "transformers fp32, encoding only, in batches, one core",
                "items/s": of("peer_batch_items_per_s"),
            },
        ]
    return rows


def _stage_rows(stages: Sequence[Mapping[str, float]], floors: EncoderFloors) -> list[dict[str, Any]]:
    rows = {
        name: {"what": f"stage: {name}", "µs/item": median(stage[name] for stage in stages)}
        for name in stages[0]
    }
    for name, floor in (("encode, one by one", floors.alone_us), ("encode, in batches", floors.batch_us)):
        rows[name] = with_floor(rows[name], "µs/item", floor)
    return list(rows.values())


def _memory_rows(watched: MemoryProfile) -> list[dict[str, Any]]:
    on_its_way = [
        {
            "what": f"a run, {one.num_events:,} events",
            "resident MB": one.resident_mb,
            "state MB": one.state_mb,
        }
        for one in watched.samples
    ]
    return [
        *on_its_way,
        {"what": f"a run of {watched.num_items:,} items, peak", "resident MB": watched.peak_mb},
        {"what": "its process that reads news ahead, peak", "resident MB": watched.ahead_peak_mb},
        {"what": "both, files that both map counted once, peak", "resident MB": watched.together_peak_mb},
    ]
