"""`htfi bench decode`: the gain of speculation on unseen prompts, by kind of prompt, strategy and target."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import click
from rich.text import Text

from htfi import models
from htfi.apps.display.draft_rounds import Line, legend, print_rounds, round_lines
from htfi.apps.display.tables import console
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.generation import Completion
from htfi_eval.bench.decode import measurements
from htfi_eval.bench.decode.measurements import (
    PeerComparison,
    ReportProgress,
    charts,
    measure,
    measure_with_peer,
)
from htfi_eval.bench.decode.methods import (
    CHAIN,
    CHAIN_OF_8,
    EXPLAINED,
    METHODS,
    OUTCOMES,
    OUTCOMES_OF_4,
    OUTCOMES_OF_4_CLASSIC,
    PLAIN,
    TREE,
    DecodingMethod,
    ModelPair,
    open_pair,
)
from htfi_eval.bench.decode.prompts import SEED, PromptKind, prompt_kinds, request, unseen_story
from htfi_eval.bench.decode.worker import TRANSFORMERS, absent_peers
from htfi_eval.bench.processes import WorkerProcess, available_cores
from htfi_eval.bench.targets import COST_60M, COST_200M, TargetSize, write_heavy_target
from htfi_eval.commands import history_option, output_options, quick_option
from htfi_eval.report import write_outputs, write_page
from htfi_eval.results import Evaluation

_SEARCHED = 40  # stories, to find one with an accepted and a rejected draft


def explain(pair: ModelPair) -> Iterator[Line]:
    """A view and a price path, each by a chain and by a tree: all rounds as lines for a console."""
    vocabulary = Vocabulary(pair.target.tokenizer)
    plain = METHODS[PLAIN](pair)
    methods = {name: build(pair) for name, build in EXPLAINED.items()}
    yield from legend()
    for kind in (kind for kind in prompt_kinds() if kind.name in ("view, T 1", "path, T 1")):
        number = _instructive_request(kind, next(iter(methods.values())), vocabulary)
        prompt = request(kind, number, vocabulary)
        yield Text()
        yield from _question(kind, number)
        plain_answer = plain.write(prompt)
        for name, method in methods.items():
            yield from _answer(name, method.write(prompt), plain_answer, vocabulary)


def _instructive_request(kind: PromptKind, method: DecodingMethod, vocabulary: Vocabulary) -> int:
    """The first story outside all measured runs whose answer has rounds of both sorts."""
    for number in range(2_000_000, 2_000_000 + _SEARCHED):
        rounds = method.write(request(kind, number, vocabulary)).rounds
        if len({len(one.accepted) == len(one.drafted) for one in rounds if one.drafted}) > 1:
            return number
    return 2_000_000


def _question(kind: PromptKind, number: int) -> Iterator[Text]:
    story = unseen_story(number)
    yield Text(
        f"{kind.description}: {story.name or story.symbol} ({story.symbol}), temperature {kind.temperature:g}",
        "bold",
    )
    for place, item in enumerate(story.items, 1):
        yield Text.assemble((f"  h{place} ", "bright_black"), item.headline)
    moves = " ".join(f"{value:+.1f}" for value in story.context[-8:])
    yield Text.assemble(("  last moves, in σ ", "bright_black"), moves)


def _answer(name: str, answer: Completion, plain: Completion, vocabulary: Vocabulary) -> Iterator[Line]:
    yield Text()
    num_passes, num_plain = len(answer.rounds), len(plain.rounds)
    same = "same tokens" if answer.tokens == plain.tokens else "DIFFERENT TOKENS"
    yield Text.assemble(
        (name, "bold"),
        f": {len(answer.tokens)} tokens in {num_passes} passes of the target; plain decoding: {same} in {num_plain}",
    )
    yield from round_lines(answer.tokens, answer.rounds, vocabulary)


SHIPPED = "shipped"
HEAVY_METHODS = (PLAIN, CHAIN, TREE, OUTCOMES)
WORKER = "htfi_eval.bench.decode.worker"
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DecodeWorkload:
    """Number of runs on the shipped pair, on the heavier targets and with the peer."""

    num_shipped_runs: int = 11
    num_heavy_runs: int = 5
    num_peer_runs: int = 5
    costs: tuple[TargetSize, ...] = (COST_60M, COST_200M)


QUICK = DecodeWorkload(num_shipped_runs=1, num_heavy_runs=1, num_peer_runs=1, costs=(COST_60M,))


@click.command("decode", short_help="Speculative decoding against plain decoding and transformers.")
@click.option("--explain", is_flag=True, help="Print the rounds of two answers instead.")
@quick_option
@output_options
@history_option
def command(
    explain: bool, quick: bool, html_file: Path | None, json_file: Path | None, history_file: Path | None
) -> None:
    """Measure every method of decoding on unseen prompts, on one core, one request at a time.

    All methods generate the same tokens and differ in time alone. In each run every method answers the same new
    requests. 'tokens/s' counts the time after the prompt was read; 'request' counts the whole request. '×' is the
    ratio to plain decoding within a run, the median over runs. Planners learn for 20 rounds of a kind before it is
    measured. Rows without a kind pool all five kinds. One kind, scrambled news at temperature 2, is unlike anything
    the draft was trained on: spec_vs_plain leaves it out, worst_class_vs_plain does not. 'accepted %' is the share of
    drafted tokens accepted, 'hits %' that of outcomes found in the cache; draft, wait and verify are shares of the
    time; energy is estimated at 5 W for a busy core. Heavier targets generate the same tokens at the cost of a larger
    model.

    \b
    Examples:
      htfi bench decode
      htfi bench decode --explain
      htfi bench decode --html build/decode.html --json build/goals/decode.json
    """
    if explain:
        _explain()
        return
    effort = QUICK if quick else DecodeWorkload()
    scratch = Path(tempfile.mkdtemp(prefix="htfi-bench-decode-"))
    try:
        runs, comparisons, missing = _measure_targets(
            scratch, effort, lambda stage: click.echo(stage, err=True)
        )
    finally:
        shutil.rmtree(scratch)
    rows = [row for of in runs for row in _rows(of)] + _peer_rows(comparisons)
    notes = [
        f"{of.label}: {of.num_unlike()} of {of.num_answers} answers differ from plain decoding" for of in runs
    ]
    notes += [f"{name}: {reason}" for name, reason in (missing | absent_peers()).items()]
    metrics = _metrics(runs, comparisons)
    result = Evaluation(
        name="decode",
        kind="bench",
        title="Speculative decoding",
        metrics=dict(metrics),
        rows=rows,
        notes=notes,
        seed=SEED,
    )
    best = measurements.best_method(runs[0])
    result.charts = charts(runs, best, CHAIN_OF_8)
    write_outputs(result, json_file=json_file, history_file=history_file)
    if html_file is not None:
        result.rows += [
            measurements.table_row(of, kind, method) for of in runs for kind in of.kinds for method in of.ways
        ]
        write_page(html_file, result)


def _explain() -> None:
    print_rounds(console(), explain(open_pair(models.TARGET, models.DRAFT)))


def _measure_targets(
    scratch: Path, effort: DecodeWorkload, report: ReportProgress
) -> tuple[list[measurements.DecodeRuns], list[PeerComparison], dict[str, str]]:
    """Runs of the shipped target and of each heavier one, runs with the peer, and what is missing."""
    with ExitStack() as closing:
        ours = _open(closing, "ours", models.TARGET, scratch)
        found = [measure(ours, SHIPPED, list(METHODS), prompt_kinds(), effort.num_shipped_runs, report)]
        comparisons, missing = _compare_with_peer(
            closing, ours, measurements.best_method(found[0]), scratch, effort.num_peer_runs, report
        )
    for cost in effort.costs:
        with ExitStack() as closing:
            report(f"writing a target of {cost.label}")
            write_heavy_target(models.TARGET, scratch / cost.label, cost)
            heavy = _open(closing, "ours", scratch / cost.label, scratch)
            found.append(
                measure(heavy, cost.label, HEAVY_METHODS, prompt_kinds(), effort.num_heavy_runs, report)
            )
    return found, comparisons, missing


def _compare_with_peer(
    closing: ExitStack, ours: WorkerProcess, method: str, scratch: Path, num_runs: int, report: ReportProgress
) -> tuple[list[PeerComparison], dict[str, str]]:
    if num_runs == 0:
        return [], {TRANSFORMERS: "not measured"}
    peer = _open(closing, TRANSFORMERS, models.TARGET, scratch)
    return (
        ([], {TRANSFORMERS: peer.missing})
        if peer.missing
        else (measure_with_peer(ours, peer, method, num_runs, report), {})
    )


def _open(closing: ExitStack, role: str, target: Path, scratch: Path) -> WorkerProcess:
    worker = WorkerProcess(WORKER, (role, str(target), str(models.DRAFT), str(available_cores()[0])), scratch)
    closing.callback(worker.close)
    return worker


def _rows(runs: measurements.DecodeRuns) -> list[Row]:
    method = measurements.best_method(runs)
    worst, kind = measurements.worst_speedup(runs, method)
    return [
        *(measurements.table_row(runs, measurements.ALL, method) for method in runs.ways),
        *(measurements.table_row(runs, kind, method) for method in (CHAIN, TREE) for kind in runs.kinds),
        measurements.table_row(runs, measurements.ON_DISTRIBUTION, method),
        {"what": f"{runs.label} · {method} · slowest kind: {kind}", "× plain": worst},
    ]


def _peer_rows(comparisons: list[PeerComparison]) -> list[Row]:
    rows: list[Row] = []
    for kind in dict.fromkeys(one.kind for one in comparisons):
        of = [one for one in comparisons if one.kind == kind]
        rows += [
            {"what": f"{kind} · {what}", "request": median(getattr(one, name) for one in of)}
            for name, what in (
                ("ours_plain", "plain, int8"),
                ("ours", "speculative, int8"),
                ("theirs_plain", "transformers fp32"),
                ("theirs", "… assisted fp32"),
            )
        ]
    return rows


def _metrics(runs: list[measurements.DecodeRuns], comparisons: list[PeerComparison]) -> dict[str, float]:
    best = {of.label: measurements.best_method(of) for of in runs}
    found = {
        name: measurements.speedup(of, measurements.ON_DISTRIBUTION, best[of.label], PLAIN)
        for name, label in (("spec_vs_plain_mini", SHIPPED), ("spec_vs_plain_200m", COST_200M.label))
        for of in runs
        if of.label == label
    }
    found["worst_class_vs_plain"] = min(measurements.worst_speedup(of, best[of.label])[0] for of in runs)
    shipped = next(of for of in runs if of.label == SHIPPED)
    found["ssd_vs_spec"] = measurements.speedup(shipped, measurements.ALL, OUTCOMES, CHAIN)
    sampled = [kind.name for kind in prompt_kinds() if kind.temperature == 1.0 and kind.name in shipped.kinds]
    classic = measurements.cache_hit_rate(shipped, OUTCOMES_OF_4_CLASSIC, sampled)
    if classic:
        found["ssd_hit_vs_classic"] = measurements.cache_hit_rate(shipped, OUTCOMES_OF_4, sampled) / classic
    if comparisons:  # the worse of greedy and sampled text
        found["spec_vs_hf_assisted"] = min(
            median(one.ours / one.theirs for one in comparisons if one.kind == kind)
            for kind in {one.kind for one in comparisons}
        )
    return found
