"""The fit of the pooled learner: what it finds, beside scikit-learn's trees, and what it may know."""

import numpy as np
import pytest

from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_DAY
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.experts.pooled.features import FEATURES
from htfi.forecasting.experts.pooled.typical import typical_trees
from htfi_eval.eval.price_grid import Prices
from htfi_train.pooled.boosting import Boosting, BoostingConfig, fit_trees, scaled_outcomes
from htfi_train.pooled.losses import ScaleCrps, shape_of
from htfi_train.pooled.samples import NEVER_NS, PooledSamples, collect_samples, merge_samples
from htfi_train.pooled.walk_forward import fit_by_year
from pooled_bars import daily_bars, market_paths

HORIZONS = (1, 5)
CONFIG = ForecastConfig(horizons=HORIZONS)
QUICK = BoostingConfig(
    max_trees=60, rate=0.2, num_bins=64, rows_per_tree=4_000, linear_prior=5.0, leaf_prior=20.0
)
FIRST = FEATURES.index("shock")
SECOND = FEATURES.index("volume")
VARIED = [FIRST, SECOND, FEATURES.index("volume 5"), FEATURES.index("weekday")]


def stepped(num: int, seed: int, days: int = 1_000) -> tuple[PooledSamples, np.ndarray]:
    """Outcomes whose log scale jumps where two features are both positive, and that scale [n]."""
    rng = np.random.Generator(np.random.PCG64(seed))
    x = np.zeros((num, len(FEATURES)), np.float32)
    x[:, VARIED] = rng.standard_normal((num, len(VARIED)))
    scale = 0.8 * ((x[:, FIRST] > 0.0) & (x[:, SECOND] > 0.0)) - 0.2
    y = np.exp(scale)[:, None] * rng.standard_normal((num, len(HORIZONS)))
    made_ns = np.sort(rng.integers(0, days, num)) * NS_PER_DAY
    return PooledSamples(x, y.astype(np.float32), made_ns, made_ns + 5 * NS_PER_DAY), scale


def held_out_crps(
    train: PooledSamples, f_train: np.ndarray, test: PooledSamples, f_test: np.ndarray
) -> float:
    return float(
        ScaleCrps(shape_of(scaled_outcomes(train), f_train)).mean(scaled_outcomes(test), f_test).sum()
    )


def test_trees_gain_from_a_step_that_no_line_has_nearly_what_scikit_learn_does() -> None:
    ensemble = pytest.importorskip("sklearn.ensemble", reason="scikit-learn is the reference")
    (train, _), (test, scale) = stepped(6_000, 1), stepped(4_000, 2)
    fit = fit_trees(train, HORIZONS, QUICK, 0)
    found = fit.trees.predict(test.x)
    assert np.corrcoef(found[:, 0], scale)[0, 1] > 0.93
    reference = ensemble.HistGradientBoostingRegressor(
        loss="gamma", max_iter=60, max_leaf_nodes=8, random_state=0
    )
    reference.fit(train.x, np.abs(train.y).mean(axis=1).astype(np.float64) + 1e-9)
    theirs = [np.repeat(np.log(reference.predict(one.x))[:, None], 2, axis=1) for one in (train, test)]
    plain = held_out_crps(train, np.zeros((6_000, 2)), test, np.zeros((4_000, 2)))
    gain = plain - held_out_crps(train, fit.trees.predict(train.x), test, found)
    assert gain > 0.93 * (plain - held_out_crps(train, theirs[0], test, theirs[1])) > 0.02 * plain


def test_what_is_read_from_the_file_forecasts_what_the_trainer_had() -> None:
    train, _ = stepped(4_000, 1)
    boosting = Boosting(train.x, scaled_outcomes(train), train.made_ns, HORIZONS, QUICK, 0)
    for _ in range(20):
        boosting.grow()
    np.testing.assert_allclose(boosting.trees(20).predict(train.x), boosting.f, rtol=0.0, atol=1e-12)
    assert len(boosting.trees(20).features) == 20


def test_the_slope_of_the_loss_is_that_of_differences() -> None:
    rng = np.random.Generator(np.random.PCG64(3))
    y, f = rng.standard_normal((500, 2)), 0.1 * rng.standard_normal((500, 2))
    loss = ScaleCrps(shape_of(y, f))
    slope = loss.gradient(y, f)
    step = 1e-5

    def each(at: np.ndarray) -> np.ndarray:
        """The loss of every outcome [n, H]."""
        return np.array([loss.mean(y[n : n + 1], at[n : n + 1]) for n in range(100)])

    by_difference = (each(f + step) - each(f - step)) / (2.0 * step)
    ratio = by_difference / (slope[:100] * np.exp(f[:100]))
    np.testing.assert_allclose(ratio, np.broadcast_to(np.median(ratio, axis=0), ratio.shape), rtol=1e-3)


