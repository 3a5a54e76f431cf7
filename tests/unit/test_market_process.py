"""The simulated price process: its truths (sigma, shocks, loadings) hold exactly, and what cannot be is refused."""

import numpy as np
import pytest

from htfi.domain.errors import InvalidInput
from htfi_train.simulation.market.asset_classes import ASSET_CLASSES
from htfi_train.simulation.market.process import simulate
from htfi_train.simulation.market.spec import (
    AssetSpec,
    JumpSpec,
    MarketSpec,
    RegimeChain,
    RegimeState,
    SimulatedShock,
    VolatilityComponent,
)

CHAIN = RegimeChain.of_durations(60, 90, 30, 20)
WAVES = (VolatilityComponent(80.0, 0.3), VolatilityComponent(10.0, 0.2))


def market(num_assets=4, **asset):
    assets = tuple(AssetSpec(0.2, sector=i % 2, sector_loading=0.3, **asset) for i in range(num_assets))
    return MarketSpec(assets, CHAIN, WAVES)


def test_same_seed_gives_the_same_path_bit_for_bit():
    spec = MarketSpec.random(np.random.default_rng(3))
    shocks = [SimulatedShock(20, -3.0, factor=0, shares=(0.7, 0.3), volatility=2.0)]
    one, two, other = (simulate(spec, shocks, 200, seed) for seed in (5, 5, 6))
    assert one.log_returns.tobytes() == two.log_returns.tobytes()
    assert all(a.tobytes() == b.tobytes() for a, b in zip(one.ohlc(), two.ohlc(), strict=True))
    assert one.volumes().tobytes() == two.volumes().tobytes()
    assert not np.array_equal(one.log_returns, other.log_returns)


def test_a_run_without_the_shock_is_its_counterfactual():
    spec = market()
    plain = simulate(spec, [], 120, 1)
    hit = simulate(spec, [SimulatedShock(50, -4.0, asset=2, shares=(0.5, 0.3, 0.2))], 120, 1)
    moved = hit.log_returns - plain.log_returns
    sigma = plain.sigma[50, 2]
    assert np.allclose(moved[50:53, 2], [-2.0 * sigma, -1.2 * sigma, -0.8 * sigma])
    moved[50:53, 2] = 0.0
    assert np.abs(moved).max() < 1e-15
    assert np.array_equal(hit.sigma, plain.sigma)


def test_a_shock_on_a_factor_reaches_each_asset_by_its_loading():
    spec = market()
    hit = simulate(spec, [SimulatedShock(10, 2.0, factor=2)], 30, 4)
    loadings = spec.loadings()[hit.regimes[10], :, 2]
    assert np.allclose(hit.shock_returns[10], 2.0 * loadings * hit.sigma[10])
    assert loadings[0] == 0.0
    assert loadings[1] > 0.2


def test_volatility_of_a_shock_halves_on_the_log_scale_and_is_not_foreseen():
    spec = market()
    plain = simulate(spec, [], 40, 9)
    hit = simulate(spec, [SimulatedShock(10, 0.0, asset=1, volatility=3.0, half_life_bars=4.0)], 40, 9)
    ratio = np.log(hit.shocked_sigma / plain.sigma)
    assert np.allclose(ratio[[10, 14, 18], 1], np.log(3.0) * np.array([1.0, 0.5, 0.25]))
    assert np.allclose(np.log(hit.sigma / plain.sigma)[[9, 10, 14], 1], [0.0, 0.0, 0.5 * np.log(3.0)])
    assert np.array_equal(hit.shocked_sigma[:, 0], plain.shocked_sigma[:, 0])


def test_sigma_is_the_true_deviation_in_every_regime():
    jumps = JumpSpec(8.0, -2.0, 3.0)
    even = RegimeChain(((0.25, 0.25, 0.25, 0.25),) * 4)
    assets = tuple(AssetSpec(0.2, 0.2, tail_index=8.0, jumps=jumps) for _ in range(40))
    path = simulate(MarketSpec(assets, even, WAVES), [], 20_000, 11)
    score = path.log_returns / path.sigma
    for regime in RegimeState:
        # 200,000 values a regime, few correlated: the standard error is about 0.008, so 0.05 is six of them
        assert np.mean(np.square(score[path.regimes == regime])) == pytest.approx(1.0, abs=0.05)
        assert np.mean(score[path.regimes == regime]) == pytest.approx(0.0, abs=0.05)


def test_long_run_volatility_is_the_one_that_was_asked_for():
    calm = MarketSpec(
        tuple(AssetSpec(0.2, 0.1) for _ in range(100)), CHAIN, (VolatilityComponent(20.0, 0.3, 0.0),)
    )
    path = simulate(calm, [], 20_000, 2)
    assert np.sqrt(252.0 * np.mean(np.square(path.sigma))) == pytest.approx(0.2, rel=0.05)


