"""Figures of a trial from what both sides answered: losses with tests of their difference, views, attacks, speed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.domain.decision import PolicyOutcome
from htfi.forecasting.evaluation.differences import loss_difference, mean_by_date
from htfi.forecasting.evaluation.overfitting import deflated_sharpe, return_moments
from htfi.forecasting.scores import crps
from htfi.governance.sandbox.results import TrialEnding, TrialResult, TrialStopped
from htfi.pipeline.sandbox.messages import SeriesAnswer
from htfi.pipeline.sandbox.trial_events import TrialEvents

Array = NDArray[np.float64]

MARGIN = 0.02  # of the champion's loss, by which a candidate may be worse and still pass
VIEW_MARGIN = 0.25  # of the score of a view: 1 for the right sign, −1 for the wrong one


@dataclass(frozen=True, slots=True)
class SideAnswers:
    """What one side answered, by instant, with the horizons and levels of its forecasts and the time of each answer."""

    answers: Sequence[Sequence[SeriesAnswer]]
    seconds: Sequence[float]
    horizons: tuple[int, ...]
    levels: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class TrialFigures:
    """The result, and the differences of loss by date (candidate less champion) that it was made from."""

    result: TrialResult
    differences: Array


def failed_trial(name: str, stopped: TrialStopped) -> TrialFigures:
    """Of a candidate that did not get to the end: there is nothing to compare."""
    return TrialFigures(TrialResult(trial=name, ending=stopped.ending, detail=stopped.detail), np.empty(0))


def compare_sides(
    name: str, stream: TrialEvents, candidate: SideAnswers, champion: SideAnswers, *, has_own: bool
) -> TrialFigures:
    """All figures but those of attacks and repetition. `has_own`: the candidate is an expert, which answers alone."""
    horizons = [h for h in champion.horizons if h in candidate.horizons]
    ours, theirs = _losses(stream, candidate, horizons), _losses(stream, champion, horizons)
    means = [theirs[:, :, j][np.isfinite(theirs[:, :, j])] for j in range(len(horizons))]
    scale = [float(found.mean()) if len(found) else 1.0 for found in means]
    ours, theirs = ours / scale, theirs / scale
    missing = int((np.isnan(ours) & np.isfinite(theirs)).any(axis=2).sum())
    gaps = (ours - theirs).reshape(len(ours), -1)
    differences = mean_by_date(gaps)
    horizon = max(horizons, default=1)
    worse, better = _chances(differences, horizon)
    own = _losses(stream, candidate, horizons, own=True) / scale if has_own else np.full_like(ours, np.nan)
    both = list(_pairs(candidate.answers, champion.answers))
    views = [
        (_score(first.direction, sign), _score(second.direction, sign))
        for first, second, place in _answers_at(stream, both)
        if (sign := stream.signs.get((first.series, place))) is not None
    ]
    return TrialFigures(
        TrialResult(
            trial=name, ending=TrialEnding.FINISHED, num_events=stream.num_events,
            num_forecasts=int(np.isfinite(ours).any(axis=2).sum()),
            loss=known(_mean(ours)), loss_error=known(loss_difference(differences, horizon).error),
            p_worse=known(worse), p_better=known(better), own_loss=known(_mean(own)),
            num_invalid=missing + (_num_invalid(candidate.answers) if has_own else 0),
            num_withheld=_num(candidate.answers, PolicyOutcome.WITHHOLD),
            champion_withheld=_num(champion.answers, PolicyOutcome.WITHHOLD),
            num_released_more=sum(
                first.outcome == PolicyOutcome.RELEASE and second.outcome not in ("", PolicyOutcome.RELEASE)
                for first, second in both
            ),
            right_views=known(_share_right(views, 0)), champion_right_views=known(_share_right(views, 1)),
            p_views=known(_p_views(views)),
            answer_p95_ms=known(_p95_ms(stream, candidate)), champion_p95_ms=known(_p95_ms(stream, champion)),
            events_per_s=known(_events_per_s(stream, candidate)), needed_events_per_s=stream.needed_events_per_s,
        ),
        differences,
    )  # fmt: skip


def farthest_moved(attacked: SideAnswers, calm: SideAnswers) -> float:
    """How far any median lies from that of the same stream without attacks, in widths of the 90% band; NaN for none."""
    middle, low, high = (attacked.levels.index(level) for level in (0.5, 0.05, 0.95))
    by_series: list[dict[str, list[SeriesAnswer]]] = [{}, {}]
    for side, found in zip((attacked, calm), by_series, strict=True):
        for answers in side.answers:
            for answer in answers:
                found.setdefault(answer.series, []).append(answer)
    moved = [
        abs(first.quantiles[0][middle] - second.quantiles[0][middle])
        / max(second.quantiles[0][high] - second.quantiles[0][low], 1e-12)
        for series, answers in by_series[0].items()
        for first, second in zip(answers, by_series[1].get(series, []), strict=False)
        if first.quantiles and second.quantiles
    ]
    return max(moved, default=math.nan)


def gain_is_real(
    differences: Sequence[Array], sharpes: Sequence[float], num_tries: int
) -> tuple[float, float]:
    """The candidate's gain by date as a Sharpe ratio, and the chance that it is more than luck among so many tries.

    `sharpes` are those of earlier tries. NaN where there is nothing to judge. Source: the deflated Sharpe ratio.
    """
    gains = -np.concatenate([one for one in differences if len(one)] or [np.empty(0)])
    if len(gains) < 2 or not np.isfinite(gains).all() or not np.any(gains):
        return math.nan, math.nan
    moments = return_moments(gains)
    ratios = [*sharpes, moments.sharpe]
    variance = float(np.var(ratios)) if len(ratios) > 1 else 0.0
    return moments.sharpe, deflated_sharpe(moments, variance, num_tries)


def _losses(stream: TrialEvents, side: SideAnswers, horizons: Sequence[int], *, own: bool = False) -> Array:
    """CRPS [T, N, H] at the bar that a forecast was made on; NaN where there is none, or no outcome."""
    names = list(stream.closes)
    num = max(map(len, stream.closes.values()), default=0)
    levels = np.array(side.levels)
    rows = [side.horizons.index(h) for h in horizons]
    logs = {name: np.log(values) for name, values in stream.closes.items()}
    quantiles = np.full((num, len(names), len(horizons), len(levels)), np.nan)
    outcomes = np.full((num, len(names), len(horizons)), np.nan)
    for name, values in logs.items():
        n = names.index(name)
        for j, h in enumerate(horizons):
            outcomes[: len(values) - h, n, j] = values[h:] - values[:-h] if len(values) > h else np.nan
    for answer, place in _of_bars(stream, side.answers):
        table = answer.own if own else answer.quantiles
        if len(table) == len(side.horizons) and all(len(row) == len(levels) for row in table):
            quantiles[place, names.index(answer.series)] = np.array(table)[rows]
    scored = np.isfinite(quantiles).all(axis=3) & np.isfinite(outcomes)
    losses = np.full(outcomes.shape, np.nan)
    losses[scored] = crps(quantiles[scored], outcomes[scored], levels)
    return losses


def _of_bars(
    stream: TrialEvents, answers: Sequence[Sequence[SeriesAnswer]]
) -> list[tuple[SeriesAnswer, int]]:
    return [
        (answer, place)
        for instant, found in zip(stream.instants, answers, strict=False)
        for answer, place in zip(found, instant.places, strict=True)
    ]


def _answers_at(
    stream: TrialEvents, both: Sequence[tuple[SeriesAnswer, SeriesAnswer]]
) -> list[tuple[SeriesAnswer, SeriesAnswer, int]]:
    places = [place for instant in stream.instants for place in instant.places]
    return [(first, second, place) for (first, second), place in zip(both, places, strict=False)]


def _pairs(
    first: Sequence[Sequence[SeriesAnswer]], second: Sequence[Sequence[SeriesAnswer]]
) -> list[tuple[SeriesAnswer, SeriesAnswer]]:
    return [
        pair for ours, theirs in zip(first, second, strict=False) for pair in zip(ours, theirs, strict=True)
    ]


def _chances(differences: Array, horizon: int) -> tuple[float, float]:
    """The chance of a difference as good were the candidate worse by the margin, and were both equal."""
    if len(differences) < 2:
        return math.nan, math.nan
    if not np.any(differences):  # equal to the bit
        return 0.0, 1.0
    return loss_difference(differences - MARGIN, horizon).p, loss_difference(differences, horizon).p


def _num_invalid(answers: Sequence[Sequence[SeriesAnswer]]) -> int:
    """Forecasts of the expert alone that are missing once it had begun, not finite, or cross."""
    begun: set[str] = set()
    num = 0
    for answer in (answer for found in answers for answer in found):
        own = np.array(answer.own)
        is_whole = own.ndim == 2 and bool(np.isfinite(own).all())
        if is_whole:
            begun.add(answer.series)
        num += (not is_whole and answer.series in begun) or (
            is_whole and bool((np.diff(own, axis=1) < 0.0).any())
        )
    return num


def _num(answers: Sequence[Sequence[SeriesAnswer]], outcome: PolicyOutcome) -> int:
    return sum(answer.outcome == outcome for found in answers for answer in found)


def _score(direction: float, sign: float) -> float:
    return 0.0 if direction == 0.0 else math.copysign(1.0, direction * sign)


def _share_right(views: Sequence[tuple[float, float]], side: int) -> float:
    return sum(one[side] > 0.0 for one in views) / len(views) if views else math.nan


def _p_views(views: Sequence[tuple[float, float]]) -> float:
    """The chance of scores as good were the candidate's worse by the margin on average: a one-sided z test."""
    if len(views) < 2:
        return math.nan
    gaps = np.array([first - second for first, second in views]) + VIEW_MARGIN
    deviation = float(gaps.std(ddof=1))
    if deviation == 0.0:
        return 0.0 if gaps[0] > 0.0 else 1.0
    return 0.5 * math.erfc(float(gaps.mean()) / deviation * math.sqrt(len(gaps) / 2.0))


def _p95_ms(stream: TrialEvents, side: SideAnswers) -> float:
    """Of answers about bars; a burst's are measured by their rate."""
    times = [s for s, instant in zip(side.seconds, stream.instants, strict=False) if instant.series]
    return 1e3 * float(np.quantile(times, 0.95)) if times else math.nan


def _events_per_s(stream: TrialEvents, side: SideAnswers) -> float:
    found = [
        (len(instant.events) - 1, s)
        for s, instant in zip(side.seconds, stream.instants, strict=False)
        if not instant.series
    ]
    seconds = sum(s for _, s in found)
    return sum(num for num, _ in found) / seconds if seconds and stream.needed_events_per_s else math.nan


def known(value: float) -> float | None:
    """A figure as the log has it: None where it is no number."""
    return value if math.isfinite(value) else None


def _mean(values: Array) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else math.nan
