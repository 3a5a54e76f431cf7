"""`htfi bench engine`: the cost of a step of a language model on one core, beside peers and the hardware's floor."""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np

from htfi import models
from htfi.decoding.checkpoint.folder import ModelFolder
from htfi.decoding.forward_pass import forward_text
from htfi.decoding.ports import Floats, Network
from htfi.decoding.vocabulary import Vocabulary
from htfi.wiring.models.loading import load_network, open_model
from htfi_eval.bench.engine_worker import MACHINE, OUR_ENGINES, PEER_ENGINES
from htfi_eval.bench.processes import WorkerProcess, available_cores
from htfi_eval.bench.targets import TARGET, MinimalWork, minimal_work, write_target
from htfi_eval.commands import figures_options, runs_option
from htfi_eval.report import write_outputs
from htfi_eval.results import Evaluation
from htfi_train.simulation.corpus import training_passages

CASES = ((1, 1), (1, 8), (4, 1), (4, 8), (16, 1), (16, 8))  # rows, new positions
METRIC_CASES = {"decode": (1, 1), "verify8": (1, 8), "verify16x8": (16, 8)}
CONTEXT = 128
RATES = ("read_bytes_per_s", "operations_per_s")
WEIGHT_BYTES = (("fp32", 4), ("int8", 1))
SEED = 7
WORKER = "htfi_eval.bench.engine_worker"
MIN_RUNS = 5
NUM_AGREEMENT_TEXTS = 100
UNSEEN_STORIES = 1_700_000_000  # seed of stories that no model was trained on
# An instruction that multiplies floats multiplies four times as many bytes (AVX-512 VNNI, Arm dot products).
BYTE_PRODUCTS_PER_FLOAT = 4

Row = dict[str, Any]
EngineRuns = list[dict[str, float]]  # of each run: milliseconds of every engine, and the machine's rates


@click.command("engine", short_help="Decode and verify steps, against transformers and openvino.")
@runs_option(MIN_RUNS)
@figures_options
def command(num_runs: int, json_file: Path | None, history_file: Path | None) -> None:
    """Measure one pass of a random Llama of 56M parameters after 128 tokens, on one core, in milliseconds.

    A row is a number of texts times a number of new tokens: 1×1 is a decode step, 1×8 verifies eight drafted tokens.
    Every engine runs in a process of its own on the same weights, and the engines take turns; openvino runs the graphs
    that we write. A floor is the time to read the weights at this core's bandwidth or to multiply them at its rate,
    whichever is longer. 'best' is the fastest of our precisions.

    \b
    Examples:
      htfi bench engine
      htfi bench engine --runs 9 --json build/goals/engine.json
    """
    scratch = Path(tempfile.mkdtemp(prefix="htfi-bench-engine-"))
    try:
        write_target(scratch / "target", SEED, TARGET)
        turns, missing = _measure(scratch, num_runs)
    finally:
        shutil.rmtree(scratch)
    rows = [_case_row(case, of_case) for case, of_case in turns.items()]
    reads, computes = (median(turn[rate] for of_case in turns.values() for turn in of_case) for rate in RATES)
    rows.append({"what": f"one core reads {reads / 1e9:.1f} GB/s, computes {computes / 1e9:.0f} GFLOP/s"})
    rows += [{"what": f"{name}: {reason}"} for name, reason in missing.items()]
    agreement, agreement_rows = _agreement()
    result = Evaluation(
        name="engine",
        kind="bench",
        metrics=dict(_metrics(turns) | agreement),
        rows=rows + agreement_rows,
        seed=SEED,
    )
    write_outputs(result, json_file=json_file, history_file=history_file)


