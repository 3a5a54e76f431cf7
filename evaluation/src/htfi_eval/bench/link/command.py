"""`htfi bench link`: every placement of a request over links of many round trips, beside the planner's choice."""

import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import click

from htfi import models
from htfi.domain.errors import InvalidInput
from htfi_eval.bench.decode.prompts import SEED
from htfi_eval.bench.link.figures import (
    FRAMING_BYTES,
    RunsByKind,
    charts,
    metrics,
    num_unlike,
    num_unlike_embedded,
    rows,
)
from htfi_eval.bench.link.runs import (
    FORCED_PLACEMENTS,
    STEPS_MS,
    LinkBench,
    PlacementChoice,
    StepPasses,
    count_lost_requests,
    detection_ms,
    measure,
    measure_steps,
    measured_kinds,
    steps_regret,
)
from htfi_eval.bench.link.setup import FleetResult, LinkSetup, link_conditions, measure_fleet, open_link_setup
from htfi_eval.bench.processes import available_cores, pin_to_core
from htfi_eval.bench.targets import COST_200M, write_heavy_target
from htfi_eval.commands import history_option, output_options, quick_option
from htfi_eval.report import write_outputs
from htfi_eval.results import Evaluation

SHIPPED = "shipped"
FIRST_NUMBER = 5_000_000  # stories that no other benchmark uses
_FLEET_RTT_MS = 20.0
_BYTES_RTT_MS = 5.0
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LinkWorkload:
    """Number of runs at each round trip, requests of a kind at each step, seconds with many edges, and so on."""

    num_runs: int
    num_steps: int
    num_edges: int
    span_s: float
    num_silences: int
    num_lost: int


FULL = LinkWorkload(num_runs=6, num_steps=10, num_edges=32, span_s=8.0, num_silences=10, num_lost=40)
QUICK = LinkWorkload(num_runs=1, num_steps=2, num_edges=4, span_s=1.0, num_silences=2, num_lost=8)


@click.command("link", short_help="Edge and cloud over links of many round trips.")
@click.option("--rtt", default="0,5,20,50,100,200", show_default=True, help="Round trips in ms.")
@click.option(
    "--jitter", default=0.05, show_default=True, help="Standard deviation as a share of the round trip."
)
@click.option(
    "--targets", default="shipped,200m", show_default=True, help="shipped, 200m, or both with a comma."
)
@quick_option
@output_options
@history_option
def command(
    rtt: str,
    jitter: float,
    targets: str,
    quick: bool,
    json_file: Path | None,
    history_file: Path | None,
    html_file: Path | None,
) -> None:
    """Measure an edge and a cloud, two processes under mutual TLS, over a link that delays every byte.

    Views, price paths and text are requested in every placement: plain in the cloud, speculative in the cloud, edge
    and cloud in lock-step, edge and cloud with windows in flight, and as planned. The requests are the same in each,
    and their prompts were read before. Times run from the request to the first and the last token at the edge.
    '× best' is the time over that of the best placement at that round trip. Then follow a round trip that changes
    from 5 to 120 to 20 ms, many edges on one cloud, silences, and a link that fails while requests run.

    \b
    Examples:
      htfi bench link
      htfi bench link --rtt 0,20,200 --jitter 0.2 --targets shipped
      htfi bench link --json build/goals/link.json --html build/goals/link.html
    """
    rtts_ms = _all_figures(rtt)
    if not 0.0 <= jitter < 1.0:
        raise InvalidInput(f"--jitter {jitter}: give a share of the round trip, 0 or more and below 1")
    effort = QUICK if quick else FULL
    scratch = Path(tempfile.mkdtemp(prefix="htfi-bench-link-"))
    if len(available_cores()) > 1:
        pin_to_core(available_cores()[1])  # the cloud has the first to itself
    try:
        findings = LinkFindings()
        for label in targets.split(","):
            folder = _target(label.strip(), scratch)
            _measure(label.strip(), folder, rtts_ms, jitter, effort, findings)
    finally:
        shutil.rmtree(scratch)
    figures = metrics(findings.runs) | findings.figures
    unlike, whole = num_unlike(findings.runs)
    findings.notes.append(f"answers that differ between placements: {unlike} of {whole}")
    all_rows = rows(findings.runs) + findings.rows
    result = Evaluation(
        name="link",
        kind="bench",
        title="Edge and cloud over a link",
        metrics=dict(figures),
        rows=all_rows,
        notes=findings.notes,
        seed=SEED,
    )
    result.charts = charts(findings.runs)
    write_outputs(result, json_file=json_file, html_file=html_file, history_file=history_file)


