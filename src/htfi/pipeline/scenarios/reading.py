"""Hypothetical headlines, put to the run's reader beside its own news, and what its views change."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.domain.events import News
from htfi.domain.news import ItemReading
from htfi.domain.news_view import NewsView
from htfi.forecasting.batch import ForecastBatch
from htfi.forecasting.tilts import Opinion, apply_tilt, derive_tilts
from htfi.narrative.encoding.linking import EntityLinker, is_company
from htfi.narrative.facts.record import NewsFacts
from htfi.narrative.headline_roles import CompanyRole, company_roles
from htfi.narrative.influence import max_view_influence
from htfi.narrative.question import Question, facts_of
from htfi.narrative.readers import is_part, part_from_reading
from htfi.narrative.recent_news import RecentNews
from htfi.narrative.text import clean
from htfi.pipeline.scenarios.basis import ScenarioBasis
from htfi.pipeline.scenarios.history import bar_length_ns
from htfi.pipeline.weighing import join_parts, opinion_of

Array = NDArray[np.float64]

READING_MS = 120_000.0  # no market waits for the answer
MAX_HEADLINE_CHARS = 1_000
MAX_READ = 200  # series put to the reader for one headline: those with the largest positions
UNCLEAR_SHARE = 0.5  # of a view's confidence, where the part of its series in the headline is unclear


@dataclass(frozen=True, slots=True)
class CurrentForecast:
    """The forecasts of the basis's series: `plain` [n, H, Q] of the numbers alone, `batch` as they are released."""

    plain: Array
    batch: ForecastBatch


@dataclass(frozen=True, slots=True)
class ViewEffect:
    """What views on some series do to them, at each horizon.

    Shapes: shift [A, H] of the medians in log return at full weight; weight [A, H], what each view's reader has earned;
    quantiles at that weight and at full weight [A, H, Q].
    """

    shift: Array
    weight: Array
    weighted: Array
    full: Array


@dataclass(frozen=True, slots=True)
class AffectedSeries:
    """The series that a headline is read for, their roles in it, and the symbols that it is marked with."""

    places: list[int]
    roles: list[CompanyRole]
    symbols: tuple[str, ...]
    notes: tuple[str, ...] = ()


def forecast_now(basis: ScenarioBasis) -> CurrentForecast:
    """As the newest decisions have them: tilted by what was read of the news, as far as its reader has earned it."""
    forecaster = basis.components.forecaster
    batch = forecaster.forecast(basis.series)
    plain = batch.quantiles.copy()
    kept = {series: kept_view["view"] for series, kept_view in basis.components.views.state()["kept"]}
    opinions: dict[int, Opinion] = {}
    for place, series in enumerate(basis.series):
        if series in kept and basis.components.news.held.readable.recent(
            basis.symbols[place], basis.as_of_ns, 1
        ):
            view = msgspec.convert(kept[series], NewsView)
            known = basis.components.news.contents.influence_limits(
                basis.components.news.select(basis.symbols[place], basis.as_of_ns)
            )
            opinions[place] = _opinion(basis, place, view, max_view_influence(view, known))
    forecaster.apply_opinions(batch, opinions)
    return CurrentForecast(plain, batch)


def hypothetical_news(headline: str, on: Sequence[str], as_of_ns: int, number: int, max_chars: int) -> News:
    """A hypothetical item, cleaned as all text from outside. Raises: InvalidInput where nothing is left."""
    if len(headline) > MAX_HEADLINE_CHARS:
        raise InvalidInput(
            f"a headline of {len(headline):,} characters: at most {MAX_HEADLINE_CHARS:,}, of which {max_chars} are read"
        )
    text = clean(headline, max_chars)
    if not any(char.isalnum() for char in text):
        raise InvalidInput("the headline is empty once it is cleaned: write what it would say")
    return News(
        available_at_ns=as_of_ns,
        event_time_ns=as_of_ns,
        source="hypothetical",
        row=number,
        id=f"hypothetical:{number}",
        headline=text,
        symbols=tuple(on),
    )


class _Supposed(NamedTuple):
    """A hypothetical item as news on one series, and what its facts mean for it; None where none were read."""

    item: News
    role: CompanyRole
    question: Question
    reading: ItemReading | None


def read_hypothetical(
    basis: ScenarioBasis, items: Sequence[News], affected: Sequence[AffectedSeries]
) -> list[list[NewsView]]:
    """The view on each of the series affected for each item, as if it were news now; all in one reading.

    As in a decision a model's view counts as far as facts support it, and is joined by what the facts of the item, and
    of the news before it, say. Raises: DependencyUnavailable.
    """
    asked: list[list[_Supposed]] = []
    news = basis.components.news
    state = news.held.readable.state()
    for item, facts, about in zip(items, news.facts.read_items(items), affected, strict=True):
        wire = _wire_with(basis, state, item)
        asked.append(
            [
                _suppose(basis, wire, place, role, item, facts)
                for place, role in zip(about.places, about.roles, strict=True)
            ]
        )
    questions = [one.question for together in asked for one in together]
    views = iter(basis.reader.read(questions, READING_MS)) if questions else iter(())
    return [[_joined(basis, one, next(views)) for one in together] for together in asked]


