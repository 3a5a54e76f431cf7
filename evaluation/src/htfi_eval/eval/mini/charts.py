"""What the page of `htfi eval mini` shows large and draws: accuracy by cause of the event, and reliability."""

from collections import Counter
from collections.abc import Mapping, Sequence

from htfi_eval.eval.charts.chart import Chart, Curve, CurveChart, DotChart, DotGroup
from htfi_eval.eval.charts.page import Card
from htfi_eval.eval.mini import scores
from htfi_eval.eval.mini.baselines import BaselineFeatures
from htfi_eval.eval.mini.cases import EvaluationCase
from htfi_eval.eval.mini.evaluation import CEILING, DRAFT, TARGET, ReaderViews
from htfi_eval.eval.mini.scores import MeanWithError, mean

_SHOWN = (TARGET, DRAFT, BaselineFeatures.WORDS.value, BaselineFeatures.ALL.value)
# What is shown large: the metric and what it is called.
_FIGURES = (
    ("direction_accuracy_target", "of directions right: target"),
    ("direction_accuracy_draft", "draft"),
    ("direction_accuracy_words", "bag of words"),
    ("direction_accuracy_all_features", "words, tags, prices"),
    ("direction_accuracy_ceiling", "ceiling"),
    ("direction_accuracy_target_shuffled", "target, shuffled"),
    ("ece_target", "calibration error"),
    ("match_rate_view", "of a view agreed"),
    ("match_rate_path", "of a path agreed"),
)


def cards(metrics: Mapping[str, float]) -> list[Card]:
    return [Card(f"{metrics[name]:.1%}", called) for name, called in _FIGURES if name in metrics]


def lead(metrics: Mapping[str, float], num_cases: int) -> str:
    """The finding in one sentence."""
    target, words, ceiling = (_share(metrics, one) for one in ("target", "words", "ceiling"))
    told = f"Of {num_cases:,} simulated events never seen, the target calls {target} of directions right"
    beside = f", a bag of words {words}" if words else ""
    return f"{told}{beside}; one who understands all that is shown would call {ceiling}."


def charts(views: ReaderViews, cases: Sequence[EvaluationCase]) -> list[Chart]:
    return [_accuracy(views, cases), _reliability(views)]


def _accuracy(views: ReaderViews, cases: Sequence[EvaluationCase]) -> DotChart:
    groups = {"all": list(range(len(cases)))}
    for cause, _ in Counter(case.truth.cause for case in cases).most_common():
        groups[cause] = [place for place, case in enumerate(cases) if case.truth.cause == cause]

    def right(reader: str) -> list[MeanWithError]:
        return [
            mean(scores.right_direction(views.readers[reader].at(places), views.truth.at(places)))
            for places in groups.values()
        ]

    told: list[DotGroup] = []
    for reader in (one for one in _SHOWN if one in views.readers):
        found = right(reader)
        told.append(
            DotGroup(
                reader,
                [one.value for one in found],
                [max(one.value - one.error, 0.0) for one in found],
                [min(one.value + one.error, 1.0) for one in found],
            )
        )
    return DotChart(
        "Direction, by cause of the event",
        "Share of directions called right; strokes are one standard error.",
        [f"{name.replace('_', ' ')} ({len(places):,})" for name, places in groups.items()],
        told,
        best=[one.value for one in right(CEILING)],
        unit="%",
    )


def _reliability(views: ReaderViews) -> CurveChart:
    curves: list[Curve] = []
    for reader in (one for one in _SHOWN if one in views.readers):
        bins = [one for one in scores.reliability(views.readers[reader], views.truth) if one.num]
        stated, right, num = ([float(one[k]) for one in bins] for k in (1, 2, 0))
        curves.append(Curve(reader, list(right), x=stated, counts=num))
    return CurveChart(
        "Was it honest about its doubt",
        "Confidence stated for a move, and how often it was right; areas are calls.",
        [],
        curves,
        "confidence stated",
        "share right",
        diagonal=True,
    )


def _share(metrics: Mapping[str, float], reader: str) -> str:
    value = metrics.get(f"direction_accuracy_{reader}")
    return "" if value is None else f"{value:.1%}"
