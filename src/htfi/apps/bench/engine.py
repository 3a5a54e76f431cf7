"""`htfi bench engine`: what a step of a language model costs on one core, beside peers and the floor."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

import click

from htfi import models
from htfi.apps.bench.engine_agreement import top1_agreement
from htfi.apps.bench.engine_peers import OURS, PEERS
from htfi.apps.bench.engine_target import TARGET, work, write_target
from htfi.apps.bench.engine_worker import MACHINE
from htfi.domain.errors import DependencyUnavailable
from htfi.wiring.figures import report

CASES = ((1, 1), (1, 8), (4, 1), (4, 8), (16, 1), (16, 8))  # rows, new positions
METRICS = {"decode": (1, 1), "verify8": (1, 8), "verify16x8": (16, 8)}
CONTEXT = 128
SEED = 7
MIN_RUNS = 5
# An instruction that multiplies floats multiplies four times as many bytes (AVX-512 VNNI, Arm dot products).
BYTE_PRODUCTS_PER_FLOAT = 4

Row = dict[str, Any]
Times = dict[tuple[int, int], dict[str, float]]  # milliseconds of each engine


@click.command("engine", short_help="Decode and verify steps, beside transformers and openvino.")
@click.option("--runs", "num_runs", default=MIN_RUNS, show_default=True, type=click.IntRange(1))
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Write the figures to FILE."
)
def command(num_runs: int, json_file: Path | None) -> None:
    """Measure one pass of a random Llama of 56M parameters after 128 tokens, on one core, in milliseconds.

    A row is a number of texts times a number of new tokens: 1×1 is a decode step, 1×8 verifies eight drafted tokens.
    Engines run in processes of their own, in turn, on the same weights. The floor is the time that reading the
    weights as bytes takes at this core's bandwidth, or computing them at its rate, whichever is longer.

    \b
    Examples:
      htfi bench engine
      htfi bench engine --runs 9 --json build/goals/engine.json
    """
    scratch = Path(tempfile.mkdtemp(prefix="htfi-bench-engine-"))
    try:
        write_target(scratch / "target", SEED, TARGET)
        times, rates, missing = _measure(scratch, num_runs)
    finally:
        shutil.rmtree(scratch)
    rows = [_case_row(case, taken, rates) for case, taken in times.items()]
    read_rate, rate = rates["read_bytes_per_s"], rates["operations_per_s"]
    rows.append({"what": f"one core reads {read_rate / 1e9:.1f} GB/s, computes {rate / 1e9:.0f} GFLOP/s"})
    rows += [{"what": f"{name}: {reason}"} for name, reason in missing.items()]
    agreement, agreement_rows = _agreement()
    report(
        "engine", _metrics(times, rates) | agreement, rows + agreement_rows, seed=SEED, json_file=json_file
    )


def _measure(scratch: Path, num_runs: int) -> tuple[Times, dict[str, float], dict[str, str]]:
    """Medians over runs in which every engine had its turn; the machine's rates; the peers that are missing."""
    with ExitStack() as closing:
        workers: dict[str, Worker] = {}
        for name in (*OURS, *PEERS, MACHINE):
            workers[name] = Worker(name, scratch)
            closing.callback(workers[name].close)
        missing = {name: worker.missing for name, worker in workers.items() if worker.missing}
        machine = workers.pop(MACHINE)
        running = {name: worker for name, worker in workers.items() if name not in missing}
        times: Times = {}
        rates: list[Mapping[str, float]] = []
        for rows, new in CASES:
            repeats = max(3, 24 // (rows * new))
            turns: dict[str, list[float]] = {name: [] for name in running}
            for _ in range(num_runs):
                for name, worker in running.items():
                    turns[name].append(worker.ask(rows=rows, new=new, repeats=repeats)["ms"])
            times[rows, new] = {name: median(taken) for name, taken in turns.items()}
            rates.append(machine.ask())
        return times, {key: median(rate[key] for rate in rates) for key in rates[0]}, missing


class Worker:
    """An engine's process. `missing` says why there is none, else it is empty."""

    def __init__(self, name: str, scratch: Path) -> None:
        core = max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        folders = (str(scratch / "target"), str(scratch / "cache"))
        self._name = name
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "htfi.apps.bench.engine_worker",
                name,
                *folders,
                str(CONTEXT),
                str(SEED),
                str(core),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | threads,
        )
        self.missing: str = self._read().get("missing", "")

    def ask(self, **request: int) -> dict[str, float]:
        if self._process.stdin is not None:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        return self._read()

    def close(self) -> None:
        self._process.communicate()

    def _read(self) -> dict[str, Any]:
        line = self._process.stdout.readline() if self._process.stdout is not None else ""
        if not line:
            raise DependencyUnavailable(f"the process of engine '{self._name}' ended without an answer")
        return json.loads(line)


def _case_row(case: tuple[int, int], taken: Mapping[str, float], rates: Mapping[str, float]) -> Row:
    row: Row = {"what": f"{case[0]}×{case[1]}", **taken, "int8 floor": _floor_ms(case, rates)}
    if "transformers" in taken:
        row["best ÷ transformers"] = min(taken[name] for name in OURS) / taken["transformers"]
    return row


def _floor_ms(case: tuple[int, int], rates: Mapping[str, float]) -> float:
    least = work(TARGET, *case, CONTEXT, weight_bytes=1)
    read_s = least.read_bytes / rates["read_bytes_per_s"]
    compute_s = least.num_operations / rates["operations_per_s"] / BYTE_PRODUCTS_PER_FLOAT
    return max(read_s, compute_s) * 1e3


def _metrics(times: Times, rates: Mapping[str, float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, case in METRICS.items():
        if "transformers" in times[case]:
            best = min(times[case][ours] for ours in OURS)
            found[f"{name}_vs_transformers"] = best / times[case]["transformers"]
    read_ms = work(TARGET, 1, 1, CONTEXT, weight_bytes=1).read_bytes / rates["read_bytes_per_s"] * 1e3
    return found | {"decode_vs_floor": times[1, 1]["int8"] / read_ms}


def _agreement() -> tuple[dict[str, float], list[Row]]:
    """The worse of the shipped pair, and a row for each."""
    pair = [folder for folder in (models.TARGET, models.DRAFT) if folder.is_dir()]
    if len(pair) < 2:
        return {}, [{"what": "int8 agreement: the shipped pair is not in this package"}]
    found = {folder.name: top1_agreement(folder, "int8", SEED) for folder in pair}
    rows: list[Row] = [{"what": f"int8 agreement, {name}: {share:.4f}"} for name, share in found.items()]
    return {"int8_top1_agreement": min(found.values())}, rows
