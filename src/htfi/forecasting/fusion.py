"""Fuses distributions: weighted sums of the experts' quantiles, the weights learnt online from their CRPS.

An auditor recomputes a record with `combine`.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain import portable_math as exact
from htfi.domain.decision import TICKS_PER_UNIT
from htfi.domain.events import MAX_LOG_RETURN
from htfi.forecasting import compiled
from htfi.forecasting.columns import SeriesColumns, distinct
from htfi.forecasting.scores import integration_weights

try:
    from htfi.forecasting import fusion_core as core
except ImportError:  # the package was built without a C compiler
    core = None

Array = NDArray[np.float64]

Whole = NDArray[np.int64]

ZONES = (0.05, 0.5, 0.95)  # lower tail, middle, upper tail: an expert may be good at one and not another
_LN2 = 0.6931471805599453
_MIN_PRIOR = 1e-3  # so that a series that differs from the others can learn its own weights
_MIN_SCORE = -1e300
# By zone: squared regrets that learnt starting weights count for, four times what those of a series add up to under
# fading with this half-life, in bars, at any horizon. With a shorter one less adds up, in proportion; with a longer
# one, which may stand for no fading at all, so much is enough.
_FIRST_SQUARES, _FADING_WITH = np.array([0.0256, 0.008, 0.0256]), 500.0
_MIN_LOSS = 1e-6  # of a normalised loss: keeps the learning rate finite while all experts agree
_WEIGHT_UNITS = 1e6  # weights are recorded in whole millionths


@lru_cache(maxsize=8)
def zone_shares(levels: tuple[float, ...]) -> Array:
    """How much of each zone a level is [Z, Q]: hats about the zones' levels, flat beyond, summing to 1 over zones."""
    unit: Array = np.eye(len(ZONES))
    return np.array([np.interp(levels, ZONES, hat) for hat in unit], np.float64)


def mix(quantiles: Array, weights: Array, calibration: Array, levels: Sequence[float]) -> Array:
    """Σ w·q over experts, put in order, then stretched about the median.

    Shapes: quantiles [..., K, H, Q], weights [..., K, H, Z], calibration [..., H] → [..., H, Q].
    Guarantees: never decreasing along Q, to the last bit: where weights that differ by zone make neighbours cross,
    they are sorted, which never makes CRPS worse (Chernozhukov et al. 2010); the stretch rounds in the
    order of what it is given. Experts stand in the order of their names: the bits of a sum depend on its order.
    """
    shares = zone_shares(tuple(levels))
    total = np.zeros_like(quantiles[..., 0, :, :])
    for k in range(quantiles.shape[-3]):
        total += _by_level(weights[..., k, :, :], shares) * quantiles[..., k, :, :]
    total.sort(axis=-1)
    median = list(levels).index(0.5)
    middle = total[..., median : median + 1]
    return on_grid(middle + calibration[..., None] * (total - middle))


def _by_level(weights: Array, shares: Array) -> Array:
    """Weights [..., Z] at each level [..., Q], summed in the order of the zones."""
    at = np.zeros((*weights.shape[:-1], shares.shape[1]))
    for z in range(shares.shape[0]):
        at += weights[..., z, None] * shares[z]
    return at


def on_grid(returns: Array) -> Array:
    """The nearest whole ticks, as log returns that prices can make: what a record can hold. Keeps order; NaN stays.

    A zero has no sign: which of two zeros a sort puts first depends on the processor.
    """
    possible = np.minimum(np.maximum(returns, -MAX_LOG_RETURN), MAX_LOG_RETURN)
    return np.rint(possible * TICKS_PER_UNIT) / TICKS_PER_UNIT + 0.0


def stack_on_grid(
    quantiles: Sequence[Array | None],
    stacked: Array,
    ahead: Array | None = None,
    coming: Array | None = None,
    idle: NDArray[np.bool_] | None = None,
) -> None:
    """Put the quantiles [n, H, Q] of K experts side by side into `stacked` [n, K, H, Q], times factors `ahead` [n, H],
    moved by `coming` [n, H] in whole ticks, `on_grid`; NaN where an expert has none or is `idle` [n, K]."""
    if compiled.core is not None:
        flags = None if idle is None else idle.view(np.uint8)
        compiled.core.stack_on_grid(
            quantiles, ahead, coming, flags, stacked, MAX_LOG_RETURN, float(TICKS_PER_UNIT)
        )
        return
    for k, found in enumerate(quantiles):
        if found is None:
            stacked[:, k] = np.nan
            continue
        stacked[:, k] = _moved(found if ahead is None else found * ahead[:, :, None], coming)
    if idle is not None:
        stacked[idle] = np.nan


