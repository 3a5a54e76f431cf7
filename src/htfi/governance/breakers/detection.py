"""The sequential test of every breaker: a bet that scores are larger than their bound allows.

A score x of 0–1 has, while nothing is wrong, a conditional mean of at most its bound m. A bet of a fraction f of the
wealth multiplies it by e = 1 + f·(x − m)/m, whose conditional mean is then at most 1: an e-value. Source: betting on
bounded means, Waudby-Smith and Ramdas, arXiv 2010.09686.

To detect a change at an unknown time the wealth begins anew wherever it has fallen below 1, W ← max(W, 1)·e: the CUSUM
e-detector. Its mean number of observations to a false alarm at W ≥ c is at least c. Source: Shin, Ramdas and Rinaldo,
E-detectors, arXiv 2203.03532, which extends Ville's inequality and Page's CUSUM. The mean over several f is an
e-detector too, and so is the mean of the e of several series, whatever their dependence: Vovk and Wang, E-values,
arXiv 1912.06116.
"""

import numpy as np
from numpy.typing import NDArray

from htfi.domain import portable_math as exact

Array = NDArray[np.float64]

BETS: Array = np.array([0.05, 0.2, 0.5, 0.9])  # A fractions of the wealth, for small and large excesses
_LOG_NUM_BETS = float(exact.log(np.array([float(len(BETS))]))[0])


def excess_ratio(score: Array, bound: Array | float) -> Array:
    """(x − m)/m of scores x under bounds m, of one shape; 0 where the score is NaN: nothing was observed."""
    return np.where(np.isfinite(score), (score - bound) / bound, 0.0)


def detect(log_wealth: Array, ratio: Array) -> tuple[Array, Array]:
    """The wealth after scores with these excess ratios, and the evidence against all being usual.

    Shapes: log_wealth [..., A], ratio and evidence [...]. The evidence is at most the log of the mean wealth, so that
    it reaches ln c with a mean number of observations between false alarms of c or more.
    """
    wealth = np.maximum(log_wealth, 0.0) + exact.log(1.0 + ratio[..., None] * BETS)  # [..., A]
    return wealth, np.maximum.reduce(wealth, axis=-1) - _LOG_NUM_BETS


def alarm_threshold(num_a_year: Array | float, false_alarms_a_year: float) -> Array:
    """The evidence from which a test trips that observes so often a year and may alarm falsely so often, ln(N/r)."""
    return exact.log(np.maximum(np.asarray(num_a_year, np.float64) / false_alarms_a_year, 1.0))


def share_evidence(num: int, of: int, bound: float) -> float:
    """The evidence that more than the share `bound` of `of` things, asked one after the other, are so, as `num` are."""
    if of <= 0:
        return 0.0
    ratio = np.where(np.arange(of) < num, (1.0 - bound) / bound, -1.0)
    gains = np.add.reduce(exact.log(1.0 + ratio[:, None] * BETS), axis=0)
    return float(gains.max()) - _LOG_NUM_BETS
