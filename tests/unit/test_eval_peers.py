"""Peers of the evaluations against the libraries and formulas they stand for, and none of them sees the future."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from htfi.domain.time import NS_PER_DAY
from htfi.forecasting.config import ForecastConfig
from htfi_eval.eval.garch import (
    ALPHA,
    BETA,
    NU,
    OMEGA,
    GarchFits,
    GarchPeer,
    arch_module,
    fit_one,
    fit_yearly,
    next_variance,
)
from htfi_eval.eval.peers import HAR_FHS, HISTVOL, ConstantWalk, EwmaPeer, classical, har_variance
from htfi_eval.eval.price_grid import Prices
from htfi_eval.eval.walk import RealisedOutcomes, Walk, WalkInstant, measure_outcomes

Array = NDArray[np.float64]
CONFIG = ForecastConfig(horizons=(1, 5))
LEVELS = np.array(CONFIG.levels)


def _garch_returns(num: int, seed: int) -> Array:
    dice = np.random.Generator(np.random.PCG64(seed))
    returns, variance = np.empty(num), 1e-4
    for t in range(num):
        returns[t] = math.sqrt(variance * 0.6) * dice.standard_t(5)
        variance = 2e-6 + 0.08 * returns[t] ** 2 + 0.9 * variance
    return returns


def _prices(num: int, num_series: int, seed: int) -> Prices:
    dice = np.random.Generator(np.random.PCG64(seed))
    closes = 100 * np.exp(np.cumsum(0.01 * dice.standard_normal((num, num_series)), axis=0))
    ranges = np.exp(0.004 * np.abs(dice.standard_normal(closes.shape)))
    ends_ns = (np.arange(num) + 16_000) * NS_PER_DAY
    names = tuple(f"S{n}" for n in range(num_series))
    return Prices("made", names, "1d", ends_ns, ends_ns, closes, closes * ranges, closes / ranges, closes)


def test_measured_outcomes_are_the_moves_that_follow_and_ranges_add_up() -> None:
    prices = _prices(60, 3, 1)
    prices.close[20:23, 1] = np.nan  # a halt: the next bar counts as one
    measured = measure_outcomes(prices, CONFIG)
    logs = np.log(prices.close)
    np.testing.assert_allclose(
        measured.outcomes[10, 0], [logs[11, 0] - logs[10, 0], logs[15, 0] - logs[10, 0]]
    )
    np.testing.assert_allclose(
        measured.outcomes[19, 1], [logs[23, 1] - logs[19, 1], logs[27, 1] - logs[19, 1]]
    )
    np.testing.assert_allclose(measured.realised[10, 0, 1], measured.variance[11:16, 0].sum())
    assert np.isnan(measured.outcomes[-1]).all()
    assert np.isnan(measured.outcomes[20:23, 1]).all()


def test_peers_see_the_bars_of_their_own_series_when_one_starts_late() -> None:
    prices = _prices(80, 3, 2)
    prices.close[:40, 0] = np.nan  # the first column is the last to be known
    alone = Prices(
        "one", ("S2",), "1d", prices.ends_ns, prices.ends_ns,
        *(getattr(prices, key)[:, 2:] for key in ("open", "high", "low", "close")),
    )  # fmt: skip
    together, single = (_said(one, [EwmaPeer("peer", len(one.symbols), CONFIG)]) for one in (prices, alone))
    np.testing.assert_array_equal(together[:, 2], single[:, 0])


def test_ewma_is_riskmetrics_recursion() -> None:
    prices = _prices(300, 1, 3)
    returns = measure_outcomes(prices, CONFIG).returns[:, 0]
    variance = 0.0
    for age, move in enumerate(returns):
        variance += max(1.0 / (age + 1.0), 0.06) * (move * move - variance)
    said = _said(prices, [EwmaPeer("peer", 1, CONFIG)])[-1, 0]
    expected = math.sqrt(variance) * np.sqrt([1.0, 5.0])[:, None] * stats.norm.ppf(LEVELS)
    np.testing.assert_allclose(said, expected, rtol=1e-9)


def test_the_constant_walk_learns_nothing_after_its_time() -> None:
    prices = _prices(120, 2, 4)
    said = _said(prices, [ConstantWalk("peer", 2, CONFIG, 60)])
    assert (said[60:] == said[60]).all()
    assert not (said[59, ..., 0] == said[40, ..., 0]).any()


def test_garch_filter_and_parameters_are_archs() -> None:
    returns = _garch_returns(1500, 5)
    arch = arch_module()
    ours = fit_one(arch, returns)
    theirs = arch.arch_model(100 * returns, mean="Zero", vol="GARCH", dist="t", rescale=False).fit(disp="off")
    np.testing.assert_allclose(ours[[ALPHA, BETA, NU]], theirs.params.to_numpy()[1:], rtol=1e-9)
    fits = GarchFits(np.array([1499]), np.array([0]), ours[None, None], 1, False)
    next_day = next_variance(returns[:, None], fits)[-1, 0]
    assert next_day == pytest.approx(float(theirs.forecast(horizon=1).variance.iloc[-1, 0]) / 1e4, rel=1e-4)


@pytest.mark.parametrize("tails", ["t", "simulated", "thinning"])
def test_garch_quantiles_rise_and_have_archs_variance(tails: str) -> None:
    returns = _garch_returns(1500, 6)
    arch = arch_module()
    fitted = arch.arch_model(100 * returns, mean="Zero", vol="GARCH", dist="t", rescale=False).fit(disp="off")
    expected = float(fitted.forecast(horizon=5).variance.iloc[-1].sum()) / 1e4
    fits = GarchFits(np.array([1499]), np.array([0]), fit_one(arch, returns)[None, None], 1, False)
    peer = GarchPeer("peer", returns[:, None], fits, CONFIG, tails=tails)
    said = peer.quantiles(1499, np.array([0]), None)[0]  # pyright: ignore[reportArgumentType] - it looks at no bars
    assert (np.diff(said, axis=1) > 0).all()
    nu = fits.parameters[0, 0, NU]
    if tails == "t":
        unit = stats.t.ppf(LEVELS, nu) * math.sqrt((nu - 2) / nu)
        np.testing.assert_allclose(said[1], math.sqrt(expected) * unit, rtol=5e-3, atol=1e-6)
    np.testing.assert_allclose(said, -said[:, ::-1], atol=1e-12)


def test_garch_fits_look_back_only_and_are_kept(tmp_path) -> None:  # type: ignore[no-untyped-def]
    returns = _garch_returns(900, 7)[:, None]
    ends_ns = (np.arange(900) * 7 // 5 + 16_000) * NS_PER_DAY
    first = fit_yearly(returns, ends_ns, 400, cache=tmp_path)
    assert len(first.fitted_after) > 1
    other = returns.copy()
    other[first.fitted_after[0] + 1 :] *= 1.7
    changed = fit_yearly(other, ends_ns, 400, cache=tmp_path)
    assert (changed.parameters[0] == first.parameters[0]).all()
    assert (changed.parameters[1] != first.parameters[1]).any()
    again = fit_yearly(returns, ends_ns, 400, cache=tmp_path)
    assert again.was_cached
    assert (again.parameters == first.parameters).all()
    assert not fit_yearly(returns, ends_ns, 400, cache=tmp_path, fresh=True).was_cached


def test_series_that_garch_cannot_fit_say_nothing() -> None:
    returns = np.column_stack([np.zeros(400), np.full(400, np.nan), _garch_returns(400, 8)])
    ends_ns = (np.arange(400) + 16_000) * NS_PER_DAY
    fits = fit_yearly(returns, ends_ns, 300, cache=None)
    known = np.isfinite(fits.parameters[0, :, OMEGA])
    assert known.tolist() == [False, False, True]
    peer = GarchPeer("peer", returns, fits, CONFIG)
    said = peer.quantiles(350, np.arange(3), None)  # pyright: ignore[reportArgumentType] - it looks at no bars
    assert np.isnan(said[:2]).all()
    assert np.isfinite(said[2]).all()


def test_har_looks_back_only_and_follows_volatility() -> None:
    dice = np.random.Generator(np.random.PCG64(9))
    level = np.exp(np.cumsum(0.2 * dice.standard_normal(900)) - 9)
    variance = (level * dice.chisquare(5, 900) / 5)[:, None]
    whole = har_variance(_measured(variance), (1, 5))
    assert (har_variance(_measured(variance[:700]), (1, 5)) == whole[:700])[250:].all()
    assert np.isnan(whole[:250]).all()
    assert np.corrcoef(np.log(whole[260:, 0, 1]), np.log(level[260:]))[0, 1] > 0.8


def _measured(variance: Array) -> RealisedOutcomes:
    blank = np.zeros((*variance.shape, 2))
    return RealisedOutcomes(np.sqrt(variance), variance, blank, blank)


def _said(prices: Prices, peers: list[EwmaPeer] | list[ConstantWalk]) -> Array:
    walk = Walk(prices, CONFIG, peers)
    said = np.full((len(prices.ends_ns), len(prices.symbols), 2, len(LEVELS)), np.nan)
    instant: WalkInstant
    for instant in walk.instants():
        said[instant.t, instant.places] = instant.quantiles[-1]
    return said


def test_an_expert_outside_the_mix_says_what_it_says_inside() -> None:
    prices = _prices(120, 2, 10)
    config = ForecastConfig(horizons=(1, 5), experts=("log_range_har", "random_walk"))
    walk = Walk(prices, config, classical(2, config, 0))
    num_compared = 0
    for said in walk.instants(100):
        for name, alone in (("random_walk", HISTVOL), ("log_range_har", HAR_FHS)):
            mine, theirs = (said.quantiles[walk.names.index(each)] for each in (name, alone))
            np.testing.assert_allclose(mine, theirs, atol=1e-10)
        num_compared += 1
    assert num_compared == 20
