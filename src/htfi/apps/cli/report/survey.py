"""One pass over a run's decisions: how good they were, by the prices that followed in the same file.

The report's page is made from the `Survey` that `take_survey` returns. A forecast over h bars is scored by
the price of the same series h lines later, whether that line was released or kept back; like the run's own
score, only where every expert took part. An amendment brings no price of its own: its forecast takes the place of the
one it amends at the horizons that have not ended by then, and what it tells does so until the next bar. Memory does
not grow with the length of the run.
"""

import math
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from htfi.apps.cli.report.late import amended_by
from htfi.apps.cli.report.notable import Notable, Noted, note
from htfi.apps.cli.report.readings import Read, WeighedTally, read_in
from htfi.apps.cli.report.sums import FUSED, NUM_PIT_BINS, Axes, SeriesTally, Survey, blank, widen
from htfi.domain.decision import Decision, Forecast, Regime
from htfi.forecasting.scores import crps, pit
from htfi.pipeline.weighing import numbers
from htfi.wiring.outputs import Released, Withheld, subject

_BATCH = 2048

Array = NDArray[np.float64]


class _Weighed(NamedTuple):
    """What a view has changed: whose it is, its weight [H], and the numbers alone."""

    narrator: str
    weight: list[float]
    numbers: NDArray[np.float32]  # [H, Q]


class _Origin(NamedTuple):
    """What is kept of a forecast until its last horizon has passed: little, since each series holds many."""

    decision_id: str
    ordinal: int
    last_price: float
    stretch: int
    regime: int
    quantiles: NDArray[np.float32]  # [H, K, Q]
    noted: Noted
    tally: SeriesTally
    read: Read | None
    weighed: _Weighed | None


class _Matured(NamedTuple):
    """A forecast whose outcome is known: the log return over the horizon at place `h`."""

    origin: _Origin
    h: int
    outcome: float


def take_survey(lines: Iterable[Released | Withheld], size: int) -> Survey | None:
    """Sum a run of `size` lines up. None when no line carries a forecast."""
    survey: Survey | None = None
    pending: dict[str, deque[_Origin]] = {}
    early: list[Withheld] = []
    batch: list[_Matured] = []
    notable = Notable()
    for line in lines:
        if amended_by(line):
            if survey is not None and isinstance(line, Released):
                _amend(survey, pending, line.decision)
            continue
        if survey is None:
            if isinstance(line, Withheld):
                early.append(line)
                continue
            survey = blank(_axes(line.decision.forecast), size)
            for before in early:
                _tally(survey, before)
        tally = _tally(survey, line)
        about = subject(line)
        waiting = pending.setdefault(tally.name, deque())
        batch += _mature(survey.axes, waiting, about.last_price, tally.num)
        if isinstance(line, Released):
            axes = _axes(line.decision.forecast)
            if not set(axes.names) <= set(survey.axes.names):
                _score(survey, batch, notable)
                batch.clear()
                widen(survey, axes.names)
            _take_facts(survey, line.index, line.decision)
            survey.late.take(line.decision)
            survey.news.take(line.decision)
            if axes == survey.axes:  # nothing else is comparable
                waiting.append(_origin(survey, line.index, line.decision, tally))
        if len(batch) >= _BATCH:
            _score(survey, batch, notable)
            batch.clear()
    if survey is not None:
        _score(survey, batch, notable)
        survey.widest, survey.surprises = notable.widest(), notable.surprises()
    return survey


def _amend(survey: Survey, pending: dict[str, deque[_Origin]], decision: Decision) -> None:
    """Let an amendment take the place of its first decision in what is read and told, where no bar has closed since."""
    survey.late.take(decision)
    survey.news.take(decision)
    waiting = pending.get(decision.series, deque[_Origin]())
    for place, origin in enumerate(waiting):
        if origin.decision_id != decision.amends:
            continue
        ended = np.array(survey.axes.horizons) <= origin.tally.num - origin.ordinal
        if not ended.any():
            origin = origin._replace(noted=note(decision), read=read_in(decision), weighed=_weighed(decision))
        quantiles = origin.quantiles.copy()
        quantiles[~ended, 0] = np.array(decision.forecast.quantiles, np.float32)[~ended]
        waiting[place] = origin._replace(quantiles=quantiles)


def _axes(forecast: Forecast) -> Axes:
    return Axes(forecast.horizons, forecast.levels, (FUSED, *sorted(forecast.experts)))


def _tally(survey: Survey, line: Released | Withheld) -> SeriesTally:
    about = subject(line)
    name = f"{about.symbol}/{about.interval}"
    tally = survey.series.get(name)
    if tally is None:
        tally = survey.series[name] = SeriesTally(name)
    tally.num += 1
    tally.last_price = about.last_price
    tally.regime = about.regime
    tally.num_shock += about.regime is Regime.SHOCK
    survey.num_lines += 1
    survey.start_ns = survey.start_ns or about.as_of_ns
    survey.end_ns = survey.times_ns[survey.stretch(line.index)] = about.as_of_ns
    if isinstance(line, Withheld):
        tally.num_withheld += 1
        for reason in line.reasons or ["no reason given"]:
            survey.withheld[reason] = survey.withheld.get(reason, 0) + 1
    return tally


