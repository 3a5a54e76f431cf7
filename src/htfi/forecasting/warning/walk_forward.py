"""Walk-forward probabilities of an event by a ridge logistic regression, and alerts on a budget of false alarms.

Models are fitted at the first session of each year. Labels look `horizon` sessions ahead: those not yet known at a fit
are purged, and those decided in the `embargo` sessions before it are left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput, ShapeMismatch
from htfi.forecasting.warning.events import StressEvents

Places = NDArray[np.intp]

Array = NDArray[np.float64]

_MAX_DEVIATIONS = 4.0  # deviations: beyond them nothing was learnt
_MAX_STEPS = 60
_CONVERGED = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class LogisticModel:
    """Standardised features times coefficients [K], and an intercept. A feature that is not known counts as usual."""

    mean: Array
    deviation: Array
    coefficients: Array
    intercept: float

    def probability(self, features: Array) -> Array:
        """Of features [n, K], each 0–1."""
        return _sigmoid(
            _standardise(features, self.mean, self.deviation) @ self.coefficients + self.intercept
        )


def fit_logistic(
    features: Array, label: Array, weight: Array, *, ridge: float, prior_rate: float
) -> LogisticModel:
    """The most likely coefficients after labels 0 or 1 [n], each worth `weight` [n] observations.

    Before any label each coefficient is normal with variance 1/ridge, the intercept with variance 1 about the log odds
    of `prior_rate`: with no events at all this still gives a chance, a small one. Newton's method with halved steps.
    Raises: ShapeMismatch.
    """
    num, width = features.shape
    if label.shape != (num,) or weight.shape != (num,):
        raise ShapeMismatch(f"features {features.shape} with labels {label.shape} and weights {weight.shape}")
    mean, deviation = _scales(features, weight)
    x = np.column_stack([_standardise(features, mean, deviation), np.ones(num)])
    prior = np.append(np.zeros(width), np.log(prior_rate / (1 - prior_rate)))
    precision = np.append(np.full(width, ridge), 1.0)
    beta = prior.copy()
    loss = _loss(x, label, weight, beta, prior, precision)
    for _ in range(_MAX_STEPS):
        chance = _sigmoid(x @ beta)
        gradient = x.T @ (weight * (chance - label)) + precision * (beta - prior)
        curvature = (x * (weight * chance * (1 - chance))[:, None]).T @ x + np.diag(precision)
        step = np.linalg.solve(curvature, gradient)
        size = 1.0
        while size > 1e-6 and _loss(x, label, weight, beta - size * step, prior, precision) > loss:
            size /= 2
        beta = beta - size * step
        before, loss = loss, _loss(x, label, weight, beta, prior, precision)
        if before - loss < _CONVERGED:
            break
    return LogisticModel(mean, deviation, beta[:-1], float(beta[-1]))


def _scales(features: Array, weight: Array) -> tuple[Array, Array]:
    known = np.isfinite(features)
    mass = known * weight[:, None]
    total = np.maximum(mass.sum(axis=0), 1e-12)
    values = np.where(known, features, 0.0)
    mean = (mass * values).sum(axis=0) / total
    variance = (mass * np.square(np.where(known, features - mean, 0.0))).sum(axis=0) / total
    deviation = np.sqrt(variance)
    return mean, np.where(deviation > 1e-9, deviation, np.inf)  # what never varies says nothing


def _standardise(features: Array, mean: Array, deviation: Array) -> Array:
    apart = (np.where(np.isfinite(features), features, mean) - mean) / deviation
    return np.clip(apart, -_MAX_DEVIATIONS, _MAX_DEVIATIONS)


def _loss(x: Array, label: Array, weight: Array, beta: Array, prior: Array, precision: Array) -> float:
    logits = x @ beta
    likelihood = weight @ (np.logaddexp(0.0, logits) - label * logits)
    return float(likelihood + 0.5 * (precision * np.square(beta - prior)).sum())


def _sigmoid(logits: Array) -> Array:
    return 0.5 * (1.0 + np.tanh(0.5 * logits))


SESSIONS_A_YEAR = 252.0
_NUM_THRESHOLDS = 120


@dataclass(frozen=True, slots=True)
class WalkForwardConfig:
    """What is fixed beforehand.

    prior_rate: chance of an event before anything is known. prior_spread: how far log odds lie from their usual, as a
    standard deviation, before anything is known; features share it evenly, so that many do not promise more than few.
    """

    embargo: int = 22
    least_sessions: int = 300  # with a known label, before the first fit
    prior_spread: float = 1.0
    prior_rate: float = 0.05

    def __post_init__(self) -> None:
        if (
            self.embargo < 0
            or self.least_sessions < 1
            or self.prior_spread <= 0
            or not 0 < self.prior_rate < 1
        ):
            raise InvalidInput(
                f"{self}: embargo 0 or more, sessions 1 or more, spread above 0, rate within 0–1"
            )


@dataclass(frozen=True, slots=True, eq=False)
class WalkForwardResult:
    """chance [T], NaN before the first fit; fits: the sessions at which models were fitted.

    past [fits][T]: what was known at each fit of earlier sessions' chances: as stated then, and before the first fit as
    the model itself states them. Alerts take their thresholds from it.
    """

    chance: Array
    fits: Places
    past: list[Array]
    coefficients: Array  # [fits, K], per deviation of the feature


def fit_sessions(years: NDArray[np.int64], events: StressEvents, config: WalkForwardConfig) -> Places:
    """First sessions of the years from which on enough is known."""
    starts = np.flatnonzero(np.diff(years, prepend=years[:1] - 1) != 0)
    enough = [
        t for t in starts.tolist() if len(training_sessions(t, events, config)) >= config.least_sessions
    ]
    return np.array(enough, np.intp)


def training_sessions(start: int, events: StressEvents, config: WalkForwardConfig) -> Places:
    """Sessions whose labels may teach a model that is fitted before session `start`."""
    return np.flatnonzero(np.isfinite(events.label) & (events.decided < start - config.embargo))


def walk_forward_chances(
    features: Array, events: StressEvents, years: NDArray[np.int64], config: WalkForwardConfig
) -> WalkForwardResult:
    """Chances by a logistic regression on features [T, K]; without columns it states the rate of the past.

    A label weighs one in `horizon`, as neighbouring labels cover the same sessions. Raises: ShapeMismatch.
    """
    num = len(events.label)
    if len(features) != num or len(years) != num:
        raise ShapeMismatch(f"features {features.shape} and {len(years)} years for {num} sessions")
    chance = np.full(num, np.nan)
    past: list[Array] = []
    coefficients: list[Array] = []
    fits = fit_sessions(years, events, config)
    for place, start in enumerate(fits.tolist()):
        rows = training_sessions(start, events, config)
        weight = np.full(len(rows), 1.0 / events.horizon)
        ridge = max(features.shape[1], 1) / config.prior_spread**2
        model = fit_logistic(
            features[rows], events.label[rows], weight, ridge=ridge, prior_rate=config.prior_rate
        )
        before = chance[:start].copy()
        unsaid = np.isnan(before)
        before[unsaid] = model.probability(features[:start][unsaid])
        past.append(before)
        coefficients.append(model.coefficients)
        stop = int(fits[place + 1]) if place + 1 < len(fits) else num
        chance[start:stop] = model.probability(features[start:stop])
    return WalkForwardResult(chance, fits, past, np.array(coefficients).reshape(len(fits), features.shape[1]))


def raise_alerts(
    walked: WalkForwardResult, events: StressEvents, budgets: Sequence[float], config: WalkForwardConfig
) -> dict[float, Places]:
    """By budget: sessions at risk whose chance is at the threshold, where no alert was raised for `horizon` sessions.

    A budget is of false alarms a year: each year's threshold is the lowest that would have kept to it before.
    """
    num = len(walked.chance)
    raised: dict[float, list[int]] = {budget: [] for budget in budgets}
    for place, start in enumerate(walked.fits.tolist()):
        stop = int(walked.fits[place + 1]) if place + 1 < len(walked.fits) else num
        levels, false = _false_alarms(walked.past[place], training_sessions(start, events, config), events)
        for budget, before in raised.items():
            over = np.flatnonzero(false > budget)
            kept = levels[: over[0]] if len(over) else levels
            if len(kept):
                first = max(before[-1] + events.horizon if before else 0, start)
                before += _alert_sessions(walked.chance[:stop], events, float(kept[-1]), first)
    return {budget: np.array(places, np.intp) for budget, places in raised.items()}


def _false_alarms(past: Array, taught: Places, events: StressEvents) -> tuple[Array, Array]:
    """Thresholds, the highest first, and the false alarms a year that each would have raised in what is past."""
    chance = np.full(len(past), np.nan)
    chance[taught] = past[taught]
    levels = np.unique(np.quantile(past[taught], np.linspace(0, 1, _NUM_THRESHOLDS)))[::-1]
    years = (taught[-1] + 1 - taught[0]) / SESSIONS_A_YEAR
    false = [
        (events.label[_alert_sessions(chance, events, level, 0)] == 0.0).sum() / years
        for level in levels.tolist()
    ]
    return levels, np.array(false)


def _alert_sessions(chance: Array, events: StressEvents, threshold: float, first: int) -> list[int]:
    """Sessions from `first` on that raise an alert, each at least a horizon after the one before."""
    ready = np.flatnonzero(events.at_risk[: len(chance)] & (chance >= threshold))
    raised: list[int] = []
    place = int(np.searchsorted(ready, first))
    while place < len(ready):
        raised.append(int(ready[place]))
        place = int(np.searchsorted(ready, raised[-1] + events.horizon))
    return raised
