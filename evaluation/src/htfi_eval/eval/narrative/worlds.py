"""Simulated worlds as prices and questions, with what the news were worth. `narrative` judges readers on them.

A world tells returns in sigmas; the first sigma is free, so that its prices are known but for their unit.
"""

from collections.abc import Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_S
from htfi.forecasting.config import ForecastConfig
from htfi.narrative.question import MAX_CONTEXT_RETURNS, Question
from htfi.narrative.view_calibration import ViewCalibration
from htfi.simulation.reader_calibration import SEED, fit_meaning
from htfi.simulation.simulated_market import DECAY, SimulatedMarket, simulate_market
from htfi.simulation.stories import FIRST_EVALUATION_SEED, report_news, stories
from htfi_eval.eval.narrative.moments import NewsMoments, NewsQuestion, NewsTruth, concatenated, gather
from htfi_eval.eval.narrative.simulated import ideal_view
from htfi_eval.eval.prices import Prices
from htfi_eval.eval.walk import Tell

Array = NDArray[np.float64]

_FIRST_SIGMA = 0.01
_FIRST_PRICE = 100.0
_NUM_PARALLEL_WORLDS = 10


def unseen_moments(
    seed: int, num_worlds: int, config: ForecastConfig, tell: Tell | None = None
) -> NewsMoments:
    """Moments of worlds that training never saw. Raises: InvalidInput for a seed that it may have seen."""
    if seed < FIRST_EVALUATION_SEED:
        raise InvalidInput(
            f"--seed {seed}: training may have seen it; take one from {FIRST_EVALUATION_SEED} up"
        )
    return moments(seed, range(num_worlds), config, tell)


def moments(
    seed: int, numbers: Sequence[int], config: ForecastConfig, tell: Tell | None = None
) -> NewsMoments:
    """What was asked in these worlds, some side by side on one clock, as one feed may carry several markets."""
    by_bar: dict[int, list[SimulatedMarket]] = {}
    groups: list[list[SimulatedMarket]] = []
    for number in numbers:
        world = simulate_market(seed, number)
        beside = by_bar.setdefault(world.bar_ns, [])
        beside.append(world)
        if len(beside) == _NUM_PARALLEL_WORLDS:
            groups.append(by_bar.pop(world.bar_ns))
    groups += by_bar.values()
    parts: list[NewsMoments] = []
    done = 0
    for worlds in groups:
        parts.append(gather(world_prices(worlds), questions(worlds), config))
        done += len(worlds)
        if tell is not None:
            tell(done, len(numbers))
    return concatenated(parts)


def world_prices(worlds: Sequence[SimulatedMarket]) -> Prices:
    """The worlds' closes; a bar opens where the one before closed, and nothing is known of what lay between."""
    num_bars = max(len(world.scaled) for world in worlds)
    closes, opens = (
        np.full((num_bars, sum(len(world.assets) for world in worlds)), np.nan) for _ in range(2)
    )
    begin = 0
    for world in worlds:
        returns = log_returns(world.scaled)
        place = np.s_[: len(returns), begin : begin + len(world.assets)]
        closes[place] = _FIRST_PRICE * np.exp(np.cumsum(returns, axis=0))
        opens[place] = closes[place] * np.exp(-returns)
        begin += len(world.assets)
    bar_ns = worlds[0].bar_ns
    ends_ns = worlds[0].first_ns + (np.arange(num_bars) + 1) * bar_ns
    names = tuple(f"{world.number}.{asset.symbol}" for world in worlds for asset in world.assets)
    interval = f"{bar_ns // NS_PER_S}s"
    high, low = np.maximum(opens, closes), np.minimum(opens, closes)
    return Prices(f"world {worlds[0].number}", names, interval, ends_ns, ends_ns, opens, high, low, closes)


def log_returns(scaled: Array) -> Array:
    """Returns [T, N] whose ratio to the EWMA volatility before each is `scaled`, as `simulation.world` scales."""
    returns = np.empty_like(scaled)
    variance = np.full(scaled.shape[1], _FIRST_SIGMA**2)
    for bar, now in enumerate(scaled):
        returns[bar] = now * np.sqrt(variance)
        variance = DECAY * variance + (1.0 - DECAY) * np.square(returns[bar])
    return returns


def questions(worlds: Sequence[SimulatedMarket]) -> list[NewsQuestion]:
    """What a reader would ask in the worlds' moments, in the words of their wires, with what is true."""
    asked: list[NewsQuestion] = []
    begin = 0
    for world in worlds:
        for beat in world.moments:
            as_of_ns = world.first_ns + (beat.bar + 1) * world.bar_ns
            for place in beat.assets:
                asset, outcome = world.assets[place], beat.outcomes[place]
                items, _, _, name = report_news(world, beat, asset)
                context = tuple(
                    world.scaled[beat.bar + 1 - MAX_CONTEXT_RETURNS : beat.bar + 1, place].tolist()
                )
                question = Question(asset.symbol, as_of_ns, world.bar_ns, items, context, name)
                truth = NewsTruth(
                    outcome.expected,
                    outcome.realised,
                    outcome.volatility_multiplier,
                    outcome.situation.value,
                )
                asked.append(NewsQuestion(question, beat.bar, begin + place, world.number, truth))
        begin += len(world.assets)
    return asked


def ideal_meaning(num_stories: int = 3_000) -> ViewCalibration:
    """What views mean of one who understands all that is shown, measured on the stories that measure a model's."""
    told = list(islice(stories(SEED), num_stories))
    views = [
        ideal_view(one.truth.likeliest * one.truth.likely_sigmas, one.truth.volatility_multiplier, 0)
        for one in told
    ]
    return fit_meaning(told, views)
