"""Simulated worlds as prices and questions, with what the news were worth. `narrative` judges readers on them.

A world tells returns in sigmas; the first sigma is free, so that its prices are known but for their unit.
"""

from collections.abc import Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from htfi.apps.eval.narrative_market import ideal_view
from htfi.apps.eval.narrative_moments import Asked, Moments, Truth, chained, gather
from htfi.apps.eval.prices import Prices
from htfi.apps.eval.walk import Tell
from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_S
from htfi.forecasting.config import ForecastConfig
from htfi.narrative.meaning import Meaning
from htfi.narrative.question import CONTEXT, Question
from htfi.simulation.stories import FIRST_EVALUATION_SEED, stories
from htfi.simulation.wire_desk import report
from htfi.simulation.world import DECAY, World, run_world
from htfi.wiring.model_calibration import SEED, fit_meaning

Array = NDArray[np.float64]

_FIRST_SIGMA = 0.01
_FIRST_PRICE = 100.0
_SIDE_BY_SIDE = 10


def unseen_moments(seed: int, num_worlds: int, config: ForecastConfig, tell: Tell | None = None) -> Moments:
    """Moments of worlds that training never saw. Raises: InvalidInput for a seed that it may have seen."""
    if seed < FIRST_EVALUATION_SEED:
        raise InvalidInput(
            f"--seed {seed}: training may have seen it; take one from {FIRST_EVALUATION_SEED} up"
        )
    return moments(seed, range(num_worlds), config, tell)


def moments(seed: int, numbers: Sequence[int], config: ForecastConfig, tell: Tell | None = None) -> Moments:
    """What was asked in these worlds, some side by side on one clock, as one feed may carry several markets."""
    by_bar: dict[int, list[World]] = {}
    groups: list[list[World]] = []
    for number in numbers:
        world = run_world(seed, number)
        beside = by_bar.setdefault(world.bar_ns, [])
        beside.append(world)
        if len(beside) == _SIDE_BY_SIDE:
            groups.append(by_bar.pop(world.bar_ns))
    groups += by_bar.values()
    parts: list[Moments] = []
    done = 0
    for worlds in groups:
        parts.append(gather(world_prices(worlds), questions(worlds), config))
        done += len(worlds)
        if tell is not None:
            tell(done, len(numbers))
    return chained(parts)


def world_prices(worlds: Sequence[World]) -> Prices:
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


def questions(worlds: Sequence[World]) -> list[Asked]:
    """What a reader would ask in the worlds' moments, in the words of their wires, with what is true."""
    asked: list[Asked] = []
    begin = 0
    for world in worlds:
        for beat in world.beats:
            as_of_ns = world.first_ns + (beat.bar + 1) * world.bar_ns
            for place in beat.asked:
                asset, outcome = world.assets[place], beat.outcomes[place]
                items, _, _, name = report(world, beat, asset)
                context = tuple(world.scaled[beat.bar + 1 - CONTEXT : beat.bar + 1, place].tolist())
                question = Question(asset.symbol, as_of_ns, world.bar_ns, items, context, name)
                truth = Truth(
                    outcome.expected,
                    outcome.realised,
                    outcome.volatility_multiplier,
                    outcome.situation.value,
                )
                asked.append(Asked(question, beat.bar, begin + place, world.number, truth))
        begin += len(world.assets)
    return asked


def ideal_meaning(num_stories: int = 3_000) -> Meaning:
    """What views mean of one who understands all that is shown, measured on the stories that measure a model's."""
    told = list(islice(stories(SEED), num_stories))
    views = [
        ideal_view(one.truth.likeliest * one.truth.likely_sigmas, one.truth.volatility_multiplier, 0)
        for one in told
    ]
    return fit_meaning(told, views)
