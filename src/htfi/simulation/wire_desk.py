"""The wire of a simulated world: what a reader is shown of a beat, with rewrites, old news and news about others."""

from htfi.domain.events import News
from htfi.simulation.companies import Asset
from htfi.simulation.dice import Dice
from htfi.simulation.events import Event
from htfi.simulation.headlines import rumour
from htfi.simulation.headlines.manner import render
from htfi.simulation.plots import Plan, distraction, draw_event
from htfi.simulation.world import Beat, World

MOST_ITEMS = 6
_NUM_DISTRACTIONS = (0.4, 0.28, 0.19, 0.13)
_SOURCES = ("marketline", "capital wire", "northgate", "tradedesk")


def report(
    world: World, beat: Beat, asked: Asset
) -> tuple[tuple[News, ...], tuple[float, ...], tuple[str, ...], str]:
    """Items newest first, their ages in bars, the ids of those that matter for `asked`, and its name where it is told.

    Of rewrites the first report is cited; of two that disagree the one that holds, then the other.
    """
    dice, plot = world.dice, beat.plot
    told: list[tuple[float, Event, bool, int]] = []  # age, event, is a rewrite, place among the cited or 0
    relevant = beat.outcomes[world.assets.index(asked)].relevant
    if plot.event is not None:
        told.append((plot.age_bars, plot.event, False, 1 if relevant else 0))
        if plot.before is not None:
            told.append((plot.before_age_bars, plot.before, False, 2 if relevant else 0))
        if plot.plan is not Plan.FORGED and dice.chance(0.22):
            num = 1 + dice.chance(0.25)
            told += [(plot.age_bars * dice.unit(), plot.event, True, 0) for _ in range(num)]
    if plot.plan is not Plan.NO_NEWS:
        told += _aside(dice, world.assets, asked, plot.plan, plot.event)
    elif dice.chance(0.15):
        told += _aside(dice, world.assets, asked, plot.plan, None)
    told = sorted(told[:MOST_ITEMS], key=lambda one: one[0])
    # the tags or the name may be missing, as in life, but not both where only they tie the news to the asset
    tagged = not dice.chance(0.07)
    tied = not asked.company or (plot.event is not None and asked.symbol in plot.event.symbols)
    name = "" if tagged and tied and dice.chance(0.15) else asked.name
    now_ns = world.first_ns + (beat.bar + 1) * world.bar_ns
    items: list[News] = []
    cited: dict[int, str] = {}
    for age, event, again, rank in told:
        at_ns = now_ns - round(age * world.bar_ns)
        row = dice.below(1_000_000)
        mark = f"w{world.number}b{beat.bar}r{row}n{len(items)}"
        if rank:
            cited[rank] = mark
        text = render(event, world.by_symbol, dice, again)
        items.append(
            News(at_ns, at_ns, dice.pick(_SOURCES), row, mark, text, event.symbols if tagged else ())
        )
    ages = tuple(round(age, 2) for age, *_ in told)
    return tuple(items), ages, tuple(cited[rank] for rank in sorted(cited)), name


def _aside(
    dice: Dice, assets: tuple[Asset, ...], asked: Asset, plan: Plan, event: Event | None
) -> list[tuple[float, Event, bool, int]]:
    told: list[tuple[float, Event, bool, int]] = []
    for _ in range(dice.weighted(_NUM_DISTRACTIONS)):
        other = distraction(dice, assets, asked)
        if other is not None:
            told.append((dice.between(0.0, 12.0) * dice.unit(), other, False, 0))
    if event is not None and asked.company and plan is Plan.FRESH:
        if dice.chance(0.12):  # old news about the same asset, long absorbed
            old = draw_event(dice, assets)
            if old.effect_on(asked):
                told.append((dice.between(9.0, 30.0), old, False, 0))
        elif dice.chance(0.05):
            told.append((dice.between(0.0, 1.4), rumour.forged(dice, asked), False, 0))
    return told
