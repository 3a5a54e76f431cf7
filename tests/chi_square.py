"""Pearson's test against an exact law, with its false-alarm rate and its power; no library beyond numpy is needed."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

FEWEST_EXPECTED = 5.0  # cells below are put together, as the test's approximation asks


class Fit(NamedTuple):
    """`statistic` follows χ² with `freedom` degrees of freedom where the law is the true one."""

    statistic: float
    freedom: int
    p_value: float


def fit(counts: Sequence[int], law: Sequence[float]) -> Fit:
    """How well counts of outcomes agree with their probabilities. An outcome of probability 0 that came up: p = 0."""
    seen, true = np.asarray(counts, np.float64), np.asarray(law, np.float64)
    assert seen.shape == true.shape
    assert abs(true.sum() - 1.0) < 1e-9, "a law's probabilities sum to 1"
    if seen[true == 0.0].any():
        return Fit(math.inf, 1, 0.0)
    expected = true * seen.sum()
    small = expected < FEWEST_EXPECTED
    cells = [(s, e) for s, e in zip(seen[~small], expected[~small], strict=True)]
    if expected[small].sum() > 0.0:
        cells.append((seen[small].sum(), expected[small].sum()))
    freedom = len(cells) - 1
    statistic = sum((s - e) ** 2 / e for s, e in cells)
    return Fit(statistic, freedom, survival(statistic, freedom))


def survival(statistic: float, freedom: int) -> float:
    """P(χ² with `freedom` > statistic); exact sums for whole degrees of freedom."""
    if freedom == 0 or statistic <= 0.0:
        return 1.0
    half = statistic / 2.0
    if half > 700.0 + freedom:
        return 0.0
    if freedom % 2:
        total, term, step = (
            math.erfc(math.sqrt(half)),
            math.exp(-half) * math.sqrt(half) / math.gamma(1.5),
            1.5,
        )
    else:
        total, term, step = 0.0, math.exp(-half), 1.0
    for _ in range(freedom // 2):
        total += term
        term *= half / step
        step += 1.0
    return min(total, 1.0)


def critical(freedom: int, rate: float) -> float:
    """The statistic above which a true law is refused at this false-alarm rate."""
    low, high = 0.0, 10.0 * freedom + 1000.0
    for _ in range(100):
        middle = (low + high) / 2.0
        low, high = (middle, high) if survival(middle, freedom) > rate else (low, middle)
    return high


def power(wrong: Sequence[float], law: Sequence[float], num: int, rate: float) -> float:
    """How likely `num` draws of a wrong law are refused: noncentral χ² as a Poisson mixture."""
    bad, true = np.asarray(wrong), np.asarray(law)
    if bad[true == 0.0].sum() > 0.0:
        return 1.0 - float(1.0 - bad[true == 0.0].sum()) ** num
    used = true > 0.0
    shift = num * float(((bad - true)[used] ** 2 / true[used]).sum())
    freedom = int(used.sum()) - 1
    bound = critical(freedom, rate)
    total = 0.0
    centre, width = shift / 2.0, 12.0 * math.sqrt(shift / 2.0) + 12.0
    for extra in range(max(int(centre - width), 0), int(centre + width) + 1):
        weight = math.exp(extra * math.log(centre) - centre - math.lgamma(extra + 1)) if centre else 1.0
        total += weight * survival(bound, freedom + 2 * extra)
    return min(total, 1.0)
