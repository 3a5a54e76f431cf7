"""Made-up rounds for planners of draft lengths: acceptance that depends on place, scatters and drifts; noisy steps.

Whether the draft is right at a token of the text is settled by the seed, not by the plan: planners can be compared pair
by pair, and the best fixed length in hindsight is known.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from htfi.decoding.draft_length.pass_costs import PassCostPlane
from htfi.decoding.draft_length.planner import (
    DraftLengthPlanner,
    FixedLengthPlanner,
    LengthRequest,
    RoundReport,
)

DRAFT = PassCostPlane(0.02, 0.0, 0.12, 0.03)
MINI = PassCostPlane(0.30, 0.07, 0.0, 0.056)
MODEL_60M = PassCostPlane(3.3, 0.13, 0.0, 0.38)
MODEL_200M = PassCostPlane(11.7, 0.27, 0.0, 1.0)

Rates = Callable[[np.ndarray], np.ndarray]


def steady(rate: float) -> Rates:
    return lambda place: np.full(len(place), rate)


def stepping(high: float, low: float, every: int) -> Rates:
    return lambda place: np.where((place // every) % 2 == 0, high, low)


def gliding(high: float, low: float) -> Rates:
    return lambda place: np.linspace(high, low, len(place))


@dataclass(frozen=True)
class World:
    """`depth_decay`: what each place of a draft keeps of the odds of the one before; `scatter`: standard deviation of
    slow swings in log-odds; `cost_noise`: of a step's ms in logarithms, every fiftieth being five times as long."""

    target: PassCostPlane
    rates: Rates
    draft: PassCostPlane = DRAFT
    depth_decay: float = 0.97
    scatter: float = 0.6
    cost_noise: float = 0.15
    num_tokens: int = 4000
    answer_tokens: int = 64
    seed: int = 1


@dataclass(frozen=True)
class Ride:
    """True ms and tokens, round by round."""

    ms: np.ndarray
    tokens: np.ndarray
    lengths: np.ndarray

    def ms_per_token(self, skip_rounds: int = 0) -> float:
        return float(self.ms[skip_rounds:].sum() / self.tokens[skip_rounds:].sum())


def ride(world: World, planner: DraftLengthPlanner, max_length: int = 16) -> Ride:
    """Write the world's text with a planner, one row."""
    rng = np.random.default_rng(world.seed)
    num = world.num_tokens
    odds = np.log(world.rates(np.arange(num)) / (1.0 - world.rates(np.arange(num))))
    odds += world.scatter * _swings(rng, num)
    # log-odds of a uniform number: right at depth j where it lies below odds + j · log(decay)
    luck = rng.logistic(size=num)
    reach = np.floor((odds - luck) / -np.log(world.depth_decay)) if world.depth_decay < 1.0 else None
    noise = np.exp(world.cost_noise * rng.normal(size=(num, 2))) * np.where(
        rng.random((num, 2)) < 0.02, 5.0, 1.0
    )
    if world.cost_noise == 0.0:
        noise = np.ones((num, 2))
    deep = (reach if reach is not None else np.where(odds > luck, 99, -1)).tolist()
    ms: list[float] = []
    tokens: list[int] = []
    lengths: list[int] = []
    at, began = 0, 0
    while at < num:
        left = min(began + world.answer_tokens, num) - at
        length = planner.plan([LengthRequest("text", min(left - 1, max_length))])[0]
        accepted = 0
        while accepted < length and deep[at + accepted] >= accepted:
            accepted += 1
        draft_ms = world.draft.ms(1, length) if length else 0.0
        verify_ms = world.target.ms(1, 1 + length)
        told = float(draft_ms * noise[at, 0]), float(verify_ms * noise[at, 1])
        planner.learn([RoundReport("text", length, accepted, *told, 1, 1 + length)])
        ms.append(draft_ms + verify_ms)
        tokens.append(accepted + 1)
        lengths.append(length)
        at += accepted + 1
        if at >= began + world.answer_tokens:
            began = at
    return Ride(np.array(ms), np.array(tokens), np.array(lengths))


def best_fixed(world: World) -> tuple[float, int]:
    """ms a token of the best fixed length in hindsight, and that length."""
    return min(
        (ride(world, FixedLengthPlanner(length)).ms_per_token(), length)
        for length in (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16)
    )


def _swings(rng: np.random.Generator, num: int, memory: float = 0.95) -> np.ndarray:
    """An autoregression of variance 1: good and bad stretches."""
    shocks = rng.normal(size=num) * np.sqrt(1.0 - memory**2)
    swings = np.empty(num)
    level = rng.normal()
    for at in range(num):
        level = memory * level + shocks[at]
        swings[at] = level
    return swings
