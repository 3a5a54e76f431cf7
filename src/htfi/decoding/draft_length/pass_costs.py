"""What a pass over rows and tokens costs in ms, learnt from passes or fixed by configuration.

On CPUs a pass is nearly a plane in rows, tokens per row, and their product: weights are read once per pass, overhead
and attention cost per row, arithmetic per token. So a plane fills the gaps between measurements.
"""

import math
from bisect import bisect_right
from collections import deque
from typing import NamedTuple, Protocol

import numpy as np

from htfi.domain.errors import InvalidInput

_ROW_KNOTS = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256, 512], np.float64)
_TOKEN_KNOTS = np.array([1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 64, 128], np.float64)
_WINDOW = 48  # passes remembered per bucket
_SKIP = 3  # three of four passes of a well-known size are skipped: learning takes time too
_SCATTER = 40503  # which three: at no period that answers might share
_HALF_LIFE = 256  # passes after which a bucket counts half: machines change their speed
_PLANE_WEIGHT = 6.0  # the plane's weight against one bucket, in passes
_MIN_MS = 1e-4
_MAX_DEPARTURE = 3.0  # a size that departs further from the prior's shape does not move the plane
_WELL_KNOWN_PASSES = 16  # passes in a bucket after which most are skipped
_MIN_PASSES_FOR_PACE = 8  # passes in a bucket before it counts for the machine's speed
_PACE_STEP = 0.1  # in logarithms
_REFIT_PASSES = 64


class PassCostPlane(NamedTuple):
    """ms = fixed + per_row · rows + per_token · tokens + per_cell · rows · tokens; all ≥ 0, tokens are per row."""

    fixed: float
    per_row: float
    per_token: float
    per_cell: float

    def ms(self, rows: float, tokens: float) -> float:
        return self.fixed + self.per_row * rows + (self.per_token + self.per_cell * rows) * tokens


# One core, int8, context 160: the shipped target of 4 M parameters, and the shipped draft, token by token.
TARGET_PRIOR = PassCostPlane(0.30, 0.07, 0.0, 0.056)
DRAFT_PRIOR = PassCostPlane(0.02, 0.0, 0.07, 0.03)


class PassCostEstimator(Protocol):
    """The cost of a pass over `rows` rows of `tokens` new tokens each; for a draft, of writing that many in turn."""

    def learn(self, rows: int, tokens: int, ms: float) -> None: ...

    def estimate(self, rows: int, tokens: int) -> float:
        """Expected ms; never falls as rows or tokens rise. Reading nothing costs nothing."""
        ...


class NominalPassCosts:
    """Fixed figures, independent of the clock: a recorded run drafts the same again, byte for byte."""

    def __init__(self, plane: PassCostPlane = TARGET_PRIOR) -> None:
        _check(plane)
        self._plane = plane

    def learn(self, rows: int, tokens: int, ms: float) -> None:
        pass

    def estimate(self, rows: int, tokens: int) -> float:
        return self._plane.ms(rows, tokens) if rows > 0 and tokens > 0 else 0.0


