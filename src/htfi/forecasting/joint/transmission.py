"""How large moves of some series affect the others: how far these move, and how much less certain they become.

Estimated from the history of surprises, large moves first. Pure. All moves are standardised: in standard deviations of
each series' own forecast, counted from its median.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.joint.dependence import FactorModel

Array = NDArray[np.float64]

MIN_SIZE = 1.5  # standard deviations: smaller moves are no evidence of large ones
MAX_MOVES = 2_000  # of other series that are looked at, those that count most
MAX_CELLS = 4_000_000  # of these moves times all series: 32 MB an array
_SIZE_POWER = 6.0  # a move of half the size counts a sixty-fourth
_CLOSENESS = 0.08  # series whose mean correlation with the others differs by more are unlike
_OWN_WEIGHT = 3.0  # of the shocked series' own moves, beside those of series like it
_PRIOR_WEIGHT = 0.3  # in moves of the size asked
_PRIOR_SHARE, _PRIOR_WIDENING = 0.5, 0.1
_RIDGE = 0.02  # of a correlation that some hundred instants cannot distinguish from one
_MIN_WIDENING_SCALE = 0.8  # after a move smaller than usual


@dataclass(frozen=True, slots=True)
class ShockTransmission:
    """The effect of a shock on all n series.

    Shapes: gain [A, n], the regression of standard scores on the shocked series; explained [n], the share of variance
    that it explains; shift [n], of the mean; scale, how much wider what the shock leaves open is, times the forecast's
    own deviation. `share` 0–1 says how much of the regression's shift large moves have brought.
    """

    gain: Array
    explained: Array
    shift: Array
    scale: float
    share: float


@dataclass(frozen=True, slots=True)
class _PastMoves:
    """Large moves of the past: what they were to bring to the others, and what these did.

    Shapes: size and weight [E]; predicted, the regression's shifts, explained, moved and known [E, n], the last without
    the series that moved first.
    """

    size: Array
    weight: Array
    predicted: Array
    explained: Array
    moved: Array
    known: NDArray[np.bool_]


def transmit_shock(
    model: FactorModel, history: NDArray[np.floating], places: NDArray[np.intp], targets: Array
) -> ShockTransmission:
    """Of shocks `targets` [A] to the series at `places` [A], by standardised moves `history` [T, n], NaN where absent.

    Means follow in proportion to the shock, by correlations shrunk by t²/(t² + 1); what is left open widens with its
    size m as in a Student-t distribution, √(1 + κ(m² − 1)). But the largest moves of one stock are mostly its own,
    those of a currency are shared. So the share of the shift that arrives, and κ, are averages over past moves of
    these series and, for one series alone, of those as close to the others as it is. A move weighs (size/m)⁶: where
    none was nearly so large, half of the shift arrives. Nothing goes further than the largest shock.
    """
    gain, among = shock_regression(model, len(history), places)
    explained = np.clip((gain * (among @ gain)).sum(axis=0), 0.0, 1.0 - _RIDGE)
    num = len(places)
    squared = max(float(targets @ np.linalg.solve(among, targets)), 0.0)
    share, widening = _measure_history(model, history, places, gain, among, explained, np.sqrt(squared / num))
    furthest = float(np.abs(targets).max())
    shift = np.clip(share * (targets @ gain), -furthest, furthest)
    scale = (1.0 + widening * (squared - 1.0)) / (1.0 + widening * (num - 1.0))
    return ShockTransmission(
        gain,
        share * share * explained,
        shift,
        max(float(np.sqrt(max(scale, 0.0))), _MIN_WIDENING_SCALE),
        share,
    )


def shock_regression(model: FactorModel, num_instants: int, places: NDArray[np.intp]) -> tuple[Array, Array]:
    """The gain [A, n] of all series on those at `places`, and the correlations [A, A] of these.

    A correlation with t-statistic t counts t²/(t² + 1); those among the places stay whole, so that their matrix has
    no negative eigenvalue.
    """
    directions = np.zeros((model.num_series, len(places)))
    directions[places, np.arange(len(places))] = 1.0
    cross = model.multiply(directions)  # [n, A]
    among = (1.0 - _RIDGE) * 0.5 * (cross[places] + cross[places].T)
    among[np.diag_indices(len(places))] = 1.0
    t2 = cross * cross * num_instants / np.maximum(1.0 - cross * cross, 1e-9)
    cross *= t2 / (t2 + 1.0)
    gain = np.asarray(np.linalg.solve(among, cross.T), np.float64)
    gain[:, places] = np.eye(len(places))
    return gain, among


def _measure_history(
    model: FactorModel,
    history: NDArray[np.floating],
    places: NDArray[np.intp],
    gain: Array,
    among: Array,
    explained: Array,
    size: float,
) -> tuple[float, float]:
    """The share of the regression's shift that arrived, 0–1, and the widening κ ≥ 0."""
    known = np.isfinite(history)
    moves = np.where(known, history, 0.0).astype(np.float64)
    usual = np.maximum(np.abs(moves).sum(axis=0) / np.maximum(known.sum(axis=0), 1), 0.1)  # [n]
    asked = max(size, MIN_SIZE)
    found = [_own_moves(moves, known, places, gain, among, explained, asked)]
    if len(places) == 1:
        found.append(_similar_moves(model, moves, known, int(places[0]), asked))
    prior = 1.0 - (1.0 - _PRIOR_SHARE) / len(places)  # several that agree are no accident of one
    total = _PRIOR_WEIGHT + sum(float(past.weight.sum()) for past in found)
    arrived = sum(float(past.weight @ _arrival_shares(past)) for past in found)
    share = float(np.clip((_PRIOR_WEIGHT * prior + arrived) / total, 0.0, 1.0))
    grown = sum(float(past.weight @ _widenings(past, share, usual)) for past in found)
    return share, float(np.clip((_PRIOR_WEIGHT * _PRIOR_WIDENING + grown) / total, 0.0, 1.0))


