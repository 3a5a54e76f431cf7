"""`htfi bench paths`: many sample paths from one prefix, drafted whole and verified at once, beside plain sampling."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import click
import msgspec

from htfi import models
from htfi_eval.bench.decode.prompts import SEED
from htfi_eval.bench.paths_worker import FEWEST_PASSES, LEAST_TIME, PLAIN, PathSetTiming
from htfi_eval.bench.processes import WorkerProcess, available_cores
from htfi_eval.bench.targets import COST_60M, write_heavy_target
from htfi_eval.commands import figures_options, quick_option
from htfi_eval.report import write_outputs
from htfi_eval.results import Evaluation

SHIPPED = "shipped"
WORKER = "htfi_eval.bench.paths_worker"
FIRST_NUMBER = 3_000_000  # stories that no other benchmark uses
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PathsCase:
    """A number of paths and steps, drawn by these methods on one target."""

    target: str
    num_paths: int
    horizon: int
    methods: tuple[str, ...] = (PLAIN, FEWEST_PASSES, LEAST_TIME)

    @property
    def is_light(self) -> bool:
        """Whether a draw takes less than about a second."""
        return self.target == SHIPPED or self.num_paths < 100


@dataclass(frozen=True, slots=True)
class PathsWorkload:
    cases: tuple[PathsCase, ...]
    num_runs: int
    num_warm: int  # draws before the first that counts: the planner learns the cost of passes
    num_seeds: int = 3  # of each prefix, to count passes


# With 100 paths a pass over all the rest takes seconds on the 60M-cost target, so it is not measured there.
FULL = PathsWorkload(
    tuple(PathsCase(SHIPPED, num, horizon) for horizon in (24, 64) for num in (1, 4, 16, 100))
    + tuple(
        PathsCase(
            COST_60M.label,
            num,
            horizon,
            (PLAIN, FEWEST_PASSES, LEAST_TIME) if num <= 16 else (PLAIN, LEAST_TIME),
        )
        for horizon in (24, 64)
        for num in (1, 4, 16, 100)
    ),
    num_runs=5,
    num_warm=1,
)
QUICK = PathsWorkload(tuple(PathsCase(SHIPPED, num, 24) for num in (1, 16)), num_runs=1, num_warm=1)

Run = dict[str, PathSetTiming]  # by method
Runs = dict[PathsCase, list[Run]]
Passes = dict[PathsCase, list[list[int]]]  # of the method with the fewest passes: [prefix][seed]


@click.command("paths", short_help="Many price paths at once, against plain sampling.")
@quick_option
@figures_options
def command(quick: bool, json_file: Path | None, history_file: Path | None) -> None:
    """Measure drawing N price paths of H steps after one unseen prefix, on one core, including reading the prefix.

    Plain sampling draws one token of every path in each pass of the target. 'fewest passes' verifies all the rest of
    every path in each pass; 'least time' weighs the cost of a pass. All methods draw the same paths. Passes are those
    of the target after the prefix; their metrics take the worst of five prefixes, each the median over three seeds.
    '× plain' is a ratio within a run, the median over runs; '× drawing' leaves out reading the prefix.

    \b
    Examples:
      htfi bench paths
      htfi bench paths --json build/goals/paths.json
    """
    effort = QUICK if quick else FULL
    scratch = Path(tempfile.mkdtemp(prefix="htfi-bench-paths-"))
    try:
        runs, passes = _measure_cases(scratch, effort)
    finally:
        shutil.rmtree(scratch)
    rows = [_row(case, method, of) for case, of in runs.items() for method in case.methods]
    unlike = sum(num_unlike(of) for of in runs.values())
    drawn = sum(len(one) for of in runs.values() for one in of)
    rows.append({"what": f"sets of paths that differ from plain sampling: {unlike} of {drawn}"})
    result = Evaluation(name="paths", kind="bench", metrics=dict(metrics(runs, passes)), rows=rows, seed=SEED)
    write_outputs(result, json_file=json_file, history_file=history_file)


def _measure_cases(scratch: Path, effort: PathsWorkload) -> tuple[Runs, Passes]:
    found: Runs = {}
    passes: Passes = {}
    numbers = count(FIRST_NUMBER)
    for target in dict.fromkeys(case.target for case in effort.cases):
        folder = models.TARGET
        if target == COST_60M.label:
            folder = scratch / target
            write_heavy_target(models.TARGET, folder, COST_60M)
        with ExitStack() as closing:
            worker = WorkerProcess(
                WORKER, (str(folder), str(models.DRAFT), str(available_cores()[0])), scratch
            )
            closing.callback(worker.close)
            for case in (case for case in effort.cases if case.target == target):
                click.echo(f"{target}: {case.num_paths} paths of {case.horizon} steps", err=True)
                num_runs = effort.num_runs if case.is_light else max(effort.num_runs - 2, 1)
                for _ in range(effort.num_warm):
                    _run(worker, case, 0, numbers)
                found[case] = [_run(worker, case, turn, numbers) for turn in range(num_runs)]
                if (case.target, case.num_paths) == (SHIPPED, 100):
                    passes[case] = [
                        _num_passes(worker, case, effort.num_seeds, numbers) for _ in range(effort.num_runs)
                    ]
    return found, passes


def _run(worker: WorkerProcess, case: PathsCase, turn: int, numbers: Iterator[int]) -> Run:
    """One new prefix by every method, in rotating order."""
    number, first = next(numbers), turn % len(case.methods)
    methods = (*case.methods[first:], *case.methods[:first])
    return {method: _draw(worker, case, method, number, number) for method in methods}


def _num_passes(worker: WorkerProcess, case: PathsCase, num_seeds: int, numbers: Iterator[int]) -> list[int]:
    """Passes of the method with the fewest, after one new prefix, by seed."""
    number = next(numbers)
    return [_draw(worker, case, FEWEST_PASSES, number, seed).num_passes for seed in range(num_seeds)]


def _draw(worker: WorkerProcess, case: PathsCase, method: str, number: int, seed: int) -> PathSetTiming:
    asked = {
        "method": method,
        "num_paths": case.num_paths,
        "horizon": case.horizon,
        "number": number,
        "seed": seed,
    }
    return msgspec.convert(worker.ask(asked), PathSetTiming)


def _row(case: PathsCase, method: str, runs: list[Run]) -> Row:
    of = [run[method] for run in runs]
    row: Row = {
        "what": f"{case.target} · {case.num_paths} × {case.horizon} · {method}",
        "ms": median(one.taken_ms for one in of),
        "prefix, ms": median(one.read_ms for one in of),
        "passes": median(one.num_passes for one in of),
        "passes, max": max(one.num_passes for one in of),
        "draft passes": median(one.num_draft_passes for one in of),
        "target, ms": median(one.target_ms for one in of),
        "draft, ms": median(one.draft_ms for one in of),
    }
    if method == PLAIN:
        return row
    return row | {"× plain": _ratio(runs, method), "× drawing": _ratio(runs, method, whole=False)}


def _ratio(runs: list[Run], method: str, *, whole: bool = True) -> float:
    """Time of plain sampling over that of this method, with or without reading the prefix: the median of pairs."""

    def ms(drawn: PathSetTiming) -> float:
        return drawn.taken_ms - (0.0 if whole else drawn.read_ms)

    return median(ms(run[PLAIN]) / ms(run[method]) for run in runs)


def num_unlike(runs: list[Run]) -> int:
    """Sets whose bins differ from plain sampling."""
    return sum(drawn.bins != run[PLAIN].bins for run in runs for drawn in run.values())


def metrics(runs: Runs, passes: Passes) -> dict[str, float]:
    found = {
        f"target_passes_h{case.horizon}": float(max(median(by_seed) for by_seed in of))
        for case, of in passes.items()
    }
    sixteen = [
        of
        for case, of in runs.items()
        if (case.target, case.num_paths, case.horizon) == (COST_60M.label, 16, 24)
    ]
    hundred = [of for case, of in runs.items() if case.num_paths == 100]
    if sixteen:
        found["wall_vs_plain_n16"] = _ratio(sixteen[0], LEAST_TIME)
    if hundred:
        found["wall_vs_plain_n100"] = min(_ratio(of, LEAST_TIME) for of in hundred)
    return found
