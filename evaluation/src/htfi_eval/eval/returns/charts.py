"""Charts of one walk for the page of `htfi eval returns`, thinned so that a page stays small."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from htfi.library.charts.specs import (
    Chart,
    Curve,
    CurveChart,
    DotChart,
    DotGroup,
    FanChart,
    HistogramChart,
    IntervalBand,
    TimeLines,
    TimeSpan,
)
from htfi_eval.eval.peers import CONSTANT, EWMA, HISTVOL
from htfi_eval.eval.returns.judging import GARCH, regimes_of
from htfi_eval.eval.returns.scores import WalkScores
from htfi_eval.eval.walk import CRISES, FUSED, REGIMES, within

Array = NDArray[np.float64]

_FAN_INSTANTS = 400
_POINTS = 160
_PIT_BINS = 20
_COVERAGE_WINDOW = 0.02  # share of the period in each point of coverage through time
_BANDS = ((0.98, 0.01, 0.99), (0.9, 0.05, 0.95), (0.6, 0.2, 0.8))


def charts(scores: WalkScores, *, full: bool) -> list[Chart]:
    """The charts of one data set: all if `full`, else the ratios, the fan and coverage through time."""
    drawn: list[Chart] = [_ratios(scores), *_fans(scores), _coverage_through_time(scores)]
    if full:
        drawn += [
            *_pits(scores),
            _reliability(scores),
            *_weights(scores),
            _stretch(scores),
            _by_regime(scores),
        ]
    return drawn


def compared(names: Sequence[str]) -> list[str]:
    """Every forecaster but the fused one; the constant volatility is far off."""
    return [name for name in names if name not in (FUSED, CONSTANT)]


def ratio_groups(
    names: Sequence[str], horizons: Sequence[int], ratio: Callable[[str, int], tuple[float, float]]
) -> list[DotGroup]:
    """A group of dots by horizon: by forecaster and place of the horizon a ratio and its standard error."""
    groups: list[DotGroup] = []
    for j, horizon in enumerate(horizons):
        found = [ratio(name, j) for name in names]
        values: list[float | None] = [value for value, _ in found]
        lows: list[float | None] = [value - 1.96 * error for value, error in found]
        highs: list[float | None] = [value + 1.96 * error for value, error in found]
        groups.append(DotGroup(_bars(horizon), values, lows, highs))
    return groups


def _ratios(scores: WalkScores) -> DotChart:
    def ratio(name: str, j: int) -> tuple[float, float]:
        base = scores.mean_crps(name, j, scores.both(name, j))
        return scores.ratio(name, j), scores.difference(name, j).error / base

    names = compared(scores.names)
    groups = ratio_groups(names, scores.horizons, ratio)
    return DotChart(
        f"{scores.prices.name}: CRPS of the fused forecast over that of each forecaster",
        "Below 1 the fused forecast is better. 95% intervals from Diebold-Mariano errors by date (Newey-West).",
        names,
        groups,
        zero=1.0,
        unit="×",
    )


def _fans(scores: WalkScores) -> list[FanChart]:
    """One series through the worst crisis in the data, at the shortest and a longer horizon."""
    span = max(CRISES, key=lambda span: int(within(scores.prices, span, scores.first).sum()))
    inside = np.flatnonzero(within(scores.prices, span, scores.first))
    known = np.isfinite(scores.shown[:, 0, 0])
    chosen = inside[known[inside]] if len(inside) else np.flatnonzero(known)
    chosen = _thin(chosen, _FAN_INSTANTS)
    if len(chosen) < 2:
        return []
    symbol, days = scores.prices.symbols[scores.shown_series], _days(scores)
    drawn: list[FanChart] = []
    for j in sorted({0, len(scores.horizons) - 1}):
        quantiles, outcomes = scores.shown[chosen, j], scores.shown_outcomes[chosen, j]
        bands = [
            IntervalBand(
                share,
                _plain(quantiles[:, scores.levels.index(low)]),
                _plain(quantiles[:, scores.levels.index(high)]),
            )
            for share, low, high in _BANDS
            if low in scores.levels and high in scores.levels
        ]
        title = f"{symbol}: forecasts for the next {_bars(scores.horizons[j])}, and outcomes"
        note = f"{scores.prices.name}, {days[int(chosen[0])]} to {days[int(chosen[-1])]}; log returns by forecast date"
        drawn.append(
            FanChart(title, note, [days[int(place)] for place in chosen], bands, _plain(outcomes), unit="%")
        )
    return drawn


def _coverage_through_time(scores: WalkScores) -> TimeLines:
    num = len(scores.held)
    window = max(int(num * _COVERAGE_WINDOW), 5)
    places = _thin(np.arange(window - 1, num), _POINTS)
    curves: list[Curve] = []
    for j, horizon in enumerate(scores.horizons):
        held = scores.held[:, :, j]
        hits = np.concatenate([[0], np.cumsum((held == 1).sum(axis=1))])
        known = np.concatenate([[0], np.cumsum((held >= 0).sum(axis=1))])
        of = known[places + 1] - known[places + 1 - window]
        share = np.where(of > 0, (hits[places + 1] - hits[places + 1 - window]) / np.maximum(of, 1), np.nan)
        curves.append(Curve(_bars(horizon), _plain(share)))
    days = _days(scores)
    return TimeLines(
        f"{scores.prices.name}: coverage of the 90% interval through time",
        f"Share of outcomes inside the interval, all series, over the last {window} instants; crises are shaded.",
        [days[int(place)] for place in places],
        curves,
        unit="%",
        level=0.9,
        spans=_crises(scores),
    )


def _pits(scores: WalkScores) -> list[HistogramChart]:
    drawn: list[HistogramChart] = []
    for j, horizon in enumerate(scores.horizons):
        values = scores.pit[:, :, j]
        known = values[np.isfinite(values)]
        counts = np.histogram(known, bins=_PIT_BINS, range=(0.0, 1.0))[0]
        dates = int(np.isfinite(values).any(axis=1).sum())
        drawn.append(
            HistogramChart(
                f"{scores.prices.name}: PIT of outcomes, {_bars(horizon)}",
                f"Probability integral transform of {len(known):,} fused forecasts; an even histogram is "
                "calibrated. The band counts each "
                f"{_bars(horizon)} as one independent draw.",
                [int(count) / max(len(known), 1) for count in counts],
                num=max(dates // horizon, 1),
            )
        )
    return drawn


def _reliability(scores: WalkScores) -> CurveChart:
    curves = [
        Curve(_bars(horizon), _plain(scores.hits[j] / max(int(scores.common[:, :, j].sum()), 1)))
        for j, horizon in enumerate(scores.horizons)
    ]
    return CurveChart(
        f"{scores.prices.name}: reliability",
        "Share of outcomes at or below each quantile of the fused forecast.",
        list(scores.levels),
        curves,
        "stated",
        "observed",
        diagonal=True,
    )


def _weights(scores: WalkScores) -> list[TimeLines]:
    days, drawn = _days(scores), list[TimeLines]()
    places = _thin(np.flatnonzero(np.isfinite(scores.weights[:, 0, 0])), _POINTS)
    for j in sorted({0, len(scores.horizons) - 1}) if len(places) else ():
        curves = [Curve(name, _plain(scores.weights[places, k, j])) for k, name in enumerate(scores.experts)]
        drawn.append(
            TimeLines(
                f"{scores.prices.name}: weights of the experts through time, {_bars(scores.horizons[j])}",
                "Mean over the series and over the zones of the distribution.",
                [days[int(place)] for place in places],
                curves,
                unit="%",
                stacked=True,
                spans=_crises(scores),
            )
        )
    return drawn


def _stretch(scores: WalkScores) -> TimeLines:
    places, days = _thin(np.flatnonzero(np.isfinite(scores.stretch[:, 0])), _POINTS), _days(scores)
    return TimeLines(
        f"{scores.prices.name}: stretch of the intervals by calibration",
        "Mean over the series; 1 leaves the mix of experts unchanged.",
        [days[int(place)] for place in places],
        [Curve(_bars(h), _plain(scores.stretch[places, j])) for j, h in enumerate(scores.horizons)],
        unit="×",
        level=1.0,
        spans=_crises(scores),
    )


def _by_regime(scores: WalkScores) -> DotChart:
    """Ratios at the first horizon by the regime at forecast time, and overall."""
    rivals = [name for name in (HISTVOL, EWMA, GARCH[0]) if name in scores.names]
    offset = scores.begin - scores.first
    regimes = [(where, chosen[offset:]) for where, chosen in regimes_of(scores)][: len(REGIMES)]
    found = [(where, chosen) for where, chosen in regimes if scores.both(FUSED, 0, chosen).any()]
    groups = [
        DotGroup(name, [scores.ratio(name, 0), *(scores.ratio(name, 0, chosen) for _, chosen in found)])
        for name in rivals
    ]
    return DotChart(
        f"{scores.prices.name}: CRPS by regime, {_bars(scores.horizons[0])} ahead",
        "Fused over each peer, by the market's regime at forecast time. Below 1 the fused forecast is better.",
        ["all", *(where for where, _ in found)],
        groups,
        zero=1.0,
        unit="×",
    )


def _crises(scores: WalkScores) -> list[TimeSpan]:
    return [span for span in CRISES if within(scores.prices, span, scores.first).any()]


def _days(scores: WalkScores) -> list[str]:
    return scores.prices.dates()[scores.first :]


def _bars(horizon: int) -> str:
    return "1 bar" if horizon == 1 else f"{horizon} bars"


def _thin(places: NDArray[np.intp], num: int) -> NDArray[np.intp]:
    if len(places) <= num:
        return places
    return places[np.linspace(0, len(places) - 1, num).round().astype(np.intp)]


def _plain(values: Array | NDArray[np.float32]) -> list[float | None]:
    """Rounded to six digits; NaN is a gap."""
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in values]
