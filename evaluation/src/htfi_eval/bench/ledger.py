"""`htfi bench ledger`: the cost of recording, verifying and proving, beside pymerkle if installed."""

import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from types import ModuleType
from typing import Any

import click

from htfi.domain.decision import (
    TICKS_PER_UNIT,
    BarCircumstances,
    Decision,
    DecisionInputs,
    FeatureDriver,
    FidelityPlan,
    Forecast,
    PolicyOutcome,
    PolicyVerdict,
    Rationale,
    Regime,
    Rung,
    encode_decision,
)
from htfi.governance.ledger.log import TransparencyLog
from htfi.wiring.ledger import DATABASE, open_ledger, open_ledger_readonly
from htfi_eval.bench.floors import Floor, record_times, tile_read_times, verify_s, with_floor
from htfi_eval.commands import figures_options
from htfi_eval.report import write_outputs
from htfi_eval.results import Evaluation

ORIGIN = "htfi.example/bench"
BATCH_SIZES = (100, 256, 1000)
TARGET_BATCH_SIZE = 256
NUM_RUNS = 5
NUM_TIMED_ENTRIES = 20_000  # per run: long enough for SQLite's own checkpoints to count
NUM_PROOFS = 500
SEED = 7

_RECORD_FLOOR = "SHA-256 of the same bytes, one SQLite transaction of them"
_LEVELS = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_EXPERTS = ("ewma", "har", "fhs", "random_walk")


@click.command("ledger", short_help="Appends per second, verification, proofs.")
@click.option("--entries", "num_entries", default=100_000, show_default=True, type=click.IntRange(1000))
@figures_options
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder on the disk to measure.  [default: the current one]",
)
def command(num_entries: int, json_file: Path | None, history_file: Path | None, folder: Path | None) -> None:
    """Measure the ledger with decision-like entries of about 6 KB, on a real disk.

    Beside a figure stands its floor: what the machine needs for the work that cannot be left out, measured in the same
    run, and how many times as much we need.

    \b
    Examples:
      htfi bench ledger
      htfi bench ledger --entries 100000 --json build/goals/ledger.json
    """
    scratch = Path(tempfile.mkdtemp(prefix="htfi-bench-ledger-", dir=folder or Path.cwd()))
    try:
        entries = decision_like_entries(2048, SEED)
        rows, appends_per_s = _append_rows(scratch, entries, min(num_entries, NUM_TIMED_ENTRIES))
        full = scratch / "full"
        read_rows, verified_s = _verify_and_prove_rows(full, entries, num_entries)
        rows += read_rows
        rows += _peer_rows(scratch, entries, min(num_entries, NUM_TIMED_ENTRIES))
        metrics = {"appends_per_s": appends_per_s, "verify_100k_s": verified_s * 100_000 / num_entries}
        result = Evaluation(name="ledger", kind="bench", metrics=dict(metrics), rows=rows, seed=SEED)
        write_outputs(result, json_file=json_file, history_file=history_file)
    finally:
        shutil.rmtree(scratch)


def decision_like_entries(num_entries: int, seed: int) -> list[bytes]:
    """Canonical bytes of plausible decisions: 13 quantiles, 3 horizons, 4 experts, a dozen features."""
    noise = random.Random(seed)
    return [encode_decision(_decision(index, noise)) for index in range(num_entries)]


def _decision(index: int, noise: random.Random) -> Decision:
    def fan() -> list[list[float]]:
        return [sorted(noise.gauss(0, 0.01) for _ in _LEVELS) for _ in range(3)]

    symbol = f"S{index % 100:03d}"
    features = {f"realised_volatility_{scale}_bps": noise.lognormvariate(2, 1) for scale in range(12)}
    drivers = [FeatureDriver(name, value, 7.4, value / 7.4) for name, value in list(features.items())[:2]]
    text = f"{symbol}: volatility is {drivers[0].ratio:.1f} times its usual level; the range is wider."
    return Decision(
        id=f"{symbol}/60s@2013-10-07T14:{index % 60:02d}:00Z",
        symbol=symbol,
        interval="60s",
        as_of_ns=1_381_154_400_000_000_000 + index,
        last_price=noise.uniform(10, 500),
        inputs=DecisionInputs(noise.randbytes(32).hex(), 57, {"ticks": (index * 57 + 1, index * 57 + 57)}),
        settings_digest="9f" * 32,
        models=dict.fromkeys(_EXPERTS, "1"),
        plan=FidelityPlan(Rung.TEMPLATE, "numeric experts only", 5.0),
        regime=Regime.NORMAL,
        features=features,
        forecast=Forecast(
            horizons=(1, 5, 22),
            levels=_LEVELS,
            quantiles=fan(),
            expert_ticks={
                name: [[round(q * TICKS_PER_UNIT) for q in row] for row in fan()] for name in _EXPERTS
            },
            weights={name: [[0.25, 0.25, 0.25]] * 3 for name in _EXPERTS},
            calibration=[1.0, 1.0, 1.0],
        ),
        view=None,
        rationale=Rationale(text, "volatility_up", {"ratio": f"{drivers[0].ratio:.1f}"}, drivers, []),
        circumstances=BarCircumstances(
            1_381_154_340_000_000_000 + index, 1_381_154_400_000_000_000 + index, 1_000, 0.0
        ),
        verdict=PolicyVerdict(PolicyOutcome.RELEASE, []),
    )


def _append_rows(scratch: Path, entries: Sequence[bytes], num: int) -> tuple[list[dict[str, Any]], float]:
    """A row for each kind of append, and the durable rate in groups of TARGET_BATCH_SIZE, entries per second."""
    rows: list[dict[str, Any]] = []
    target_rate = 0.0
    for durable in (True, False):
        for group in BATCH_SIZES:
            runs: list[list[float]] = []
            floors: list[float] = []
            groups = list(_groups(entries, num, group))
            for _ in range(NUM_RUNS):  # in turn, as the disk's speed changes
                runs.append(_timed_appends(scratch / "append", groups, durable))
                floors += record_times(scratch / "floor", groups, durable=durable)
            rate = median(num / sum(times) for times in runs)
            if durable and group == TARGET_BATCH_SIZE:
                target_rate = rate
            what = f"append, groups of {group}" + ("" if durable else ", no disk sync")
            row = _row(what, [t for times in runs for t in times], rate)
            floor = _RECORD_FLOOR + (", synced" if durable else "")
            rows.append(with_floor(row, "p50 ms", Floor(median(floors) * 1e3, floor)))
    return rows, target_rate


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
    folder: Path, entries: Sequence[bytes], num: int
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
    verified = {"what": f"verify {num:,} entries", "entries/s": num / whole_s, "median s": whole_s}
    read = Floor(read_s, "reading the file, SHA-256 of each entry, one signature check")
    tiles = Floor(tiles_s * 1e3, "reading a tile of each level from SQLite")
    rows = [
        with_floor(verified, "median s", read),
        with_floor(_row("inclusion proof", inclusion), "p50 ms", tiles),
        with_floor(_row("consistency proof", consistency), "p50 ms", tiles),
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
    group, rows = BATCH_SIZES[0], list[dict[str, Any]]()
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


def _timed(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began
