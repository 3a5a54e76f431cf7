"""Surveys a run's decisions in one pass: how good they were, by the prices that followed in the same file.

The report's page is made from the `RunSurvey` that `take_survey` returns: scores, calibration, weights, the series. A
forecast over h bars is scored by the price of the same series h lines later, whether that line was released or kept
back; like the run's own score, only where every expert took part. An amendment brings no price of its own: its forecast
takes the place of the one it amends at the horizons that have not ended by then, and its view counts until the next
bar. A decision between two bars is scored apart, against the one on the bar before. Memory does not grow with the
length of the run.
"""

import math
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from htfi.apps.cli.report.amendments import amended_id
from htfi.apps.cli.report.cells import MaturedBatch
from htfi.apps.cli.report.event_bars import UNKNOWN, BarSpan, EventBars
from htfi.apps.cli.report.news_answers import ForecastFromPrice
from htfi.apps.cli.report.notable import NotableDecision, NotableDecisions, summarise_decision
from htfi.apps.cli.report.readings import ReadingOutcome, TiltScore, fresh_reading
from htfi.apps.cli.report.run_survey import (
    FUSED,
    NUM_PIT_BINS,
    ForecastAxes,
    RunSurvey,
    SeriesScore,
    add_experts,
    empty_survey,
)
from htfi.domain.decision import TICKS_PER_UNIT, Decision, Forecast, Regime
from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_DAY, parse_duration
from htfi.forecasting.kinds import AUTO_EXPERTS, EXPERTS_BY_KIND, kind_of
from htfi.forecasting.scores import crps, pit
from htfi.pipeline.weighing import numeric_quantiles
from htfi.wiring.event_file import EventTimes
from htfi.wiring.outputs import ReleasedLine, WithheldLine, line_subject

Array = NDArray[np.float64]


_BATCH = 2048


class _AppliedTilt(NamedTuple):
    """What a view has changed: whose it is, its weight [H], and the numbers alone."""

    narrator: str
    weight: list[float]
    numbers: NDArray[np.float32]  # [H, Q]


class _PendingForecast(NamedTuple):
    """What is kept of a forecast until its last horizon has passed: little, since each series holds many."""

    decision_id: str
    ordinal: int
    last_price: float
    interval: int
    regime: int
    quantiles: NDArray[np.float32]  # [H, K, Q]
    notable: NotableDecision
    tally: SeriesScore
    read: ReadingOutcome | None
    tilt: _AppliedTilt | None


class _MaturedForecast(NamedTuple):
    """A forecast whose outcome is known: the log return over the horizon at place `h`. `event`: `MaturedBatch`."""

    origin: _PendingForecast
    h: int
    outcome: float
    event: int


def take_survey(
    lines: Iterable[ReleasedLine | WithheldLine], size: int, event_times: Sequence[EventTimes] = ()
) -> RunSurvey | None:
    """Sum a run of `size` lines up. None when no line carries a forecast."""
    survey: RunSurvey | None = None
    event_bars = EventBars(event_times)
    pending: dict[str, deque[_PendingForecast]] = {}
    early: list[WithheldLine] = []
    batch: list[_MaturedForecast] = []
    notable = NotableDecisions()
    for line in lines:
        if amended_id(line):
            if survey is not None and isinstance(line, ReleasedLine):
                _amend(survey, pending, line.decision)
            continue
        if survey is not None and line_subject(line).is_between_bars:
            _add_answer(survey, pending, line)
            continue
        if survey is None:
            if isinstance(line, WithheldLine):
                early.append(line)
                continue
            survey = empty_survey(_axes(line.decision.forecast), size)
            for before in early:
                _count_line(survey, before)
        about = line_subject(line)
        tally = _count_line(survey, line)
        held = event_bars.cell(_next_bar(line, tally)) if event_times else UNKNOWN
        waiting = pending.setdefault(tally.name, deque())
        batch += _mature(survey.axes, waiting, about.last_price, tally.num, held)
        _score_answers(survey, tally, about.as_of_ns)
        survey.stated.bar_closed(tally.name, about.last_price)
        if isinstance(line, ReleasedLine):
            axes = _axes(line.decision.forecast)
            if not set(axes.names) <= set(survey.axes.names):
                _score(survey, batch, notable)
                batch.clear()
                add_experts(survey, axes.names)
            survey.recent.add(line.decision)
            _take_facts(survey, line.index, line.decision)
            survey.amendments.add(line.decision)
            survey.news.add(line.decision)
            survey.stated.add(line.decision)
            if _is_comparable(axes, survey.axes, line.decision):
                waiting.append(_pending_forecast(survey, line.index, line.decision, tally))
        if len(batch) >= _BATCH:
            _score(survey, batch, notable)
            batch.clear()
    if survey is not None:
        _score(survey, batch, notable)
        survey.widest, survey.surprises = notable.widest(), notable.surprises()
    return survey