def _own_moves(
    moves: Array,
    known: NDArray[np.bool_],
    places: NDArray[np.intp],
    gain: Array,
    among: Array,
    explained: Array,
    asked: float,
) -> _PastMoves:
    """Of the shocked series, together."""
    first = moves[:, places]
    size = np.sqrt(np.maximum((first * np.linalg.solve(among, first.T).T).sum(axis=1) / len(places), 0.0))
    at = np.flatnonzero(known[:, places].all(axis=1) & (size >= MIN_SIZE))
    seen = known[at]
    seen[:, places] = False
    weight = _OWN_WEIGHT * np.minimum(size[at] / asked, 1.0) ** _SIZE_POWER
    return _PastMoves(size[at], weight, first[at] @ gain, np.tile(explained, (len(at), 1)), moves[at], seen)


def _similar_moves(
    model: FactorModel, moves: Array, known: NDArray[np.bool_], place: int, asked: float
) -> _PastMoves:
    """Of every other series alone, as far as it goes with the others as closely as the one at `place`."""
    close = _closeness(model)
    like = np.exp(-0.5 * ((close - close[place]) / _CLOSENESS) ** 2)
    like[place] = 0.0
    weight = like * np.minimum(np.abs(moves) / asked, 1.0) ** _SIZE_POWER
    weight[np.abs(moves) < MIN_SIZE] = 0.0
    num = min(MAX_MOVES, MAX_CELLS // model.num_series, int((weight > 0.0).sum()))
    at, who = np.unravel_index(np.argsort(-weight, axis=None, kind="stable")[:num], weight.shape)
    correlation = model.loadings[who] @ model.loadings.T  # [E, n]
    size, seen = moves[at, who], known[at]
    seen[np.arange(num), who] = False
    return _PastMoves(
        np.abs(size), weight[at, who], correlation * size[:, None], correlation**2, moves[at], seen
    )


def _closeness(model: FactorModel) -> Array:
    """The root of each series' mean squared correlation with the others [n]."""
    loadings = model.loadings
    squares = ((loadings @ (loadings.T @ loadings)) * loadings).sum(axis=1)  # of a row of B·Bᵀ
    own = (loadings**2).sum(axis=1) ** 2
    return np.sqrt(np.maximum(squares - own, 0.0) / max(model.num_series - 1, 1))


def _arrival_shares(past: _PastMoves) -> Array:
    """How much of what the regression predicted came, by least squares over the others, for each move [E]."""
    predicted = np.where(past.known, past.predicted, 0.0)
    slopes = (predicted * past.moved).sum(axis=1) / np.maximum((predicted * predicted).sum(axis=1), 1e-9)
    return np.clip(slopes, -1.0, 2.0)


def _widenings(past: _PastMoves, share: float, usual: Array) -> Array:
    """κ by the mean size of what the shift left open, for each move [E]."""
    left = np.abs(past.moved - share * past.predicted) / (
        usual * np.sqrt(1.0 - share * share * past.explained)
    )
    num = np.maximum(past.known.sum(axis=1), 1)
    scale = np.where(past.known, left, 0.0).sum(axis=1) / num
    return np.clip((scale * scale - 1.0) / (past.size * past.size - 1.0), -1.0, 1.0)
