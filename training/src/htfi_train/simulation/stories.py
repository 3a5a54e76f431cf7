"""Makes stories: what was reported, how prices stood, what it meant, what followed.

Models are trained and judged on them. A reader is shown the news of a moment, with rewrites, old news and news about
others. `stories` runs simulated worlds one after the other: a world depends on (seed, number) alone. Seeds from
`FIRST_EVALUATION_SEED` on are kept for evaluation: no training run may use them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from htfi.domain.errors import InvalidInput
from htfi.domain.events import News
from htfi.domain.news import ItemReading
from htfi_train.simulation.companies import SimulatedAsset
from htfi_train.simulation.events import EventSource, NewsEvent
from htfi_train.simulation.headlines.company_news import forged_news
from htfi_train.simulation.headlines.style import write_headline
from htfi_train.simulation.reported_events import ReportPattern, draw_news_event, unrelated_news
from htfi_train.simulation.simulated_market import NewsMoment, SimulatedMarket, simulate_market

FIRST_EVALUATION_SEED = 1_000_000_000
CONTEXT_BARS = 32
PATH_BARS = 24
MAX_ITEMS = 6
_NUM_UNRELATED_SHARES = (0.4, 0.28, 0.19, 0.13)
_FEED_NAMES = ("marketline", "capital wire", "northgate", "tradedesk")


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
    recursion run on. `from_lines` are the places of items that a line of `corpora/facts` words; `readings` are what
    the facts of the items mean for the asset, where they were read."""

    items: tuple[News, ...]
    symbol: str
    name: str
    ages_bars: tuple[float, ...]
    context: tuple[float, ...]
    path: tuple[float, ...]
    truth: StoryTruth
    from_lines: tuple[int, ...] = ()
    readings: tuple[ItemReading | None, ...] = ()


def stories(seed: int, start: int = 0) -> Iterator[Story]:
    """Stories of one simulated market after another, endless; `start` is the number of the first market.

    Raises InvalidInput for a negative seed or start.
    """
    if seed < 0 or start < 0:
        raise InvalidInput(f"stories of seed {seed} from market {start}: both must be 0 or more")
    number = start
    while True:
        yield from stories_of_market(seed, number)
        number += 1


def stories_of_market(seed: int, number: int, lines: EventSource | None = None) -> list[Story]:
    """All stories of one market, in an order that carries no information; `lines` word its events, if given."""
    market = simulate_market(seed, number, lines)
    found = [_story(market, moment, place) for moment in market.moments for place in moment.assets]
    return market.rng.sample(found, len(found))


