"""Plots: which event happens at a moment of a world, and what is wrong with how it is reported. `world` draws them."""

from dataclasses import dataclass
from enum import StrEnum

from htfi.simulation.companies import Asset
from htfi.simulation.dice import Dice
from htfi.simulation.events import Event
from htfi.simulation.headlines import (
    central_bank,
    commodities,
    earnings,
    geopolitics,
    guidance,
    legal,
    rumour,
    supply,
    trivia,
)


class Plan(StrEnum):
    FRESH = "fresh"
    LEAKED = "leaked"  # prices moved before the headline came
    AGAINST = "against"  # prices had moved the other way
    STALE = "stale"  # the headline is old
    DENIED = "denied"
    CONFIRMED = "confirmed"
    CORRECTED = "corrected"
    CONFLICT = "conflict"  # unnamed sources say the opposite of an official word
    FORGED = "forged"
    QUIET = "quiet"  # only news of no consequence
    NO_NEWS = "no news"


SHARES: dict[Plan, float] = {
    Plan.FRESH: 0.55, Plan.LEAKED: 0.07, Plan.AGAINST: 0.06, Plan.STALE: 0.04, Plan.DENIED: 0.06, Plan.CONFIRMED: 0.04,
    Plan.CORRECTED: 0.035, Plan.CONFLICT: 0.035, Plan.FORGED: 0.055, Plan.QUIET: 0.035, Plan.NO_NEWS: 0.02,
}  # fmt: skip
_PLANS, _PLAN_SHARES = tuple(SHARES), tuple(SHARES.values())

OLDEST_BARS = 28.0
# earnings, guidance, legal, supply of a company; rumour; central bank, geopolitics, supply of the market
_KIND_SHARES = (0.19, 0.19, 0.15, 0.09, 0.1, 0.13, 0.09, 0.06)


@dataclass(frozen=True, slots=True)
class Plot:
    """`event` is what matters; `before` what it answers: the rumour, the wrong figure, the unnamed sources. Ages are
    in bars; `leaks` are bars before the moment at which prices move as `before` (or the event) says, or against it."""

    plan: Plan
    event: Event | None
    before: Event | None = None
    age_bars: float = 0.0
    before_age_bars: float = 0.0
    leaks: tuple[tuple[int, int], ...] = ()

    @property
    def window(self) -> int:
        """Recent bars in which prices may have answered the news that are shown."""
        oldest = max(self.age_bars, self.before_age_bars)
        return min(int(oldest) + 4, 31)

    def moved_by(self, asset: Asset) -> float:
        """The effect by which prices moved ahead."""
        event = self.before or self.event
        return event.effect_on(asset) if event else 0.0


def draw_plot(dice: Dice, assets: tuple[Asset, ...]) -> Plot:
    """What happens at one moment."""
    plan = _PLANS[dice.weighted(_PLAN_SHARES)]
    subject, other = dice.sample([asset for asset in assets if asset.company], 2)
    age = dice.between(0.0, 1.4)
    lag = dice.below(3)
    if plan is Plan.NO_NEWS:
        return Plot(plan, None)
    if plan is Plan.QUIET:
        return Plot(plan, trivia.draw(dice, subject, other), age_bars=dice.between(0.0, 12.0))
    if plan is Plan.FORGED:
        leaks = ((lag, 1),) if dice.chance(0.25) else ()
        return Plot(plan, rumour.forged(dice, subject), age_bars=age, leaks=leaks)
    if plan is Plan.STALE:
        age = dice.between(4.2, OLDEST_BARS)
        leaks = ((int(age), 1),) if dice.chance(0.75) else ()
        return Plot(plan, draw_event(dice, assets), age_bars=age, leaks=leaks)
    if plan in (Plan.DENIED, Plan.CONFIRMED):
        before, event = rumour.settled(dice, subject, plan is Plan.CONFIRMED)
        old = dice.between(1.7, 7.0)
        moved = dice.chance(0.62 if plan is Plan.DENIED else 0.35)
        return Plot(plan, event, before, age, old, ((int(old), 1),) if moved else ())
    if plan is Plan.CORRECTED:
        before, event = earnings.correction(dice, subject)
        old = dice.between(1.7, 4.0)
        return Plot(plan, event, before, age, old, ((int(old), 1),) if dice.chance(0.5) else ())
    if plan is Plan.CONFLICT:
        event = _official(dice, subject, other)
        before = rumour.draw(dice, subject)
        while before.own * event.own > 0:
            before = rumour.draw(dice, subject)
        return Plot(plan, event, before, age, dice.between(0.0, 1.4))
    event = draw_event(dice, assets)
    leaks = {Plan.LEAKED: ((lag, 1),), Plan.AGAINST: ((lag, -1),)}.get(plan, ())
    return Plot(plan, event, age_bars=age, leaks=leaks)


def _official(dice: Dice, subject: Asset, other: Asset) -> Event:
    while True:
        event = guidance.draw(dice, subject, other) if dice.chance(0.6) else earnings.draw(dice, subject)
        if event.own and not event.counterpart:
            return event


def draw_event(dice: Dice, assets: tuple[Asset, ...]) -> Event:
    """An event that concerns somebody in the world."""
    subject, other = dice.sample([asset for asset in assets if asset.company], 2)
    way = dice.weighted(_KIND_SHARES)
    if way == 0:
        return earnings.draw(dice, subject)
    if way == 1:
        return guidance.draw(dice, subject, other)
    if way == 2:
        return legal.draw(dice, subject, other)
    if way == 3:
        return supply.draw(dice, subject, other)
    if way == 4:
        return rumour.draw(dice, subject)
    for _ in range(12):
        event = (
            central_bank.draw(dice) if way == 5 else geopolitics.draw(dice) if way == 6
            else commodities.draw(dice)
        )  # fmt: skip
        if any(event.concerns(asset) for asset in assets):
            return event
    return earnings.draw(dice, subject)


def distraction(dice: Dice, assets: tuple[Asset, ...], asked: Asset) -> Event | None:
    """News that does nothing to `asked`: of no consequence, or of consequence to others alone."""
    companies = [asset for asset in assets if asset.company]
    way = dice.unit()
    if way < 0.3:
        subject, other = dice.sample(companies, 2)
        return trivia.draw(dice, subject, other)
    if way < 0.42:
        other = dice.pick(companies)
        return trivia.draw(dice, asked, other) if asked.company else trivia.draw(dice, None, other)
    if way < 0.55:
        return trivia.draw(dice, None, dice.pick(companies))
    for _ in range(4):
        event = draw_event(dice, assets)
        if not event.concerns(asked):
            return event
    return None
