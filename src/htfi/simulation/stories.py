"""Stories: what was reported, how prices stood, what it meant, what followed. Models are trained and judged on them.

`stories` runs simulated worlds one after the other: a world depends on (seed, number) alone. Seeds from
`FIRST_EVALUATION_SEED` on are kept for evaluation: no training run may use them.
"""

from collections.abc import Iterator

import msgspec

from htfi.domain.errors import InvalidInput
from htfi.domain.events import News
from htfi.simulation.wire_desk import report
from htfi.simulation.world import Beat, World, run_world

FIRST_EVALUATION_SEED = 1_000_000_000
CONTEXT_BARS = 32
PATH_BARS = 24


class Truth(msgspec.Struct, frozen=True, gc=False):
    """What a perfect reader would say, and what came true.

    `direction` and `size_sigmas` are the causal effect that followed (size in EWMA sigmas of one bar); `likeliest` is
    the best guess from what is shown and `confidence` the chance that it is right, so the mean of `confidence` is
    the best accuracy that any reader can reach. `consistency` is 'with', 'against' or 'unmoved'.
    """

    direction: int
    size_sigmas: float
    volatility_multiplier: float
    confidence: float
    consistency: str
    cause: str
    cited: tuple[str, ...]
    rationale: str
    likeliest: int
    likely_sigmas: float
    subkind: str
    situation: str
    standing: str


class Story(msgspec.Struct, frozen=True, gc=False):
    """One question about one asset at one instant. `items` are newest first, `ages_bars` beside them; `context` holds
    the last 32 returns in units of the EWMA volatility before each (λ = .94), `path` the next 24, by the same
    recursion run on."""

    items: tuple[News, ...]
    symbol: str
    name: str
    ages_bars: tuple[float, ...]
    context: tuple[float, ...]
    path: tuple[float, ...]
    truth: Truth


def stories(seed: int, start: int = 0) -> Iterator[Story]:
    """Stories of one world after another, endless; `start` is the number of the first world.

    Raises InvalidInput for a negative seed or start.
    """
    if seed < 0 or start < 0:
        raise InvalidInput(f"stories of seed {seed} from world {start}: both must be 0 or more")
    number = start
    while True:
        yield from world_stories(seed, number)
        number += 1


def world_stories(seed: int, number: int) -> list[Story]:
    """All stories of one world, in an order that says nothing."""
    world = run_world(seed, number)
    told = [_story(world, beat, place) for beat in world.beats for place in beat.asked]
    return world.dice.sample(told, len(told))


def _story(world: World, beat: Beat, place: int) -> Story:
    asset = world.assets[place]
    outcome = beat.outcomes[place]
    items, ages, cited, name = report(world, beat, asset)
    truth = Truth(
        direction=outcome.direction,
        size_sigmas=abs(outcome.realised),
        volatility_multiplier=outcome.volatility_multiplier,
        confidence=outcome.confidence,
        consistency=outcome.consistency,
        cause=outcome.cause,
        cited=cited,
        rationale=outcome.rationale,
        likeliest=outcome.likeliest,
        likely_sigmas=abs(outcome.expected),
        subkind=beat.event.subkind if beat.event and outcome.cause != "none" else "",
        situation=outcome.situation.value,
        standing=outcome.standing.value,
    )
    at = beat.bar + 1
    z = world.scaled[:, place]
    return Story(
        items, asset.symbol, name, ages,
        tuple(z[at - CONTEXT_BARS : at].tolist()), tuple(z[at : at + PATH_BARS].tolist()), truth,
    )  # fmt: skip
