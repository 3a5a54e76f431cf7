"""Backtests of value at risk and expected shortfall: Kupiec, Christoffersen, Acerbi and Székely, traffic light.

`htfi eval portfolio` reports them. Pure: numpy and math alone. Profits, value at risk and shortfall are in one unit;
value at risk and shortfall are positive losses; `tail` is the share that should be missed, such as 0.01.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput

Array = NDArray[np.float64]
Misses = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class BacktestResult:
    """A test's statistic and the chance of one as bad where the forecasts are right."""

    statistic: float
    p_value: float


class TrafficLight(StrEnum):
    """The supervisors' traffic light (Basel 1996): yellow from 95% of the binomial, red from 99.99%."""

    GREEN = "green"
    YELLOW = "yellow"
    RED = "red"


def exceedances(profit: Array, value_at_risk: Array) -> Misses:
    """Where the loss was larger than the value at risk."""
    return -profit > value_at_risk


def kupiec(missed: Misses, tail: float) -> BacktestResult:
    """Proportion of failures (Kupiec 1995): likelihood ratio, χ² with 1 degree of freedom. NaN for no forecast."""
    num, hits = len(missed), int(missed.sum())
    if num == 0:
        return BacktestResult(math.nan, math.nan)
    ratio = 2.0 * (_log_likelihood(hits, num, hits / num) - _log_likelihood(hits, num, tail))
    return BacktestResult(max(ratio, 0.0), chi_square_tail(max(ratio, 0.0), 1))


def christoffersen_independence(missed: Misses) -> BacktestResult:
    """Whether a miss makes the next more likely (Christoffersen 1998): first-order Markov, χ² with 1."""
    if len(missed) < 2:
        return BacktestResult(math.nan, math.nan)
    before, after = missed[:-1], missed[1:]
    calm, calm_hits = int((~before).sum()), int((~before & after).sum())
    bad, bad_hits = int(before.sum()), int((before & after).sum())
    hits, num = calm_hits + bad_hits, calm + bad
    each = _log_likelihood(calm_hits, calm, calm_hits / max(calm, 1)) + _log_likelihood(
        bad_hits, bad, bad_hits / max(bad, 1)
    )
    ratio = max(2.0 * (each - _log_likelihood(hits, num, hits / num)), 0.0)
    return BacktestResult(ratio, chi_square_tail(ratio, 1))


def christoffersen(missed: Misses, tail: float) -> BacktestResult:
    """Conditional coverage: as many misses as stated, and none drawing another; χ² with 2.

    The coverage part leaves out the first day, so that both parts judge the same transitions.
    """
    if len(missed) < 2:
        return BacktestResult(math.nan, math.nan)
    ratio = kupiec(missed[1:], tail).statistic + christoffersen_independence(missed).statistic
    return BacktestResult(ratio, chi_square_tail(ratio, 2))


def traffic_light(missed: Misses, tail: float) -> TrafficLight:
    """Basel's zone by the binomial probability of no more misses than there were; green if there are too few
    days to judge.
    """
    hits = int(missed.sum())
    if hits <= len(missed) * tail:
        return TrafficLight.GREEN
    upto = binomial_cdf(hits, len(missed), tail)
    if upto >= 0.9999:
        return TrafficLight.RED
    return TrafficLight.YELLOW if upto >= 0.95 else TrafficLight.GREEN


def acerbi_szekely_1(profit: Array, value_at_risk: Array, shortfall: Array) -> float:
    """Z1 (Acerbi and Székely 2014, eq. 5): mean over the misses of profit/ES, + 1. 0 is right, below 0 too optimistic.

    NaN where nothing was missed: it judges the size of misses, not their number.
    """
    missed = exceedances(profit, value_at_risk)
    if not missed.any():
        return math.nan
    return float((profit[missed] / np.where(shortfall > 0.0, shortfall, np.inf)[missed]).mean()) + 1.0


