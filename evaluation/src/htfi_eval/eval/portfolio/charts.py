"""Charts of `htfi eval portfolio`: risk through time, misses, PIT, and how much of the best rules is chance."""

import numpy as np
from numpy.typing import NDArray

from htfi.library.charts.specs import (
    BarChart,
    Chart,
    Curve,
    FanChart,
    HistogramChart,
    IntervalBand,
    TimeLines,
    TimeSpan,
)
from htfi_eval.eval.portfolio.judging import RiskTest, pit
from htfi_eval.eval.portfolio.methods import HISTORICAL, OURS, RISKMETRICS
from htfi_eval.eval.portfolio.rules import RuleFamily
from htfi_eval.eval.portfolio.walk import LEVELS, PortfolioWalk
from htfi_eval.eval.walk import CRISES

Array = NDArray[np.float64]

_FAN_DAYS = 250
_NUM_BINS = 20
_NUM_BEST = 12


def risk_charts(walked: PortfolioWalk, tested: list[RiskTest]) -> list[Chart]:
    """Of one set: one day ahead, the equal-weight book."""
    name = walked.prices.name
    return [
        _through_time(walked, name),
        _shortfall(walked, name),
        _fan(walked, name),
        _misses(walked, tested, name),
        *(_pit(walked, method, name) for method in (OURS, RISKMETRICS)),
    ]


def rule_charts(family: RuleFamily, coins: RuleFamily, name: str, dates: list[str]) -> list[Chart]:
    best = sorted(family.results, key=lambda result: -result.moments.sharpe)[:_NUM_BEST]
    luckiest = family.expected_max_annual_sharpe()
    return [
        BarChart(
            f"{name}: annual Sharpe ratio of the best {len(best)} of {len(family.results)} rules",
            f"After costs, executed at the next open. The best of {family.num_trials} trials is expected to reach "
            f" {luckiest:.2f}; the best of {len(coins.results)} random rules reached "
            f"{coins.best.annual_sharpe:.2f}.",
            [result.name for result in best],
            [result.annual_sharpe for result in best],
        ),
        BarChart(
            f"{name}: probability of a positive Sharpe ratio, each rule alone",
            "Probabilistic Sharpe ratio: as if it were the only rule tried.",
            [result.name for result in best],
            [family.probabilistic(result) for result in best],
        ),
        BarChart(
            f"{name}: the same probability, deflated by the number of trials",
            f"Deflated Sharpe ratio, {family.num_trials} trials. Below .95 it may be luck.",
            [result.name for result in best],
            [family.deflated(result) for result in best],
        ),
        *(
            HistogramChart(
                f"{name}: rank of the best {kind} of one half of the time in the other half",
                f"Combinatorially symmetric cross-validation, {len(one.overfitting.logits):,} splits; left is worst. "
                f"Probability of overfitting {one.overfitting.probability:.2f}: the share below the middle.",
                _ranks(one.overfitting.logits),
                even=False,
            )
            for kind, one in (("rule", family), ("random rule", coins))
        ),
        _wealth(family, coins, name, dates),
    ]


def _through_time(walked: PortfolioWalk, name: str) -> TimeLines:
    forecasts, profit = walked.forecasts[OURS, 0], walked.profit[0][:, 0]
    risk = np.array([day[0] for day in forecasts.value_at_risk])
    peer = np.array([day[0, 1] for day in walked.forecasts[HISTORICAL, 0].value_at_risk])
    missed = -profit > risk[:, 1]
    at_misses = [
        value if miss else None for value, miss in zip(profit.tolist(), missed.tolist(), strict=True)
    ]
    return TimeLines(
        f"{name}: profit of the {walked.books.names[0]} book and its one-day value at risk",
        f"Joint scenarios. Misses at 99%: {int(missed.sum())} of {len(profit)} days, "
        f"{0.01 * len(profit):.0f} expected.",
        _dates(walked, 0),
        [
            Curve("profit", profit.tolist()),
            Curve("95%", (-risk[:, 0]).tolist()),
            Curve("99%", (-risk[:, 1]).tolist()),
            Curve(f"99%, {HISTORICAL}", (-peer).tolist()),
            Curve("missed at 99%", at_misses),
        ],
        level=0.0,
        spans=_spans(walked),
    )


