"""The wire of a simulated world: what a reader is shown of a beat, with rewrites, old news and news about others.

Stories: what was reported, how prices stood, what it meant, what followed. Models are trained and judged on them.

`stories` runs simulated worlds one after the other: a world depends on (seed, number) alone. Seeds from
`FIRST_EVALUATION_SEED` on are kept for evaluation: no training run may use them.
"""

from collections.abc import Iterator

import msgspec

from htfi.domain.errors import InvalidInput
from htfi.domain.events import News
from htfi.simulation.companies import SimulatedAsset
from htfi.simulation.events import NewsEvent
from htfi.simulation.headlines import rumour
from htfi.simulation.headlines.manner import write_headline
from htfi.simulation.reported_events import ReportPattern, draw_event, unrelated_news
from htfi.simulation.rng import Rng
from htfi.simulation.simulated_market import NewsMoment, SimulatedMarket, simulate_market

MAX_ITEMS = 6
_NUM_UNRELATED_SHARES = (0.4, 0.28, 0.19, 0.13)
_FEED_NAMES = ("marketline", "capital wire", "northgate", "tradedesk")


def report_news(
    world: SimulatedMarket, beat: NewsMoment, asked: SimulatedAsset
) -> tuple[tuple[News, ...], tuple[float, ...], tuple[str, ...], str]:
    """Items newest first, their ages in bars, the ids of those that matter for `asked`, and its name where it is told.

    Of rewrites the first report is cited; of two that disagree the one that holds, then the other.
    """
    dice, plot = world.rng, beat.reported
    told: list[
        tuple[float, NewsEvent, bool, int]
    ] = []  # age, event, is a rewrite, place among the cited or 0
    relevant = beat.outcomes[world.assets.index(asked)].relevant
    if plot.event is not None:
        told.append((plot.age_bars, plot.event, False, 1 if relevant else 0))
        if plot.earlier_event is not None:
            told.append((plot.earlier_age_bars, plot.earlier_event, False, 2 if relevant else 0))
        if plot.pattern is not ReportPattern.FORGED and dice.chance(0.22):
            num = 1 + dice.chance(0.25)
            told += [(plot.age_bars * dice.uniform(), plot.event, True, 0) for _ in range(num)]
    if plot.pattern is not ReportPattern.NO_NEWS:
        told += _unrelated_item(dice, world.assets, asked, plot.pattern, plot.event)
    elif dice.chance(0.15):
        told += _unrelated_item(dice, world.assets, asked, plot.pattern, None)
    told = sorted(told[:MAX_ITEMS], key=lambda one: one[0])
    # the tags or the name may be missing, as in life, but not both where only they tie the news to the asset
    tagged = not dice.chance(0.07)
    tied = not asked.company or (plot.event is not None and asked.symbol in plot.event.symbols)
    name = "" if tagged and tied and dice.chance(0.15) else asked.name
    now_ns = world.first_ns + (beat.bar + 1) * world.bar_ns
    items: list[News] = []
    cited: dict[int, str] = {}
    for age, event, again, rank in told:
        at_ns = now_ns - round(age * world.bar_ns)
        row = dice.integer(1_000_000)
        mark = f"w{world.number}b{beat.bar}r{row}n{len(items)}"
        if rank:
            cited[rank] = mark
        text = write_headline(event, world.by_symbol, dice, again)
        items.append(
            News(at_ns, at_ns, dice.choice(_FEED_NAMES), row, mark, text, event.symbols if tagged else ())
        )
    ages = tuple(round(age, 2) for age, *_ in told)
    return tuple(items), ages, tuple(cited[rank] for rank in sorted(cited)), name


def _unrelated_item(
    dice: Rng,
    assets: tuple[SimulatedAsset, ...],
    asked: SimulatedAsset,
    plan: ReportPattern,
    event: NewsEvent | None,
) -> list[tuple[float, NewsEvent, bool, int]]:
    told: list[tuple[float, NewsEvent, bool, int]] = []
    for _ in range(dice.weighted_index(_NUM_UNRELATED_SHARES)):
        other = unrelated_news(dice, assets, asked)
        if other is not None:
            told.append((dice.uniform_between(0.0, 12.0) * dice.uniform(), other, False, 0))
    if event is not None and asked.company and plan is ReportPattern.FRESH:
        if dice.chance(0.12):  # old news about the same asset, long absorbed
            old = draw_event(dice, assets)
            if old.effect_on(asked):
                told.append((dice.uniform_between(9.0, 30.0), old, False, 0))
        elif dice.chance(0.05):
            told.append((dice.uniform_between(0.0, 1.4), rumour.forged_news(dice, asked), False, 0))
    return told


FIRST_EVALUATION_SEED = 1_000_000_000
CONTEXT_BARS = 32
PATH_BARS = 24


class StoryTruth(msgspec.Struct, frozen=True, gc=False):
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
    truth: StoryTruth


def stories(seed: int, start: int = 0) -> Iterator[Story]:
    """Stories of one world after another, endless; `start` is the number of the first world.

    Raises InvalidInput for a negative seed or start.
    """
    if seed < 0 or start < 0:
        raise InvalidInput(f"stories of seed {seed} from world {start}: both must be 0 or more")
    number = start
    while True:
        yield from stories_of_market(seed, number)
        number += 1


def stories_of_market(seed: int, number: int) -> list[Story]:
    """All stories of one world, in an order that says nothing."""
    world = simulate_market(seed, number)
    told = [_story(world, beat, place) for beat in world.moments for place in beat.assets]
    return world.rng.sample(told, len(told))


def _story(world: SimulatedMarket, beat: NewsMoment, place: int) -> Story:
    asset = world.assets[place]
    outcome = beat.outcomes[place]
    items, ages, cited, name = report_news(world, beat, asset)
    truth = StoryTruth(
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
