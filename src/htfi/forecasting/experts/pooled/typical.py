"""Typical linear terms: what the pooled learner forecasts with before a fit, and what fits are drawn to.

Rounded from fits to US equities before 2012 and ETFs before 2010; judged on what came after, and on currencies.
"""

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.experts.pooled.features import FEATURES
from htfi.forecasting.experts.pooled.trees import ScaleTrees

_HORIZONS = (1, 5, 22)
_TERMS = {  # of log scales, at those horizons
    "log variance 1": (-0.09, -0.06, -0.04),
    "log variance 3": (0.02, -0.04, -0.01),
    "log variance 30": (0.05, 0.07, 0.04),
    "log variance 100": (0.0, 0.0, 0.05),
    "log variance 300": (-0.05, 0.03, 0.05),
    "shock 5": (-0.02, 0.0, 0.0),
    "shock 22": (-0.05, -0.08, -0.06),
    "shock 66": (0.03, 0.04, 0.0),
    "range over squares": (-0.18, -0.13, -0.09),
    "variance of log variance": (0.18, 0.10, 0.0),
    "volume": (0.12, 0.06, 0.01),
    "volume 5": (-0.09, -0.1, -0.05),
    "market log variance 1": (0.0, 0.02, 0.01),
    "market log variance 3": (0.07, 0.02, 0.01),
    "market log variance 30": (-0.02, -0.01, 0.0),
    "market log variance 100": (-0.05, -0.02, -0.01),
    "market shock 5": (-0.09, -0.05, -0.02),
    "market shock 22": (-0.02, -0.03, -0.02),
    "due": (0.02, 0.0, 0.0),
    "due soon": (0.01, 0.03, 0.02),
    "pattern next 1": (0.45, 0.0, 0.0),
    "pattern next 5": (0.0, 0.45, 0.0),
    "pattern next 22": (0.0, 0.0, 0.45),
}


def typical_terms(horizons: tuple[int, ...]) -> NDArray[np.float64]:
    """Linear terms [F + 1, H] of log scales, between the horizons above by their logs, to nine digits."""
    at, known = np.log(np.array(horizons, np.float64)), np.log(np.array(_HORIZONS, np.float64))
    found = np.zeros((len(FEATURES) + 1, len(horizons)))
    for name, values in _TERMS.items():
        found[FEATURES.index(name)] = np.round(np.interp(at, known, values), 9)
    return found


def typical_trees(horizons: tuple[int, ...]) -> ScaleTrees:
    """Those terms, without a tree."""
    none = np.zeros((0, 1), np.int64)
    leaves = np.zeros((0, 2, len(horizons)), np.int64)
    return ScaleTrees(typical_terms(horizons), none, none.astype(np.float32), leaves)
