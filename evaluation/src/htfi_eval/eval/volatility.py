"""`htfi eval volatility`: forecasts of variance compared with HAR, out of sample, on real data.

A forecaster's variance is that of a Gaussian with the mean absolute outcome that its quantiles imply. It is multiplied
by the mean of its own matured realised-to-forecast ratios on that series, so a constant bias has no effect.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.forecasting.evaluation.differences import LossDifference, benjamini_hochberg, diebold_mariano, holm
from htfi.forecasting.scores import implied_variance, qlike
from htfi.library.charts.specs import Chart, Curve, DotChart, TimeLines
from htfi.wiring.settings import load_settings
from htfi_eval.commands import ProgressCallback, ProgressLine
from htfi_eval.eval.peers import MIN_BARS, WINDOW_BARS, classical, har_variance
from htfi_eval.eval.prices import Prices, load_prices
from htfi_eval.eval.returns.charts import compared, ratio_groups
from htfi_eval.eval.returns.command import (
    MAIN_SET,
    default_sets,
    record_run,
    spread_sample,
    walk_options,
    with_settings,
)
from htfi_eval.eval.returns.judging import WalkOptions, first_scored, garch_peers
from htfi_eval.eval.walk import FUSED, RealisedOutcomes, Walk, measure_outcomes
from htfi_eval.report import write_outputs
from htfi_eval.results import Card, Evaluation

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_PRIOR_BARS = 50.0  # ratios of 1 at the start of a series


@dataclass(slots=True, eq=False)
class VolatilityScores:
    """Shapes: [T, N, H]. Losses are QLIKE, ratios raw realised/forecast, variances scaled; common from `begin` on."""

    names: tuple[str, ...]
    horizons: tuple[int, ...]
    begin: int
    losses: dict[str, Array]
    ratios: dict[str, Array]
    variances: dict[str, Array]
    realised: Array
    common: Mask

    def mean(self, name: str, j: int, where: Mask | None = None) -> float:
        chosen = self.common[:, :, j] if where is None else self.common[:, :, j] & where
        values = self.losses[name][:, :, j][chosen]
        return float(values.mean()) if values.size else float("nan")

    def ratio(self, name: str, j: int, where: Mask | None = None) -> float:
        """Mean QLIKE of the fused forecast over that of `name`."""
        return self.mean(FUSED, j, where) / self.mean(name, j, where)

    def difference(self, name: str, j: int) -> LossDifference:
        fused, other = (
            np.where(self.common[:, :, j], self.losses[one][:, :, j], np.nan)[self.begin :]
            for one in (FUSED, name)
        )
        return diebold_mariano(fused, other, self.horizons[j])

    def bias(self, name: str, j: int) -> float:
        """Mean raw realised over forecast variance: 1 is unbiased."""
        return float(self.ratios[name][:, :, j][self.common[:, :, j]].mean())


def variances(walk: Walk, progress: ProgressCallback | None = None) -> dict[str, Array]:
    """The variance of every forecaster after each instant, {name: [T, N, H]}."""
    shape = (len(walk.prices.ends_ns), len(walk.prices.symbols), len(walk.config.horizons))
    variance_by_name = {name: np.full(shape, np.nan) for name in walk.names}
    levels = np.array(walk.config.levels)
    for instant in walk.instants(0, progress):
        moments = implied_variance(instant.quantiles, levels)
        for place, name in enumerate(walk.names):
            variance_by_name[name][instant.t, instant.places] = moments[place]
    return variance_by_name


def of_every_series(variance_by_name: Mapping[str, Array]) -> dict[str, Array]:
    """Those forecasters that forecast every series that the fused forecast has: an expert may be of one kind of series
    alone."""
    has = {name: np.isfinite(variance).any(axis=(0, 2)) for name, variance in variance_by_name.items()}
    return {name: variance for name, variance in variance_by_name.items() if (has[name] | ~has[FUSED]).all()}


def close_to_close(measured: RealisedOutcomes) -> Array:
    """The realised variance of the next h bars in units of squared returns, [T, N, H].

    Ranges and returns differ by a constant (gaps, ticks): each series' ranges are scaled by Σr²/ΣV of the data known
    at the forecast.
    """
    known = np.isfinite(measured.returns)
    squares = np.cumsum(np.where(known, measured.returns**2, 0.0), axis=0)
    ranges = np.cumsum(np.where(known, measured.variance, 0.0), axis=0)
    scale = np.where(ranges > 0.0, squares / np.where(ranges > 0.0, ranges, 1.0), np.nan)
    realised = measured.realised * scale[:, :, None]
    return np.where(realised > 0.0, realised, np.nan)


def score(
    forecasts: Mapping[str, Array], measured: RealisedOutcomes, horizons: Sequence[int], begin: int
) -> VolatilityScores:
    """QLIKE of every forecaster's variance, on the common forecasts from `begin` on."""
    realised = close_to_close(measured)
    losses: dict[str, Array] = {}
    ratios: dict[str, Array] = {}
    scaled: dict[str, Array] = {}
    common = np.isfinite(realised)
    common[:begin] = False
    for name, variance in forecasts.items():
        sound = np.where(variance > 0.0, variance, np.nan)
        ratios[name] = realised / sound
        scaled[name] = sound * past_mean(ratios[name], measured, horizons)
        losses[name] = qlike(realised, scaled[name])
        common &= np.isfinite(losses[name])
    return VolatilityScores(
        tuple(forecasts), tuple(horizons), begin, losses, ratios, scaled, realised, common
    )