def _origin(survey: Survey, index: int, decision: Decision, tally: SeriesTally) -> _Origin:
    forecast = decision.forecast
    experts = [forecast.experts[name] for name in survey.axes.names[1:]]
    quantiles = np.array([forecast.quantiles, *experts], np.float32)  # [K, H, Q]
    return _Origin(
        decision.id,
        tally.num,
        decision.last_price,
        survey.stretch(index),
        _REGIMES[decision.regime],
        quantiles.transpose(1, 0, 2),
        note(decision),
        tally,
        read_in(decision),
        _weighed(decision),
    )


def _weighed(decision: Decision) -> _Weighed | None:
    tilt = decision.forecast.tilt
    if tilt is None:
        return None
    return _Weighed(tilt.narrator, tilt.weight, np.array(numbers(decision.forecast), np.float32))


def _take_facts(survey: Survey, index: int, decision: Decision) -> None:
    if decision.inputs.digest != survey.last_digest:  # series that close together share their inputs
        survey.last_digest = decision.inputs.digest
        survey.num_events += decision.inputs.num_events
    survey.models |= decision.models
    if decision.settings_digest not in survey.digests:
        survey.digests.append(decision.settings_digest)
    for source, (first, last) in decision.inputs.rows.items():
        low, high = survey.sources.get(source, (first, last))
        survey.sources[source] = (min(low, first), max(high, last))
    stretch = survey.stretch(index)
    if decision.forecast.horizons != survey.axes.horizons:
        return
    for k, name in enumerate(survey.axes.names[1:]):
        survey.weights[stretch, :, k] += decision.forecast.shares.get(name, 0.0)
    survey.num_weights[stretch] += 1


def _mature(axes: Axes, waiting: deque[_Origin], price: float, ordinal: int) -> list[_Matured]:
    matured: list[_Matured] = []
    for origin in waiting:
        age = ordinal - origin.ordinal
        if age in axes.horizons:
            outcome = math.log(price / origin.last_price)
            matured.append(_Matured(origin, axes.horizons.index(age), outcome))
    while waiting and ordinal - waiting[0].ordinal >= axes.horizons[-1]:
        waiting.popleft()
    return matured


def _score(survey: Survey, batch: list[_Matured], notable: Notable) -> None:
    """Add a batch of matured forecasts to the sums; those that lack an expert of the run are left out."""
    axes = survey.axes
    batch = [item for item in batch if item.origin.quantiles.shape[1] == len(axes.names)]
    if not batch:
        return
    quantiles = np.stack([item.origin.quantiles[item.h] for item in batch]).astype(np.float64)  # [N, K, Q]
    outcome = np.array([item.outcome for item in batch])  # [N]
    h = np.array([item.h for item in batch])
    stretch = np.array([item.origin.stretch for item in batch])
    regime = np.array([item.origin.regime for item in batch])
    levels = np.array(axes.levels)

    scores = crps(quantiles, outcome[:, None], levels)  # [N, K]
    np.add.at(survey.crps, (stretch, h), scores)
    np.add.at(survey.num, (stretch, h), 1.0)
    below = outcome[:, None, None] <= quantiles  # [N, K, Q]
    np.add.at(survey.below, h, below)
    tenth = np.minimum(NUM_PIT_BINS - 1, pit(quantiles[:, 0], outcome, levels) * NUM_PIT_BINS).astype(np.intp)
    np.add.at(survey.pit, (h, tenth), 1.0)
    low, high = (_at_level(quantiles[:, 0], levels, level) for level in (0.05, 0.95))
    within = (low <= outcome) & (outcome <= high)
    np.add.at(survey.regime_num, (regime, h), 1.0)
    np.add.at(survey.regime_within, (regime, h), within)
    for n, item in enumerate(batch):
        weighed = item.origin.weighed
        if weighed is not None:
            plain = float(crps(weighed.numbers[item.h].astype(np.float64), outcome[n], levels))
            key = (weighed.narrator, axes.horizons[item.h])
            tally = survey.readings.weighed.setdefault(key, WeighedTally())
            tally.take(plain, float(scores[n, 0]), weighed.weight[item.h])
        if item.h == 0:
            tally = item.origin.tally
            tally.num_scored += 1
            tally.num_within90 += bool(within[n])
            for k, name in enumerate(axes.names):
                tally.crps[name] = tally.crps.get(name, 0.0) + float(scores[n, k])
            notable.weigh(item.origin.noted, item.outcome)
            if item.origin.read is not None:
                survey.readings.weigh(item.origin.read, item.outcome)


_REGIMES = {regime: r for r, regime in enumerate(Regime)}


def _at_level(quantiles: Array, levels: Array, level: float) -> Array:
    """Quantiles [N] at one level, on a straight line between the stated ones."""
    upper = int(np.searchsorted(levels, level).clip(1, len(levels) - 1))
    share = (level - levels[upper - 1]) / (levels[upper] - levels[upper - 1])
    return quantiles[:, upper - 1] + share * (quantiles[:, upper] - quantiles[:, upper - 1])