class LearnedPassCosts:
    """Learns from measured passes: a robust centre of the latest in each bucket, a plane through them elsewhere.

    The centre is a low `quantile`: other work on the machine only adds to a pass, and so does what some rounds do
    besides, such as the draft's reading of a prompt.
    """

    def __init__(self, prior: PassCostPlane = TARGET_PRIOR, quantile: float = 0.3) -> None:
        _check(prior)
        if not 0.0 < quantile < 1.0:
            raise InvalidInput("decoding costs: the quantile must lie in (0, 1)")
        self._prior = prior
        self._quantile = quantile
        self._buckets: dict[tuple[int, int], deque[float]] = {}  # measured over prior
        self._seen_at: dict[tuple[int, int], int] = {}
        self._num_reported = 0
        self._num_seen = 0
        self._pace = 1.0  # of the machine, relative to the windows
        self._refit_at = 1
        self._table: list[list[float]] = _surface(prior, {}).tolist()
        self._known: dict[tuple[int, int], float] = {}
        self._bucket: dict[tuple[int, int], tuple[int, int]] = {}

    def learn(self, rows: int, tokens: int, ms: float) -> None:
        self._num_reported += 1
        bucket = self._bucket.get((rows, tokens))
        if bucket is None:
            if rows < 1 or tokens < 1:
                return
            bucket = self._bucket[rows, tokens] = (_nearest(_ROW_KNOTS, rows), _nearest(_TOKEN_KNOTS, tokens))
        window = self._buckets.get(bucket)
        if window is None:
            window = self._buckets[bucket] = deque(maxlen=_WINDOW)
            self._refit_at = (
                self._num_seen + 1
            )  # a new size is more informative than another pass of an old one
        if not 0.0 <= ms < math.inf or (
            len(window) >= _WELL_KNOWN_PASSES and self._num_reported * _SCATTER >> 8 & _SKIP
        ):
            return
        if len(window) >= _MIN_PASSES_FOR_PACE:
            # The pace follows the whole machine, so that sizes not seen lately do not look cheap. Such steps
            # balance where the share of passes below the estimate is the quantile (stochastic approximation).
            above = ms > self.estimate(rows, tokens)
            self._pace *= math.exp(_PACE_STEP * (self._quantile if above else self._quantile - 1.0))
        window.append(ms / (self._pace * self._prior.ms(rows, tokens)))
        self._num_seen += 1
        self._seen_at[bucket] = self._num_seen
        if self._num_seen >= self._refit_at:
            self._refit()

    def estimate(self, rows: int, tokens: int) -> float:
        known = self._known.get((rows, tokens))
        if known is None:
            known = self._interpolated(rows, tokens) if rows > 0 and tokens > 0 else 0.0
            self._known[rows, tokens] = known
        return known * self._pace

    def _refit(self) -> None:
        self._refit_at = self._num_seen + min(_REFIT_PASSES, 1 + self._num_seen // 4)
        seen: dict[tuple[int, int], tuple[float, float]] = {}
        for bucket, window in self._buckets.items():
            ratio = _centre(window, self._quantile)
            age = self._num_seen - self._seen_at[bucket]
            at_knot = self._prior.ms(_ROW_KNOTS[bucket[0]], _TOKEN_KNOTS[bucket[1]])
            seen[bucket] = (ratio * at_knot, len(window) * 0.5 ** (age / _HALF_LIFE))
        self._table = _surface(_fitted(self._prior, seen), seen).tolist()
        self._known.clear()

    def _interpolated(self, rows: int, tokens: int) -> float:
        i, u = _between(_ROW_KNOTS, rows)
        j, v = _between(_TOKEN_KNOTS, tokens)
        table = self._table
        low = table[i][j] + u * (table[i + 1][j] - table[i][j])
        high = table[i][j + 1] + u * (table[i + 1][j + 1] - table[i][j + 1])
        return low + v * (high - low)


def _surface(plane: PassCostPlane, seen: dict[tuple[int, int], tuple[float, float]]) -> np.ndarray:
    """Costs at the knots [rows, tokens]: measured values where present, the plane elsewhere, made monotone."""
    rows, tokens = _ROW_KNOTS[:, None], _TOKEN_KNOTS[None, :]
    table = plane.fixed + plane.per_row * rows + (plane.per_token + plane.per_cell * rows) * tokens
    for bucket, (ms, weight) in seen.items():
        # in logarithms: the first pass of a size may take a hundred times as long as the next
        table[bucket] *= (max(ms, _MIN_MS) / max(table[bucket], _MIN_MS)) ** (
            weight / (weight + _PLANE_WEIGHT)
        )
    rising = np.maximum.accumulate(np.maximum.accumulate(table, 0), 1)
    falling = np.minimum.accumulate(np.minimum.accumulate(table[::-1, ::-1], 0), 1)[::-1, ::-1]
    return (rising + falling) / 2.0


def _fitted(prior: PassCostPlane, seen: dict[tuple[int, int], tuple[float, float]]) -> PassCostPlane:
    """The plane nearest to the measurements, in relative terms, drawn to the prior's shape where there are few."""
    weights = np.array([weight for _, weight in seen.values()])
    cells = np.array([(_ROW_KNOTS[i], _TOKEN_KNOTS[j]) for i, j in seen])
    ms = np.maximum(np.array([ms for ms, _ in seen.values()]), _MIN_MS)
    priors = np.array([prior.ms(rows, tokens) for rows, tokens in cells])
    pace = _weighted_median(ms / priors, weights)
    ms = np.clip(ms, pace * priors / _MAX_DEPARTURE, pace * priors * _MAX_DEPARTURE)
    # the prior as measurements of few and many rows and tokens, at this machine's speed
    corners = np.array([(1.0, 1.0), (1.0, 8.0), (16.0, 1.0), (16.0, 8.0)])
    at_corners = pace * np.array([prior.ms(rows, tokens) for rows, tokens in corners])
    cells, ms = np.concatenate([cells, corners]), np.concatenate([ms, at_corners])
    root = np.sqrt(np.concatenate([weights, np.full(4, 0.25)])) / ms
    terms = np.stack([np.ones(len(ms)), cells[:, 0], cells[:, 1], cells[:, 0] * cells[:, 1]], 1)
    kept = [0, 1, 2, 3]
    while True:
        found = np.linalg.lstsq(terms[:, kept] * root[:, None], ms * root, rcond=None)[0]
        worst = int(np.argmin(found))
        if found[worst] >= 0.0 or len(kept) == 1:
            break
        del kept[worst]
    plane = [0.0] * 4
    for at, value in zip(kept, found.tolist(), strict=True):
        plane[at] = max(value, 0.0)
    return PassCostPlane(*plane)


def _nearest(knots: np.ndarray, value: int) -> int:
    return int(np.abs(np.log(knots / value)).argmin())


def _between(knots: np.ndarray, value: int) -> tuple[int, float]:
    """The knot below and the distance beyond it, in steps; beyond the last knot the last step continues."""
    at = min(max(bisect_right(knots, value) - 1, 0), len(knots) - 2)
    return at, float((value - knots[at]) / (knots[at + 1] - knots[at]))


def _centre(window: deque[float], quantile: float) -> float:
    ranked = sorted(window)
    at, beyond = divmod(quantile * (len(ranked) - 1), 1.0)
    low = ranked[int(at)]
    return low + beyond * (ranked[min(int(at) + 1, len(ranked) - 1)] - low)


def _weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(cumulated, cumulated[-1] / 2.0)])


def _check(plane: PassCostPlane) -> None:
    if min(plane) < 0.0 or not plane.ms(1, 1) > 0.0 or not plane.ms(1, 1) < float("inf"):
        raise InvalidInput("decoding costs: give numbers ≥ 0 in ms, not all of them 0")