def _measure(scratch: Path, num_runs: int) -> tuple[dict[tuple[int, int], EngineRuns], dict[str, str]]:
    """Runs in which the engines take turns, and the peers that are missing."""
    with ExitStack() as closing:
        workers: dict[str, WorkerProcess] = {}
        for name in (*OUR_ENGINES, *PEER_ENGINES, MACHINE):
            folders = (str(scratch / "target"), str(scratch / "cache"))
            arguments = (name, *folders, str(CONTEXT), str(SEED), str(available_cores()[0]))
            workers[name] = WorkerProcess(WORKER, arguments, scratch)
            closing.callback(workers[name].close)
        missing = {name: worker.missing for name, worker in workers.items() if worker.missing}
        machine = workers.pop(MACHINE)
        running = {name: worker for name, worker in workers.items() if name not in missing}
        turns: dict[tuple[int, int], EngineRuns] = {}
        for rows, new in CASES:
            request = {"rows": rows, "new": new, "repeats": max(3, 24 // (rows * new))}
            turns[rows, new] = [
                {name: worker.ask(request)["ms"] for name, worker in running.items()} | machine.ask({})
                for _ in range(num_runs)
            ]
        return turns, missing


def _case_row(case: tuple[int, int], turns: EngineRuns) -> Row:
    row: Row = {"what": f"{case[0]}×{case[1]}"}
    row |= {name: median(turn[name] for turn in turns) for name in turns[0] if name not in RATES}
    row |= {
        f"{name} floor": median(_floor_ms(case, turn, size) for turn in turns) for name, size in WEIGHT_BYTES
    }
    if "transformers" in turns[0]:
        row["best ÷ transformers"] = _best_ratio(turns)
    return row


def _best_ratio(turns: EngineRuns) -> float:
    """The median over runs of our time over theirs, for our fastest precision."""
    return min(median(turn[name] / turn["transformers"] for turn in turns) for name in OUR_ENGINES)


def _floor_ms(case: tuple[int, int], rates: Mapping[str, float], weight_bytes: int) -> float:
    least = minimal_work(TARGET, *case, CONTEXT, weight_bytes)
    products = 1 if weight_bytes == 4 else BYTE_PRODUCTS_PER_FLOAT
    compute_s = least.num_operations / rates["operations_per_s"] / products
    return max(_read_ms(least, rates), compute_s * 1e3)


def _read_ms(least: MinimalWork, rates: Mapping[str, float]) -> float:
    return least.read_bytes / rates["read_bytes_per_s"] * 1e3


def _metrics(turns: Mapping[tuple[int, int], EngineRuns]) -> dict[str, float]:
    found = {
        f"{name}_vs_transformers": _best_ratio(turns[case])
        for name, case in METRIC_CASES.items()
        if "transformers" in turns[case][0]
    }
    least = minimal_work(TARGET, 1, 1, CONTEXT, weight_bytes=1)
    return found | {"decode_vs_floor": median(turn["int8"] / _read_ms(least, turn) for turn in turns[1, 1])}


def _agreement() -> tuple[dict[str, float], list[Row]]:
    """The lower agreement of the shipped pair, and a row for each model."""
    pair = [folder for folder in (models.TARGET, models.DRAFT) if folder.is_dir()]
    if len(pair) < 2:
        return {}, [{"what": "int8 agreement: not measured, the shipped models are not in this package"}]
    precisions = ("int8", "int8-wide")
    found = {
        (folder.name, precision): top1_agreement(folder, precision, story_texts(folder))
        for folder in pair
        for precision in precisions
    }
    rows: list[Row] = [
        {"what": f"top token agrees with fp32: {name}, {precision}: {share:.1%}"}
        for (name, precision), share in found.items()
    ]
    return {
        "int8_top1_agreement": min(share for (_, precision), share in found.items() if precision == "int8")
    }, rows


def story_texts(
    folder: Path, num_texts: int = NUM_AGREEMENT_TEXTS, seed: int = UNSEEN_STORIES
) -> list[list[int]]:
    """Unseen stories as token ids: news, question, view and path, as the shipped models read and write them."""
    vocabulary = Vocabulary(open_model(folder, "int8").tokenizer)
    return [
        [token for part in parts for token in vocabulary.segment(part.segment)]
        for parts in islice(training_passages(seed), num_texts)
    ]


def top1_agreement(
    folder: Path, precision: str, texts: Sequence[Sequence[int]], cache: Path | None = None
) -> float:
    """The share of positions in `texts` where the top next token in `precision` is the one in float32."""
    opened = ModelFolder.open(folder)
    exact, rounded = load_network(opened, "fp32", cache), load_network(opened, precision, cache)
    same = [_first_choices(exact, text) == _first_choices(rounded, text) for text in texts]
    return float(np.concatenate(same).mean())


def _first_choices(network: Network, text: Sequence[int]) -> Floats:
    return forward_text(network, np.array([text], np.int64)).logits[0].argmax(axis=-1)
