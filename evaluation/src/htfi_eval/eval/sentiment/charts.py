"""What the page of `htfi eval sentiment` shows large and draws: macro-F1 by set and method, confusions, reliability."""

from collections.abc import Mapping, Sequence

import numpy as np

from htfi_eval.eval.charts.chart import Chart, Curve, CurveChart, DotChart, DotGroup, HeatMap
from htfi_eval.eval.charts.page import Card
from htfi_eval.eval.sentiment.judging import COUNTS, HEAD, TFIDF, SentimentJudgement
from htfi_eval.eval.sentiment.methods import confusion

_MIN_GAIN, _MAX_FLIPS = 0.03, 0.01
_NUM_BINS = 10


def lead(judged: Sequence[SentimentJudgement], metrics: Mapping[str, float | None]) -> str:
    """The finding in one sentence."""
    worst = min(judged, key=lambda one: one.shipped.gain(HEAD, (COUNTS, TFIDF))[0])
    gain, best = worst.shipped.gain(HEAD, (COUNTS, TFIDF))
    flips = metrics.get("int8_label_flips") or 0.0
    return (
        f"Heads that never saw a row of these sets tell labels better than word counts and TF-IDF by at least "
        f"{gain:+.3f} of macro-F1 ({worst.of.name}, over {best}); int8 changes {flips:.1%} of labels."
    )


def cards(metrics: Mapping[str, float | None]) -> list[Card]:
    gain, source = metrics["macro_f1_min_gain"] or 0.0, metrics.get("macro_f1_min_gain_by_source")
    flips = metrics["int8_label_flips"] or 0.0
    found = [Card(f"{gain:+.3f}", "worst gain in macro-F1, as shipped", gain >= _MIN_GAIN)]
    if source is not None:
        found.append(Card(f"{source:+.3f}", "worst gain, learnt from other sources", source >= _MIN_GAIN))
    return [*found, Card(f"{flips:.1%}", "of labels changed by int8", flips <= _MAX_FLIPS)]


def charts(judged: Sequence[SentimentJudgement]) -> list[Chart]:
    return [_by_set(judged), *(_confusion(one) for one in judged), _reliability(judged)]


def _by_set(judged: Sequence[SentimentJudgement]) -> DotChart:
    groups = [
        DotGroup(f"{name} (as shipped)" if name == HEAD else name, [one.shipped.f1(name) for one in judged])
        for name in (HEAD, TFIDF, COUNTS)
    ]
    if any(one.in_domain is not None for one in judged):
        for name in (HEAD, TFIDF):
            told = [None if one.in_domain is None else one.in_domain.f1(name) for one in judged]
            groups.append(DotGroup(f"{name}, in domain", told))
    return DotChart(
        "Macro-F1 by set and method",
        "As shipped, nothing of a set was learnt from; in domain, four fifths of it were.",
        [f"{one.of.name} ({len(one.of.texts):,})" for one in judged],
        groups,
    )


def _confusion(one: SentimentJudgement) -> HeatMap:
    counts = confusion(one.of.targets, one.shipped.by_method[HEAD], len(one.of.labels))
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return HeatMap(
        f"{one.of.name}: what was said of each label",
        "Rows are the annotators' labels, columns the shipped head's; shares of a row.",
        [f"{label} ({int(num):,})" for label, num in zip(one.of.labels, counts.sum(axis=1), strict=True)],
        list(one.of.labels),
        shares.tolist(),
        unit="%",
    )


def _reliability(judged: Sequence[SentimentJudgement]) -> CurveChart:
    curves: list[Curve] = []
    for one in judged:
        stated = one.shares.max(axis=1)
        right = one.shares.argmax(axis=1) == one.of.targets
        bins = np.minimum((stated * _NUM_BINS).astype(int), _NUM_BINS - 1)
        used = [number for number in range(_NUM_BINS) if (bins == number).sum() >= 10]
        curves.append(
            Curve(
                one.of.name,
                [float(right[bins == number].mean()) for number in used],
                x=[float(stated[bins == number].mean()) for number in used],
                counts=[float((bins == number).sum()) for number in used],
            )
        )
    return CurveChart(
        "Are the chances honest",
        "Chance stated for the likeliest label, and how often it was right; areas are texts.",
        [],
        curves,
        "chance stated",
        "share right",
        diagonal=True,
    )