def _joined(basis: ScenarioBasis, supposed: _Supposed, view: NewsView) -> NewsView:
    question, reading, news = supposed.question, supposed.reading, basis.components.news
    view = weigh_by_role(view, supposed.role)
    if reading is None:
        return view
    gathered = news.select(question.symbol, basis.as_of_ns)
    parts = news.contents.item_parts(gathered, basis.as_of_ns, question.bar_ns)
    if is_part(reading):
        item = supposed.item
        parts.append(
            part_from_reading(
                item.id,
                item.available_at_ns,
                1.0,
                replace(reading, earned=1.0),  # as if it were right; the reader's track record weighs it
                basis.as_of_ns,
                question.bar_ns,
                basis.source.narrative,
            )
        )
    readings = {**gathered.readings, supposed.item.id: reading}
    merged = join_parts(view, parts, readings, news, basis.as_of_ns)
    return view if merged is None else merged


def find_affected(
    basis: ScenarioBasis, headline: str, on: Sequence[int], held: Sequence[int]
) -> AffectedSeries:
    """The series that a headline is read for: those at `on`, else those of the run that it names as companies.

    One that names none of them is news on the market, read for the positions at `held`, the largest first.
    """
    linker = EntityLinker({symbol: [name] for symbol, name in basis.source.narrative.symbol_names.items()})
    found = company_roles(basis.symbols, headline, linker)
    all_roles = [found[symbol] for symbol in basis.symbols]
    named = {_bare(symbol) for symbol in linker.link(headline) if is_company(symbol)}
    places = list(dict.fromkeys(on)) or [
        place for place, symbol in enumerate(basis.symbols) if _bare(symbol) in named
    ]
    if not places:
        market = list(held[:MAX_READ])
        more = f"read for the {MAX_READ} largest positions of {len(held)}: name --on"
        return AffectedSeries(
            market, [CompanyRole.SUBJECT] * len(market), (), (more,) if len(held) > MAX_READ else ()
        )
    parts = [all_roles[place] for place in places]
    symbols = [basis.symbols[place] for place in places]
    judged = [symbol for symbol, role in zip(symbols, parts, strict=True) if role.is_judged]
    notes = () if on else ("read for the companies that it names; --on names others",)
    return AffectedSeries(places, parts, tuple(judged or symbols), notes)


def _bare(symbol: str) -> str:
    """GS for GS.N."""
    return symbol.upper().partition(".")[0]


def weigh_by_role(view: NewsView, role: CompanyRole) -> NewsView:
    """A view as far as it is one on a company in this role: halved where the role is unclear, none for another party.

    A reader judges the effect on the company that the news is about; it says nothing of buyer, plaintiff, analyst.
    """
    if role.is_judged or view.confidence <= 0.0:
        return view
    if not role.is_clear:
        return replace(view, confidence=UNCLEAR_SHARE * view.confidence, calibrated_effects=())
    return replace(
        view, direction=0.0, size_sigmas=0.0, volatility_multiplier=1.0, confidence=0.0, calibrated_effects=()
    )


def view_effect(
    basis: ScenarioBasis, now: CurrentForecast, places: Sequence[int], views: Sequence[NewsView]
) -> ViewEffect:
    """What views on the series at `places` change, in the place of what was read of them before."""
    plain, batch = now.plain[list(places)], now.batch
    alone = basis.source.max_moved_alone  # as if one source had published it
    opinions = [_opinion(basis, place, view, alone) for place, view in zip(places, views, strict=True)]
    found = derive_tilts(opinions, plain, batch.horizons, batch.levels)
    track_record_weights = {
        view.reader: basis.components.forecaster.track_record_weight(view.reader) for view in views
    }
    weight = np.array([track_record_weights[view.reader] for view in views], np.float64)
    median, everyone = batch.levels.index(0.5), np.ones_like(found.shift)
    return ViewEffect(
        shift=found.shift,
        weight=weight,
        weighted=apply_tilt(plain, found.shift, found.stretch, weight, median),
        full=apply_tilt(plain, found.shift, found.stretch, everyone, median),
    )


def _wire_with(basis: ScenarioBasis, state: dict[str, Any], item: News) -> RecentNews:
    """A wire of our own with the item as its newest."""
    wire = RecentNews(basis.source.narrative)
    wire.restore(state)
    wire.add(item)
    return wire


def _suppose(
    basis: ScenarioBasis,
    wire: RecentNews,
    place: int,
    role: CompanyRole,
    supposed: News,
    facts: NewsFacts | None,
) -> _Supposed:
    symbol, series = basis.symbols[place], basis.series[place]
    items = tuple(wire.recent(symbol, basis.as_of_ns))
    news = basis.components.news
    readings = news.readings(items, symbol)
    reading = None if facts is None else news.reading_of(facts, symbol, is_tagged=bool(supposed.symbols))
    if reading is not None:
        readings[supposed.id] = reading
    question = Question(
        symbol=symbol,
        as_of_ns=basis.as_of_ns,
        bar_ns=bar_length_ns(basis.interval),
        items=items,
        context=basis.components.scaled_returns.recent(series),
        facts=facts_of(items, readings),
    )
    return _Supposed(supposed, role, question, reading)


def _opinion(basis: ScenarioBasis, place: int, view: NewsView, max_moved: float) -> Opinion:
    features = basis.components.market.features(basis.symbols[place], basis.interval)
    return opinion_of(
        view, basis.as_of_ns, bar_length_ns(basis.interval), features.get("return_last"), max_moved
    )
