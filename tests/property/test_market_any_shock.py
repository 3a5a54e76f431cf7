"""Any market under any shocks gives finite paths that its shocks touch only from their bar on, or one clear refusal."""

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from examples import examples
from htfi.domain.errors import InvalidInput
from htfi_train.simulation.market.process import simulate
from htfi_train.simulation.market.spec import (
    AssetSpec,
    JumpSpec,
    MarketSpec,
    RegimeChain,
    SimulatedShock,
    VolatilityComponent,
)

NUM_BARS = 60
assets = st.builds(
    AssetSpec,
    annual_vol=st.floats(1e-4, 10.0),
    market_loading=st.floats(-0.99, 0.99),
    sector=st.none() | st.integers(0, 3),
    sector_loading=st.floats(-0.99, 0.99),
    tail_index=st.floats(2.05, 1e4),
    leverage=st.floats(-0.95, 0.95),
    regime_response=st.floats(0.0, 3.0),
    jumps=st.builds(JumpSpec, st.floats(0.0, 1e6), st.floats(-20.0, 20.0), st.floats(0.0, 20.0)),
    annual_drift=st.floats(-5.0, 5.0),
    overnight_share=st.floats(0.0, 0.95),
)
markets = st.builds(
    MarketSpec,
    assets=st.lists(assets, min_size=1, max_size=4).map(tuple),
    regimes=st.builds(RegimeChain.of_durations, *[st.floats(0.5, 1e4)] * 4),
    volatility_components=st.lists(
        st.builds(VolatilityComponent, st.floats(0.1, 1e7), st.floats(0.0, 1.0), st.floats(0.0, 1.0)),
        max_size=4,
    ).map(tuple),
    bars_per_year=st.floats(0.5, 1e8),
    bars_per_day=st.integers(1, 500),
    day_shape=st.floats(0.0, 0.9),
    market_skew=st.floats(-0.6, 0.6),
)
effects = st.builds(
    dict,
    bar=st.integers(0, NUM_BARS - 1),
    size_sigmas=st.floats(-100.0, 100.0),
    shares=st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=4).map(tuple),
    volatility=st.floats(0.05, 50.0),
    half_life_bars=st.floats(0.05, 1e7),
)


@settings(max_examples=examples(80), deadline=None)
@given(markets, st.lists(effects, max_size=6), st.booleans(), st.integers(0, 2**63))
def test_any_market_under_any_shocks_stays_finite_and_is_untouched_before_them(
    spec, effects, on_factor, seed
):
    shocks = [
        SimulatedShock(**effect, factor=0) if on_factor else SimulatedShock(**effect, asset=0)
        for effect in effects
    ]
    try:
        path, plain = simulate(spec, shocks, NUM_BARS, seed), simulate(spec, (), NUM_BARS, seed)
    except InvalidInput:
        assume(
            False
        )  # too wild for prices to hold; were it always so, Hypothesis would say that too much is filtered
    first = min((shock.bar for shock in shocks), default=NUM_BARS)
    assert path.log_returns[:first].tobytes() == plain.log_returns[:first].tobytes()
    assert path.sigma[: first + 1].tobytes() == plain.sigma[: first + 1].tobytes()
    if not on_factor:
        assert path.log_returns[:, 1:].tobytes() == plain.log_returns[:, 1:].tobytes()
    opened, high, low, close = path.ohlc()
    for values in (
        path.log_returns,
        path.sigma,
        path.shocked_sigma,
        opened,
        high,
        low,
        close,
        path.volumes(),
    ):
        assert np.isfinite(values).all()
    assert (path.sigma > 0).all()
    assert (low <= np.minimum(opened, close)).all()
    assert (high >= np.maximum(opened, close)).all()