def _moved(returns: Array, coming: Array | None) -> Array:
    """Returns [n, H, Q] `on_grid`, moved by whole ticks [n, H]: what lies alike about 0 lies so about the move."""
    found = on_grid(returns)
    if coming is None:
        return found
    ticks = found * TICKS_PER_UNIT + np.rint(coming * TICKS_PER_UNIT)[:, :, None]
    return on_grid(ticks / TICKS_PER_UNIT)


def combine(
    experts: Mapping[str, Sequence[Sequence[float]]],
    weights: Mapping[str, Sequence[Sequence[float]]],
    calibration: Sequence[float],
    levels: Sequence[float],
) -> list[list[float]]:
    """Recompute recorded quantiles [H, Q] from a record's experts, weights and calibration, bit for bit."""
    names = sorted(experts)
    quantiles = np.array([experts[name] for name in names], np.float64)
    shares = np.array([weights[name] for name in names], np.float64)
    return mix(quantiles, shares, np.array(calibration, np.float64), levels).tolist()


@dataclass(frozen=True, slots=True)
class MaturedForecasts:
    """Outcomes of n series whose forecasts were made one or more horizons ago.

    Shapes: index, groups and ends_ns [n]; outcome, known [n, H]; regimes [n, H], when it was forecast. `num_series`
    counts the series of each group.
    """

    index: NDArray[np.intp]
    groups: Whole
    ends_ns: Whole
    outcome: Array
    known: NDArray[np.bool_]
    regimes: Whole
    num_series: Mapping[int, int]


