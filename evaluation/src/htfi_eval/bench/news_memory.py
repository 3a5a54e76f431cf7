"""What `htfi bench narrative` says of memory: a run over many items, in a process of its own, watched as it goes."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import numpy as np

from htfi.domain.errors import DependencyUnavailable
from htfi.domain.time import NS_PER_S, format_ns
from htfi_eval.bench.news_texts import NewsTexts

SYMBOLS = ("AAA", "BBB", "CCC", "DDD")  # with prices; news are about these and others
NUM_OTHERS, NUM_PUBLISHERS = 196, 500
MARKET_WIDE_SHARE = 0.3  # of items that concern the whole market
_SPACING_S, _BAR_S, _DAY_S = 30, 3_600, 86_400
_SAMPLED_AT = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000)  # events
_START_S = 1_262_304_000
_CORRECTED = 50  # one item in so many corrects the one before it
_EVENTS = re.compile(r"([\d,]+) events")


@dataclass(frozen=True, slots=True)
class MemorySample:
    """Resident memory after so many events, and the saved state's size then."""

    num_events: int
    resident_mb: float
    state_mb: float


@dataclass(frozen=True, slots=True)
class MemoryProfile:
    """`peak_mb` is the most that was resident from the process's start to its last line, the report included."""

    num_items: int
    peak_mb: float
    samples: tuple[MemorySample, ...]


def profile_run(texts: NewsTexts, num_items: int, seed: int) -> MemoryProfile:
    """`htfi run` over so many items, with hourly prices and a calendar of daily releases.

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
            taken, last, peak_mb = _sample_process(process, folder / "run" / "state.bin")
        except BaseException:
            process.kill()
            process.wait()
            raise
        if process.wait() != 0:
            raise DependencyUnavailable(f"the run whose memory is measured failed: {last}")
    return MemoryProfile(num_items, peak_mb, taken)


def _sample_process(
    process: "subprocess.Popen[str]", state: Path
) -> tuple[tuple[MemorySample, ...], str, float]:
    """What it took on its way, its last line, and the most that was resident until then: the report is made before.

    `ru_maxrss` would not do: Linux counts the memory of whoever started a process in it.
    """
    taken: list[MemorySample] = []
    last, wanted, peak_mb = "", list(_SAMPLED_AT), float("nan")
    assert process.stdout is not None
    with process.stdout as lines:
        for line in lines:
            last = line.strip() or last
            peak_mb = _peak_mb(process.pid) or peak_mb
            found = _EVENTS.search(line)
            num_events = int(found[1].replace(",", "")) if found else 0
            if wanted and num_events >= wanted[0]:
                wanted = [length for length in wanted if length > num_events]
                state_mb = state.stat().st_size / 1e6 if state.exists() else 0.0
                taken.append(MemorySample(num_events, _resident_mb(process.pid), state_mb))
                print(f"{num_events:,} events: {taken[-1].resident_mb:.0f} MB", file=sys.stderr)  # noqa: T201 - progress
    return tuple(taken), last, peak_mb


def _resident_mb(pid: int) -> float:
    """NaN where the system does not tell."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return float("nan")
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _peak_mb(pid: int) -> float | None:
    """None where the system does not tell, or the process has ended."""
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
