"""The trajectory and foundation experts: budgets, turns, history, state. Models are small fakes but in one test."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from htfi import models
from htfi.decoding.trajectories import stratified_uniforms
from htfi.domain.events import Bar
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.experts.pretrained import FoundationExpert, SamplingBudget, TrajectoryExpert
from htfi.forecasting.panel import BarBatch, Panel
from htfi.forecasting.scaled_returns import ewma_units
from htfi.forecasting.shapes import gaussian_quantiles
from htfi.wiring.experts import open_path_sampler

Array = NDArray[np.float64]
CONFIG = ForecastConfig()
CENTRES = np.linspace(-5.0, 5.0, 201)
GAUSSIAN = np.array(gaussian_quantiles(CONFIG.levels))
DAY_NS = 86_400_000_000_000


class GaussSampler:
    """Standard normal bars, whatever came before; it counts what it is asked."""

    version = "gauss"
    centres = CENTRES

    def __init__(self) -> None:
        self.asked: list[tuple[tuple[int, ...], int]] = []
        self.contexts: list[Array] = []

    def prefix(self, context: Sequence[float] | Array) -> tuple[int, ...]:
        self.contexts.append(np.array(context))
        return (len(self.contexts),)

    def paths(
        self, prefixes: Sequence[Sequence[int]], horizons: Sequence[int], num_paths: int, seed: int
    ) -> tuple[Array, Array]:
        self.asked.append((tuple(horizons), len(prefixes)))
        draws = stats.norm.ppf(stratified_uniforms(seed, num_paths, horizons[-1] - 1))
        density = np.exp(-0.5 * CENTRES**2)
        law = np.broadcast_to(
            density / density.sum(), (len(prefixes), num_paths, len(horizons), len(CENTRES))
        )
        return np.broadcast_to(draws, (len(prefixes), *draws.shape)), law


class GaussModel:
    """Says N(0, mean square · h)."""

    version = "gauss"
    max_context = 40

    def __init__(self) -> None:
        self.lengths: list[int] = []

    def quantiles(self, contexts: Sequence[Array], horizons: Sequence[int], levels: Sequence[float]) -> Array:
        self.lengths += [len(context) for context in contexts]
        scale = np.array([np.sqrt((context**2).mean()) for context in contexts])
        return scale[:, None, None] * np.sqrt(np.array(horizons))[:, None] * GAUSSIAN


def batches(num_bars: int, num_series: int, sigma: float = 0.01, seed: int = 0) -> list[BarBatch]:
    rng = np.random.default_rng(seed)
    panel, closes, found = Panel(CONFIG.horizons, 5.0), np.full(num_series, 100.0), []
    for day in range(1, num_bars + 1):
        moves = sigma * rng.standard_normal((num_series, 16)) / 4.0
        walks = closes[:, None] * np.exp(np.cumsum(moves, axis=1))
        bars = [
            Bar(
                day * DAY_NS, day * DAY_NS, "t", day, f"S{i}", "1d", (day - 1) * DAY_NS, day * DAY_NS,
                closes[i], max(closes[i], walks[i].max()), min(closes[i], walks[i].min()), walks[i, -1],
            )
            for i in range(num_series)
        ]  # fmt: skip
        closes = walks[:, -1]
        batch = panel.enter(bars)
        assert batch is not None
        found.append(batch)
    return found


def fed(
    expert: TrajectoryExpert | FoundationExpert, bars: Sequence[BarBatch]
) -> TrajectoryExpert | FoundationExpert:
    expert.grow(int(bars[0].index.max()) + 1)
    for batch in bars:
        expert.update(batch)
        expert.learn(batch)
    return expert


def test_quantiles_are_even_scaled_and_known_once_paths_were_drawn() -> None:
    expert = fed(TrajectoryExpert(CONFIG, GaussSampler(), budget=SamplingBudget(8, 8, 64)), batches(400, 2))
    said = expert.quantiles(slice(0, 2))
    assert np.isfinite(said).all()
    assert (np.diff(said, axis=2) > 0).all()
    assert np.allclose(said, -said[:, :, ::-1], atol=1e-4)
    # daily sigma is .01, within what 320 bars of ranges and 64 paths can tell
    high = CONFIG.levels.index(0.9)
    assert np.allclose(said[:, :, high] / (0.01 * np.sqrt(CONFIG.horizons)) / GAUSSIAN[high], 1.0, atol=0.25)


def test_a_short_history_is_nan_and_never_reaches_the_model() -> None:
    sampler = GaussSampler()
    expert = fed(TrajectoryExpert(CONFIG, sampler), batches(CONFIG.history_bars, 3))
    assert np.isnan(expert.quantiles(slice(0, 3))).all()
    assert not sampler.asked


def test_a_price_that_never_moved_is_nan() -> None:
    expert = fed(TrajectoryExpert(CONFIG, GaussSampler()), batches(60, 1, sigma=0.0))
    assert np.isnan(expert.quantiles(slice(0, 1))).all()


def test_no_moment_asks_more_than_the_budget_and_everyone_has_a_turn() -> None:
    sampler = GaussSampler()
    expert = fed(TrajectoryExpert(CONFIG, sampler, budget=SamplingBudget(3, 1, 4)), batches(120, 10))
    assert max(num for horizons, num in sampler.asked if horizons == (1,)) == 2 * 3  # each beside its mirror
    assert max(num for horizons, num in sampler.asked if horizons == (5, 22)) == 2 * 1
    assert np.isfinite(expert.quantiles(slice(0, 10))).all()


def test_a_series_that_waits_keeps_its_shape_at_todays_volatility() -> None:
    bars = batches(200, 1)
    expert = TrajectoryExpert(CONFIG, GaussSampler(), units=ewma_units(), budget=SamplingBudget(1, 1, 8))
    fed(expert, bars[:150])
    before, sigma = expert.quantiles(slice(0, 1)), expert.sigma(np.array([0]))
    expert.observe(bars[150])
    now = expert.quantiles(slice(0, 1))
    assert np.allclose(now, before * (expert.sigma(np.array([0])) / sigma)[0], rtol=1e-12)
    assert (now != before).any()


def test_the_model_reads_the_last_returns_in_units_of_the_volatility_before_each() -> None:
    bars, sampler = batches(100, 1), GaussSampler()
    fed(TrajectoryExpert(CONFIG, sampler, units=ewma_units(), budget=SamplingBudget(1, 0, 2)), bars)
    plain, mirrored = sampler.contexts[-2:]
    assert len(plain) == 32
    assert (plain == -mirrored).all()
    assert 0.6 < plain.std() < 1.5


@pytest.mark.parametrize("kind", ["mini", "chronos"])
def test_a_restored_expert_goes_on_bit_for_bit(kind: str) -> None:
    def fresh() -> TrajectoryExpert | FoundationExpert:
        if kind == "mini":
            return TrajectoryExpert(CONFIG, GaussSampler(), budget=SamplingBudget(2, 1, 4))
        return FoundationExpert(CONFIG, GaussModel(), num_asked=2)

    bars = batches(130, 5)
    through = fed(fresh(), bars)
    half = fed(fresh(), bars[:77])
    resumed = fresh()
    resumed.restore(half.state())
    fed(resumed, bars[77:])
    assert np.array_equal(through.quantiles(slice(0, 5)), resumed.quantiles(slice(0, 5)), equal_nan=True)


def test_a_foundation_model_is_given_what_it_reads_and_no_more_series_than_allowed() -> None:
    model = GaussModel()
    expert = fed(FoundationExpert(CONFIG, model, num_asked=2), batches(70, 5))
    assert model.lengths.count(20) == 2  # the first two, as soon as they may
    assert max(model.lengths) == 40
    assert len(model.lengths) == 2 * (70 - CONFIG.history_bars + 1)
    said = expert.quantiles(slice(0, 5))
    assert np.isfinite(said).all()
    assert np.allclose(said[:, 0, -1] / (0.01 * GAUSSIAN[-1]), 1.0, atol=0.5)


def test_a_foundation_model_that_says_nothing_leaves_nan() -> None:
    class Silent(GaussModel):
        def quantiles(
            self, contexts: Sequence[Array], horizons: Sequence[int], levels: Sequence[float]
        ) -> Array:
            return np.full((len(contexts), len(horizons), len(levels)), np.nan)

    expert = fed(FoundationExpert(CONFIG, Silent()), batches(30, 2))
    assert np.isnan(expert.quantiles(slice(0, 2))).all()


def test_the_shipped_draft_forecasts_as_an_expert() -> None:
    expert = TrajectoryExpert(CONFIG, open_path_sampler(models.DRAFT), budget=SamplingBudget(1, 1, 32))
    said = fed(expert, batches(50, 1)).quantiles(slice(0, 1))
    assert np.isfinite(said).all()
    assert (np.diff(said, axis=2) >= 0).all()
    assert said[0, 2, -1] > said[0, 1, -1] > said[0, 0, -1] > 0.0


def test_a_halt_of_years_leaves_a_unit_to_forecast_by() -> None:
    bars = batches(60, 1)
    expert = TrajectoryExpert(CONFIG, GaussSampler(), budget=SamplingBudget(0, 0, 2))
    fed(expert, bars)
    before = expert.sigma(np.array([0]))[0]
    still = replace(bars[-1], returns=np.zeros(1), variance=bars[-1].variance * 0.01)
    for age in range(60, 4000):
        expert.observe(replace(still, age=np.array([age])))
    assert 0.02 < expert.sigma(np.array([0]))[0] / before < 0.5
    for age in range(4000, 4060):
        expert.observe(replace(bars[-1], age=np.array([age]), returns=np.array([0.01])))
    assert expert.sigma(np.array([0]))[0] / before > 0.25