def past_mean(ratios: Array, measured: RealisedOutcomes, horizons: Sequence[int]) -> Array:
    """The mean of the ratios [T, N, H] that had matured at each instant, per series, started with some ones."""
    factor = np.ones_like(ratios)
    for n in range(ratios.shape[1]):
        when = np.flatnonzero(np.isfinite(measured.returns[:, n]))
        for j, h in enumerate(horizons):
            seen = ratios[when, n, j]
            known = np.isfinite(seen)
            total = np.concatenate([np.zeros(h), np.cumsum(np.where(known, seen, 0.0))])[: len(when)]
            num = np.concatenate([np.zeros(h), np.cumsum(known)])[: len(when)]
            factor[when, n, j] = (_PRIOR_BARS + total) / (_PRIOR_BARS + num)
    return factor


HAR = ("har_rolling", "har_expanding")  # refitted on 1,000 bars; on all before

_EPILOG = """\b
Examples:
  htfi eval volatility                            every staged set
  htfi eval volatility us_equities --symbols 40   40 of the symbols
  htfi eval volatility prices.csv                 bars with high and low
"""
_HOW = (
    "QLIKE = x − ln x − 1, x = realised/forecast variance. Realised variance is the sum of Parkinson's variance "
    "of the true "
    "ranges of the next bars, scaled to squared returns by past data. A forecast's variance is (π/2)·E|y|² "
    "of its quantiles; each, HAR's too, is scaled by the mean of its own past x on that series. qlike_vs_har is "
    "against the better form of HAR at each horizon"
)


@click.command("volatility", short_help="Forecasts of variance against HAR, on real data.", epilog=_EPILOG)
@walk_options
@click.option("--fast", is_flag=True, help="No fitted peers except HAR.")
def command(
    sets: tuple[str, ...], data: Path | None, num_symbols: int | None, first: str | None, settings: tuple[str, ...],
    settings_file: Path | None, fast: bool, fresh: bool, trials: Path, seed: int, html_file: Path | None,
    json_file: Path | None,
) -> None:  # fmt: skip
    """Walk bars through the live forecaster and compare its variance with realised ranges.

    The fused forecast is compared with its experts, HAR of log ranges by rolling least squares, EWMA and arch's GARCH.
    """
    loaded = with_settings(load_settings(settings_file), settings)
    options = WalkOptions(loaded.forecasting, first, with_fitted=not fast, fresh=fresh, seed=seed)
    notes: list[str] = [_HOW]
    rows: list[dict[str, Any]] = []
    charts: list[Chart] = []
    data_read: list[Prices] = []
    metrics: dict[str, float | None] = {}
    for name in sets or default_sets(data, notes):
        prices = load_prices(name, data, loaded.market)
        if num_symbols is not None:
            prices = spread_sample(prices, num_symbols)
        data_read.append(prices)
        scores, set_notes = judge(prices, options)
        notes += set_notes
        rows += _rows(prices, scores)
        if prices.name == MAIN_SET or not metrics:
            worst = max(max(scores.ratio(form, j) for form in HAR) for j in range(len(scores.horizons)))
            metrics = {"qlike_vs_har": worst}
        charts += _charts(prices, scores)
    tested = [row for row in rows if "p" in row]
    chances = [row.pop("p") for row in tested]
    for row, by_holm, by_rate in zip(tested, holm(chances), benjamini_hochberg(chances), strict=True):
        row |= {"p, Holm": float(f"{by_holm:.2g}"), "q, BH": float(f"{by_rate:.2g}")}
    value = metrics["qlike_vs_har"] or 0.0
    notes.append(record_run("volatility", options, data_read, metrics, trials))
    result = Evaluation(
        name="volatility",
        title="Forecasts of volatility",
        lead=f"The fused forecast's QLIKE is {value:.3f} of HAR's at the horizon where it is worst.",
        metrics=metrics,
        cards=[Card(f"{value:.3f}", "of HAR's QLIKE, worst horizon", value <= 0.99)],
        charts=charts,
        rows=rows,
        notes=notes,
        seed=seed,
    )
    write_outputs(result, json_file=json_file, html_file=html_file)