def test_correlation_of_innovations_is_the_product_of_loadings():
    even = RegimeChain(((0.25, 0.25, 0.25, 0.25),) * 4)
    spec = MarketSpec(
        (AssetSpec(0.2, 0.6, tail_index=20.0), AssetSpec(0.4, 0.5, tail_index=20.0)), even, WAVES
    )
    path = simulate(spec, [], 40_000, 8)
    score = path.log_returns / path.sigma
    for regime in RegimeState:
        seen = np.corrcoef(score[path.regimes == regime], rowvar=False)[0, 1]
        expected = spec.loadings()[regime][0] @ spec.loadings()[regime][1]
        assert seen == pytest.approx(expected, abs=0.06)
    assert spec.loadings()[RegimeState.CRISIS, 0, 0] > spec.loadings()[RegimeState.CALM, 0, 0]


def test_bars_hold_their_close_and_their_range_fits_sigma():
    path = simulate(market(20, overnight_share=0.0), [], 5_000, 21)
    opened, high, low, close = path.ohlc()
    assert (low <= np.minimum(opened, close)).all()
    assert (high >= np.maximum(opened, close)).all()
    assert (low > 0).all()
    assert np.allclose(opened[1:], close[:-1])
    # Parkinson (1980): E[(log high/low)^2] = 4 ln 2 sigma^2 where the path is Brownian; fat tails only raise it
    ranges = np.mean(np.square(np.log(high / low) / path.sigma)) / (4.0 * np.log(2.0))
    assert 0.9 < ranges < 1.15


def test_overnight_share_opens_away_from_the_last_close():
    path = simulate(market(20, overnight_share=0.3), [], 5_000, 22)
    opened, _, _, close = path.ohlc()
    gap = np.log(opened[1:] / close[:-1]) / path.sigma[1:]
    assert np.mean(np.square(gap)) == pytest.approx(0.3, rel=0.1)


def test_the_day_has_the_shape_of_a_u():
    spec = MarketSpec((AssetSpec(0.2),), CHAIN, (), bars_per_year=252 * 26.0, bars_per_day=26, day_shape=0.5)
    path = simulate(spec, [], 26 * 400, 3)
    curve = np.sqrt(np.mean(np.square(path.log_returns.reshape(400, 26)), axis=0))
    assert curve[0] > 1.3 * curve[14]
    assert curve[-1] > 1.2 * curve[14]


def test_night_belongs_to_the_first_bar_of_an_intraday_day():
    assets = tuple(AssetSpec(0.2, overnight_share=0.3) for _ in range(20))
    spec = MarketSpec(assets, CHAIN, (), bars_per_year=252 * 13.0, bars_per_day=13, day_shape=0.4)
    path = simulate(spec, [], 13 * 400, 5)
    opened, _, _, close = path.ohlc()
    gap = np.zeros_like(close)
    gap[1:] = np.log(opened[1:] / close[:-1])
    by_clock = np.mean(np.square(gap).reshape(400, 13, 20), axis=(0, 2))
    assert by_clock[1:].max() < 1e-20
    whole = np.mean(np.square(path.sigma).reshape(400, 13, 20).sum(axis=1))
    assert by_clock[0] == pytest.approx(0.3 * whole, rel=0.1)


@pytest.mark.parametrize("family", list(ASSET_CLASSES))
def test_random_markets_stay_finite_and_repeat(family):
    for draw in range(20):
        spec = MarketSpec.random(np.random.default_rng(draw), family=family)
        assert spec == MarketSpec.random(np.random.default_rng(draw), family=family)
        path = simulate(spec, [], 150, draw)
        assert np.isfinite(path.log_returns).all()
        assert (path.sigma > 0).all()
        assert (path.close > 0).all()
        assert np.isfinite(path.volumes()).all()
        assert (path.volumes() > 0).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: AssetSpec(float("nan")),
        lambda: AssetSpec(0.2, tail_index=2.0),
        lambda: AssetSpec(0.2, sector=-1),
        lambda: VolatilityComponent(0.0, 0.2),
        lambda: RegimeChain(((1.0, 0.0), (0.0, 1.0))),
        lambda: RegimeChain(((0.5, 0.5, 0.5, 0.5),) * 4),
        lambda: SimulatedShock(3, 1.0),
        lambda: SimulatedShock(3, 1.0, asset=0, factor=0),
        lambda: SimulatedShock(3, 1.0, asset=0, shares=()),
        lambda: SimulatedShock(3, float("inf"), asset=0),
        lambda: SimulatedShock(3, 1.0, asset=0, volatility=0.0),
        lambda: MarketSpec((), CHAIN, WAVES),
        lambda: MarketSpec.random(np.random.default_rng(0), family="tulips"),
        lambda: simulate(market(), [], 0, 1),
        lambda: simulate(market(), [], 10, -1),
        lambda: simulate(market(), [SimulatedShock(10, 1.0, asset=0)], 10, 1),
        lambda: simulate(market(), [SimulatedShock(-1, 1.0, asset=0)], 10, 1),
        lambda: simulate(market(), [SimulatedShock(1, 1.0, asset=4)], 10, 1),
        lambda: simulate(market(), [SimulatedShock(1, 1.0, factor=3)], 10, 1),
    ],
)
def test_what_cannot_be_simulated_is_refused_in_one_line(make):
    with pytest.raises(InvalidInput) as refused:
        make()
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) > 10
