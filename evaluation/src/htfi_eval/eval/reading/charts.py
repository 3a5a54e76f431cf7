"""Charts of `htfi eval reading`."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from htfi.library.charts.specs import BarChart, Chart, Curve, CurveChart, DotChart, DotGroup, HeatMap
from htfi_eval.eval.reading.comparisons import ComparisonFigures
from htfi_eval.eval.reading.event_study import SignStudy
from htfi_eval.eval.reading.labelled import PooledReadings, SetReadings, pool
from htfi_eval.eval.reading.overnight import OvernightGain
from htfi_eval.eval.reading.scores import calibration_bins, confusion_shares, sign_figures

_CLASSES = ("down", "neutral", "up")
_MIN_VIEWS = 20  # of a kind, below which its confidence is not judged
_MAX_KINDS = 20
_MAX_NOTATIONS = 12


def labelled_charts(sets: Sequence[SetReadings]) -> list[Chart]:
    pooled = pool(sets)
    return [
        _by_set(sets, "Sign right, by set", "Of views that point up or down at lines labelled up or down.", 1),
        _by_set(sets, "Three classes right, by set", "Up, down, or nothing said; of all lines.", 3),
        _by_set(sets, "Views at neutral lines, by set", "Share of neutral lines at which it speaks.", 4),
        _confusion(pooled),
        _reliability(sets, pooled),
        _by_kind(pooled),
        _confidence_by_kind(pooled),
    ]  # fmt: skip


def _by_set(sets: Sequence[SetReadings], title: str, note: str, place: int) -> DotChart:
    methods = list(sets[0].by_method()) if sets else []
    return DotChart(
        title,
        note,
        [f"{one.of.name} ({len(one.of.items):,})" for one in sets],
        [
            DotGroup(
                method,
                [_known(sign_figures(one.of.labels, one.by_method()[method])[place]) for one in sets],
            )
            for method in methods
            if not (place == 4 and method == "always up")
        ],
        unit="%",
    )


def _confusion(pooled: PooledReadings) -> HeatMap:
    shares = confusion_shares(pooled.labels, pooled.said, pooled.weights)
    nums = [int((pooled.labels == sign).sum()) for sign in (-1, 0, 1)]
    return HeatMap(
        "Confusion, all sets alike",
        "Rows are the annotators' labels, columns what the reader said; shares of a row.",
        [f"{name} ({num:,})" for name, num in zip(_CLASSES, nums, strict=True)],
        ["said down", "said nothing", "said up"],
        shares.tolist(),
        unit="%",
    )


def _reliability(sets: Sequence[SetReadings], pooled: PooledReadings) -> CurveChart:
    views = (pooled.said != 0) & (pooled.labels != 0)
    curves = [
        _curve("all sets alike", pooled.confidence[views], (pooled.said == pooled.labels)[views], pooled.weights[views])
    ]  # fmt: skip
    for one in sets:
        stated = np.array([read.confidence for read in one.read], np.float64)
        inside = (one.said != 0) & (one.of.labels != 0)
        curves.append(
            _curve(one.of.name, stated[inside], (one.said == one.of.labels)[inside], None, quiet=True)
        )
    return CurveChart(
        "Is the confidence kept?",
        "Stated confidence of views that speak, and the share whose sign is right; areas show their number.",
        [], curves, "stated confidence", "share right", diagonal=True,
    )  # fmt: skip


def _curve(
    name: str, stated: np.ndarray, right: np.ndarray, weights: np.ndarray | None, *, quiet: bool = False
) -> Curve:
    bins = [one for one in calibration_bins(stated, right, weights) if one.num >= 10]
    return Curve(
        name,
        [one.right for one in bins],
        x=[one.stated for one in bins],
        counts=[] if quiet else [float(one.num) for one in bins],
        quiet=quiet,
    )


def _frequent(kinds: np.ndarray) -> list[str]:
    names, counts = np.unique(kinds, return_counts=True)
    order = np.argsort(-counts)[:_MAX_KINDS]
    return [str(names[place]) for place in order.tolist()]


def _confidence_by_kind(pooled: PooledReadings) -> DotChart:
    """Kinds with too few views to judge are left out."""
    kinds = np.array([one.event.value for one in pooled.read])
    views = (pooled.said != 0) & (pooled.labels != 0)
    judged = [kind for kind in _frequent(kinds) if (views & (kinds == kind)).sum() >= _MIN_VIEWS]
    inside = [views & (kinds == kind) for kind in judged]
    right = (pooled.said == pooled.labels).astype(np.float64)
    return DotChart(
        "Confidence by kind of event",
        "Mean stated confidence of views at lines labelled up or down, beside the share whose sign is right; "
        f"kinds with at least {_MIN_VIEWS} such views.",
        [f"{kind.replace('_', ' ')} ({int(of.sum()):,})" for kind, of in zip(judged, inside, strict=True)],
        [
            DotGroup("stated confidence", [_mean(pooled.confidence, pooled.weights, of) for of in inside]),
            DotGroup("sign right", [_mean(right, pooled.weights, of) for of in inside]),
        ],
        unit="%",
    )


def _mean(values: np.ndarray, weights: np.ndarray, inside: np.ndarray) -> float:
    return float(np.average(values[inside], weights=weights[inside]))


def _by_kind(pooled: PooledReadings) -> DotChart:
    kinds = np.array([one.event.value for one in pooled.read])
    frequent = _frequent(kinds)
    figures = [
        sign_figures(pooled.labels[kinds == kind], pooled.said[kinds == kind], pooled.weights[kinds == kind])
        for kind in frequent
    ]
    return DotChart(
        "By kind of event",
        "Lines of all sets, by the kind that the reader gave them; the most frequent kinds.",
        [
            f"{kind.replace('_', ' ')} ({one.num:,})" for kind, one in zip(frequent, figures, strict=True)
        ],
        [
            DotGroup("sign right", [_known(one.sign_right) for one in figures]),
            DotGroup("three classes right", [_known(one.three_class) for one in figures]),
            DotGroup("views at neutral lines", [_known(one.fires_on_neutral) for one in figures]),
        ],
        unit="%",
    )  # fmt: skip


def comparison_chart(figures: Sequence[ComparisonFigures]) -> BarChart:
    shown = [(notation, share) for one in figures for notation, (_, share) in one.by_notation.items()]
    shown.sort(key=lambda pair: pair[1])
    shown = shown[:_MAX_NOTATIONS]
    return BarChart(
        "Side of the surprise right, by notation",
        "a: actual, f: expected, q: prior. The least understood first.",
        [name for name, _ in shown],
        [share for _, share in shown],
        unit="%",
    )


def own_line_chart(rows: Sequence[Mapping[str, object]]) -> BarChart | None:
    """Roles by kind."""
    roles = [row for row in rows if row["file"] == "roles" and "given otherwise" in row]
    if not roles:
        return None
    return BarChart(
        "Roles right, by role",
        "Of the party that is asked about, in the project's own held-out lines.",
        [f"{row['kind']} ({row['lines']})" for row in roles],
        [float(str(row["right"])) for row in roles],
        unit="%",
    )


def sign_chart(studies: Sequence[SignStudy]) -> DotChart | None:
    """Agreement of strong views with each window, by source; the line is chance."""
    strong = [one for one in studies if one.group == "strong views"]
    names = list(dict.fromkeys(f"{one.phase.value}: {one.window.value}" for one in strong))
    sources = list(dict.fromkeys(one.source for one in strong))
    if not names:
        return None
    by = {(one.source, f"{one.phase.value}: {one.window.value}"): one.agree for one in strong}
    return DotChart(
        "Do prices agree with strong views?",
        "Share of views with the sign of the abnormal move, 95% intervals by day.",
        names,
        [
            DotGroup(
                source,
                [by[source, name].value if (source, name) in by else None for name in names],
                [by[source, name].low if (source, name) in by else None for name in names],
                [by[source, name].high if (source, name) in by else None for name in names],
            )
            for source in sources
        ],
        zero=0.5,
        unit="%",
    )  # fmt: skip


def overnight_chart(gains: Sequence[OvernightGain]) -> BarChart:
    """CRPS gained by each way to use a reading."""
    return BarChart(
        "Strong items before the open: CRPS gained",
        "Over the forecast that stood at the last close, in years not used for any choice; 95% intervals by day.",
        [one.way for one in gains],
        [_known(one.gain.value) for one in gains],
        [_known(one.gain.low) for one in gains],
        [_known(one.gain.high) for one in gains],
        unit="%",
    )


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