def test_the_same_seed_gives_the_same_fit_and_rows_of_noise_no_tree_that_harms() -> None:
    rng = np.random.Generator(np.random.PCG64(4))
    samples, _ = stepped(3_000, 4)
    noise = PooledSamples(
        samples.x, rng.standard_normal((3_000, 2)).astype(np.float32), samples.made_ns, samples.known_ns
    )
    first, second = (fit_trees(noise, HORIZONS, QUICK, 7) for _ in range(2))
    np.testing.assert_array_equal(first.trees.linear, second.trees.linear)
    np.testing.assert_array_equal(first.trees.leaves, second.trees.leaves)
    assert (first.boosted <= 1.02 * first.plain).all()


def test_a_fit_that_does_not_converge_leaves_typical_terms() -> None:
    samples, _ = stepped(3_000, 5)
    x = samples.x.copy()
    x[:, FIRST] = np.inf
    with np.errstate(all="ignore"):
        fit = fit_trees(PooledSamples(x, samples.y, samples.made_ns, samples.known_ns), HORIZONS, QUICK, 0)
    assert not fit.is_used
    np.testing.assert_array_equal(fit.trees.linear, typical_trees(HORIZONS).linear)


def test_samples_have_the_returns_that_followed_and_know_when() -> None:
    bars = daily_bars(market_paths(80, 3, 6))
    samples = collect_samples(bars, CONFIG)
    assert len(samples) == 3 * (80 - 21)
    last = samples.made_ns == samples.made_ns.max()
    assert np.isnan(samples.y[last]).all()
    assert (samples.known_ns[last] == NEVER_NS).all()
    at = int(np.flatnonzero(samples.made_ns == bars[40][0].end_ns)[0])
    assert samples.known_ns[at] == bars[45][0].end_ns
    moves = [np.log(bars[40 + h][0].close / bars[40][0].close) / np.sqrt(h) for h in HORIZONS]
    np.testing.assert_allclose(samples.y[at] / samples.y[at, 0], np.array(moves) / moves[0], rtol=1e-4)


def test_bars_without_highs_lows_and_volumes_and_with_gaps_make_finite_samples() -> None:
    paths = market_paths(120, 3, 9)
    close = 100.0 * np.exp(paths[:, :, -1])
    close[40:60, 1] = np.nan
    blank = np.full_like(close, np.nan)
    high = close * 1.01
    high[::3] = np.nan
    ends_ns = np.array([bars[0].end_ns for bars in daily_bars(paths)])
    prices = Prices("gaps", ("A", "B", "C"), "1d", ends_ns, ends_ns, blank, high, blank, close, (), blank)
    samples = collect_samples((prices.bars(t) for t in range(120)), CONFIG)
    assert len(samples) == 3 * (119 - 21) - 20  # a first bar that is flat moved nothing
    assert np.isfinite(samples.x).all()
    assert np.isfinite(samples.y[samples.known_ns < NEVER_NS]).all()


def test_a_years_fit_knows_nothing_of_that_year_or_the_embargo_before_it() -> None:
    samples, _ = stepped(7_000, 8, days=1_600)  # from 1970 on
    quick = BoostingConfig(max_trees=0)
    changed = samples.y.copy()
    begin_ns = int(np.datetime64("1973-01-01", "ns").astype(np.int64))
    changed[samples.known_ns > begin_ns - 30 * NS_PER_DAY] *= 5.0
    fits = fit_by_year(samples, HORIZONS, quick, 0, embargo_days=30)
    others = fit_by_year(
        PooledSamples(samples.x, changed, samples.made_ns, samples.known_ns),
        HORIZONS,
        quick,
        0,
        embargo_days=30,
    )
    by_year = {one.year: one for one in fits}
    other_by_year = {one.year: one for one in others}
    assert sorted(by_year) == [0, 1972, 1973, 1974]
    np.testing.assert_array_equal(by_year[1973].fit.trees.linear, other_by_year[1973].fit.trees.linear)
    assert (by_year[1974].fit.trees.linear != other_by_year[1974].fit.trees.linear).any()
    assert by_year[0].from_ns > samples.known_ns.max()


def test_too_few_samples_are_refused_with_what_is_needed() -> None:
    few = collect_samples(daily_bars(market_paths(60, 3, 6)), CONFIG)
    with pytest.raises(InvalidInput, match="a fit needs 2,000 over 365 days"):
        fit_by_year(few, HORIZONS, QUICK, 0)
    with pytest.raises(InvalidInput, match=r"^0 forecasts"):
        fit_by_year(collect_samples([], CONFIG), HORIZONS, QUICK, 0)


def test_samples_of_several_files_are_merged_in_order_of_time() -> None:
    parts = [collect_samples(daily_bars(market_paths(60, 3, seed)), CONFIG) for seed in (1, 2)]
    merged = merge_samples(parts)
    assert len(merged) == sum(map(len, parts))
    assert (np.diff(merged.made_ns) >= 0).all()