def judge(prices: Prices, options: WalkOptions) -> tuple["VolatilityScores", list[str]]:
    """One data set's scores and notes. Raises: InvalidInput if it is too short."""
    _, begin = first_scored(prices, options.first)
    measured = measure_outcomes(prices, options.config)
    progress = ProgressLine(prices.name)
    garch, notes = (
        garch_peers(prices, measured, begin, options, progress) if options.with_fitted else ([], [])
    )
    walk = Walk(prices, options.config, [*classical(len(prices.symbols), options.config, begin), *garch])
    forecasts = of_every_series(variances(walk, progress))
    for form, window in zip(HAR, (WINDOW_BARS, None), strict=True):
        forecasts[form] = har_variance(measured, options.config.horizons, window)
    scores = score(forecasts, measured, options.config.horizons, begin)
    if not scores.common.any():
        raise InvalidInput(
            f"{prices.name}: no variance forecast by all has an outcome: HAR needs {MIN_BARS} bars of a series "
            f"before the first, and there are {len(prices.ends_ns)} instants"
        )
    return scores, [*prices.notes, *notes]


def _rows(prices: Prices, scores: "VolatilityScores") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for j, horizon in enumerate(scores.horizons):
        for name in scores.names:
            row: dict[str, Any] = {
                "data": prices.name, "bars": horizon, "forecaster": name, "n": int(scores.common[:, :, j].sum()),
                "QLIKE": scores.mean(name, j), "fused/row": scores.ratio(name, j),
                "realised/forecast": scores.bias(name, j),
            }  # fmt: skip
            if name != FUSED:
                found = scores.difference(name, j)
                row |= {"DM": found.statistic, "p": found.p}
            rows.append(row)
    return rows


def _charts(prices: Prices, scores: "VolatilityScores") -> list[Chart]:
    def ratio(name: str, j: int) -> tuple[float, float]:
        return scores.ratio(name, j), scores.difference(name, j).error / scores.mean(name, j)

    names = compared(scores.names)
    groups = ratio_groups(names, scores.horizons, ratio)
    drawn: list[Chart] = [
        DotChart(
            f"{prices.name}: QLIKE of the fused forecast over that of each forecaster",
            "Below 1 the fused forecast is better. 95% intervals by date (Newey-West).",
            names,
            groups,
            zero=1.0,
            unit="×",
        )
    ]
    n = int(scores.common[:, :, 0].sum(axis=0).argmax())
    places = np.flatnonzero(scores.common[:, n, 0])
    places = places[np.linspace(0, len(places) - 1, min(len(places), 300)).round().astype(int)]
    year = _bars_a_year(prices)
    curves = [
        Curve(
            label,
            [float(f"{100 * np.sqrt(year * value):.4g}") for value in values[places, n, 0].tolist()],
            quiet=quiet,
        )
        for label, values, quiet in (
            ("realised", scores.realised, True),
            (HAR[1], scores.variances[HAR[1]], False),
            (FUSED, scores.variances[FUSED], False),
        )
    ]
    days = prices.dates()
    title = f"{prices.name}, {prices.symbols[n]}: volatility of the next bar, forecast and realised"
    drawn.append(
        TimeLines(title, "Annualised, in percent.", [days[int(place)] for place in places], curves, unit="%")
    )
    return drawn


def _bars_a_year(prices: Prices) -> float:
    """The number of bars per year, estimated from the data."""
    span_ns = float(prices.ends_ns[-1] - prices.ends_ns[0])
    return len(prices.ends_ns) / max(span_ns / (365.25 * 86_400e9), 1e-9)