def _amend(survey: RunSurvey, pending: dict[str, deque[_PendingForecast]], decision: Decision) -> None:
    """Let an amendment take the place of its first decision in readings and text, where no bar has closed since."""
    survey.recent.add(decision)
    survey.amendments.add(decision)
    survey.news.add(decision)
    if decision.is_between_bars:
        if decision.series in survey.series:
            survey.answers.amend(decision, survey.series[decision.series].num)
        return
    waiting = pending.get(decision.series, deque[_PendingForecast]())
    for place, origin in enumerate(waiting):
        if origin.decision_id != decision.amends:
            continue
        ended = np.array(survey.axes.horizons) <= origin.tally.num - origin.ordinal
        if not ended.any():
            origin = origin._replace(
                notable=summarise_decision(decision),
                read=fresh_reading(decision, survey.recent.shown_for(decision)),
                tilt=_applied_tilt(decision),
            )
        quantiles = origin.quantiles.copy()
        quantiles[~ended, 0] = np.array(decision.forecast.quantiles, np.float32)[~ended]
        waiting[place] = origin._replace(quantiles=quantiles)


def _add_answer(
    survey: RunSurvey, pending: dict[str, deque[_PendingForecast]], line: ReleasedLine | WithheldLine
) -> None:
    """Take a decision between two bars: it brings no bar, and is compared with the one on the newest."""
    survey.num_lines += 1
    survey.end_ns = line_subject(line).as_of_ns
    if isinstance(line, WithheldLine):
        survey.answers.num_withheld += 1
        _count_reasons(survey, line)
        return
    decision = line.decision
    survey.recent.add(decision)
    _take_inputs(survey, decision)
    survey.amendments.add(decision)
    survey.news.add(decision)
    survey.stated.add(decision)
    tally = survey.series.get(decision.series)
    waiting = pending.get(decision.series)
    standing = waiting[-1] if waiting else None
    is_comparable = (
        tally is not None
        and standing is not None
        and decision.news_trigger is not UNSET
        and standing.decision_id == decision.news_trigger.replaces
        and decision.forecast.horizons == survey.axes.horizons
        and decision.forecast.levels == survey.axes.levels
    )
    before = (
        ForecastFromPrice(standing.last_price, standing.quantiles[:, 0])
        if is_comparable and standing is not None
        else None
    )
    survey.answers.add(decision, tally.num if tally is not None else 0, before)


def _score_answers(survey: RunSurvey, tally: SeriesScore, at_ns: int) -> None:
    levels = np.array(survey.axes.levels)
    survey.answers.bar_closed(tally.name, tally.last_price, tally.num, at_ns, survey.axes.horizons, levels)


def _is_comparable(axes: ForecastAxes, of_run: ForecastAxes, decision: Decision) -> bool:
    """Whether a forecast has the horizons and levels of the run, and those of its experts that suit such a series."""
    if axes == of_run:
        return True
    idle = set(AUTO_EXPERTS) - set(EXPERTS_BY_KIND[kind_of(decision.symbol, decision.interval)])
    return axes[:2] == of_run[:2] and set(of_run.names) <= {*axes.names, *idle}


def _axes(forecast: Forecast) -> ForecastAxes:
    return ForecastAxes(forecast.horizons, forecast.levels, (FUSED, *sorted(forecast.expert_ticks)))


