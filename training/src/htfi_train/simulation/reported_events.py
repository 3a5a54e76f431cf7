"""Which event happens at a moment of a simulated market, and what is wrong with how it is reported."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from htfi_train.simulation.companies import SimulatedAsset
from htfi_train.simulation.events import EventSource, NewsEvent
from htfi_train.simulation.headlines import company_news, market_news
from htfi_train.simulation.rng import Rng


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
    ReportPattern.FRESH: 0.55,
    ReportPattern.LEAKED: 0.07,
    ReportPattern.AGAINST: 0.06,
    ReportPattern.STALE: 0.04,
    ReportPattern.DENIED: 0.06,
    ReportPattern.CONFIRMED: 0.04,
    ReportPattern.CORRECTED: 0.035,
    ReportPattern.CONFLICT: 0.035,
    ReportPattern.FORGED: 0.055,
    ReportPattern.QUIET: 0.035,
    ReportPattern.NO_NEWS: 0.02,
}
_PATTERNS, _PATTERN_WEIGHTS = tuple(PATTERN_SHARES), tuple(PATTERN_SHARES.values())

MAX_AGE_BARS = 28.0
_MAX_LINES = 12  # drawn, until one fits


class _Cause(IntEnum):
    EARNINGS = 0
    GUIDANCE = 1
    LEGAL = 2
    SUPPLY = 3
    RUMOUR = 4
    CENTRAL_BANK = 5
    GEOPOLITICS = 6
    COMMODITIES = 7


_CAUSE_SHARES = (0.19, 0.19, 0.15, 0.09, 0.1, 0.13, 0.09, 0.06)


@dataclass(frozen=True, slots=True)
class ReportedEvent:
    """`event` is what matters; `earlier_event` what it answers: the rumour, the wrong figure, the unnamed sources. Ages
    are in bars. A leak is a bar before the moment, and the sign with which prices follow the first of the events."""

    pattern: ReportPattern
    event: NewsEvent | None
    earlier_event: NewsEvent | None = None
    age_bars: float = 0.0
    earlier_age_bars: float = 0.0
    leaks: tuple[tuple[int, int], ...] = ()

    @property
    def window(self) -> int:
        """Recent bars in which prices may have reacted to the news that is shown."""
        oldest = max(self.age_bars, self.earlier_age_bars)
        return min(int(oldest) + 4, 31)

    def leaked_effect(self, asset: SimulatedAsset) -> float:
        """The effect by which prices moved ahead of the news."""
        event = self.earlier_event or self.event
        return event.effect_on(asset) if event else 0.0


def draw_reported_event(
    rng: Rng, assets: tuple[SimulatedAsset, ...], lines: EventSource | None = None
) -> ReportedEvent:
    """What happens at one moment; of `lines`, where they are given and the report is of one event."""
    pattern = _PATTERNS[rng.weighted_index(_PATTERN_WEIGHTS)]
    subject, other = _two_companies(rng, assets)
    age = rng.uniform_between(0.0, 1.4)
    lag = rng.integer(3)
    match pattern:
        case ReportPattern.NO_NEWS:
            return ReportedEvent(pattern, None)
        case ReportPattern.QUIET:
            event = company_news.draw_trivia(rng, subject, other)
            return ReportedEvent(pattern, event, age_bars=rng.uniform_between(0.0, 12.0))
        case ReportPattern.FORGED:
            leaks = ((lag, 1),) if rng.chance(0.25) else ()
            return ReportedEvent(pattern, company_news.forged_news(rng, subject), age_bars=age, leaks=leaks)
        case ReportPattern.STALE:
            age = rng.uniform_between(4.2, MAX_AGE_BARS)
            leaks = ((int(age), 1),) if rng.chance(0.75) else ()
            return ReportedEvent(pattern, draw_news_event(rng, assets, lines), age_bars=age, leaks=leaks)
        case ReportPattern.DENIED | ReportPattern.CONFIRMED:
            is_denied = pattern is ReportPattern.DENIED
            earlier, event = company_news.answered_rumour(rng, subject, not is_denied)
            earlier_age = rng.uniform_between(1.7, 7.0)
            leaks = ((int(earlier_age), 1),) if rng.chance(0.62 if is_denied else 0.35) else ()
            return ReportedEvent(pattern, event, earlier, age, earlier_age, leaks)
        case ReportPattern.CORRECTED:
            earlier, event = company_news.draw_correction(rng, subject)
            earlier_age = rng.uniform_between(1.7, 4.0)
            leaks = ((int(earlier_age), 1),) if rng.chance(0.5) else ()
            return ReportedEvent(pattern, event, earlier, age, earlier_age, leaks)
        case ReportPattern.CONFLICT:
            event = _official_news(rng, subject, other)
            earlier = company_news.draw_rumour(rng, subject)
            while earlier.own * event.own > 0:
                earlier = company_news.draw_rumour(rng, subject)
            return ReportedEvent(pattern, event, earlier, age, rng.uniform_between(0.0, 1.4))
        case ReportPattern.FRESH | ReportPattern.LEAKED | ReportPattern.AGAINST:
            event = draw_news_event(rng, assets, lines)
            sign = {ReportPattern.LEAKED: 1, ReportPattern.AGAINST: -1}.get(pattern)
            leaks = ((lag, sign),) if sign else ()
            return ReportedEvent(pattern, event, age_bars=age, leaks=leaks)


def _two_companies(rng: Rng, assets: tuple[SimulatedAsset, ...]) -> tuple[SimulatedAsset, SimulatedAsset]:
    first, second = rng.sample([asset for asset in assets if asset.company], 2)
    return first, second


def _official_news(rng: Rng, subject: SimulatedAsset, other: SimulatedAsset) -> NewsEvent:
    while True:
        event = (
            company_news.draw_guidance(rng, subject, other)
            if rng.chance(0.6)
            else company_news.draw_earnings(rng, subject)
        )
        if event.own and not event.counterpart:
            return event


def draw_news_event(
    rng: Rng, assets: tuple[SimulatedAsset, ...], lines: EventSource | None = None
) -> NewsEvent:
    """An event that concerns at least one of the assets; of `lines`, where they are given."""
    for _ in range(_MAX_LINES if lines is not None else 0):
        line = lines(rng, assets) if lines is not None else None
        if line is not None and line.effects:
            return line
    subject, other = _two_companies(rng, assets)
    cause = _Cause(rng.weighted_index(_CAUSE_SHARES))
    match cause:
        case _Cause.EARNINGS:
            return company_news.draw_earnings(rng, subject)
        case _Cause.GUIDANCE:
            return company_news.draw_guidance(rng, subject, other)
        case _Cause.LEGAL:
            return company_news.draw_legal(rng, subject, other)
        case _Cause.SUPPLY:
            return company_news.draw_supply(rng, subject, other)
        case _Cause.RUMOUR:
            return company_news.draw_rumour(rng, subject)
        case _Cause.CENTRAL_BANK | _Cause.GEOPOLITICS | _Cause.COMMODITIES:
            draw = {
                _Cause.CENTRAL_BANK: market_news.draw_central_bank,
                _Cause.GEOPOLITICS: market_news.draw_geopolitics,
                _Cause.COMMODITIES: market_news.draw_commodity,
            }[cause]
            for _ in range(12):
                event = draw(rng)
                if any(event.concerns(asset) for asset in assets):
                    return event
            return company_news.draw_earnings(rng, subject)


def unrelated_news(
    rng: Rng, assets: tuple[SimulatedAsset, ...], asked: SimulatedAsset, lines: EventSource | None = None
) -> NewsEvent | None:
    """News that does nothing to `asked`: of no consequence, or of consequence to others alone."""
    for _ in range(_MAX_LINES if lines is not None else 0):
        line = lines(rng, assets) if lines is not None else None
        if line is not None and not line.concerns(asked):
            return line
    companies = [asset for asset in assets if asset.company]
    branch = rng.uniform()
    if branch < 0.3:
        subject, other = rng.sample(companies, 2)
        return company_news.draw_trivia(rng, subject, other)
    if branch < 0.42:
        return company_news.draw_trivia(rng, asked if asked.company else None, rng.choice(companies))
    if branch < 0.55:
        return company_news.draw_trivia(rng, None, rng.choice(companies))
    for _ in range(4):
        event = draw_news_event(rng, assets)
        if not event.concerns(asked):
            return event
    return None
