"""`htfi bench ledger`: the cost of recording, verifying and proving, beside pymerkle if installed."""

import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import mean, median, quantiles
from types import ModuleType
from typing import Any

import click

from htfi.governance.ledger.log import TransparencyLog
from htfi.wiring.ledger import DATABASE, open_ledger, open_ledger_readonly
from htfi_eval.bench.floors import Floor, record_times, tile_read_times, verify_s, with_floor
from htfi_eval.bench.ledger_entries import compact_entries, json_entries
from htfi_eval.commands import figures_options
from htfi_eval.report import write_outputs
from htfi_eval.results import Evaluation

ORIGIN = "htfi.example/bench"
GROUPS = (256, 100)  # further groups of compact entries
LARGE_GROUP = 1000  # the group of the figure `appends_per_s`: bars of so many series that end together
JSON_GROUP = 256
NUM_RUNS = 5
NUM_DISTINCT = 2048  # entries, which are repeated
NUM_TIMED_ENTRIES = 60_000  # per run: 90 MB, long enough for SQLite's own checkpoints to count
NUM_TIMED_JSON_ENTRIES = 20_000  # as many bytes
NUM_PEER_ENTRIES = 20_000
PEER_GROUP = 100
NUM_PROOFS = 500
SEED = 7

JSON_NOTE = ", as JSON"
_RECORD_FLOOR = "SHA-256 of the same bytes, one SQLite transaction of them"


@click.command("ledger", short_help="Appends per second, verification, proofs.")
@click.option("--entries", "num_entries", default=100_000, show_default=True, type=click.IntRange(1000))
@figures_options
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder on the disk to measure.  [default: the current one]",
)
def command(num_entries: int, json_file: Path | None, history_file: Path | None, folder: Path | None) -> None:
    """Measure the ledger on a real disk, with entries like those of a run.

    Entries are compact, 1.5 kB, as are those of the sample without readings. Rows that end in "as JSON" use entries
    of version 1, 4.5 kB, as ledgers of earlier versions hold them. appends_per_s is that of compact entries in groups
    of 1,000, each synced to the disk; json_appends_per_s that of JSON in groups of 256. verify_100k_s and
    json_verify_100k_s are the seconds to verify 100,000 of them.

    Beside a figure stands its floor: what the machine needs for the work that cannot be left out, measured in the same
    run, and how many times as much we need.

    \b
    Examples:
      htfi bench ledger
      htfi bench ledger --entries 100000 --json build/goals/ledger.json
    """
    scratch = Path(tempfile.mkdtemp(prefix="htfi-bench-ledger-", dir=folder or Path.cwd()))
    try:
        compact, worded = compact_entries(NUM_DISTINCT, SEED), json_entries(NUM_DISTINCT, SEED)
        rows, appends_per_s = _append_rows(
            scratch, compact, min(num_entries, NUM_TIMED_ENTRIES), (LARGE_GROUP, *GROUPS), (True, False)
        )
        json_rows, json_appends_per_s = _append_rows(
            scratch, worded, min(num_entries, NUM_TIMED_JSON_ENTRIES), (JSON_GROUP,), (True,), JSON_NOTE
        )
        read_rows, verified_s = _verify_and_prove_rows(scratch / "full", compact, num_entries)
        json_read_rows, json_verified_s = _verify_and_prove_rows(
            scratch / "full_json", worded, num_entries, JSON_NOTE
        )
        metrics = {
            "appends_per_s": appends_per_s,
            "json_appends_per_s": json_appends_per_s,
            "verify_100k_s": verified_s * 100_000 / num_entries,
            "json_verify_100k_s": json_verified_s * 100_000 / num_entries,
        }
        result = Evaluation(
            name="ledger",
            kind="bench",
            metrics=dict(metrics),
            rows=rows
            + json_rows
            + read_rows
            + json_read_rows
            + _peer_rows(scratch, compact, min(num_entries, NUM_PEER_ENTRIES)),
            seed=SEED,
            data=f"entries of {_mean_kb(compact)} kB, as JSON {_mean_kb(worded)} kB",
        )
        write_outputs(result, json_file=json_file, history_file=history_file)
    finally:
        shutil.rmtree(scratch)


def _append_rows(
    scratch: Path,
    entries: Sequence[bytes],
    num: int,
    groups_of: Sequence[int],
    durabilities: Sequence[bool],
    note: str = "",
) -> tuple[list[dict[str, Any]], float]:
    """A row for each kind of append; and the rate of the first, entries per second."""
    rows: list[dict[str, Any]] = []
    for durable in durabilities:
        for group in groups_of:
            runs: list[list[float]] = []
            floors: list[float] = []
            groups = list(_groups(entries, num, group))
            for _ in range(NUM_RUNS):  # in turn, as the disk's speed changes
                runs.append(_timed_appends(scratch / "append", groups, durable))
                floors += record_times(scratch / "floor", groups, durable=durable)
            rate = median(num / sum(times) for times in runs)
            what = f"append, groups of {group:,}{note}" + ("" if durable else ", no disk sync")
            row = _row(what, [t for times in runs for t in times], rate)
            floor = _RECORD_FLOOR + (", synced" if durable else "")
            rows.append(with_floor(row, "p50 ms", Floor(median(floors) * 1e3, floor)))
    return rows, rows[0]["entries/s"]