def _count_line(survey: RunSurvey, line: ReleasedLine | WithheldLine) -> SeriesScore:
    about = line_subject(line)
    name = f"{about.symbol}/{about.interval}"
    tally = survey.series.get(name)
    if tally is None:
        tally = survey.series[name] = SeriesScore(name)
    tally.num += 1
    tally.last_price = about.last_price
    tally.regime = about.regime
    tally.num_shock += about.regime is Regime.SHOCK
    survey.num_lines += 1
    survey.cells.count_instant(about.as_of_ns)
    survey.start_ns = survey.start_ns or about.as_of_ns
    survey.end_ns = survey.times_ns[survey.interval(line.index)] = about.as_of_ns
    if isinstance(line, WithheldLine):
        tally.num_withheld += 1
        _count_reasons(survey, line)
    return tally


def _count_reasons(survey: RunSurvey, line: WithheldLine) -> None:
    for reason in line.reasons or ["no reason given"]:
        survey.withheld[reason] = survey.withheld.get(reason, 0) + 1


def _pending_forecast(
    survey: RunSurvey, index: int, decision: Decision, tally: SeriesScore
) -> _PendingForecast:
    forecast = decision.forecast
    nothing = [[math.nan] * len(survey.axes.levels)] * len(survey.axes.horizons)
    experts = np.array(
        [forecast.expert_ticks.get(name, nothing) for name in survey.axes.names[1:]], np.float64
    )
    quantiles = np.array([forecast.quantiles, *(experts / TICKS_PER_UNIT)], np.float32)  # [K, H, Q]
    return _PendingForecast(
        decision.id,
        tally.num,
        decision.last_price,
        survey.interval(index),
        _REGIMES[decision.regime],
        quantiles.transpose(1, 0, 2),
        summarise_decision(decision),
        tally,
        fresh_reading(decision, survey.recent.shown_for(decision)),
        _applied_tilt(decision),
    )


def _applied_tilt(decision: Decision) -> _AppliedTilt | None:
    tilt = decision.forecast.tilt
    if tilt is None:
        return None
    return _AppliedTilt(
        tilt.narrator, tilt.weight, np.array(numeric_quantiles(decision.forecast), np.float32)
    )


def _take_facts(survey: RunSurvey, index: int, decision: Decision) -> None:
    _take_inputs(survey, decision)
    stretch = survey.interval(index)
    if decision.forecast.horizons != survey.axes.horizons:
        return
    shares, nothing = decision.forecast.shares, [0.0] * len(survey.axes.horizons)
    weights = [shares.get(name, nothing) for name in survey.axes.names[1:]]  # [K−1, H]
    survey.weights[stretch] += np.array(weights).T
    survey.num_weights[stretch] += 1


def _take_inputs(survey: RunSurvey, decision: Decision) -> None:
    if decision.inputs.digest != survey.last_digest:  # series that close together share their inputs
        survey.last_digest = decision.inputs.digest
        survey.num_events += decision.inputs.num_events
    survey.models |= decision.models
    if decision.settings_digest not in survey.digests:
        survey.digests.append(decision.settings_digest)
    for source, (first, last) in decision.inputs.rows.items():
        low, high = survey.sources.get(source, (first, last))
        survey.sources[source] = (min(low, first), max(high, last))


def _next_bar(line: ReleasedLine | WithheldLine, tally: SeriesScore) -> BarSpan:
    """The bar of a line; one of a day or longer begins where the series' last one ended, so that weekends count."""
    about = line_subject(line)
    try:
        length_ns = parse_duration(about.interval)
    except InvalidInput:
        length_ns = 0  # bars of a volume
    if isinstance(line, ReleasedLine):
        begin_ns, end_ns = line.decision.circumstances.bar_start_ns, line.decision.circumstances.bar_end_ns
    else:
        begin_ns, end_ns = about.as_of_ns - length_ns, about.as_of_ns
    is_daily = length_ns >= NS_PER_DAY
    if is_daily and tally.last_end_ns:
        begin_ns = tally.last_end_ns
    tally.last_end_ns = end_ns
    return BarSpan(about.symbol, begin_ns, end_ns, is_daily)


