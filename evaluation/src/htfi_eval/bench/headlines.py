"""`htfi bench headlines`: the time from a headline's arrival at a live run to the release of the decision it triggers.

A real `htfi run` reads daily bars from a file and headlines from a pipe. Each headline is of one series and matters to
it; the next is sent once the one before is answered. Time counts from the write into the pipe to the line of the
decision in decisions.jsonl, recorded before, with the pipe, the inbox and both fsyncs in between.
"""

import json
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, cast

import click
import numpy as np
from msgspec.structs import replace

from htfi.domain.errors import DependencyUnavailable
from htfi.domain.events import News
from htfi.domain.news import ScreenedItem, Screening
from htfi.domain.time import NS_PER_DAY, format_ns
from htfi.narrative.facts.reading import read_for, reading_record
from htfi.narrative.triggering import reasons_of
from htfi.wiring.facts import open_fact_reader
from htfi.wiring.news import open_scorer
from htfi.wiring.settings import Settings
from htfi_eval.commands import ProgressLine, figures_options, quick_option, seed_option
from htfi_eval.report import write_outputs
from htfi_eval.results import Evaluation
from htfi_train.simulation.stories import FIRST_EVALUATION_SEED, stories_of_market

SEED = 11
NUM_SYMBOLS, NUM_DAYS = 48, 60
NUM_HEADLINES, NUM_QUICK, NUM_WARM = 240, 12, 6
_ANSWER_S = 3.0  # for an answer; an item that gets none did not matter in the run
_START_S = 60.0  # for the models to load and the bars to be decided
_POLL_S = 0.0005

_MAPPING = """[[source]]
name = "prices"
path = "prices.csv"

[[source]]
name = "wire"
stdin = true
kind = "news"
stamp = "arrival"
"""
# The quiet rules are for real wires: here one series after the other is asked at once.
_SETTINGS = """[triggers]
min_interval_s = 0.001
max_per_hour = 100000
"""
_ANY_SYMBOL = "S1"  # of no known name
# No item is worth a model: the encoder reads all.
_FACTS_ALONE = """[routing]
min_draft_worth = 1.0
min_target_worth = 1.0
min_frontier_worth = 1.0
"""


@dataclass(frozen=True, slots=True)
class ReleaseTimes:
    """Milliseconds from the write to the release of each headline that was answered; how many were not.

    `num_otherwise` were answered without the reader that is timed.
    """

    answered_ms: list[float]
    num_otherwise: int
    num_unanswered: int

    def percentile(self, level: float) -> float:
        return float(np.percentile(self.answered_ms, level)) if self.answered_ms else float("nan")


def headlines_that_matter(settings: Settings, num: int, seed: int) -> list[str]:
    """Headlines of simulated companies that no model has seen, each of which matters by its own scores."""
    scorer, reader, found = (
        open_scorer(settings.encoding),
        open_fact_reader(settings.encoding),
        dict[str, None](),
    )
    for number in count():
        texts = [
            item.headline
            for story in stories_of_market(FIRST_EVALUATION_SEED + seed, number)
            for item in story.items
        ]
        new = [text for text in dict.fromkeys(texts) if text not in found]
        items = [
            ScreenedItem(News(place, place, "bench", place, f"b{number}:{place}", text), Screening.PASS, 1.0)
            for place, text in enumerate(new, 1)
        ]
        facts = reader.read(new)
        for text, scores, read in zip(new, scorer.score(items), facts, strict=True):
            # each is of another series in the run, and new to it
            scores = replace(scores, novelty=1.0)
            reading = reading_record(read, read_for(read, _ANY_SYMBOL))
            if reasons_of(Screening.PASS, "", scores, reading, settings.triggers, is_tagged=True):
                found[text] = None
        if len(found) >= num:
            return list(found)[:num]
    raise AssertionError("the market has no end")


