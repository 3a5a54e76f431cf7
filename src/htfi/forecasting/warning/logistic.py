"""A logistic regression drawn to caution: few events teach it, so its coefficients start at zero. `walk` fits it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import ShapeMismatch

Array = NDArray[np.float64]

_CLIP = 4.0  # deviations: beyond them nothing was learnt
_MOST_STEPS = 60
_SETTLED = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class Logistic:
    """Standardised features times coefficients [K], and an intercept. A feature that is not known counts as usual."""

    mean: Array
    deviation: Array
    coefficients: Array
    intercept: float

    def probability(self, features: Array) -> Array:
        """Of features [n, K], each 0–1."""
        return _logistic(_standard(features, self.mean, self.deviation) @ self.coefficients + self.intercept)


def fit(features: Array, label: Array, weight: Array, *, ridge: float, prior_rate: float) -> Logistic:
    """The most likely coefficients after labels 0 or 1 [n], each worth `weight` [n] observations.

    Before any label each coefficient is normal with variance 1/ridge, the intercept with variance 1 about the log odds
    of `prior_rate`: with no events at all this still gives a chance, a small one. Newton's method with halved steps.
    Raises: ShapeMismatch.
    """
    num, width = features.shape
    if label.shape != (num,) or weight.shape != (num,):
        raise ShapeMismatch(f"features {features.shape} with labels {label.shape} and weights {weight.shape}")
    mean, deviation = _scales(features, weight)
    x = np.column_stack([_standard(features, mean, deviation), np.ones(num)])
    prior = np.append(np.zeros(width), np.log(prior_rate / (1 - prior_rate)))
    precision = np.append(np.full(width, ridge), 1.0)
    beta = prior.copy()
    loss = _loss(x, label, weight, beta, prior, precision)
    for _ in range(_MOST_STEPS):
        chance = _logistic(x @ beta)
        gradient = x.T @ (weight * (chance - label)) + precision * (beta - prior)
        curvature = (x * (weight * chance * (1 - chance))[:, None]).T @ x + np.diag(precision)
        step = np.linalg.solve(curvature, gradient)
        size = 1.0
        while size > 1e-6 and _loss(x, label, weight, beta - size * step, prior, precision) > loss:
            size /= 2
        beta = beta - size * step
        before, loss = loss, _loss(x, label, weight, beta, prior, precision)
        if before - loss < _SETTLED:
            break
    return Logistic(mean, deviation, beta[:-1], float(beta[-1]))


def _scales(features: Array, weight: Array) -> tuple[Array, Array]:
    known = np.isfinite(features)
    mass = known * weight[:, None]
    total = np.maximum(mass.sum(axis=0), 1e-12)
    values = np.where(known, features, 0.0)
    mean = (mass * values).sum(axis=0) / total
    variance = (mass * np.square(np.where(known, features - mean, 0.0))).sum(axis=0) / total
    deviation = np.sqrt(variance)
    return mean, np.where(deviation > 1e-9, deviation, np.inf)  # what never varies says nothing


def _standard(features: Array, mean: Array, deviation: Array) -> Array:
    apart = (np.where(np.isfinite(features), features, mean) - mean) / deviation
    return np.clip(apart, -_CLIP, _CLIP)


def _loss(x: Array, label: Array, weight: Array, beta: Array, prior: Array, precision: Array) -> float:
    logits = x @ beta
    likelihood = weight @ (np.logaddexp(0.0, logits) - label * logits)
    return float(likelihood + 0.5 * (precision * np.square(beta - prior)).sum())


def _logistic(logits: Array) -> Array:
    return 0.5 * (1.0 + np.tanh(0.5 * logits))