def _shortfall(walked: PortfolioWalk, name: str) -> TimeLines:
    curves = [
        Curve(f"99%, {method}", [float(day[0, 1]) for day in walked.forecasts[method, 0].shortfall])
        for method in (OURS, RISKMETRICS, HISTORICAL)
    ]
    return TimeLines(
        f"{name}: one-day expected shortfall of the {walked.books.names[0]} book",
        "The mean loss in the worst 1% of days, as each method forecast it the day before.",
        _dates(walked, 0),
        curves,
        spans=_spans(walked),
    )


def _fan(walked: PortfolioWalk, name: str) -> FanChart:
    """The year with the largest loss."""
    profit = walked.profit[0][:, 0]
    last = min(max(int(profit.argmin()) + _FAN_DAYS // 2, _FAN_DAYS), len(profit))
    days = range(max(last - _FAN_DAYS, 0), last)
    profits = [walked.forecasts[OURS, 0].profits[day][0] for day in days]
    bands = [
        IntervalBand(
            share,
            [float(np.quantile(rising, 0.5 - share / 2.0)) for rising in profits],
            [float(np.quantile(rising, 0.5 + share / 2.0)) for rising in profits],
        )
        for share in (0.98, 0.9, 0.5)
    ]
    dates = _dates(walked, 0)
    return FanChart(
        f"{name}: profit of the {walked.books.names[0]} book in the year around its worst day",
        "Central intervals of the one-day forecast, and the outcome.",
        [dates[day] for day in days],
        bands,
        [float(profit[day]) for day in days],
    )


def _misses(walked: PortfolioWalk, tested: list[RiskTest], name: str) -> BarChart:
    level = LEVELS[1]
    chosen = [one for one in tested if one.horizon == walked.horizons[0] and one.level == level]
    error = [1.96 * float(np.sqrt((1.0 - level) * level / one.num_days)) for one in chosen]
    return BarChart(
        f"{name}: share of days with a loss above the one-day value at risk at 99%",
        "1% is calibrated; the interval is the 95% range of a calibrated forecast, around the observed share.",
        [f"{one.book}, {one.method}" for one in chosen],
        [one.missed for one in chosen],
        [max(one.missed - wide, 0.0) for one, wide in zip(chosen, error, strict=True)],
        [(one.missed + wide) for one, wide in zip(chosen, error, strict=True)],
        zero=(1.0 - level),
        unit="%",
    )


def _pit(walked: PortfolioWalk, method: str, name: str) -> HistogramChart:
    found = pit(walked, method, 0, 0)
    counts = np.bincount(np.minimum((found * _NUM_BINS).astype(int), _NUM_BINS - 1), minlength=_NUM_BINS)
    return HistogramChart(
        f"{name}: PIT of the profit of the {walked.books.names[0]} book ({method})",
        "One day ahead. An even histogram is calibrated; high at both ends is too narrow.",
        (counts / len(found)).tolist(),
    )


def _wealth(family: RuleFamily, coins: RuleFamily, name: str, dates: list[str]) -> TimeLines:
    results = [*sorted(family.results, key=lambda one: -one.moments.sharpe)[:3], coins.best]
    num = len(results[0].returns)
    step = max(num // 600, 1)
    return TimeLines(
        f"{name}: cumulative return of the best rules",
        "As a share of the amount held, after costs; the last is the best random rule.",
        dates[-num::step],
        [Curve(result.name, np.cumsum(result.returns)[::step].tolist()) for result in results],
        level=0.0,
    )


def _ranks(logits: Array) -> list[float]:
    share = 1.0 / (1.0 + np.exp(-logits))
    counts = np.bincount(np.minimum((share * _NUM_BINS).astype(int), _NUM_BINS - 1), minlength=_NUM_BINS)
    return (counts / len(logits)).tolist()


def _dates(walked: PortfolioWalk, j: int) -> list[str]:
    """Of the bar of the outcome."""
    every = walked.prices.dates()
    return [every[day + walked.horizons[j]] for day in walked.days[j].tolist()]


def _spans(walked: PortfolioWalk) -> list[TimeSpan]:
    dates = _dates(walked, 0)
    return [span for span in CRISES if span.last >= dates[0] and span.first <= dates[-1]]