def _timed_appends(folder: Path, groups: Sequence[Sequence[bytes]], durable: bool) -> list[float]:
    log = open_ledger(folder, origin=ORIGIN, durable=durable)
    times: list[float] = []
    for batch in groups:
        began = time.perf_counter()
        log.append(batch)
        times.append(time.perf_counter() - began)
    log.close()
    shutil.rmtree(folder)
    return times


def _groups(entries: Sequence[bytes], num: int, size: int) -> Iterator[list[bytes]]:
    """`num` entries in groups, taken in turn."""
    for start in range(0, num, size):
        yield [entries[index % len(entries)] for index in range(start, min(start + size, num))]


def _verify_and_prove_rows(
    folder: Path, entries: Sequence[bytes], num: int, note: str = ""
) -> tuple[list[dict[str, Any]], float]:
    """Rows for a ledger of `num` entries; and the median time to verify it, in seconds."""
    log = open_ledger(folder, origin=ORIGIN, durable=False)
    _fill(log, entries, num)
    log.close()
    view = open_ledger_readonly(folder)
    verify_times = [_timed(view.verify) for _ in range(NUM_RUNS)]
    noise = random.Random(SEED)
    indices = [noise.randrange(num) for _ in range(NUM_PROOFS)]
    inclusion = [_timed(partial(view.inclusion_proof, index)) for index in indices]
    consistency = [_timed(partial(view.consistency_proof, index + 1)) for index in indices]
    view.close()
    whole_s = median(verify_times)
    read_s = median(verify_s(folder / DATABASE, entries, num) for _ in range(NUM_RUNS))
    tiles_s = median(tile_read_times(folder / DATABASE, indices, num))
    verified = {"what": f"verify {num:,} entries{note}", "entries/s": num / whole_s, "median s": whole_s}
    read = Floor(read_s, "reading the file, SHA-256 of the entries' bytes, one signature check")
    tiles = Floor(tiles_s * 1e3, "reading a tile of each level from SQLite")
    rows = [
        with_floor(verified, "median s", read),
        with_floor(_row(f"inclusion proof{note}", inclusion), "p50 ms", tiles),
        with_floor(_row(f"consistency proof{note}", consistency), "p50 ms", tiles),
    ]
    return rows, whole_s


def _fill(log: TransparencyLog, entries: Sequence[bytes], num: int) -> None:
    for group in _groups(entries, num, 1000):
        log.append(group)


def _peer_rows(scratch: Path, entries: Sequence[bytes], num: int) -> list[dict[str, Any]]:
    """pymerkle's own SQLite tree, same entries and groups: entries and hashes only, no signed checkpoints."""
    try:
        import pymerkle  # GPL: only measured, never part of the program
    except ImportError:
        return [{"what": "pymerkle is not installed"}]
    group, rows = PEER_GROUP, list[dict[str, Any]]()
    runs: list[list[float]] = []
    for run in range(NUM_RUNS):
        tree = _peer_tree(pymerkle, scratch / f"peer{run}.db")
        runs.append([_timed(partial(tree.append_entries, batch)) for batch in _groups(entries, num, group)])
        tree.close()
    rate = median(num / sum(times) for times in runs)
    rows.append(_row(f"pymerkle append, groups of {group}", [t for times in runs for t in times], rate))
    tree = _peer_tree(pymerkle, scratch / "peer0.db")
    noise = random.Random(SEED)
    indices = [noise.randrange(num) for _ in range(NUM_PROOFS)]
    proofs = [_timed(partial(tree.prove_inclusion, index + 1, num)) for index in indices]
    rows.append(_row(f"pymerkle inclusion proof ({num:,} entries)", proofs))
    tree.close()
    return rows


def _peer_tree(pymerkle: ModuleType, path: Path) -> Any:
    return pymerkle.SqliteTree(str(path), algorithm="sha256")


def _row(what: str, times_s: Sequence[float], rate: float | None = None) -> dict[str, Any]:
    cuts = quantiles(times_s, n=100, method="inclusive")
    row: dict[str, Any] = {"what": what}
    if rate is not None:
        row["entries/s"] = rate
    return row | {"p50 ms": cuts[49] * 1e3, "p95 ms": cuts[94] * 1e3, "p99 ms": cuts[98] * 1e3}


def _mean_kb(entries: Sequence[bytes]) -> str:
    return f"{mean(map(len, entries)) / 1000:.1f}"


def _timed(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began