def _mature(
    axes: ForecastAxes, waiting: deque[_PendingForecast], price: float, ordinal: int, event: int
) -> list[_MaturedForecast]:
    """The forecasts that end with a bar of this price, which held that event."""
    matured: list[_MaturedForecast] = []
    for origin in waiting:
        age = ordinal - origin.ordinal
        if age in axes.horizons:
            outcome = math.log(price / origin.last_price)
            held = event if age == 1 else UNKNOWN
            matured.append(_MaturedForecast(origin, axes.horizons.index(age), outcome, held))
    while waiting and ordinal - waiting[0].ordinal >= axes.horizons[-1]:
        waiting.popleft()
    return matured


def _score(survey: RunSurvey, batch: list[_MaturedForecast], notable: NotableDecisions) -> None:
    """Add a batch of matured forecasts to the sums; those that lack an expert of the run are left out."""
    axes = survey.axes
    batch = [item for item in batch if item.origin.quantiles.shape[1] == len(axes.names)]
    if not batch:
        return
    quantiles = np.stack([item.origin.quantiles[item.h] for item in batch]).astype(np.float64)  # [N, K, Q]
    outcome = np.array([item.outcome for item in batch])  # [N]
    h = np.array([item.h for item in batch])
    stretch = np.array([item.origin.interval for item in batch])
    regime = np.array([item.origin.regime for item in batch])
    levels = np.array(axes.levels)

    scores = crps(quantiles, outcome[:, None], levels)  # [N, K]
    is_scored = np.isfinite(scores)
    scores = np.where(is_scored, scores, 0.0)
    np.add.at(survey.crps, (stretch, h), scores)
    np.add.at(survey.num_by_name, (stretch, h), is_scored)
    np.add.at(survey.num, (stretch, h), 1.0)
    below = outcome[:, None, None] <= quantiles  # [N, K, Q]
    np.add.at(survey.below, h, below)
    tenth = np.minimum(NUM_PIT_BINS - 1, pit(quantiles[:, 0], outcome, levels) * NUM_PIT_BINS).astype(np.intp)
    np.add.at(survey.pit, (h, tenth), 1.0)
    low, high = (_at_level(quantiles[:, 0], levels, level) for level in (0.05, 0.95))
    within = (low <= outcome) & (outcome <= high)
    np.add.at(survey.regime_num, (regime, h), 1.0)
    np.add.at(survey.regime_within, (regime, h), within)
    survey.cells.add(
        MaturedBatch(
            series=[item.origin.tally.name for item in batch],
            ordinal=[item.origin.ordinal for item in batch],
            made_ns=np.array([item.origin.notable.as_of_ns for item in batch], np.int64),
            horizon=h,
            regime=regime,
            event=np.array([item.event for item in batch]),
            stretch=stretch,
            quantiles=quantiles,
            outcome=outcome,
            crps=scores,
            levels=levels,
            horizons=axes.horizons,
            baseline=survey.baseline,
        )
    )
    for n, item in enumerate(batch):
        weighed = item.origin.tilt
        if weighed is not None:
            plain = float(crps(weighed.numbers[item.h].astype(np.float64), outcome[n], levels))
            key = (weighed.narrator, axes.horizons[item.h])
            tally = survey.readings.weighed.setdefault(key, TiltScore())
            tally.add(plain, float(scores[n, 0]), weighed.weight[item.h])
        if item.h == 0:
            tally = item.origin.tally
            tally.num_scored += 1
            tally.num_within90 += bool(within[n])
            for k, name in enumerate(axes.names):
                if not is_scored[n, k]:
                    continue
                tally.crps[name] = tally.crps.get(name, 0.0) + float(scores[n, k])
            notable.add(item.origin.notable, item.outcome)
            if item.origin.read is not None:
                survey.readings.add(item.origin.read, item.outcome)


_REGIMES = {regime: r for r, regime in enumerate(Regime)}


def _at_level(quantiles: Array, levels: Array, level: float) -> Array:
    """Quantiles [N] at one level, on a straight line between the stated ones."""
    upper = int(np.searchsorted(levels, level).clip(1, len(levels) - 1))
    share = (level - levels[upper - 1]) / (levels[upper] - levels[upper - 1])
    return quantiles[:, upper - 1] + share * (quantiles[:, upper] - quantiles[:, upper - 1])
