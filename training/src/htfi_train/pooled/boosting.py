"""Fits linear terms, then symmetric trees, by Newton steps on the CRPS of one shape at a scale.

The distribution over h bars has quantiles e^f·z, z those of the samples. One tree serves all horizons: its questions
are chosen on random mixtures of the gradients, its leaves by the gradients themselves (Iosipoi and Vakhrushev 2022,
SketchBoost). Every prior counts in bars that do not overlap. A scale for each side of the median was worse by .03 to
.2% out of sample.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.experts.pooled.features import CALENDAR, FEATURES, SHARED
from htfi.forecasting.experts.pooled.trees import LEAF_UNIT, MAX_LOG_SCALE, ScaleTrees
from htfi.forecasting.experts.pooled.typical import typical_terms, typical_trees
from htfi_train.pooled.losses import ScaleCrps, shape_of, size_of
from htfi_train.pooled.samples import PooledSamples

Array = NDArray[np.float64]
Single = NDArray[np.float32]
Bins = NDArray[np.uint8]
Places = NDArray[np.intp]

MAX_SCALED_RETURN = 12.0
_SHAPE_RENEWAL_TREES = 25
_NEWTON_STEPS = 6
_LATE_SHARE = 0.2  # the newest samples, which say how many trees serve
_NEVER = 1e12  # samples: a prior that no data move


@dataclass(frozen=True, slots=True)
class BoostingConfig:
    """How much is fitted."""

    max_trees: int = 100
    depth: int = 4
    rate: float = 0.06
    num_bins: int = 32
    rows_per_tree: int = 40_000
    max_rows: int = 200_000  # of all; drawn evenly where there are more
    linear_prior: float = 2_000.0  # samples by which each linear term is drawn to what is typical
    leaf_prior: float = 1_500.0  # samples by which a leaf is drawn to zero
    num_sketches: int = 2
    check_every: int = 10
    patience: int = 30  # trees without gain on the newest samples after which no more are grown


@dataclass(frozen=True, slots=True, eq=False)
class BoostedFit:
    """What was fitted, and the mean CRPS [H] on the newest samples by a fit on the others, in scaled returns: by
    typical terms, by fitted ones, with trees. Where it did not converge `is_used` is false and `trees` are typical."""

    trees: ScaleTrees
    plain: Array
    linear: Array
    boosted: Array
    is_used: bool


def fit_trees(
    samples: PooledSamples, horizons: tuple[int, ...], config: BoostingConfig, seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> BoostedFit:  # fmt: skip
    """Fit on all samples with an outcome; the number of trees is what served the newest fifth of them best."""
    samples = _thin(samples, config.max_rows)
    y = scaled_outcomes(samples)
    when = int(np.quantile(samples.made_ns, 1.0 - _LATE_SHARE))
    early, late = samples.known_ns <= when, samples.made_ns > when
    trial = Boosting(samples.x[early], y[early], samples.made_ns[early], horizons, config, seed)
    held_x, held_y = samples.x[late], y[late]
    known = typical_trees(horizons)
    plain = _held_out(trial.y, known.predict(trial.x), held_y, known.predict(held_x))
    straight = _held_out(trial.y, trial.f, held_y, trial.trees(0).predict(held_x))
    best, best_num, boosted = float((straight / plain).sum()), 0, straight
    for num in range(1, config.max_trees + 1):
        trial.grow()
        if progress is not None:
            progress(num, config.max_trees)
        if num % config.check_every:
            continue
        found = _held_out(trial.y, trial.f, held_y, trial.trees(num).predict(held_x))
        if float((found / plain).sum()) < best:
            best, best_num, boosted = float((found / plain).sum()), num, found
        elif num - best_num >= config.patience:
            break
    whole = Boosting(samples.x, y, samples.made_ns, horizons, config, seed)
    for _ in range(best_num):
        whole.grow()
    trees = _centred(whole.trees(best_num), known, samples.x)
    is_used = bool(np.isfinite(trees.linear).all()) and best < len(horizons) * 1.02
    return BoostedFit(trees if is_used else known, plain, straight, boosted, is_used)


def scaled_outcomes(samples: PooledSamples) -> Array:
    """Outcomes [S, H] in units of the volatility before them, those of wild prints cut."""
    return np.minimum(np.maximum(samples.y.astype(np.float64), -MAX_SCALED_RETURN), MAX_SCALED_RETURN)


def _thin(samples: PooledSamples, most: int) -> PooledSamples:
    known = np.flatnonzero(np.isfinite(samples.y).all(axis=1))
    if len(known) > most:
        known = known[np.linspace(0, len(known) - 1, most).astype(np.intp)]
    return samples.take(known)


def _held_out(y: Array, f: Array, held_y: Array, held_f: Array) -> Array:
    """CRPS [H] of held-out outcomes, their level corrected: where it drifts, the expert follows it by itself."""
    drift = np.log(size_of(held_y, held_f) / size_of(y, f))
    return ScaleCrps(shape_of(y, f)).mean(held_y, held_f + drift)


def _centred(trees: ScaleTrees, known: ScaleTrees, x: Single) -> ScaleTrees:
    """The same mean as typical terms: the level is learnt online, and must not jump from one fit to the next."""
    linear = trees.linear.copy()
    linear[-1] += known.predict(x).mean(axis=0) - trees.predict(x).mean(axis=0)
    return ScaleTrees(linear, trees.features, trees.thresholds, trees.leaves)


@dataclass(slots=True, eq=False)
class _Grown:
    features: list[list[int]] = field(default_factory=list[list[int]])
    thresholds: list[list[float]] = field(default_factory=list[list[float]])
    leaves: list[NDArray[np.int64]] = field(default_factory=list[NDArray[np.int64]])


class Boosting:
    """A fit in progress on n rows: log scales f [n, H] of the trees grown so far."""

    def __init__(
        self, x: Single, y: Array, made_ns: NDArray[np.int64], horizons: tuple[int, ...], config: BoostingConfig,
        seed: int,
    ) -> None:  # fmt: skip
        self.x, self.y = x, y
        self._config = config
        self._overlap = np.array(horizons, np.float64)  # bars that one outcome spans, [H]
        self._rng = np.random.Generator(np.random.PCG64(seed))
        per_instant = len(made_ns) / max(len(np.unique(made_ns)), 1)
        self._linear = _fit_linear(x, y, typical_terms(horizons), self._linear_priors(per_instant))
        self.f = _apply_linear(x, self._linear)
        self._loss = ScaleCrps(shape_of(y, self.f))
        self._edges = [_edges(x[:, place], config.num_bins) for place in range(x.shape[1])]
        self._bins = np.stack(
            [np.searchsorted(edge, x[:, k], "left").astype(np.uint8) for k, edge in enumerate(self._edges)]
        )
        # What all series share would divide the instants, of which there are few: the linear terms have it.
        self._askable = [k for k, name in enumerate(FEATURES) if name not in SHARED and len(self._edges[k])]
        self._grown = _Grown()

    def _linear_priors(self, per_instant: float) -> Array:
        """Samples [F + 1, H] by which each term is drawn to what is typical."""
        weight = np.array([per_instant if name in SHARED else 1.0 for name in FEATURES])
        priors = self._config.linear_prior * weight[:, None] * self._overlap
        priors[[FEATURES.index(name) for name in CALENDAR]] = _NEVER  # they have no straight effect
        return np.concatenate([priors, np.full((1, len(self._overlap)), 1e-3)])

    def grow(self) -> None:
        """One more tree."""
        config, grown = self._config, self._grown
        drawn = self._rng.integers(0, len(self.y), min(config.rows_per_tree, len(self.y)))
        gradient = self._loss.gradient(self.y[drawn], self.f[drawn])
        features, places, leaf = self._ask(self._bins[:, drawn], gradient)
        num_leaves = 2**config.depth
        count = np.bincount(leaf, minlength=num_leaves)[:, None]
        sums = np.stack([np.bincount(leaf, one, num_leaves) for one in gradient.T], axis=1)
        steps = -config.rate * sums / (count + config.leaf_prior * self._overlap)
        leaves = np.rint(steps / LEAF_UNIT).astype(np.int64)
        grown.features.append(features)
        grown.thresholds.append([float(self._edges[k][at]) for k, at in zip(features, places, strict=True)])
        grown.leaves.append(leaves)
        self.f += leaves[_leaf(self._bins, features, places)] * LEAF_UNIT
        if len(grown.features) % _SHAPE_RENEWAL_TREES == 0:
            self._loss = ScaleCrps(shape_of(self.y, self.f))

    def _ask(self, bins: Bins, gradient: Array) -> tuple[list[int], list[int], NDArray[np.int64]]:
        """The questions of a tree as features and bins, and the leaf [n] of each row."""
        config, num_bins = self._config, self._config.num_bins
        mixtures = self._rng.standard_normal((gradient.shape[1], config.num_sketches))
        sketches = (gradient @ (mixtures / np.sqrt(self._overlap)[:, None])).T  # [S, n]
        leaf = np.zeros(bins.shape[1], np.int64)
        features: list[int] = []
        places: list[int] = []
        for level in range(config.depth):
            size = 2**level * num_bins
            best, chosen = -np.inf, (self._askable[0], 0)
            for k in self._askable:
                cell = leaf * num_bins + bins[k]
                left = np.cumsum(np.bincount(cell, minlength=size).reshape(-1, num_bins), axis=1)
                gain = np.zeros(left.shape)
                for sketch in sketches:
                    below = np.cumsum(np.bincount(cell, sketch, size).reshape(-1, num_bins), axis=1)
                    above = below[:, -1:] - below
                    gain += below**2 / (left + config.leaf_prior)
                    gain += above**2 / (left[:, -1:] - left + config.leaf_prior)
                of_bin = gain.sum(axis=0)[: len(self._edges[k])]
                at = int(of_bin.argmax())
                if float(of_bin[at]) > best:
                    best, chosen = float(of_bin[at]), (k, at)
            features.append(chosen[0])
            places.append(chosen[1])
            leaf += (bins[chosen[0]] > chosen[1]).astype(np.int64) << level
        return features, places, leaf

    def trees(self, num: int) -> ScaleTrees:
        """The linear terms and the first `num` trees."""
        grown, depth, k = self._grown, self._config.depth, self.f.shape[1]
        return ScaleTrees(
            self._linear,
            np.array(grown.features[:num], np.int64).reshape(num, depth),
            np.array(grown.thresholds[:num], np.float32).reshape(num, depth),
            np.array(grown.leaves[:num], np.int64).reshape(num, 2**depth, k),
        )


def _leaf(bins: Bins, features: list[int], places: list[int]) -> NDArray[np.int64]:
    leaf = np.zeros(bins.shape[1], np.int64)
    for level, (feature, at) in enumerate(zip(features, places, strict=True)):
        leaf += (bins[feature] > at).astype(np.int64) << level
    return leaf


def _fit_linear(x: Single, y: Array, typical: Array, priors: Array) -> Array:
    """Linear terms [F + 1, H] of log scales, drawn to typical ones."""
    inputs = np.concatenate([x.astype(np.float64), np.ones((len(x), 1))], axis=1)
    gram = inputs.T @ inputs
    linear = typical.copy()
    for _ in range(_NEWTON_STEPS):
        f = _apply_linear(x, linear)
        slope = inputs.T @ ScaleCrps(shape_of(y, f)).gradient(y, f)
        slope += priors * (linear - typical)
        for k in range(linear.shape[1]):
            linear[:, k] -= np.linalg.solve(gram + np.diag(priors[:, k]), slope[:, k])
    return linear


def _apply_linear(x: Single, linear: Array) -> Array:
    f = x.astype(np.float64) @ linear[:-1] + linear[-1]
    return np.minimum(np.maximum(f, -MAX_LOG_SCALE), MAX_LOG_SCALE)


def _edges(values: Single, num_bins: int) -> Single:
    """At most `num_bins` − 1 thresholds, between neighbouring values or at about equal counts."""
    distinct = np.unique(values)
    if len(distinct) <= num_bins:
        return (0.5 * (distinct[1:] + distinct[:-1])).astype(np.float32)
    shares = np.arange(1, num_bins) / num_bins
    return np.unique(np.quantile(values, shares, method="lower")).astype(np.float32)