@dataclass(slots=True)
class LinkFindings:
    """Results so far: runs by target and round trip, other rows, figures and notes."""

    runs: dict[str, dict[float, RunsByKind]] = field(default_factory=dict[str, dict[float, RunsByKind]])
    rows: list[Row] = field(default_factory=list[Row])
    figures: dict[str, float] = field(default_factory=dict[str, float])
    notes: list[str] = field(default_factory=list[str])


def _measure(
    label: str,
    folder: Path,
    rtts_ms: Sequence[float],
    jitter: float,
    effort: LinkWorkload,
    findings: LinkFindings,
) -> None:
    """All measurements of one target; a heavy one gets placements and changing round trips only."""
    is_shipped = label == SHIPPED
    with open_link_setup(folder, effort.num_edges if is_shipped else 1) as stage:
        with stage.edge() as edge:
            bench = LinkBench.connect(stage, edge, FIRST_NUMBER)
            by_rtt = findings.runs.setdefault(label, {})
            for rtt_ms in rtts_ms:
                num_runs = effort.num_runs if is_shipped else max(effort.num_runs // 2, 1)
                by_rtt[rtt_ms] = measure(
                    bench, rtt_ms, jitter, num_runs, _progress_reporter(label, rtt_ms, num_runs)
                )
            click.echo(f"{label}: a changing round trip", err=True)
            steps = measure_steps(
                bench, jitter, effort.num_steps if is_shipped else max(effort.num_steps // 3, 1)
            )
            findings.rows += _step_rows(label, steps)
            name = "planner_regret_stepping"
            findings.figures[name] = max(steps_regret(steps), findings.figures.get(name, -1.0))
            if is_shipped:
                _measure_faults(bench, effort, findings)
            unlike, whole = num_unlike_embedded(bench, folder, by_rtt)
            findings.notes.append(f"{label}: answers that differ from the embedded run: {unlike} of {whole}")
        if is_shipped:
            _measure_fleet(stage, jitter, effort, findings)


def _measure_faults(bench: LinkBench, effort: LinkWorkload, findings: LinkFindings) -> None:
    """Bytes of a round, detection of silence, lost requests."""
    click.echo("silences and faults", err=True)
    findings.figures["overhead_bytes_per_round"] = _measure_bytes(bench, findings)
    silences = detection_ms(bench, effort.num_silences)
    findings.figures["detect_loss_ms"] = max(silences)
    findings.notes.append(
        f"a silent link is detected after {median(silences):.0f} ms, at most {max(silences):.0f} of {len(silences)}"
    )
    came = count_lost_requests(bench, measured_kinds()[0], effort.num_lost)
    findings.figures["lost_requests"] = float(came.num_lost)
    findings.notes.append(
        f"a link that resets, stalls and goes silent: {came.num_asked} requests, {came.num_provisional} answered "
        f"first by the draft, {came.num_lost} lost, {came.num_unlike} different from those without faults"
    )


def _measure_bytes(bench: LinkBench, findings: LinkFindings) -> float:
    """The bytes of a lock-step round beside its token ids: a window up, an outcome down."""
    generator, stage = bench.edge.generator, bench.stage
    stage.set_round_trip(_BYTES_RTT_MS, 0.0)
    asked = [bench.next_request(kind) for kind in measured_kinds() for _ in range(4)]
    before, wire = replace(generator.traffic), stage.num_bytes()
    for request in asked:
        bench.write(request, PlacementChoice.LOCKSTEP)
    after, on_wire = generator.traffic, stage.num_bytes() - wire
    num_windows = after.num_windows - before.num_windows
    num_rounds = after.num_rounds - before.num_rounds
    frames = after.window_bytes + after.accepted_bytes - before.window_bytes - before.accepted_bytes
    ids = after.id_bytes - before.id_bytes
    beside = (frames - ids) / num_rounds
    framed = beside + FRAMING_BYTES * (num_windows + num_rounds) / num_rounds
    findings.notes.append(
        f"a round in lock-step: {ids / num_rounds:.0f} bytes of token ids, {beside:.0f} of other fields, "
        f"{framed:.0f} with the headers of gRPC and HTTP/2; {on_wire / num_rounds:.0f} bytes of TCP in all, with TLS, "
        "handshakes and heartbeats"
    )
    return framed


def _measure_fleet(stage: LinkSetup, jitter: float, effort: LinkWorkload, findings: LinkFindings) -> None:
    """One edge, then all."""
    stage.link.conditions = link_conditions(_FLEET_RTT_MS, jitter)
    click.echo(f"{effort.num_edges} edges", err=True)
    one, many = (
        measure_fleet(stage, num, effort.span_s, FIRST_NUMBER * (2 + place))
        for place, num in enumerate((1, effort.num_edges))
    )
    findings.rows += [_fleet_row(one), _fleet_row(many)]
    num_alone = sum(share.num_alone for share in many.shares)
    findings.notes.append(
        f"{effort.num_edges} edges: {num_alone} answers came from the draft because the cloud was suspected"
    )
    findings.figures["scale_32_edges"] = many.tokens_per_s / one.tokens_per_s
    findings.figures["unfairness_p95"] = many.unfairness


def _fleet_row(fleet: FleetResult) -> Row:
    num = len(fleet.shares)
    return {
        "what": f"{num} edge{'s' if num > 1 else ''} · RTT {_FLEET_RTT_MS:g} · views, planned",
        "tokens/s": fleet.tokens_per_s,
        "last ms p50": median(share.p50_ms for share in fleet.shares),
        "last p95": median(share.p95_ms for share in fleet.shares),
    }


def _step_rows(label: str, steps: StepPasses) -> list[Row]:
    names = ("planned", *(placement.value for placement in FORCED_PLACEMENTS))
    return [
        {
            "what": f"{label} · changing · {name}",
            **{
                f"ms at {rtt_ms:g}": sum(one.total_ms for one in of)
                for rtt_ms, of in zip(STEPS_MS, passed, strict=True)
            },
        }
        for name, passed in zip(names, steps, strict=True)
    ]


def _target(label: str, scratch: Path) -> Path:
    match label:
        case "shipped":
            return models.TARGET
        case "200m":
            folder = scratch / COST_200M.label
            write_heavy_target(models.TARGET, folder, COST_200M)
            return folder
        case _:
            raise InvalidInput(f"--targets {label}: give shipped, 200m, or both separated by a comma")


def _all_figures(findings: str) -> list[float]:
    try:
        found = [float(part) for part in findings.split(",")]
    except ValueError:
        found = []
    if not found or not all(0.0 <= number <= 10_000.0 for number in found):
        raise InvalidInput(f"--rtt {findings}: give round trips in ms from 0 to 10000, separated by commas")
    return found


def _progress_reporter(label: str, rtt_ms: float, num_runs: int) -> Callable[[], None]:
    """Reports progress: on a terminal after every run, elsewhere once."""
    turns = iter(range(1, num_runs + 1))

    def report_run() -> None:
        turn = next(turns)
        if turn == num_runs or sys.stderr.isatty():
            is_last = turn == num_runs
            click.echo(f"\r{label}: round trip {rtt_ms:g} ms, run {turn} of {num_runs}", err=True, nl=is_last)

    return report_run
