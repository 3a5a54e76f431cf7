"""Rows and metrics of `htfi bench link`, and the check that the link changes no token."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from htfi.decoding.config import DecodingConfig
from htfi.domain.generation import Completion
from htfi.library.charts.specs import Chart, Curve, CurveChart
from htfi.wiring.models.config import ModelsConfig
from htfi.wiring.models.readers import open_model_pair
from htfi.wiring.models.speculation import speculative_generator
from htfi_eval.bench.link.runs import (
    ALL_PLACEMENTS,
    FORCED_PLACEMENTS,
    LinkBench,
    LinkMeasurement,
    PlacementChoice,
    PlacementRun,
)

Row = dict[str, Any]
RunsByKind = Mapping[str, Sequence[PlacementRun]]  # by kind
RunsByTarget = Mapping[str, Mapping[float, RunsByKind]]  # by target and round trip
FAR_RTT_MS = 20.0  # from this round trip on, windows in flight must be faster
# What HTTP/2 and gRPC put before each message; docs/protocol.md lists what TLS and window updates add.
FRAMING_BYTES = 9 + 5


def metrics(runs: RunsByTarget) -> dict[str, float]:
    """The worst over targets and round trips."""
    steady = [planner_regret(of) for by_rtt in runs.values() for of in by_rtt.values()]
    gains = [
        link_speedup(of, PlacementChoice.FLIGHT, PlacementChoice.LOCKSTEP)
        for by_rtt in runs.values()
        for rtt_ms, of in by_rtt.items()
        if rtt_ms >= FAR_RTT_MS
    ]
    found = {"planner_regret_steady": max(steady)}
    return found | ({"inflight_vs_lockstep": min(gains)} if gains else {})


def planner_regret(of: RunsByKind) -> float:
    """The planner's time over that of the best single placement, minus one: median times, summed over kinds."""
    best = min(median_total_ms(of, placement) for placement in FORCED_PLACEMENTS)
    return median_total_ms(of, PlacementChoice.PLANNED) / best - 1.0


def link_speedup(of: RunsByKind, placement: PlacementChoice, over: PlacementChoice) -> float:
    return median_total_ms(of, over) / median_total_ms(of, placement)


def median_total_ms(of: RunsByKind, placement: PlacementChoice) -> float:
    """Medians of each kind, summed."""
    return sum(median(run[placement].total_ms for run in runs) for runs in of.values())


def num_unlike(runs: RunsByTarget) -> tuple[int, int]:
    """Answers whose tokens differ between placements of one request, and all answers."""
    unlike = whole = 0
    for by_rtt in runs.values():
        for of in by_rtt.values():
            for run in (run for kind in of.values() for run in kind):
                whole += len(run)
                unlike += sum(one.tokens != run[PlacementChoice.PLAIN].tokens for one in run.values())
    return unlike, whole


def rows(runs: RunsByTarget) -> list[Row]:
    found: list[Row] = []
    for target, by_rtt in runs.items():
        for rtt_ms, of in by_rtt.items():
            for placement in ALL_PLACEMENTS:
                all_of = [run[placement] for kind in of.values() for run in kind]
                row = _row(f"{target} · RTT {rtt_ms:g} · {placement.value}", all_of)
                row["× best"] = median_total_ms(of, placement) / min(
                    median_total_ms(of, each) for each in FORCED_PLACEMENTS
                )
                if placement is PlacementChoice.PLANNED:
                    row["chosen"] = _planned_choices(all_of)
                found.append(row)
    return found


def _row(what: str, of: Sequence[LinkMeasurement]) -> Row:
    total = np.array([one.total_ms for one in of])
    first = np.array([one.first_ms for one in of])
    return {
        "what": what,
        "tokens/s": 1e3 * sum(len(one.tokens) for one in of) / float(total.sum()),
        "first ms p50": float(np.quantile(first, 0.5)),
        "p95": float(np.quantile(first, 0.95)),
        "last ms p50": float(np.quantile(total, 0.5)),
        "last p95": float(np.quantile(total, 0.95)),
        "last p99": float(np.quantile(total, 0.99)),
        "bytes": median(one.num_bytes for one in of),
    }


def _planned_choices(of: Sequence[LinkMeasurement]) -> str:
    """The placements that the planner chose, the most frequent first."""
    counts: dict[str, int] = {}
    for one in of:
        way = one.chosen.partition(", ")[2] or one.chosen
        counts[way] = counts.get(way, 0) + 1
    return ", ".join(f"{num} {way}" for way, num in sorted(counts.items(), key=lambda item: -item[1]))


def num_unlike_embedded(
    bench: LinkBench, target: Path, by_rtt: Mapping[float, RunsByKind]
) -> tuple[int, int]:
    """Answers whose tokens differ from those of the embedded run, and all answers."""
    of, draft = open_model_pair(ModelsConfig(str(target)))
    generator = speculative_generator(of, draft, DecodingConfig())
    unlike = whole = 0
    for kinds in by_rtt.values():
        for run in (run for runs in kinds.values() for run in runs):
            name = next(iter(run.values())).request
            (answer,) = generator.write([bench.requests[name]])
            tokens = answer.tokens if isinstance(answer, Completion) else ()
            whole += len(run)
            unlike += sum(one.tokens != tokens for one in run.values())
    return unlike, whole


def charts(runs: RunsByTarget) -> list[Chart]:
    """For each target the time to the whole answer by round trip: a curve for each placement, and the planner's."""
    return [
        CurveChart(
            f"Time to the whole answer, {target} target",
            "Milliseconds, summed over kinds of request; axes are logarithmic, a round trip of 0 is drawn at 1.",
            [max(rtt_ms, 1.0) for rtt_ms in sorted(by_rtt)],
            [
                Curve(
                    choice.value,
                    [median_total_ms(by_rtt[rtt_ms], choice) for rtt_ms in sorted(by_rtt)],
                    quiet=choice is PlacementChoice.PLANNED,
                )
                for choice in (*FORCED_PLACEMENTS, PlacementChoice.PLANNED)
            ],
            "round trip, ms",
            "ms",
            log=True,
        )
        for target, by_rtt in runs.items()
    ]
