"""Plots: which event happens at a moment of a world, and what is wrong with how it is reported. `world` draws them."""

from dataclasses import dataclass
from enum import StrEnum

from htfi.simulation.companies import SimulatedAsset
from htfi.simulation.events import NewsEvent
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
from htfi.simulation.rng import Rng


class ReportPattern(StrEnum):
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


PATTERN_SHARES: dict[ReportPattern, float] = {
    ReportPattern.FRESH: 0.55, ReportPattern.LEAKED: 0.07, ReportPattern.AGAINST: 0.06, ReportPattern.STALE: 0.04, ReportPattern.DENIED: 0.06, ReportPattern.CONFIRMED: 0.04,
    ReportPattern.CORRECTED: 0.035, ReportPattern.CONFLICT: 0.035, ReportPattern.FORGED: 0.055, ReportPattern.QUIET: 0.035, ReportPattern.NO_NEWS: 0.02,
}  # fmt: skip
_PATTERNS, _PATTERN_WEIGHTS = tuple(PATTERN_SHARES), tuple(PATTERN_SHARES.values())

MAX_AGE_BARS = 28.0
# earnings, guidance, legal, supply of a company; rumour; central bank, geopolitics, supply of the market
_KIND_SHARES = (0.19, 0.19, 0.15, 0.09, 0.1, 0.13, 0.09, 0.06)


@dataclass(frozen=True, slots=True)
class ReportedEvent:
    """`event` is what matters; `before` what it answers: the rumour, the wrong figure, the unnamed sources. Ages are
    in bars; `leaks` are bars before the moment at which prices move as `before` (or the event) says, or against it."""

    pattern: ReportPattern
    event: NewsEvent | None
    earlier_event: NewsEvent | None = None
    age_bars: float = 0.0
    earlier_age_bars: float = 0.0
    is_leaked: tuple[tuple[int, int], ...] = ()

    @property
    def window(self) -> int:
        """Recent bars in which prices may have answered the news that are shown."""
        oldest = max(self.age_bars, self.earlier_age_bars)
        return min(int(oldest) + 4, 31)

    def leaked_effect(self, asset: SimulatedAsset) -> float:
        """The effect by which prices moved ahead."""
        event = self.earlier_event or self.event
        return event.effect_on(asset) if event else 0.0


def draw_reported_event(dice: Rng, assets: tuple[SimulatedAsset, ...]) -> ReportedEvent:
    """What happens at one moment."""
    plan = _PATTERNS[dice.weighted_index(_PATTERN_WEIGHTS)]
    subject, other = dice.sample([asset for asset in assets if asset.company], 2)
    age = dice.uniform_between(0.0, 1.4)
    lag = dice.integer(3)
    if plan is ReportPattern.NO_NEWS:
        return ReportedEvent(plan, None)
    if plan is ReportPattern.QUIET:
        return ReportedEvent(
            plan, trivia.draw(dice, subject, other), age_bars=dice.uniform_between(0.0, 12.0)
        )
    if plan is ReportPattern.FORGED:
        leaks = ((lag, 1),) if dice.chance(0.25) else ()
        return ReportedEvent(plan, rumour.forged_news(dice, subject), age_bars=age, is_leaked=leaks)
    if plan is ReportPattern.STALE:
        age = dice.uniform_between(4.2, MAX_AGE_BARS)
        leaks = ((int(age), 1),) if dice.chance(0.75) else ()
        return ReportedEvent(plan, draw_event(dice, assets), age_bars=age, is_leaked=leaks)
    if plan in (ReportPattern.DENIED, ReportPattern.CONFIRMED):
        before, event = rumour.answered_rumour(dice, subject, plan is ReportPattern.CONFIRMED)
        old = dice.uniform_between(1.7, 7.0)
        moved = dice.chance(0.62 if plan is ReportPattern.DENIED else 0.35)
        return ReportedEvent(plan, event, before, age, old, ((int(old), 1),) if moved else ())
    if plan is ReportPattern.CORRECTED:
        before, event = earnings.correction(dice, subject)
        old = dice.uniform_between(1.7, 4.0)
        return ReportedEvent(plan, event, before, age, old, ((int(old), 1),) if dice.chance(0.5) else ())
    if plan is ReportPattern.CONFLICT:
        event = _official_answer(dice, subject, other)
        before = rumour.draw(dice, subject)
        while before.own * event.own > 0:
            before = rumour.draw(dice, subject)
        return ReportedEvent(plan, event, before, age, dice.uniform_between(0.0, 1.4))
    event = draw_event(dice, assets)
    leaks = {ReportPattern.LEAKED: ((lag, 1),), ReportPattern.AGAINST: ((lag, -1),)}.get(plan, ())
    return ReportedEvent(plan, event, age_bars=age, is_leaked=leaks)


def _official_answer(dice: Rng, subject: SimulatedAsset, other: SimulatedAsset) -> NewsEvent:
    while True:
        event = guidance.draw(dice, subject, other) if dice.chance(0.6) else earnings.draw(dice, subject)
        if event.own and not event.counterpart:
            return event


def draw_event(dice: Rng, assets: tuple[SimulatedAsset, ...]) -> NewsEvent:
    """An event that concerns somebody in the world."""
    subject, other = dice.sample([asset for asset in assets if asset.company], 2)
    way = dice.weighted_index(_KIND_SHARES)
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


def unrelated_news(dice: Rng, assets: tuple[SimulatedAsset, ...], asked: SimulatedAsset) -> NewsEvent | None:
    """News that does nothing to `asked`: of no consequence, or of consequence to others alone."""
    companies = [asset for asset in assets if asset.company]
    way = dice.uniform()
    if way < 0.3:
        subject, other = dice.sample(companies, 2)
        return trivia.draw(dice, subject, other)
    if way < 0.42:
        other = dice.choice(companies)
        return trivia.draw(dice, asked, other) if asked.company else trivia.draw(dice, None, other)
    if way < 0.55:
        return trivia.draw(dice, None, dice.choice(companies))
    for _ in range(4):
        event = draw_event(dice, assets)
        if not event.concerns(asked):
            return event
    return None
