"""The trajectory model as a peer of evaluations: asked where it was chosen, and nowhere else."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from checks import nonempty
from htfi.forecasting.config import ForecastConfig
from htfi_eval.eval.prices import Prices
from htfi_eval.eval.returns.mini_peer import MiniPeer, choose_points
from htfi_eval.eval.walk import Walk, measure_outcomes

Array = NDArray[np.float64]
CONFIG = ForecastConfig(horizons=(1, 3), experts=("ewma",))
CENTRES = np.linspace(-4.0, 4.0, 81)
DAY_NS = 86_400_000_000_000


class GaussSampler:
    version, centres = "gauss", CENTRES

    def __init__(self) -> None:
        self.num_prefixes = 0

    def prefix(self, context: Sequence[float] | Array) -> tuple[int, ...]:
        self.num_prefixes += 1
        return (1,)

    def paths(
        self, prefixes: Sequence[Sequence[int]], horizons: Sequence[int], num_paths: int, seed: int
    ) -> tuple[Array, Array]:
        density = np.exp(-0.5 * CENTRES**2)
        law = np.broadcast_to(
            density / density.sum(), (len(prefixes), num_paths, len(horizons), len(CENTRES))
        )
        z = np.random.default_rng(seed).standard_normal((len(prefixes), num_paths, horizons[-1] - 1))
        return z, law


def prices(num_bars: int = 160, num_series: int = 3) -> Prices:
    rng = np.random.default_rng(8)
    close = 100.0 * np.exp(np.cumsum(0.01 * rng.standard_normal((num_bars, num_series)), axis=0))
    close[:40, 2] = np.nan  # listed later
    ends = (np.arange(num_bars) + 20_000) * DAY_NS
    names = tuple(f"S{i}" for i in range(num_series))
    return Prices("made", names, "1d", ends, ends, close, close * 1.004, close / 1.004, close)


def test_points_have_an_outcome_a_history_and_a_date_that_is_scored() -> None:
    measured = measure_outcomes(prices(), CONFIG)
    chosen = choose_points(measured, 90, CONFIG, 4, num_points=50, num_drawn=20)
    assert chosen.sum(axis=(0, 1)).tolist() == [50, 20]
    assert np.isfinite(measured.outcomes[chosen]).all()
    assert not chosen[:90].any()
    assert not chosen[:100, 2].any()  # its sixtieth bar comes later
    again = choose_points(measured, 90, CONFIG, 4, num_points=50, num_drawn=20)
    assert (chosen == again).all()


def test_the_peer_speaks_where_it_is_asked_and_never_elsewhere() -> None:
    made = prices()
    measured = measure_outcomes(made, CONFIG)
    chosen = choose_points(measured, 90, CONFIG, 4, num_points=50, num_drawn=20)
    sampler = GaussSampler()
    walk = Walk(made, CONFIG, [MiniPeer(sampler, chosen, CONFIG)])
    spoke = np.zeros_like(chosen)
    for instant in walk.instants(90):
        said = instant.quantiles[walk.names.index("mini")]
        spoke[instant.t, instant.places] = np.isfinite(said).all(axis=2)
        assert (np.diff(said[np.isfinite(said).all(axis=2)], axis=1) >= 0).all()
    assert (spoke == chosen).all()
    assert sampler.num_prefixes == 2 * chosen.sum()  # each beside its mirror


def test_a_later_price_changes_nothing_that_was_said_before_it() -> None:
    made = prices()
    chosen = choose_points(measure_outcomes(made, CONFIG), 90, CONFIG, 4, num_points=50, num_drawn=20)

    def said(of: Prices) -> list[Array]:
        walk = Walk(of, CONFIG, [MiniPeer(GaussSampler(), chosen, CONFIG)])
        return [one.quantiles[walk.names.index("mini")] for one in walk.instants(90) if one.t < 130]

    shocked = prices()
    for field in (shocked.open, shocked.high, shocked.low, shocked.close):
        field[130:] *= 3.0
    for one, other in nonempty(zip(said(made), said(shocked), strict=True)):
        assert np.array_equal(one, other, equal_nan=True)