@contextmanager
def live_run(folder: Path, settings: str, seed: int) -> Generator["subprocess.Popen[bytes]"]:
    """A run in `folder` over daily bars until yesterday, which waits for headlines on its standard input."""
    _write_prices(folder / "prices.csv", seed)
    (folder / "feeds.toml").write_text(_MAPPING)
    (folder / "settings.toml").write_text(settings)
    words = [
        "run",
        "--map",
        "feeds.toml",
        "--settings",
        "settings.toml",
        "--out",
        "run",
        "--plain",
        "--no-report",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "htfi", *words],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(_START_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def measure(
    folder: Path, settings: str, texts: Sequence[str], seed: int, mark: bytes, progress: ProgressLine
) -> ReleaseTimes:
    """Send each text once the one before is answered; decisions whose lines hold `mark` are timed.

    Raises: DependencyUnavailable where the run fails.
    """
    times_ms: list[float] = []
    num_unanswered = num_otherwise = 0
    with live_run(folder, settings, seed) as process:
        pipe = cast("IO[bytes]", process.stdin)
        journal = _wait_for_bars(folder / "run" / "decisions.jsonl", process)
        with journal:
            for place, text in enumerate(texts):
                row = {"id": f"h{place}", "headline": text, "symbols": [f"S{place % NUM_SYMBOLS:02d}"]}
                line = json.dumps({**row, "publisher": f"wire {place % 7}", "ts": format_ns(time.time_ns())})
                sent_ns = time.perf_counter_ns()
                pipe.write(line.encode() + b"\n")
                pipe.flush()
                answer = _wait_for_answer(journal, f"h{place}", process)
                progress(place + 1, len(texts))
                if place < NUM_WARM:
                    continue
                if answer is None:
                    num_unanswered += 1
                elif mark in answer[1]:
                    times_ms.append((answer[0] - sent_ns) / 1e6)
                else:
                    num_otherwise += 1
    return ReleaseTimes(times_ms, num_otherwise, num_unanswered)


def _wait_for_bars(path: Path, process: "subprocess.Popen[bytes]") -> IO[bytes]:
    """The journal, read until the decisions on the newest bars."""
    until_s = time.monotonic() + _START_S
    while time.monotonic() < until_s and process.poll() is None:
        if path.exists() and b"\n" in path.read_bytes()[-1:]:
            journal = path.open("rb")
            size = -1
            while size != (size := path.stat().st_size):
                time.sleep(1.0)
            journal.seek(size)
            return journal
        time.sleep(0.05)
    raise DependencyUnavailable(
        "the run whose answers are timed did not begin: run `htfi run` alone to see why"
    )


def _wait_for_answer(
    journal: IO[bytes], name: str, process: "subprocess.Popen[bytes]"
) -> tuple[int, bytes] | None:
    """When the decision on an item was released, and its line; None where none came."""
    wanted = f'"id":"{name}"'.encode()
    until_s = time.monotonic() + _ANSWER_S
    pending = b""
    while time.monotonic() < until_s:
        pending += journal.read()
        *lines, pending = pending.split(b"\n")
        now_ns = time.perf_counter_ns()
        for line in lines:
            if b'"trigger":"news"' in line and wanted in line:
                return now_ns, line
        if process.poll() is not None:
            raise DependencyUnavailable(
                f"the run whose answers are timed ended with status {process.returncode}"
            )
        time.sleep(_POLL_S)
    return None


def _write_prices(path: Path, seed: int) -> None:
    rng = np.random.Generator(np.random.PCG64(seed))
    midnight_ns = time.time_ns() // NS_PER_DAY * NS_PER_DAY
    moves = np.exp(np.cumsum(0.01 * rng.standard_normal((NUM_DAYS, NUM_SYMBOLS)), axis=0))
    with path.open("w") as rows:
        rows.write("start,symbol,interval,open,high,low,close\n")
        for day, closes in enumerate(100.0 * moves):
            start = format_ns(midnight_ns - (NUM_DAYS - day) * NS_PER_DAY)
            for place, close in enumerate(closes.tolist()):
                bar = f"{close:.4f},{1.002 * close:.4f},{0.998 * close:.4f},{close:.4f}"
                rows.write(f"{start},S{place:02d},1d,{bar}\n")


def run_both(num: int, seed: int) -> dict[str, ReleaseTimes]:
    """Times with facts alone and with the target, in a process each."""
    texts = headlines_that_matter(Settings(), num + NUM_WARM, seed)
    found: dict[str, ReleaseTimes] = {}
    for name, settings, mark in (
        ("facts", _SETTINGS + _FACTS_ALONE, b'"route":"encoder"'),
        ("target", _SETTINGS, b'"wording":{"target"'),
    ):
        with TemporaryDirectory(prefix="htfi-bench-") as folder:
            found[name] = measure(Path(folder), settings, texts, seed, mark, ProgressLine(f"with {name}"))
    return found


RELEASE_NOTE = (
    f"headlines: {NUM_SYMBOLS} series of daily bars, through a pipe, one at a time; from the write to the line in "
    "decisions.jsonl, recorded before"
)


def release_metrics(found: Mapping[str, ReleaseTimes]) -> dict[str, float]:
    """From a headline to its release: with facts alone, and with the target before the release."""
    return {
        "headline_to_release_p50_ms": found["facts"].percentile(50),
        "headline_to_release_p99_ms": found["facts"].percentile(99),
        "headline_to_target_p50_ms": found["target"].percentile(50),
        "headline_to_target_p99_ms": found["target"].percentile(99),
    }


def release_rows(found: Mapping[str, ReleaseTimes]) -> list[dict[str, Any]]:
    return [
        {
            "headlines, read by": name,
            "p50 ms": times.percentile(50),
            "p99 ms": times.percentile(99),
            "answered": len(times.answered_ms),
            "read otherwise": times.num_otherwise,
            "unanswered": times.num_unanswered,
        }
        for name, times in found.items()
    ]


@click.command("headlines", short_help="Time from a headline to the decision it triggers.")
@quick_option
@seed_option(SEED, "headlines and prices")
@figures_options
def command(quick: bool, seed: int, json_file: Path | None, history_file: Path | None) -> None:
    """Time a live run from the arrival of a headline to the release of its decision.

    With facts, the encoder alone reads; with the target, the target does before the release. Headlines are of
    simulated companies that no model was trained on.

    \b
    Examples:
      htfi bench headlines
      htfi bench headlines --quick
      htfi bench headlines --json build/goals/headlines.json
    """
    found = run_both(NUM_QUICK if quick else NUM_HEADLINES, seed)
    result = Evaluation(
        name="headlines",
        kind="bench",
        metrics=dict(release_metrics(found)),
        rows=release_rows(found),
        notes=[RELEASE_NOTE],
        seed=seed,
    )
    write_outputs(result, json_file=json_file, history_file=history_file)
