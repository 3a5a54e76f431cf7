"""Three charts of `htfi bench decode`: speed-up by kind and target, acceptance by depth, where the time goes."""

from collections.abc import Sequence

from htfi_eval.bench.decode.measurements import (
    ALL,
    DecodeRuns,
    acceptance_by_depth,
    speedup,
    time_shares,
    total_of,
)
from htfi_eval.bench.decode.methods import PLAIN
from htfi_eval.charts.specs import Chart, Curve, CurveChart, DotChart, DotGroup, StackChart

_MAX_DEPTH = 8


def charts(all_runs: Sequence[DecodeRuns], planned: str, drafted: str) -> list[Chart]:
    """`all_runs`: those of the shipped pair first. `planned`: the method of the first chart; `drafted`: of the last."""
    shipped = all_runs[0]
    return [_speedups(all_runs, planned), _times(shipped), _acceptance(shipped, drafted)]


def _speedups(all_runs: Sequence[DecodeRuns], method: str) -> DotChart:
    kinds = [ALL, *all_runs[0].kinds]
    return DotChart(
        "Speed-up by speculation",
        f"Tokens per second over plain decoding, method {method}; one dot per target.",
        kinds,
        [DotGroup(of.label, [speedup(of, kind, method, PLAIN) for kind in kinds]) for of in all_runs],
        zero=1.0,
        unit="×",
    )


def _times(runs: DecodeRuns) -> StackChart:
    answers = {method: [one for run in runs.of(ALL, method) for one in run] for method in runs.ways}
    parts: dict[str, list[float | None]] = {}
    for of in answers.values():
        token_ms = total_of(of, "write_ms") / total_of(of, "num_tokens")
        shares = time_shares(of)
        shares["rest"] = max(100.0 - sum(shares.values()), 0.0)
        for name, share in shares.items():
            parts.setdefault(name, []).append(token_ms * share / 100.0)
    return StackChart(
        "Time per token",
        "Shipped pair, all kinds: milliseconds spent drafting, waiting for a draft, verifying, and on the rest.",
        list(answers),
        [DotGroup(name, values) for name, values in parts.items()],
        unit="ms",
    )


def _acceptance(runs: DecodeRuns, method: str) -> CurveChart:
    found = {kind: acceptance_by_depth(runs, kind, method)[:_MAX_DEPTH] for kind in runs.kinds}
    return CurveChart(
        "Accepted drafts by depth",
        f"Method {method}: of the rounds that drafted this deep, the share accepted up to this depth.",
        [float(depth) for depth in range(1, _MAX_DEPTH + 1)],
        [Curve(kind, list(shares)) for kind, shares in found.items()],
        "depth, tokens",
        "share accepted",
    )