class CrpsAggregation:
    """Bernstein online aggregation of quantiles, per series, horizon and zone (docs/decisions/d05-fusion.md).

    The loss of expert k in zone z is the linearised CRPS Σ_q φ_zq ω_q·2(1{y<q̄}−τ_q)·q_k (Berrisch and Ziel 2021), in
    units of the mix's own width; with it the aggregate competes with the best fixed mix, not only the best
    expert. Each expert stands twice: once for all times, once for the regime of the day, asleep in others (Freund et
    al. 1997), so that weights turn with the regime and each regime learns from what it has seen. What all series of an
    interval have taught on average is the prior that each one's own losses then move. Learning rates are second-order
    (Wintenberger 2017, eq. for adaptive rates); regrets fade with a half-life. For kinds whose starting weights say
    more than first losses do, rates start at half of where fading keeps them. A loss counts when it matures, for the
    regime it was forecast in.
    """

    def __init__(
        self,
        levels: Sequence[float],
        num_experts: int,
        num_horizons: int,
        num_regimes: int,
        half_life: float,
        horizons: Sequence[int] | None = None,
        starts: Array | None = None,
        *,
        steady_kinds: Collection[int] = (),
    ) -> None:
        """`horizons` in bars, 1 each by default; `starts` [S, H, K], the weights above 0 before any outcome, of kinds
        of series, of which pool p has kind p mod S; equal by default. First losses move those of `steady_kinds` no
        faster than later ones do."""
        self._levels = np.array(levels)
        self._shares = zone_shares(tuple(levels))
        self._cells = 2.0 * integration_weights(levels)
        self._steady_kinds = frozenset(steady_kinds)
        self._first_squares: Array = _FIRST_SQUARES * min(half_life / _FADING_WITH, 1.0)
        self._half_life, self._keep = half_life, round(0.5 ** (1.0 / half_life), 12)
        self._log_k = round(math.log(2 * num_experts), 12)
        self._num_awake = 1 + num_regimes
        bars = np.array(horizons or [1] * num_horizons, np.float64)
        self._paces: Array = 1.0 / np.sqrt(bars)  # overlapping outcomes: h of them say little more than one
        self._pool_paces: Array = np.sqrt(self._paces)
        self._starts = np.ones((1, num_horizons, num_experts)) if starts is None else starts
        blank = np.zeros((self._num_awake, num_horizons, num_experts, len(ZONES)))
        self.columns, self.pooled = SeriesColumns(), SeriesColumns()
        for columns in (self.columns, self.pooled):
            for name in ("regret", "square", "largest"):
                columns.declare(name, blank)
        self._known_priors: tuple[tuple[int, ...], Array] | None = (
            None  # since `learn`, with the sizes of pools
        )
        # What an instant's series have taught so far: one step of the pool, once a later instant comes.
        self.pooled.declare("owed", blank)
        self.pooled.declare("owed_share", np.zeros((self._num_awake, num_horizons)))
        self.pooled.declare("end_ns", -1, np.int64)

    def enter(self, rows: NDArray[np.intp], pools: Whole) -> None:
        """Take in new series, by row [n] and pool [n]."""
        num_kinds = len(self._starts)
        steady = np.array([pool % num_kinds in self._steady_kinds for pool in pools.tolist()], np.bool_)
        self.columns["square"][rows[steady]] = self._first_squares
        self.pooled.grow(int(pools.max(initial=-1)) + 1)
        for pool in distinct(pools[steady]):
            if self.pooled["end_ns"][pool] < 0:  # nothing was learnt yet
                self.pooled["square"][pool] = self._first_squares
        self._known_priors = None

    def learn(self, batch: MaturedForecasts, waited: Array) -> None:
        """Take in the outcomes of forecasts [n, 1 + K, H, Q]: of the mix, then of the experts.

        An expert that was NaN then is held to have done as the mix.
        """
        self._known_priors = None
        if compiled.core is not None:
            self._learn_compiled(compiled.core, batch, waited)
        else:
            self._learn(batch, waited)
        self._priors(batch.num_series)  # now, so that the next forecast need not wait for them

    def _learn(self, batch: MaturedForecasts, waited: Array) -> None:
        mixed, experts = waited[:, 0], waited[:, 1:]
        outcome, known = batch.outcome, batch.known
        width = np.maximum(mixed[..., -1] - mixed[..., 0], 1e-12)
        slope = self._cells * ((outcome[..., None] < mixed) - self._levels) / width[..., None]  # [n, H, Q]
        gains = slope[:, :, None] * (mixed[:, :, None] - experts.swapaxes(1, 2))  # [n, H, K, Q]
        regret: Array = (gains[..., None, :] * self._shares).sum(axis=-1)  # [n, H, K, Z]
        counted = known[:, :, None, None]
        regret = np.where(counted & np.isfinite(regret), regret, 0.0)
        keep = np.where(counted, self._keep, 1.0)
        across: Whole = np.arange(known.shape[1], dtype=np.int64)
        awake = np.stack([np.zeros_like(batch.regimes), 1 + batch.regimes])  # [2, n, H]
        self._step(self.columns, (batch.index[:, None], awake, across), regret, keep)
        for group in distinct(batch.groups):
            self._pool(group, batch, regret)

    def _learn_compiled(self, core: Any, batch: MaturedForecasts, waited: Array) -> None:
        names, known = ("regret", "square", "largest"), batch.known.view(np.uint8)
        n, k, h, q = waited.shape
        losses = np.empty((n, h, k - 1, len(ZONES)))
        core.learn_weights(
            batch.index, batch.regimes, known, batch.outcome, waited, *(self.columns[name] for name in names),
            self._levels, self._cells, self._shares, losses, np.empty(q), np.empty(2 * q), self._paces, self._keep,
            self._log_k, _MIN_LOSS,
        )  # fmt: skip
        summed, groups = np.empty((k - 1) * len(ZONES)), distinct(batch.groups)
        for group in groups:
            self.pooled.grow(group + 1)
            ends_ns = batch.ends_ns if len(groups) == 1 else batch.ends_ns[batch.groups == group]
            core.pool_losses(
                group, int(ends_ns.max()), batch.groups, batch.regimes, known, losses,
                *(self.pooled[name] for name in (*names, "owed", "owed_share", "end_ns")), self._pool_paces,
                summed, batch.num_series[group], self._half_life, self._log_k, _MIN_LOSS,
            )  # fmt: skip

    def _pool(self, group: int, batch: MaturedForecasts, regret: Array) -> None:
        self.pooled.grow(group + 1)
        pooled, of_group = self.pooled, batch.groups == group
        end_ns = int(batch.ends_ns[of_group].max())
        if end_ns > pooled["end_ns"][group]:
            fading = -_LN2 / self._half_life * pooled["owed_share"][group]
            keep = exact.exp(fading)[:, :, None, None]
            self._step(pooled, (group,), pooled["owed"][group], keep)
            pooled["owed"][group], pooled["owed_share"][group] = 0.0, 0.0
            pooled["end_ns"][group] = end_ns
        regimes, known = batch.regimes[of_group], batch.known[of_group]
        of_regime = regimes == np.arange(self._num_awake - 1)[:, None, None]
        applies = np.concatenate([known[None], known & of_regime])  # [1 + R, n, H]
        summed = np.where(applies[..., None, None], regret[of_group], 0.0).sum(axis=1)
        pooled["owed"][group] += summed / batch.num_series[group]
        pooled["owed_share"][group] += applies.sum(axis=1) / batch.num_series[group]

    def _step(self, columns: SeriesColumns, at: tuple[Any, ...], regret: Array, keep: Array) -> None:
        largest, square = columns["largest"][at] * keep, columns["square"][at] * keep
        scaled = self._rates(columns, largest, square) * regret
        surprise = np.where(scaled < -0.5, 2.0 * np.maximum(largest, np.abs(regret)), 0.0)
        step = 0.5 * (regret * (1.0 - scaled) - surprise)
        columns["regret"][at] = columns["regret"][at] * keep + step
        columns["square"][at] = square + regret * regret
        columns["largest"][at] = np.maximum(largest, np.abs(regret))

    def fuse(
        self,
        index: NDArray[np.intp],
        groups: NDArray[np.int64],
        regimes: NDArray[np.int64],
        num_series: Mapping[int, int],
        experts: Array,
        calibration: Array,
        weights: Array | None = None,
        mixed: Array | None = None,
    ) -> tuple[Array, Array]:
        """Weights [n, K, H, Z] and the `mix` [n, H, Q] of experts [n, K, H, Q], stretched by `calibration` [n, H]; in
        the arrays that are given for them, if any.

        An expert whose quantiles are not all finite has no weight; a mix of none is NaN. Compiled where a compiler is
        at hand: the same bits either way.
        """
        weights = np.empty((*experts.shape[:3], len(ZONES))) if weights is None else weights
        mixed = np.empty((len(experts), *experts.shape[2:])) if mixed is None else mixed
        middle = self._levels.tolist().index(0.5)
        own = self.columns
        if core is not None and core.fuse(
            own["regret"], own["square"], own["largest"], self._priors(num_series), index, groups, regimes, experts,
            calibration, self._shares, self._paces, weights, mixed, self._log_k, middle,
        ):  # fmt: skip
            return weights, mixed
        ready: NDArray[np.bool_] = np.logical_and.reduce(np.isfinite(experts), axis=(2, 3))  # [n, K]
        weights[:] = self.weights(index, groups, ready, regimes, num_series)
        mixed[:] = mix(
            np.where(ready[:, :, None, None], experts, 0.0), weights, calibration, self._levels.tolist()
        )
        mixed[~np.logical_or.reduce(ready, axis=1)] = np.nan
        return weights, mixed

    def weights(
        self,
        index: NDArray[np.intp],
        groups: NDArray[np.int64],
        ready: NDArray[np.bool_],
        regimes: NDArray[np.int64],
        num_series: Mapping[int, int],
    ) -> Array:
        """Weights [n, K, H, Z] in `regimes` [n], summing to 1 over those `ready` [n, K], 0 for others.

        `num_series` counts the series of each group.
        """
        is_ready = ready[:, None, :, None]  # [n, 1, K, 1]
        prior = self._priors(num_series)[groups, regimes]
        own = self._shares_of(self.columns, index, regimes, is_ready) * prior * is_ready
        weights = own / np.maximum(own.sum(axis=2, keepdims=True), 1e-300)
        return _round_weights(weights.swapaxes(1, 2))

    def _priors(self, num_series: Mapping[int, int]) -> Array:
        """What is held of the experts before a series' own losses count, as weights [P, R, H, K, Z]: the start of its
        kind, moved by what all series of a pool have taught.

        The latter to the power of 1 − 1/√N: a series' own part of it must not count twice, least of all where it is
        alone; the start then stands by itself.
        """
        sizes = tuple(num_series.values())
        if self._known_priors is None or self._known_priors[0] != sizes:
            self._known_priors = sizes, self._compute_priors(num_series)
        return self._known_priors[1]

    def _compute_priors(self, num_series: Mapping[int, int]) -> Array:
        num_groups, num_regimes = len(num_series), self._num_awake - 1
        self.pooled.grow(num_groups)
        if compiled.core is not None:
            priors = np.zeros((num_groups, num_regimes, *self.pooled["regret"].shape[2:]))
            powers = np.array([_power(num_series[group]) for group in range(num_groups)])
            learnt = (self.pooled[name] for name in ("regret", "square", "largest"))
            scratch = np.empty((5, self._num_awake * self._starts.shape[2]))
            compiled.core.fill_priors(
                *learnt,
                self._starts,
                powers,
                priors,
                self._pool_paces,
                scratch,
                self._log_k,
                _MIN_LOSS,
                _MIN_PRIOR,
            )
            return priors
        groups, regimes = np.divmod(np.arange(num_groups * num_regimes, dtype=np.int64), num_regimes)
        starts = self._starts[groups % len(self._starts)][..., None]  # [P·R, H, K, 1]
        shares = self._shares_of(self.pooled, groups, regimes, np.array([[[True]]])) * starts
        shares /= np.maximum(shares.sum(axis=2, keepdims=True), 1e-300)
        power = np.array([_power(max(num_series[group], 1)) for group in groups.tolist()])[
            :, None, None, None
        ]
        shares = exact.exp(power * exact.log(np.maximum(shares, _MIN_PRIOR)))
        shares = exact.exp((1.0 - power) * exact.log(starts)) * shares
        return shares.reshape(num_groups, num_regimes, *shares.shape[1:])

    def _shares_of(
        self,
        columns: SeriesColumns,
        rows: NDArray[np.intp] | NDArray[np.int64],
        regimes: NDArray[np.int64],
        is_ready: NDArray[np.bool_],
    ) -> Array:
        """The weight of each expert [n, H, K, Z], for all times and in this regime, up to a common factor."""
        awake = np.stack([np.zeros_like(regimes), 1 + regimes])  # [2, n]
        rates = self._rates(columns, columns["largest"][rows, awake], columns["square"][rows, awake])
        score = np.where(is_ready, rates * columns["regret"][rows, awake], _MIN_SCORE)  # [2, n, H, K, Z]
        best = np.maximum(score[0], score[1]).max(axis=2, keepdims=True)
        shares = rates * exact.exp(score - best) * is_ready
        return shares[0] + shares[1]

    def _rates(self, columns: SeriesColumns, largest: Array, square: Array) -> Array:
        """Learning rates [..., H, K, Z] of each series' own part, or of what all of a pool teach."""
        paces = self._paces if columns is self.columns else self._pool_paces
        return paces[:, None, None] * np.minimum(
            0.5 / np.maximum(largest, _MIN_LOSS), np.sqrt(self._log_k / np.maximum(square, _MIN_LOSS))
        )

    def state(self) -> dict[str, Any]:
        return {"own": self.columns.state(), "pooled": self.pooled.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self.columns.restore(state["own"])
        self.pooled.restore(state["pooled"])
        self._known_priors = None


def _power(num_series: int) -> float:
    """How far a pool of so many series counts: few share what is luck for one; below zero for a pool of none."""
    return 1.0 - 1.0 / math.sqrt(num_series) if num_series else -1.0


def _round_weights(weights: Array) -> Array:
    """Weights [n, K, H, Z] in whole units, the largest taking up what rounding left."""
    num = np.rint(weights * _WEIGHT_UNITS)
    rest = (_WEIGHT_UNITS - num.sum(axis=1, keepdims=True)) * (weights.sum(axis=1, keepdims=True) > 0.0)
    places: Whole = np.arange(weights.shape[1], dtype=np.int64)
    first = places[None, :, None, None] == num.argmax(axis=1)[:, None]
    return (num + np.where(first, rest, 0.0)) / _WEIGHT_UNITS
