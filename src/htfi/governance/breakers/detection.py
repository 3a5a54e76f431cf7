"""The sequential test of every breaker: a bet that scores are larger than their bound allows.

A score x of 0–1 has, while nothing is wrong, a conditional mean of at most its bound m. A bet of a fraction f of the
wealth multiplies it by e = 1 + f·(x − m)/m, whose conditional mean is then at most 1: an e-value. Source: betting on
bounded means, Waudby-Smith and Ramdas, arXiv 2010.09686.

To detect a change at an unknown time the wealth begins anew wherever it has fallen below 1, W ← max(W, 1)·e: the CUSUM
e-detector. Its mean number of observations to a false alarm at W ≥ c is at least c. Source: Shin, Ramdas and Rinaldo,
E-detectors, arXiv 2203.03532, which extends Ville's inequality and Page's CUSUM. The mean over several f is an
e-detector too, and so is the mean of the e of several series, whatever their dependence: Vovk and Wang, E-values,
arXiv 1912.06116. Products and sums alone: the same bits on every machine.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

BETS: Array = np.array([0.05, 0.2, 0.5, 0.9])  # A fractions of the wealth, for small and large excesses
_SHARE_OF_BET = 1.0 / len(BETS)
_MAX_WEALTH = 1e200


def excess_ratio(score: Array, bound: Array | float) -> Array:
    """(x − m)/m of scores x under bounds m, of one shape; 0 where the score is NaN: nothing was observed."""
    ratio = (score - bound) / bound
    return np.where(np.isnan(ratio), 0.0, ratio)


def detect(wealth: Array, ratio: Array) -> tuple[Array, Array]:
    """The wealth after scores with these excess ratios, and the evidence against all being usual, its mean.

    Shapes: wealth [..., A], ratio and evidence [...]. New tests have a wealth of 1. The mean number of observations to
    evidence of c or more is at least c while all is usual.
    """
    gain = ratio[..., None] * BETS  # [..., A]
    gain += 1.0
    gain *= np.maximum(wealth, 1.0)
    np.minimum(gain, _MAX_WEALTH, out=gain)
    return gain, np.add.reduce(gain, axis=-1) * _SHARE_OF_BET


def share_evidence(num: int, of: int, bound: float) -> float:
    """The evidence that more than the share `bound` of `of` things, asked one after the other, are so, as `num` are.

    An e-value: while each is so with a chance of `bound` at most, given those before, its mean is 1 at most.
    """
    evidence = 0.0
    for bet in BETS.tolist():
        evidence += _SHARE_OF_BET * (1.0 + bet * (1.0 - bound) / bound) ** num * (1.0 - bet) ** (of - num)
    return min(evidence, _MAX_WEALTH)
