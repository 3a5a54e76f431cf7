"""An evaluation of mini models as rows of a table and as metrics with ids."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.narrative.answer import CONFIDENCES
from htfi_eval.eval.mini import scores
from htfi_eval.eval.mini.baselines import BaselineFeatures
from htfi_eval.eval.mini.evaluation import CEILING, DRAFT, MOST_COMMON, TARGET, Fluency, ReaderViews
from htfi_eval.eval.mini.reading import FIELDS, HEADLINES, PATH, DraftMatches, pooled
from htfi_eval.eval.mini.scores import LEAK_ERRORS, EvaluationCase, ReaderAnswers, mean

Row = dict[str, Any]
Right = Callable[[ReaderAnswers, ReaderAnswers], NDArray[Any] | None]

COLUMNS = (TARGET, DRAFT, *(one.value for one in BaselineFeatures), MOST_COMMON, CEILING, f"{TARGET}, sh.")
_SHARES: dict[str, Right] = {
    "direction (of three), %": scores.right_direction,
    "sign where it moved, %": scores.sign_where_it_moves,
    "sign where a move is predicted, %": scores.sign_where_called,
    "size where a move is predicted, ±1 step": scores.size_within_a_step,
    "volatility, ±1 step, %": scores.volatility_within_a_step,
    "cause, %": lambda one, truth: scores.same_words(one.cause, truth.cause),
    "prices against the news, %": lambda one, truth: scores.same_words(one.consistency, truth.consistency),
    "cites the item that matters, %": scores.cites_the_first,
    "cites exactly the items that matter, %": scores.cites_exactly,
}
_IDS = {
    TARGET: "target",
    DRAFT: "draft",
    BaselineFeatures.WORDS.value: "words",
    BaselineFeatures.ALL.value: "all_features",
    BaselineFeatures.NO_WORDS.value: "no_words",
    MOST_COMMON: "most_common",
    CEILING: "ceiling",
}


def view_rows(views: ReaderViews, cases: Sequence[EvaluationCase]) -> list[Row]:
    """Answers against the truth; each ± is one standard error."""
    rows: list[Row] = []
    for measure, right in _SHARES.items():
        rows.append(_row(views, measure, lambda one, truth, right=right: _percent(right(one, truth))))
    rows.append(
        _row(
            views,
            "size error where a move is predicted, σ",
            lambda one, truth: _number(scores.size_error_sigmas(one, truth)),
        )
    )
    rows.append(
        _row(views, "effect error, σ", lambda one, truth: _number(scores.effect_error_sigmas(one, truth)))
    )
    rows.append(_row(views, "confidence: calibration error, %", _calibration))
    rows.append(_row(views, "confidence: Brier score", lambda one, truth: _number(scores.brier(one, truth))))
    for groups in ([case.truth.cause for case in cases], [case.situation for case in cases]):
        for group, num in Counter(groups).most_common():
            places = [place for place, own in enumerate(groups) if own == group]
            name = f"direction: {group.replace('_', ' ')} ({num:,})"
            rows.append(
                _row(views, name, lambda one, truth: _percent(scores.right_direction(one, truth), 0), places)
            )
    rows += _reliability_rows(views)
    if views.missing:
        rows.append({"measure": f"bags of words are left out: {views.missing}"})
    return rows


def fluency_rows(fluency: Fluency) -> list[Row]:
    """Perplexities next to those of unigrams, and agreement of draft and target."""
    rows: list[Row] = []
    parts = {
        HEADLINES: (HEADLINES,),
        "views": FIELDS,
        "paths": (PATH,),
        **{f"views: {name}": (name,) for name in FIELDS},
    }
    for part, names in parts.items():
        rows.append(
            {
                "measure": f"perplexity of {part}",
                **{
                    reader: _perplexity(*losses.perplexity(*names))
                    for reader, losses in fluency.losses.items()
                },
            }
        )
    rows += [
        _match_row("paths", fluency.paths),
        _match_row("views", pooled(fluency.views)),
        *(_match_row(f"views: {name}", fluency.views[name]) for name in FIELDS),
        _match_row("views at temperature 0", pooled(fluency.greedy_views)),
    ]
    return rows


def notes(views: ReaderViews, num_cases: int) -> list[str]:
    """Notes under the table."""
    lines = [
        f"{num_cases:,} questions; ± is one standard error; sh.: other headlines under the same tags",
        *(
            f"{name}: logistic regression, {fitted.num_features:,} features, C = {fitted.regularisation:g}"
            for name, fitted in views.baselines.items()
        ),
    ]
    for name in (TARGET, DRAFT):
        found = views.leak_errors(name)
        verdict = "A LEAK: the answer is known without the words" if found > LEAK_ERRORS else "no leak"
        lines.append(f"{name}, sh.: signs {found:+.1f} standard errors above chance: {verdict}")
    return lines


def view_metrics(views: ReaderViews) -> dict[str, float]:
    """By the ids of the goals, and further figures. Fractions, not percent."""
    truth = views.truth
    right = {name: scores.right_direction(one, truth) for name, one in views.readers.items()}
    metrics: dict[str, float] = {}
    if BaselineFeatures.WORDS.value in right:
        gain = mean(right[TARGET].astype(float) - right[BaselineFeatures.WORDS.value])
        metrics |= {"direction_accuracy_gain": gain.value, "direction_accuracy_gain_error": gain.error}
        over_all = mean(right[TARGET].astype(float) - right[BaselineFeatures.ALL.value])
        metrics["direction_accuracy_gain_all_features"] = over_all.value
    metrics |= {f"direction_accuracy_{_IDS[name]}": mean(found).value for name, found in right.items()}
    swapped_truth = truth.at(views.places)
    for name in (TARGET, DRAFT):
        one = views.readers[name]
        found = mean(scores.right_direction(views.swapped[name], swapped_truth))
        metrics |= {
            f"direction_accuracy_{_IDS[name]}_shuffled": found.value,
            f"leak_errors_{_IDS[name]}": views.leak_errors(name),
            f"size_mae_sigmas_{_IDS[name]}": mean(scores.size_error_sigmas(one, truth)).value,
            f"effect_mae_sigmas_{_IDS[name]}": mean(scores.effect_error_sigmas(one, truth)).value,
            f"ece_{_IDS[name]}": scores.expected_calibration_error(scores.reliability(one, truth)),
            f"brier_{_IDS[name]}": mean(scores.brier(one, truth)).value,
            f"cite_accuracy_{_IDS[name]}": _share(scores.cites_the_first(one, truth)),
        }
    return {name: value for name, value in metrics.items() if not math.isnan(value)}


def fluency_metrics(fluency: Fluency) -> dict[str, float]:
    metrics = {
        "match_rate_view": pooled(fluency.views).rate()[0],
        "match_rate_path": fluency.paths.rate()[0],
        "match_rate_view_greedy": pooled(fluency.greedy_views).rate()[0],
    }
    for name, losses in fluency.losses.items():
        owner = "unigram" if name == MOST_COMMON else _IDS[name]
        metrics |= {
            f"perplexity_headlines_{owner}": losses.perplexity(HEADLINES)[0],
            f"perplexity_view_{owner}": losses.perplexity(*FIELDS)[0],
            f"perplexity_path_{owner}": losses.perplexity(PATH)[0],
        }
    return {name: value for name, value in metrics.items() if not math.isnan(value)}


def _row(
    views: ReaderViews,
    measure: str,
    score: Callable[[ReaderAnswers, ReaderAnswers], str],
    places: Sequence[int] | None = None,
) -> Row:
    """One measure of every reader, of all cases or of some."""
    kept = list(range(len(views.truth.direction))) if places is None else list(places)
    truth = views.truth.at(kept)
    row: Row = {"measure": measure}
    for name in COLUMNS:
        if name in views.readers:
            row[name] = score(views.readers[name].at(kept), truth)
    at = {place: row_number for row_number, place in enumerate(views.places)}
    inside = [place for place in kept if place in at]
    row[COLUMNS[-1]] = score(
        views.swapped[TARGET].at([at[place] for place in inside]), views.truth.at(inside)
    )
    return row


def _reliability_rows(views: ReaderViews) -> list[Row]:
    bins = {
        name: scores.reliability(one, views.truth)
        for name, one in views.readers.items()
        if name not in (MOST_COMMON, BaselineFeatures.NO_WORDS.value)
    }
    rows: list[Row] = []
    for place, confidence in enumerate(CONFIDENCES):
        row: Row = {"measure": f"correct among moves predicted at {100 * confidence:g}%"}
        for name, reader_bins in bins.items():
            one = reader_bins[place]
            row[name] = f"{100 * one.right:.0f}% ({one.num:,})" if one.num else ""
        if any(reader_bins[place].num for reader_bins in bins.values()):
            rows.append(row)
    return rows


def _match_row(part: str, matches: DraftMatches) -> Row:
    share, error = matches.rate()
    return {"measure": f"draft agrees on {part}, %", DRAFT: _plus_minus(100 * share, 100 * error, 1)}


def _share(right: NDArray[Any] | None) -> float:
    return math.nan if right is None else mean(right).value


def _percent(right: NDArray[Any] | None, digits: int = 1) -> str:
    if right is None:
        return ""
    share = mean(right)
    return _plus_minus(100 * share.value, 100 * share.error, digits)


def _number(values: NDArray[Any]) -> str:
    found = mean(values)
    return _plus_minus(found.value, found.error, 2)


def _perplexity(value: float, error: float) -> str:
    """Three digits of the value, as many places of the error."""
    return _plus_minus(value, error, 0 if value >= 100 else 1 if value >= 10 else 2)


def _calibration(one: ReaderAnswers, truth: ReaderAnswers) -> str:
    error = scores.expected_calibration_error(scores.reliability(one, truth))
    return "" if np.isnan(error) else f"{100 * error:.1f}"


def _plus_minus(value: float, error: float, digits: int) -> str:
    if math.isnan(value):
        return ""
    shown = f"{error:.{digits}f}"
    return f"{value:.{digits}f} ±{shown.removeprefix('0') if digits > 1 else shown}"