def acerbi_szekely_2(profit: Array, value_at_risk: Array, shortfall: Array, tail: float) -> float:
    """Z2 (eq. 6): Σ profit·1{missed}/ES over T·tail, + 1. 0 is right, below 0 too optimistic in number or size.

    At a tail of 2.5% the authors reject at −0.70 (5%) and −1.8 (0.01%), nearly whatever the tail's weight.
    """
    if len(profit) == 0:
        return math.nan
    missed = exceedances(profit, value_at_risk)
    ratios = np.where(missed, profit / np.where(shortfall > 0.0, shortfall, np.inf), 0.0)
    return float(ratios.sum()) / (len(profit) * tail) + 1.0


def fissler_ziegel(profit: Array, value_at_risk: Array, shortfall: Array, tail: float) -> Array:
    """A loss [T] whose mean is least for the true pair of value at risk and shortfall (Patton, Ziegel and Chen 2019).

    FZ0 = 1{missed}·(loss − VaR)/(tail·ES) + VaR/ES + ln ES − 1; no test of the pair, but a way to compare two.
    """
    shortfall = np.maximum(shortfall, 1e-300)
    over = np.maximum(-profit - value_at_risk, 0.0)
    return over / (tail * shortfall) + value_at_risk / shortfall + np.log(shortfall) - 1.0


def simulated_results(
    profit: Array,
    value_at_risk: Array,
    shortfall: Array,
    tail: float,
    draws: Array,
) -> tuple[BacktestResult, BacktestResult]:
    """Z1 and Z2 with the share of simulated histories that are as low.

    `draws` [M, T] are profits drawn from each day's own forecast: what the tests would give were it right. Days that
    overlap, as those of 5-day forecasts do, must be thinned first. The false-alarm rate of `p < α` is α.
    """
    if draws.shape[1:] != profit.shape:
        raise InvalidInput(f"simulated profits are of {draws.shape[1:]} days, not of {profit.shape}")
    first = acerbi_szekely_1(profit, value_at_risk, shortfall)
    second = acerbi_szekely_2(profit, value_at_risk, shortfall, tail)
    missed = -draws > value_at_risk
    ratios = np.where(missed, draws / np.where(shortfall > 0.0, shortfall, np.inf), 0.0).sum(axis=1)
    num_missed = missed.sum(axis=1)
    firsts = ratios[num_missed > 0] / num_missed[num_missed > 0] + 1.0
    seconds = ratios / max(len(profit) * tail, 1e-300) + 1.0
    return BacktestResult(first, _share_below(firsts, first)), BacktestResult(
        second, _share_below(seconds, second)
    )


def chi_square_tail(value: float, freedom: int) -> float:
    """P(χ² > value) with 1 or 2 degrees of freedom, in closed form."""
    if freedom == 1:
        return math.erfc(math.sqrt(max(value, 0.0) / 2.0))
    if freedom == 2:
        return math.exp(-max(value, 0.0) / 2.0)
    raise InvalidInput(f"closed forms are here for 1 and 2 degrees of freedom, not {freedom}")


def binomial_cdf(most: int, num: int, share: float) -> float:
    """P(at most `most` of `num`), each with chance `share` strictly between 0 and 1."""
    log_share, log_rest = math.log(share), math.log1p(-share)
    terms = [
        math.lgamma(num + 1)
        - math.lgamma(k + 1)
        - math.lgamma(num - k + 1)
        + k * log_share
        + (num - k) * log_rest
        for k in range(min(most, num) + 1)
    ]
    return min(math.fsum(math.exp(term) for term in terms), 1.0)


def _log_likelihood(hits: int, num: int, share: float) -> float:
    """Of `hits` among `num` Bernoulli trials; 0·log 0 is 0."""
    log_hits = hits * math.log(share) if hits else 0.0
    return log_hits + ((num - hits) * math.log1p(-share) if num > hits else 0.0)


def _share_below(simulated: Array, value: float) -> float:
    """The simulated p-value, the true history counted among the simulated ones."""
    if not math.isfinite(value):
        return math.nan
    return (1.0 + float((simulated <= value).sum())) / (1.0 + len(simulated))