def _story(market: SimulatedMarket, moment: NewsMoment, place: int) -> Story:
    asset = market.assets[place]
    outcome = moment.outcomes[place]
    told = report_news(market, moment, asset)
    truth = StoryTruth(
        direction=outcome.direction,
        size_sigmas=abs(outcome.realised),
        volatility_multiplier=outcome.volatility_multiplier,
        confidence=outcome.confidence,
        consistency=outcome.consistency,
        cause=outcome.cause,
        cited=told.cited,
        rationale=outcome.rationale,
        likeliest=outcome.likeliest,
        likely_sigmas=abs(outcome.expected),
        subkind=moment.event.subkind if moment.event and outcome.cause != "none" else "",
        situation=outcome.situation.value,
        standing=outcome.standing.value,
    )
    at = moment.bar + 1
    z = market.scaled[:, place]
    return Story(
        told.items, asset.symbol, told.name, told.ages_bars,
        tuple(z[at - CONTEXT_BARS : at].tolist()), tuple(z[at : at + PATH_BARS].tolist()), truth,
        told.from_lines,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Report:
    """One report of an event. `rank` is its place among the items that are cited, 0 for none."""

    age_bars: float
    event: NewsEvent
    is_rewrite: bool = False
    rank: int = 0


class ReportedNews(NamedTuple):
    """Items newest first, their ages in bars, the ids of those that matter for the asset asked about, its name where it
    is shown, and the places of items that a line of `corpora/facts` words."""

    items: tuple[News, ...]
    ages_bars: tuple[float, ...]
    cited: tuple[str, ...]
    name: str
    from_lines: tuple[int, ...]


def report_news(market: SimulatedMarket, moment: NewsMoment, asked: SimulatedAsset) -> ReportedNews:
    """What is reported at a moment, as one who asks about `asked` sees it.

    Of rewrites the first report is cited; of two that disagree the one that holds, then the other.
    """
    rng, reported = market.rng, moment.reported
    is_relevant = moment.outcomes[market.assets.index(asked)].relevant
    reports: list[_Report] = []
    if reported.event is not None:
        reports.append(_Report(reported.age_bars, reported.event, rank=1 if is_relevant else 0))
        if reported.earlier_event is not None:
            rank = 2 if is_relevant else 0
            reports.append(_Report(reported.earlier_age_bars, reported.earlier_event, rank=rank))
        if reported.pattern is not ReportPattern.FORGED and rng.chance(0.22):
            num = 1 + rng.chance(0.25)
            reports += [
                _Report(reported.age_bars * rng.uniform(), reported.event, is_rewrite=True)
                for _ in range(num)
            ]
    if reported.pattern is not ReportPattern.NO_NEWS:
        reports += _unrelated_reports(market, asked, reported.pattern, reported.event)
    elif rng.chance(0.15):
        reports += _unrelated_reports(market, asked, reported.pattern, None)
    reports = sorted(reports[:MAX_ITEMS], key=lambda report: report.age_bars)
    # The tags or the name may be missing, but not both where only they link the news to the asset.
    is_nameless = reported.event is not None and reported.event.is_nameless
    is_tagged = not rng.chance(0.07) or is_nameless
    is_named = not asked.company or (reported.event is not None and asked.symbol in reported.event.symbols)
    name = "" if is_tagged and is_named and (rng.chance(0.15) or is_nameless) else asked.name
    now_ns = market.first_ns + (moment.bar + 1) * market.bar_ns
    items: list[News] = []
    cited: dict[int, str] = {}
    for report in reports:
        at_ns = now_ns - round(report.age_bars * market.bar_ns)
        row = rng.integer(1_000_000)
        news_id = f"w{market.number}b{moment.bar}r{row}n{len(items)}"
        if report.rank:
            cited[report.rank] = news_id
        text = write_headline(report.event, market.by_symbol, rng, report.is_rewrite)
        symbols = report.event.symbols if is_tagged else ()
        items.append(News(at_ns, at_ns, rng.choice(_FEED_NAMES), row, news_id, text, symbols))
    ages = tuple(round(report.age_bars, 2) for report in reports)
    from_lines = tuple(place for place, report in enumerate(reports) if report.event.is_line)
    return ReportedNews(tuple(items), ages, tuple(cited[rank] for rank in sorted(cited)), name, from_lines)


def _unrelated_reports(
    market: SimulatedMarket, asked: SimulatedAsset, pattern: ReportPattern, event: NewsEvent | None
) -> list[_Report]:
    rng, assets = market.rng, market.assets
    reports: list[_Report] = []
    for _ in range(rng.weighted_index(_NUM_UNRELATED_SHARES)):
        other = unrelated_news(rng, assets, asked, market.lines)
        if other is not None:
            reports.append(_Report(rng.uniform_between(0.0, 12.0) * rng.uniform(), other))
    if event is not None and asked.company and pattern is ReportPattern.FRESH:
        if rng.chance(0.12):  # old news about the same asset, which prices absorbed long ago
            old = draw_news_event(rng, assets, market.lines)
            if old.effect_on(asked):
                reports.append(_Report(rng.uniform_between(9.0, 30.0), old))
        elif rng.chance(0.05):
            reports.append(_Report(rng.uniform_between(0.0, 1.4), forged_news(rng, asked)))
    return reports
