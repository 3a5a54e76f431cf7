"""How well protected attributes can be predicted from decisions: a high AUC says that decisions carry the attribute.

Ridge regression on standardised columns, cross-validated; the null refits it on attributes permuted over whole units,
which are people or companies, so that many decisions on one company count once.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

NUM_FOLDS, NUM_PERMUTATIONS = 5, 200
MAX_ROWS = 5_000  # more are drawn from
_PENALTY = 1.0
_SEED = 23


@dataclass(frozen=True, slots=True)
class ProxyFigure:
    """The cross-validated AUC by which decisions predict that a row is of a group, and its p-value by permutation.

    `null_high` is the 95% quantile of the AUC under permutation.
    """

    attribute: str
    group: str
    num: int
    auc: float
    null_high: float
    p: float
    adjusted_p: float = math.nan


def proxy_figure(
    attribute: str, group: str, columns: Floats, labels: Sequence[str], units: Sequence[str]
) -> ProxyFigure:
    """How well `columns` [N, C] predict which rows are of `group`; `units` [N] are permuted as wholes."""
    rng = np.random.Generator(np.random.PCG64(_SEED))
    known = np.flatnonzero(np.isfinite(columns).all(axis=1))
    if len(known) > MAX_ROWS:
        known = np.sort(rng.choice(known, MAX_ROWS, replace=False))
    names = [units[place] for place in known.tolist()]
    order = {name: place for place, name in enumerate(dict.fromkeys(names))}
    unit = np.array([order[name] for name in names])
    truth = np.array([labels[place] == group for place in known.tolist()], np.float64)
    of_unit = np.zeros(len(order))
    of_unit[unit] = truth
    num_units = min(int(of_unit.sum()), int(len(order) - of_unit.sum()))
    if num_units < 2:
        return ProxyFigure(attribute, group, int(truth.sum()), math.nan, math.nan, math.nan)
    permuted = np.stack([rng.permutation(of_unit) for _ in range(NUM_PERMUTATIONS)])[:, unit]
    targets = np.vstack([truth, permuted]).T  # [N, 1 + P]
    fold = rng.permutation(len(order))[unit] % min(NUM_FOLDS, len(order))
    scores = _cross_validated(columns[known], targets, fold)
    aucs = np.array([auc(scores[:, place], targets[:, place] > 0.5) for place in range(targets.shape[1])])
    null = aucs[1:]
    p = float((1 + (null >= aucs[0]).sum()) / (1 + len(null)))
    return ProxyFigure(attribute, group, int(truth.sum()), float(aucs[0]), float(np.quantile(null, 0.95)), p)


def auc(scores: Floats, truth: NDArray[np.bool_]) -> float:
    """The chance that a true row scores above a false one, ties counting half; NaN where all are alike."""
    num_true = int(truth.sum())
    num_false = len(truth) - num_true
    if not num_true or not num_false:
        return math.nan
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2.0
    return float((ranks[place][truth].sum() - num_true * (num_true + 1) / 2.0) / (num_true * num_false))


def _cross_validated(columns: Floats, targets: Floats, fold: NDArray[np.intp]) -> Floats:
    """Predictions [N, P] of each row by what was fitted to the other folds."""
    scale = columns.std(axis=0)
    made = (columns - columns.mean(axis=0)) / np.where(scale > 0.0, scale, 1.0)
    made = np.column_stack([made, np.ones(len(made))])
    predicted = np.zeros_like(targets)
    for place in range(int(fold.max()) + 1):
        held = fold == place
        of = made[~held]
        penalty = _PENALTY * np.eye(of.shape[1])
        penalty[-1, -1] = 1e-9
        predicted[held] = made[held] @ np.linalg.solve(of.T @ of + penalty, of.T @ targets[~held])
    return predicted
