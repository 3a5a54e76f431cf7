"""Processes news: screens every item as it arrives, has it scored, and holds the news on each symbol for decisions.

Items that a model should read, items that the encoder alone reads, and items that are set aside are held apart; what is
set aside keeps its reason, so that a decision can record it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from htfi.domain.events import News
from htfi.domain.news import (
    ItemReading,
    NewsScores,
    Route,
    ScreenedItem,
    Screening,
)
from htfi.narrative.caching.encoded import cache_names
from htfi.narrative.calendar_rows import CalendarRowFilter
from htfi.narrative.config import NarrativeConfig, RoutingConfig
from htfi.narrative.encoding.read_ahead import ReadAheadTextReader
from htfi.narrative.facts.fact_reader import FactReader, without_text
from htfi.narrative.facts.record import NewsFacts
from htfi.narrative.facts.statements.compared import ComparedDocument, ComparedDocuments
from htfi.narrative.frontier_budget import FrontierBudget
from htfi.narrative.held_news import HeldNews
from htfi.narrative.item_facts import ItemFacts
from htfi.narrative.ports import ItemScorer
from htfi.narrative.preparing import ItemsAhead
from htfi.narrative.question import item_name
from htfi.narrative.recent_news import (
    MAX_ID_CHARS,
    NO_NEWS,
    NewsRecord,
    NewsSelection,
)
from htfi.narrative.routing import UNREAD, max_route
from htfi.narrative.run_symbols import RunSymbols
from htfi.narrative.sanitising.sanitiser import Sanitiser
from htfi.narrative.selection_contents import SelectionContents
from htfi.narrative.suspicion import SuspicionMonitor
from htfi.narrative.symbol_readings import SymbolReadings
from htfi.narrative.text import clean
from htfi.narrative.unread_bodies import UnreadBodies

DEFAULT_DEADLINE_MS = 250.0  # of a reading
MAX_PENDING = 256  # items that may wait to be scored
MAX_SCORED_TOGETHER = 64  # of these; their bodies are read while the next are scored
MAX_ENCODER_ITEMS = 6  # items of a decision that the encoder alone reads
MAX_SET_ASIDE = 6  # items set aside that a decision records


def forget_nothing(_: Sequence[str]) -> None:
    """For a processor without a cache."""


class _Begun(NamedTuple):
    """Items that were scored, and what gives the facts of those that are not in quarantine."""

    routed: Sequence[NewsRecord]
    facts: Callable[[], Sequence[NewsFacts]]


class NewsProcessor:
    """The news by symbol, in bounded memory."""

    def __init__(
        self,
        config: NarrativeConfig,
        routing: RoutingConfig,
        sanitiser: Sanitiser,
        scorer: ItemScorer,
        secure: SuspicionMonitor,
        *,
        facts: FactReader | None = None,
        neutral_facts: FactReader | None = None,
        read_ahead: ReadAheadTextReader | None = None,
        deadline_ms: float = DEFAULT_DEADLINE_MS,
        has_frontier: bool = False,
        forget: Callable[[Sequence[str]], None] = forget_nothing,
    ) -> None:
        """`facts` reads what items say; without it, the scorer's numbers are all that is known of them. `neutral_facts`
        reads the same from texts with neutral names, where `read_neutrally` asks for it. `read_ahead` reads the texts
        that both need. `forget` drops from caches what was derived from an item that is corrected or
        retracted.

        `deadline_ms` is that of a reading: it limits the passages of a body that are read.

        With `has_frontier`, a frontier model does the deep readings, and each is charged to the budget.
        """
        self._forget_cached = forget
        self.items_ahead: ItemsAhead | None = None  # set by a run whose news is known beforehand
        self._config, self.routing = config, routing
        self.sanitiser, self.scorer, self.suspicion_monitor = sanitiser, scorer, secure
        self.frontier = FrontierBudget(routing, has_frontier=has_frontier)
        self._readings = SymbolReadings(config)
        self._symbols = RunSymbols(self._readings)
        self.facts = ItemFacts(
            config, facts, neutral_facts, read_ahead, self._symbols, self._readings, deadline_ms
        )
        self._documents = ComparedDocuments()
        self._unread = UnreadBodies()
        self.held = HeldNews(config, self._drop_readings)
        self.contents = SelectionContents(config, routing, sanitiser, self.held, self._documents, scorer)
        self._pending: list[ScreenedItem] = []
        self._calendar_rows = CalendarRowFilter()

    @property
    def models(self) -> dict[str, str]:
        """The scorer and the reader of facts, for the record of a decision."""
        named = {"encoder": self.scorer.version, "facts": self.facts.version}
        return {name: version for name, version in named.items() if version}

    def read_neutrally(self, is_on: bool) -> None:
        """Read facts from texts with neutral names from now on, or as usual. Items that are held are read again, from
        the headline, which is all that is kept. Raises: DependencyUnavailable.
        """
        if not self.facts.is_change(is_on):
            return
        self.score_pending()  # they arrived before
        self.facts.read_neutrally(is_on)
        notes = [note for note in self.held.records.values() if note.facts is not None]
        for note, facts in zip(notes, self.facts.read_headlines_of(notes), strict=True):
            self._renew(note, facts)

    def _renew(self, note: NewsRecord, facts: NewsFacts) -> None:
        """Put other facts of an item that is held in the place of its present ones."""
        self._readings.forget(note.screened.item.id)
        self.held.renew(replace(note, facts=without_text(facts)))

    def _drop_readings(self, name: str) -> None:
        """Drop what was kept of an item that is no longer held."""
        self._unread.drop(name)
        self._readings.forget(name)

    def expect(self, items: Sequence[News]) -> None:
        """The items that will be received next: they are prepared elsewhere, or their texts are read together when the
        first of them is.
        """
        items = [item for item in items if not self._calendar_rows.is_pointless(item)]
        if self.items_ahead is None or not self.items_ahead.expect(items, self._symbols.known):
            self.facts.expect(items)

    def receive(self, item: News) -> ScreenedItem:
        """Take in one item, in order of `available_at_ns`. An item with a blank headline is ignored, and so is a row of
        a calendar that cannot matter, which is given back with a blank one.

        Raises: DependencyUnavailable.
        """
        if self._calendar_rows.is_pointless(item):
            self._calendar_rows.num_dropped += 1
            return ScreenedItem(replace(item, headline=""), Screening.PASS, 1.0)
        name = clean(item.id, MAX_ID_CHARS) or f"{item.source}:{item.row}"
        if item.released_by:  # the item was held back until now
            self._forget_item(name)
        prepared = None if self.items_ahead is None else self.items_ahead.take(item)
        screened = self.sanitiser.screen(replace(item, id=name), None if prepared is None else prepared.shown)
        if prepared is not None:
            self.facts.hold(screened.item.id, prepared)
        self.suspicion_monitor.observe(self.sanitiser.take_incidents(), item.available_at_ns)
        for gone in self.sanitiser.take_invalidated():
            self._forget_item(gone)
        if not screened.item.headline:
            return screened
        self._pending.append(screened)
        if len(self._pending) >= MAX_PENDING:
            self.score_pending()
        return screened

    def score_pending(self) -> None:
        """Score the items that arrived and store them. Where some fail, those before them are stored, and those that
        were not scored go on waiting. Raises: DependencyUnavailable.
        """
        begun: _Begun | None = None
        try:
            while self._pending:
                following = self._begin(self._pending[:MAX_SCORED_TOGETHER])
                del self._pending[:MAX_SCORED_TOGETHER]
                begun, before = following, begun
                if before is not None:
                    self._store_begun(before)
            self.facts.drop_prepared()
        finally:
            if begun is not None:
                self._store_begun(begun)

    def _begin(self, screened: Sequence[ScreenedItem]) -> _Begun:
        """Score and route items, and begin to read their bodies: other cores go on while the next are scored."""
        usable = [one for one in screened if one.verdict is not Screening.QUARANTINE]
        scored = iter(self.scorer.score(usable))
        routed = [
            self._routed(one, None if one.verdict is Screening.QUARANTINE else next(scored))
            for one in screened
        ]
        readable = [one for one in routed if one.screened.verdict is not Screening.QUARANTINE]
        return _Begun(routed, self.facts.begin_routed(readable))

    def _store_begun(self, begun: _Begun) -> None:
        read = iter(begun.facts())
        for one in begun.routed:
            self._store(one, None if one.screened.verdict is Screening.QUARANTINE else next(read, None))

    def _routed(self, screened: ScreenedItem, scores: NewsScores | None) -> NewsRecord:
        """The record of an item with the reader that it is worth, its body still in it."""
        screened = self._symbols.link(screened, scores, self.sanitiser.max_symbols_moved)
        item = screened.item
        first_report = screened.cluster if screened.cluster != item.id else ""
        position = max(map(self.routing.position_in, item.symbols), default=self.routing.default_position)
        most, why = max_route(
            screened.verdict, first_report, scores, position, self.routing, is_tagged=bool(item.symbols)
        )
        return NewsRecord(screened, scores, most, why, position, cache_names(screened))

    def _add_series(self, symbol: str) -> None:
        """Read and await what was left until the run has a series of a symbol. Raises: DependencyUnavailable."""
        if symbol in self._symbols.known:
            return
        self._symbols.add(symbol)
        self._calendar_rows.add_series(symbol, self.facts.name_of(symbol))
        held = [
            (note, body)
            for name, body in self._unread.items()
            if symbol in (note := self.held.records[name]).screened.item.symbols
            or (note.scores is not None and symbol in note.scores.symbols)
        ]
        notes = [note for note, _ in held]
        read = self.facts.begin_bodies(notes, [body for _, body in held])()
        for note, facts in zip(notes, read, strict=True):
            self._unread.drop(note.screened.item.id)
            self._renew(note, facts)
        for note in self.held.records.values():
            if note.most is not Route.TEMPLATE and symbol in note.screened.item.symbols:
                self._readings.await_effects(note, {symbol})

    def _store(self, routed: NewsRecord, facts: NewsFacts | None) -> None:
        screened = routed.screened
        item = screened.item
        self.held.remove_expired(item.available_at_ns)
        if screened.verdict is Screening.PASS:  # what is held back or counts for less changes nothing
            self._documents.add(item, is_official=self.sanitiser.is_official(item.source))
        note = replace(
            routed,
            screened=replace(screened, item=replace(item, body="", url="")),
            facts=None if facts is None else without_text(facts),
        )
        self.held.add(note)
        if note.most is not Route.TEMPLATE:
            self._readings.await_effects(note, self._symbols.known)
        self._unread.drop(item.id)
        if self.facts.leaves_body(routed, facts):
            self._unread.hold(item.id, item.body)

    def compared_documents(self) -> list[ComparedDocument]:
        """The newest documents of central banks that followed another of their series, oldest first. Raises:
        DependencyUnavailable.
        """
        self.score_pending()
        return self._documents.newest()

    def reading(self, note: NewsRecord, symbol: str) -> ItemReading | None:
        """What the facts of an item mean for a symbol now; None where none were read."""
        return self._readings.reading(note, symbol)

    def reading_of(self, facts: NewsFacts, symbol: str, *, is_tagged: bool) -> ItemReading:
        """What facts mean for a symbol, before anything was earned; `is_tagged` where their item names symbols."""
        return self._readings.reading_of(facts, symbol, is_tagged=is_tagged)

    def readings(self, items: Sequence[News], symbol: str) -> dict[str, ItemReading]:
        """What the facts of items that are held mean for a symbol now, by their ids."""
        return {
            note.screened.item.id: reading
            for note in self.held.records_of(items)
            if (reading := self.reading(note, symbol)) is not None
        }

    def select(self, symbol: str, as_of_ns: int) -> NewsSelection:
        """The news on a symbol that was known at an instant."""
        self.score_pending()  # before the symbol is added: a state saved at any time then scores the same
        self._add_series(symbol)
        if not self.held and self.suspicion_monitor.is_calm:
            return NO_NEWS
        items = [item for item in self.held.readable.recent(symbol, as_of_ns) if item.id in self.held.records]
        noted = self.held.encoder_only.recent(symbol, as_of_ns, MAX_ENCODER_ITEMS)
        aside = self.held.set_aside.recent(symbol, as_of_ns, MAX_SET_ASIDE)
        readings = self.readings([*items, *noted, *aside], symbol)
        elsewhere = {name for name, reading in readings.items() if reading.silence in UNREAD}
        if elsewhere:
            aside = sorted(
                [*aside, *(item for item in (*items, *noted) if item.id in elsewhere)],
                key=lambda item: (-item.available_at_ns, item.source, -item.row),
            )[:MAX_SET_ASIDE]
            items = [item for item in items if item.id not in elsewhere]
            noted = [item for item in noted if item.id not in elsewhere]
        suspicion = self.suspicion_monitor.suspicion(symbol, as_of_ns)
        if not (items or noted or aside or suspicion):
            return NO_NEWS
        if suspicion:  # under suspicion, what the encoder alone read is set aside
            aside = [item for item in noted if item.id in self.held.records] + aside
            noted = []
        cleared = self.suspicion_monitor.recent_reset(symbol, as_of_ns)
        kept = tuple(
            replace(note, most=Route.TEMPLATE, why=readings[note.screened.item.id].silence)
            if note.screened.item.id in elsewhere
            else note
            for note in self.held.records_of(aside)
        )
        return NewsSelection(tuple(items), self.held.records_of(noted), kept, suspicion, cleared, readings)

    def select_each(self, symbols: Sequence[str], as_of_ns: int) -> dict[int, NewsSelection]:
        """The news on those of several symbols on which there is any, by place."""
        self.score_pending()
        places: Iterable[int] = range(len(symbols))
        if self._symbols.known.issuperset(symbols) and self.suspicion_monitor.is_calm:
            places = self.held.concerned(symbols)
        found = ((place, self.select(symbols[place], as_of_ns)) for place in places)
        return {place: selection for place, selection in found if selection is not NO_NEWS}

    def max_routes(self, items: Sequence[News]) -> list[Route]:
        """The most expensive reader that each item is worth."""
        return [note.most for note in self.held.records_of(items)]

    def is_worth_frontier(self, gathered: NewsSelection) -> bool:
        """Whether any of this news is worth a frontier model, if there is one."""
        return (
            self.frontier.has_frontier
            and not gathered.suspicion
            and Route.FRONTIER in self.max_routes(gathered.items)
        )

    def records(self, names: Sequence[str]) -> dict[str, NewsRecord]:
        """The records of items by their ids, scored; items that are not held are left out. Raises:
        DependencyUnavailable.
        """
        self.score_pending()
        return {name: self.held.records[name] for name in names if name in self.held.records}

    @property
    def num_dropped_rows(self) -> int:
        """Rows of calendars that could not matter, and were not read."""
        return self._calendar_rows.num_dropped

    @property
    def has_news(self) -> bool:
        """Whether any news arrived."""
        return bool(self.held) or bool(self._pending)

    def learn_return(self, symbol: str, return_sigmas: float, start_ns: int, end_ns: int) -> None:
        """Learn a symbol's return over a bar, in standard deviations: it judges the sources of the items from before
        the bar.
        """
        if symbol not in self._symbols.known:
            self.score_pending()
            self._add_series(symbol)
        self.sanitiser.observe_return(symbol, end_ns, return_sigmas)
        self._readings.learn_return(
            symbol, return_sigmas, start_ns, self.held.records, self.sanitiser.learn_price_effect
        )

    def _forget_item(self, name: str) -> None:
        """Remove an item that was corrected or retracted, wherever it is held."""
        self.score_pending()
        self._documents.forget(name)
        note = self.held.records.get(name)
        self._forget_cached((item_name(name),) if note is None else note.derived)
        if note is not None:
            self.held.remove(name)
            self.facts.forget(note.screened.item.headline)

    def state(self) -> dict[str, Any]:
        self.score_pending()
        return {
            **self._documents.state(),
            "frontier_cents": self.frontier.cents,
            "sanitiser": self.sanitiser.state(),
            "scorer": self.scorer.state(),
            "secure": self.suspicion_monitor.state(),
            **self.held.state(),
            "asked": sorted(self._symbols.known),
            "unread": self._unread.state(),
            "dropped_rows": self.num_dropped_rows,
            **({"neutral": True} if self.facts.is_neutral else {}),
            **self._readings.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state`. Raises: IntegrityError, for records that no version of these facts wrote."""
        self._documents.restore(state)
        self.frontier.cents = state["frontier_cents"]
        self.sanitiser.restore(state["sanitiser"])
        self.scorer.restore(state["scorer"])
        self.suspicion_monitor.restore(state["secure"])
        self.held.restore(state)
        self.facts.read_neutrally(state.get("neutral", False))
        for note in self.facts.brought_up_to_date(list(self.held.records.values())):
            self.held.renew(note)
        self._readings.restore(state)
        self._symbols.restore(state["asked"])
        self._unread.restore(state.get("unread", []))
        self._calendar_rows = CalendarRowFilter(
            [(symbol, self.facts.name_of(symbol)) for symbol in state["asked"]], state.get("dropped_rows", 0)
        )
