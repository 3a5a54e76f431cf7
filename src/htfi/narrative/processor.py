"""Processes news: screens every item as it arrives, has it scored, and holds the news on each symbol for decisions.

Items that a model should read, items that the encoder alone reads, and items that are set aside are held apart; what is
set aside keeps its reason, so that a decision can record it.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from htfi.domain.decision import FidelityPlan, ViewPart
from htfi.domain.errors import IntegrityError
from htfi.domain.events import News
from htfi.domain.news import (
    ItemReading,
    NewsContext,
    NewsItemAudit,
    NewsScores,
    ReadingBudget,
    Route,
    ScreenedItem,
    Screening,
)
from htfi.narrative.caching.encoded import cache_names
from htfi.narrative.calendar_rows import CalendarRowFilter
from htfi.narrative.config import NarrativeConfig, RoutingConfig
from htfi.narrative.encoding.linking import EntityLinker, is_company
from htfi.narrative.encoding.read_ahead import ReadAheadTextReader
from htfi.narrative.encoding.scorer import text_to_score
from htfi.narrative.facts.bodies import num_passages_worth
from htfi.narrative.facts.extraction import MAX_TEXT_CHARS
from htfi.narrative.facts.fact_reader import NOTHING_ASKED, Asked, FactReader, without_text
from htfi.narrative.facts.naming import find_name, is_word_symbol
from htfi.narrative.facts.reading import read_for, reading_record
from htfi.narrative.facts.record import FACTS_VERSION, NewsFacts
from htfi.narrative.facts.statements.compared import ComparedDocument, ComparedDocuments
from htfi.narrative.influence import InfluenceLimits, limits_of
from htfi.narrative.merging import READER_SEPARATOR
from htfi.narrative.neutral_questions import neutral_question
from htfi.narrative.ports import ItemScorer
from htfi.narrative.preparing import ItemsAhead, PreparedItem
from htfi.narrative.question import MAX_ITEMS, Question, item_name
from htfi.narrative.readers import facts_reader, is_part, part_from_reading, part_from_scores, part_reader
from htfi.narrative.recent_news import (
    MAX_ID_CHARS,
    NO_NEWS,
    NewsRecord,
    NewsSelection,
    RecentNews,
    item_audit,
)
from htfi.narrative.routing import UNREAD, max_passages, max_route
from htfi.narrative.sanitising.sanitiser import Sanitiser
from htfi.narrative.suspicion import SuspicionMonitor
from htfi.narrative.symbol_readings import SymbolReadings
from htfi.narrative.text import clean, one_line
from htfi.narrative.unread_bodies import UnreadBodies, concerns_series

DEFAULT_DEADLINE_MS = 250.0  # of a reading
MAX_PENDING = 256  # items that are scored together
MAX_RECORDS = 8_192
_NUM_LIFETIMES_KEPT = 2  # lifetimes: the oldest view that counts is one lifetime old, and so were its items
MAX_ENCODER_ITEMS = 6  # items of a decision that the encoder alone reads
MAX_SET_ASIDE = 6  # items set aside that a decision records
_TICKER = re.compile(
    r"[A-Z][A-Z0-9.]{2,11}(?<!\.)"
)  # three letters or more: shorter ones are common abbreviations


def forget_nothing(_: Sequence[str]) -> None:
    """For a processor without a cache."""


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
        self._facts, self._read_ahead = facts, read_ahead
        self._usual_facts, self._neutral_facts = facts, neutral_facts
        self._prepared: dict[str, PreparedItem] = {}  # of items that are not scored yet
        self.items_ahead: ItemsAhead | None = None  # set by a run whose news is known beforehand
        self._symbol_readings = SymbolReadings(config)
        self._deadline_ms = deadline_ms
        self._has_frontier = has_frontier
        self.frontier_cents = routing.frontier_budget_cents if has_frontier else 0.0
        self._config, self.routing = config, routing
        self.sanitiser, self.scorer, self.suspicion_monitor = sanitiser, scorer, secure
        self.readable, self._encoder_only, self._set_aside = (
            RecentNews(config),
            RecentNews(config),
            RecentNews(config),
        )
        self._records: OrderedDict[str, NewsRecord] = OrderedDict()
        self._documents = ComparedDocuments()
        self._pending: list[ScreenedItem] = []
        self._series_symbols: set[str] = set()  # symbols of the run's series
        self._all_named = True  # whether it is known what each of them is called
        self._unread = UnreadBodies()
        self._calendar_rows = CalendarRowFilter()

    @property
    def models(self) -> dict[str, str]:
        """The scorer and the reader of facts, for the record of a decision."""
        named = {"encoder": self.scorer.version, "facts": "" if self._facts is None else self._facts.version}
        return {name: version for name, version in named.items() if version}

    def read_neutrally(self, is_on: bool) -> None:
        """Read facts from texts with neutral names from now on, or as usual. Items that are held are read again, from
        the headline, which is all that is kept. Raises: DependencyUnavailable.
        """
        reader = self._neutral_facts if is_on and self._neutral_facts is not None else self._usual_facts
        if reader is self._facts:
            return
        self.score_pending()  # they arrived before
        self._facts = reader
        notes = [note for note in self._records.values() if note.facts is not None]
        read = self._read_headlines_of(notes)
        for note, facts in zip(notes, read, strict=True):
            name = note.screened.item.id
            self._symbol_readings.forget(name)
            self._records[name] = replace(note, facts=without_text(facts))

    @property
    def is_neutral(self) -> bool:
        """Whether facts are read from texts with neutral names."""
        return self._facts is not self._usual_facts

    def with_neutral_names(self, question: Question, name: str | None = None) -> Question:
        """The question as a model is asked it: with neutral names where facts are read so. `name` is what its symbol is
        called, if not as in the settings.
        """
        if not self.is_neutral or not question.items:
            return question
        return neutral_question(
            question, self.name_of(question.symbol) if name is None else name, self.linker
        )

    def _read_headlines_of(self, notes: Sequence[NewsRecord]) -> Sequence[NewsFacts]:
        """The facts of the headlines of items; none where none are read. Raises: DependencyUnavailable."""
        if self._facts is None:
            return []
        items = [note.screened.item for note in notes]
        return self._facts.read([item.headline for item in items], asked=self._named_in(items))

    def _named_in(self, items: Sequence[News]) -> list[Asked]:
        """Of each item the first of its symbols that its headline names, for a reader that hides names; nothing for
        others, who read an item for all symbols at once.
        """
        if not self.is_neutral:
            return [NOTHING_ASKED] * len(items)
        return [
            next(
                (
                    (symbol, name)
                    for symbol in item.symbols
                    if find_name(item.headline, symbol, name := self.name_of(symbol)) is not None
                ),
                NOTHING_ASKED,
            )
            for item in items
        ]

    def expect(self, items: Sequence[News]) -> None:
        """The items that will be received next: they are prepared elsewhere, or their texts are read together when the
        first of them is.
        """
        items = [item for item in items if not self._calendar_rows.is_pointless(item)]
        if self._read_ahead is None or (
            self.items_ahead is not None and self.items_ahead.expect(items, self._series_symbols)
        ):
            return
        texts: dict[str, None] = {}
        for item in items:
            headline, body = one_line(item.headline), item.body
            texts[text_to_score(headline, body)] = None
            if self._facts is not None:
                texts[headline[:MAX_TEXT_CHARS]] = None
        self._read_ahead.expect(list(texts))

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
            self._hold(screened.item.id, prepared)
        self.suspicion_monitor.observe(self.sanitiser.take_incidents(), item.available_at_ns)
        for gone in self.sanitiser.take_invalidated():
            self._forget_item(gone)
        if not screened.item.headline:
            return screened
        self._pending.append(screened)
        if len(self._pending) >= MAX_PENDING:
            self.score_pending()
        return screened

    def _hold(self, name: str, prepared: PreparedItem) -> None:
        """Hold what was read of an item until it is scored."""
        if self._read_ahead is None or self._facts is None:
            return
        self._prepared[name] = prepared
        for text, reading in prepared.texts:
            self._read_ahead.hold(text, reading)
        for facts in prepared.passages:
            self._facts.keep(facts)

    def score_pending(self) -> None:
        """Score the items that arrived and store them. Raises: DependencyUnavailable."""
        if not self._pending:
            return
        pending, self._pending = self._pending, []
        usable = [one for one in pending if one.verdict is not Screening.QUARANTINE]
        scored = iter(self.scorer.score(usable))
        routed = [
            self._routed(one, None if one.verdict is Screening.QUARANTINE else next(scored))
            for one in pending
        ]
        readable = [one for one in routed if one.screened.verdict is not Screening.QUARANTINE]
        read = iter(self._read_facts(readable))
        self._prepared.clear()
        for one in routed:
            self._store(one, None if one.screened.verdict is Screening.QUARANTINE else next(read, None))

    def _routed(self, screened: ScreenedItem, scores: NewsScores | None) -> NewsRecord:
        """The record of an item with the reader that it is worth, its body still in it."""
        screened = self._link_symbols(screened, scores)
        item = screened.item
        first_report = screened.cluster if screened.cluster != item.id else ""
        position = max(map(self.routing.position_in, item.symbols), default=self.routing.default_position)
        most, why = max_route(
            screened.verdict, first_report, scores, position, self.routing, is_tagged=bool(item.symbols)
        )
        return NewsRecord(screened, scores, most, why, position, cache_names(screened))

    def _read_facts(self, routed: Sequence[NewsRecord]) -> list[NewsFacts]:
        """The facts of items, in order; of each body what its route allows, and nothing where it concerns no series of
        the run. None where no facts are read.
        """
        if self._facts is None:
            return []
        found = [self._prepared_facts(one) for one in routed]
        unread = [one for one, facts in zip(routed, found, strict=True) if facts is None]
        read = iter(self._facts_of(unread, [one.screened.item.body for one in unread]))
        return [next(read) if facts is None else facts for facts in found]

    def _prepared_facts(self, note: NewsRecord) -> NewsFacts | None:
        """The facts of an item as they were prepared; None where they were not."""
        item = note.screened.item
        known = self._prepared.get(item.id)
        if known is None or known.alone is None or self.is_neutral:
            return None
        allowed = max_passages(note.most, self._deadline_ms)
        return known.facts(item.symbols, allowed if self._concerns_series(note, known.alone) else 0)

    def _facts_of(self, notes: Sequence[NewsRecord], bodies: Sequence[str]) -> Sequence[NewsFacts]:
        """The facts of items with these bodies, of which the passages are read that are allowed and worth it."""

        def num_passages(place: int, facts: NewsFacts) -> int:
            note = notes[place]
            allowed = max_passages(note.most, self._deadline_ms)
            if not allowed or not self._concerns_series(note, facts):
                return 0
            readings = [
                self.reading_of(facts, symbol, is_tagged=True) for symbol in note.screened.item.symbols
            ]
            return min(allowed, num_passages_worth(facts, bodies[place], readings))

        if self._facts is None or not notes:
            return []
        items = [one.screened.item for one in notes]
        return self._facts.read([one.headline for one in items], bodies, num_passages, self._named_in(items))

    def _concerns_series(self, note: NewsRecord, facts: NewsFacts) -> bool:
        item = note.screened.item
        scored = () if note.scores is None else note.scores.symbols
        return concerns_series(
            item.symbols,
            facts,
            lambda: (*scored, *self._tickers_in(item.headline)),
            self._series_symbols,
            all_named=self._all_named,
        )

    def _add_series(self, symbol: str) -> None:
        """Read and await what was left until the run has a series of a symbol. Raises: DependencyUnavailable."""
        if symbol in self._series_symbols:
            return
        self._series_symbols.add(symbol)
        self._all_named = self._all_named and self._symbol_readings.has_name(symbol)
        self._calendar_rows.add_series(symbol, self._config.symbol_names.get(symbol, ""))
        held = [
            (note, body)
            for name, body in self._unread.items()
            if symbol in (note := self._records[name]).screened.item.symbols
            or (note.scores is not None and symbol in note.scores.symbols)
        ]
        notes = [note for note, _ in held]
        read = self._facts_of(notes, [body for _, body in held])
        for note, facts in zip(notes, read, strict=True):
            name = note.screened.item.id
            self._unread.drop(name)
            self._symbol_readings.forget(name)
            self._records[name] = replace(note, facts=without_text(facts))
        for note in self._records.values():
            if note.most is not Route.TEMPLATE and symbol in note.screened.item.symbols:
                self._symbol_readings.await_effects(note, {symbol})

    def _store(self, routed: NewsRecord, facts: NewsFacts | None) -> None:
        screened = routed.screened
        item = screened.item
        self._remove_expired(item.available_at_ns)
        if screened.verdict is Screening.PASS:  # what is held back or counts for less changes nothing
            self._documents.add(item, is_official=self.sanitiser.is_official(item.source))
        note = self._records[item.id] = replace(
            routed,
            screened=replace(screened, item=replace(item, body="", url="")),
            facts=None if facts is None else without_text(facts),
        )
        self._records.move_to_end(item.id)
        if len(self._records) > MAX_RECORDS:
            self._remove(next(iter(self._records)))
        if note.most is Route.TEMPLATE:
            self._set_aside.add(item)
        elif note.most is Route.ENCODER:
            self._encoder_only.add(item)
        else:
            self.readable.add(item)
        if note.most is not Route.TEMPLATE:
            self._symbol_readings.await_effects(note, self._series_symbols)
        self._unread.drop(item.id)
        is_readable = item.body != "" and max_passages(note.most, self._deadline_ms) > 0
        if is_readable and facts and facts.body is None and not self._concerns_series(note, facts):
            self._unread.hold(item.id, item.body)

    def compared_documents(self) -> list[ComparedDocument]:
        """The newest documents of central banks that followed another of their series, oldest first. Raises:
        DependencyUnavailable.
        """
        self.score_pending()
        return self._documents.newest()

    def reading(self, note: NewsRecord, symbol: str) -> ItemReading | None:
        """What the facts of an item mean for a symbol now; None where none were read."""
        return self._symbol_readings.reading(note, symbol)

    def reading_of(self, facts: NewsFacts, symbol: str, *, is_tagged: bool) -> ItemReading:
        """What facts mean for a symbol, before anything was earned; `is_tagged` where their item names symbols."""
        return self._symbol_readings.reading_of(facts, symbol, is_tagged=is_tagged)

    def readings(self, items: Sequence[News], symbol: str) -> dict[str, ItemReading]:
        """What the facts of items that are held mean for a symbol now, by their ids."""
        return {
            note.screened.item.id: reading
            for note in self._records_of(items)
            if (reading := self.reading(note, symbol)) is not None
        }

    def read_facts(self, items: Sequence[News]) -> Sequence[NewsFacts | None]:
        """The facts of items that no one reported: they are not kept. Raises: DependencyUnavailable."""
        if self._facts is None:
            return [None] * len(items)
        return self._facts.read([item.headline for item in items], [item.body for item in items])

    def name_of(self, symbol: str) -> str:
        """What the settings call a symbol; empty where they do not."""
        return self._config.symbol_names.get(symbol, "")

    @property
    def linker(self) -> EntityLinker:
        """What finds the names that a text holds."""
        return EntityLinker({}) if self._facts is None else self._facts.linker

    def read_swapped(
        self, texts: Sequence[str], asked: Sequence[tuple[str, str]]
    ) -> list[ItemReading | None]:
        """What headlines mean for assets, by symbol and name, as those of items are read; none is kept.

        Raises: DependencyUnavailable.
        """
        if self._facts is None:
            return [None] * len(texts)
        facts = self._facts.read(texts, asked=asked if self.is_neutral else ())
        return [reading_record(one, read_for(one, *whom)) for one, whom in zip(facts, asked, strict=True)]

    def _remove_expired(self, now_ns: int) -> None:
        """Remove items so old that no view which rests on them counts any longer."""
        oldest_ns = now_ns - _NUM_LIFETIMES_KEPT * self.readable.lifetime_ns
        while self._records:
            name, note = next(iter(self._records.items()))
            if note.screened.item.available_at_ns >= oldest_ns:
                return
            self._remove(name)

    def _remove(self, name: str) -> None:
        """Remove a record and its item wherever it is held: no list holds an item without a record."""
        note = self._records.pop(name)
        self._unread.drop(name)
        self._symbol_readings.forget(name)
        for wire in (self.readable, self._encoder_only, self._set_aside):
            wire.forget(name, note.screened.item.symbols)

    def _link_symbols(self, screened: ScreenedItem, scores: NewsScores | None) -> ScreenedItem:
        """The item with the companies that it names as its symbols, if it came without any and the run has series of
        all of them.

        A symbol of the run that stands in the headline counts as a name. An item that names anything else concerns the
        whole market.
        """
        if screened.item.symbols or scores is None:
            return screened
        linked = tuple(dict.fromkeys((*scores.symbols, *self._tickers_in(screened.item.headline))))
        if not linked or not all(symbol in self._series_symbols and is_company(symbol) for symbol in linked):
            return screened
        most = self.sanitiser.max_symbols_moved
        return replace(screened, item=replace(screened.item, symbols=linked[:most]))

    def _tickers_in(self, headline: str) -> list[str]:
        """The run's symbols that stand in a headline as they are written; none in a headline that is all capitals."""
        if headline.isupper():
            return []
        return [
            word
            for word in _TICKER.findall(headline)
            if word in self._series_symbols and word.isupper() and not is_word_symbol(word)
        ]

    def select(self, symbol: str, as_of_ns: int) -> NewsSelection:
        """The news on a symbol that was known at an instant."""
        self.score_pending()  # before the symbol is added: a state saved at any time then scores the same
        self._add_series(symbol)
        if not self._records and self.suspicion_monitor.is_calm:
            return NO_NEWS
        items = [item for item in self.readable.recent(symbol, as_of_ns) if item.id in self._records]
        noted = self._encoder_only.recent(symbol, as_of_ns, MAX_ENCODER_ITEMS)
        aside = self._set_aside.recent(symbol, as_of_ns, MAX_SET_ASIDE)
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
            aside = [item for item in noted if item.id in self._records] + aside
            noted = []
        cleared = self.suspicion_monitor.recent_reset(symbol, as_of_ns)
        kept = tuple(
            replace(note, most=Route.TEMPLATE, why=readings[note.screened.item.id].silence)
            if note.screened.item.id in elsewhere
            else note
            for note in self._records_of(aside)
        )
        return NewsSelection(tuple(items), self._records_of(noted), kept, suspicion, cleared, readings)

    def select_each(self, symbols: Sequence[str], as_of_ns: int) -> dict[int, NewsSelection]:
        """The news on those of several symbols on which there is any, by place."""
        self.score_pending()
        places: Iterable[int] = range(len(symbols))
        if self._series_symbols.issuperset(symbols) and self.suspicion_monitor.is_calm:
            if not self._records:
                return {}
            shelves = (self.readable, self._encoder_only, self._set_aside)
            if not any(shelf.has_market_items for shelf in shelves):
                named = {symbol for shelf in shelves for symbol in shelf.symbols}
                places = [place for place, symbol in enumerate(symbols) if symbol in named]
        found = ((place, self.select(symbols[place], as_of_ns)) for place in places)
        return {place: selection for place, selection in found if selection is not NO_NEWS}

    def max_routes(self, items: Sequence[News]) -> list[Route]:
        """The most expensive reader that each item is worth."""
        return [note.most for note in self._records_of(items)]

    def num_affordable(self, num_readings: int) -> int:
        """How many of so many deep readings the budget allows."""
        if not self._has_frontier:
            return num_readings
        return min(num_readings, int(self.frontier_cents / self.routing.frontier_cents_per_reading + 1e-9))

    def reading_suspicions(self, gathered: Mapping[int, NewsSelection]) -> dict[int, float]:
        """How far a reading of each news, by place, should queue behind others, 0–1: by the least believed of its
        sources.
        """
        found: dict[int, float] = {}
        by_sources: dict[frozenset[str], float] = {}  # the news of an instant has few
        for place, selection in gathered.items():
            if selection.suspicion:
                found[place] = 1.0
                continue
            sources = frozenset([item.source for item in selection.items])
            if sources not in by_sources:
                by_sources[sources] = self.sanitiser.reading_suspicion(sources)
            found[place] = by_sources[sources]
        return found

    def is_worth_frontier(self, gathered: NewsSelection) -> bool:
        """Whether any of this news is worth a frontier model, if there is one."""
        return (
            self._has_frontier
            and not gathered.suspicion
            and Route.FRONTIER in self.max_routes(gathered.items)
        )

    def charge_readings(self, num_readings: int) -> None:
        """Charge deep readings to the budget."""
        if self._has_frontier:
            self.frontier_cents = round(
                self.frontier_cents - num_readings * self.routing.frontier_cents_per_reading, 6
            )

    def records(self, names: Sequence[str]) -> dict[str, NewsRecord]:
        """The records of items by their ids, scored; items that are not held are left out. Raises:
        DependencyUnavailable.
        """
        self.score_pending()
        return {name: self._records[name] for name in names if name in self._records}

    def items(self, names: Sequence[str]) -> list[News]:
        """Items by their ids, newest first; items that are no longer held are left out."""
        found = [note.screened.item for name in names if (note := self._records.get(name)) is not None]
        return sorted(found, key=lambda item: (-item.available_at_ns, item.source, -item.row))

    def item_parts(self, gathered: NewsSelection, as_of_ns: int, bar_ns: int) -> list[ViewPart]:
        """What the facts of each item say; where none were read, the encoder's scores of items that no model reads."""
        if gathered.readings:
            considered = (*self._records_of(gathered.items[:MAX_ITEMS]), *gathered.encoder_only)
            return [
                part_from_reading(
                    note.screened.item.id,
                    note.screened.item.available_at_ns,
                    note.screened.trust,
                    reading,
                    as_of_ns,
                    bar_ns,
                    self._config,
                )
                for note in considered
                if (reading := gathered.readings.get(note.screened.item.id)) is not None and is_part(reading)
            ]
        return [
            part_from_scores(
                note.screened.item.id,
                note.screened.item.available_at_ns,
                note.screened.trust,
                note.scores,
                self._config,
            )
            for note in gathered.encoder_only
            if _has_part(note)
        ]

    def read_by_encoder(self, gathered: NewsSelection) -> NewsSelection | None:
        """The same news, none of which a model reads; None where the encoder scored not all of it."""
        read = self._records_of(gathered.items[:MAX_ITEMS])
        if not all(note.scores is not None and note.scores.encoder for note in read):
            return None
        return gathered._replace(items=(), encoder_only=(*read, *gathered.encoder_only))

    def narrator(self, reader: str, gathered: NewsSelection) -> str:
        """Who a view by this reader is from, with what reads the facts, or the encoder that reads other items."""
        if gathered.readings:
            spoken = [one for one in gathered.readings.values() if is_part(one) and one.silence not in UNREAD]
            others = dict.fromkeys(map(facts_reader, spoken))
        else:
            scored = (note.scores for note in gathered.encoder_only if _has_part(note))
            others = dict.fromkeys(map(part_reader, scored))
        return READER_SEPARATOR.join((reader, *others))

    @property
    def encoder_reader(self) -> str:
        """The reader of the encoder's own views."""
        return f"encoder {self.scorer.version}"

    def encoder_opinion(self, gathered: NewsSelection) -> tuple[str, float] | None:
        """Who the encoder's readings of all the news are from, and what they may move; None where they say nothing."""
        read = self._records_of(gathered.items[:MAX_ITEMS])
        notes = [note for note in (*read, *gathered.encoder_only) if _has_part(note)]
        if not notes or not all(note.scores is not None and note.scores.encoder for note in read):
            return None
        limit = max(self.sanitiser.max_influence(note.screened) for note in notes)
        return part_reader(notes[0].scores), limit

    def news_context(
        self, gathered: NewsSelection, plan: FidelityPlan, means: ReadingBudget | None
    ) -> NewsContext | None:
        """What a decision records about the news: who was to read each item, and why."""
        if means is None:
            return None
        considered = (*self._records_of(gathered.items[:MAX_ITEMS]), *gathered.encoder_only)
        return NewsContext(
            considered=tuple(self._item_audit(note, plan, means, gathered) for note in considered),
            set_aside=tuple(self._item_audit(note, plan, means, gathered) for note in gathered.set_aside),
            reading_budget=means,
            suspicion=gathered.suspicion,
            reset_by=gathered.suspicion_reset,
        )

    def _item_audit(
        self, note: NewsRecord, plan: FidelityPlan, means: ReadingBudget, gathered: NewsSelection
    ) -> NewsItemAudit:
        reading = gathered.readings.get(note.screened.item.id)
        limit = self.sanitiser.max_influence(note.screened)
        compared = self._documents.get(note.screened.item.id)
        lines = () if compared is None else compared.lines
        return item_audit(note, plan, means, self.routing, limit, reading, lines)

    def influence_limits(self, gathered: NewsSelection) -> InfluenceLimits:
        """How far this news may move a forecast."""
        read = self._records_of(gathered.items[:MAX_ITEMS])
        by_item = {
            note.screened.item.id: self.sanitiser.max_influence(note.screened)
            for note in (*read, *gathered.encoder_only)
        }
        return limits_of(by_item, [note.screened.item.id for note in read])

    def mean_trust(self, names: Sequence[str]) -> float:
        """The mean trust, 0–1, in items that a view rests on; 1 where none is known."""
        trusts = [note.screened.trust for name in names if (note := self._records.get(name)) is not None]
        return round(sum(trusts) / len(trusts), 3) if trusts else 1.0

    @property
    def num_dropped_rows(self) -> int:
        """Rows of calendars that could not matter, and were not read."""
        return self._calendar_rows.num_dropped

    @property
    def has_news(self) -> bool:
        """Whether any news arrived."""
        return bool(self._records) or bool(self._pending)

    def learn_return(self, symbol: str, return_sigmas: float, start_ns: int, end_ns: int) -> None:
        """Learn a symbol's return over a bar, in standard deviations: it judges the sources of the items from before
        the bar.
        """
        if symbol not in self._series_symbols:
            self.score_pending()
            self._add_series(symbol)
        self.sanitiser.observe_return(symbol, end_ns, return_sigmas)
        self._symbol_readings.learn_return(
            symbol, return_sigmas, start_ns, self._records, self.sanitiser.learn_price_effect
        )

    def _records_of(self, items: Sequence[News]) -> tuple[NewsRecord, ...]:
        return tuple(note for item in items if (note := self._records.get(item.id)) is not None)

    def _forget_item(self, name: str) -> None:
        """Remove an item that was corrected or retracted, wherever it is held."""
        self.score_pending()
        self._documents.forget(name)
        note = self._records.get(name)
        self._forget_cached((item_name(name),) if note is None else note.derived)
        if note is not None:
            self._remove(name)
            if self._read_ahead is not None:
                self._read_ahead.forget(note.screened.item.headline)

    def state(self) -> dict[str, Any]:
        self.score_pending()
        return {
            **self._documents.state(),
            "frontier_cents": self.frontier_cents,
            "sanitiser": self.sanitiser.state(),
            "scorer": self.scorer.state(),
            "secure": self.suspicion_monitor.state(),
            "wire": self.readable.state(),
            "noted": self._encoder_only.state(),
            "aside": self._set_aside.state(),
            "notes": msgspec.msgpack.encode(list(self._records.values())),
            "asked": sorted(self._series_symbols),
            "unread": self._unread.state(),
            "dropped_rows": self.num_dropped_rows,
            **({"neutral": True} if self.is_neutral else {}),
            **self._symbol_readings.state(),
        }

    def _with_current_facts(self, notes: list[NewsRecord]) -> list[NewsRecord]:
        """The records with facts of this version: older ones are read again, from the headline, which is all that is
        kept.
        """
        old = [note for note in notes if note.facts is not None and note.facts.version != FACTS_VERSION]
        found = self._read_headlines_of(old)
        anew = {note.screened.item.id: without_text(one) for note, one in zip(old, found, strict=False)}
        ids = {note.screened.item.id for note in old}
        return [
            replace(note, facts=anew.get(note.screened.item.id)) if note.screened.item.id in ids else note
            for note in notes
        ]

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state`. Raises: IntegrityError, for records that no version of these facts wrote."""
        self._documents.restore(state)
        self.frontier_cents = state["frontier_cents"]
        self.sanitiser.restore(state["sanitiser"])
        self.scorer.restore(state["scorer"])
        self.suspicion_monitor.restore(state["secure"])
        self.readable.restore(state["wire"])
        self._encoder_only.restore(state["noted"])
        self._set_aside.restore(state["aside"])
        is_neutral = state.get("neutral", False)
        self._facts = self._neutral_facts if is_neutral else self._usual_facts
        notes = self._with_current_facts(_decode_records(state["notes"]))
        self._records = OrderedDict((note.screened.item.id, note) for note in notes)
        self._symbol_readings.restore(state)
        self._series_symbols.clear()  # what reads ahead holds this set
        self._series_symbols.update(state["asked"])
        self._all_named = all(map(self._symbol_readings.has_name, self._series_symbols))
        self._unread.restore(state.get("unread", []))
        names = self._config.symbol_names
        self._calendar_rows = CalendarRowFilter(
            [(symbol, names.get(symbol, "")) for symbol in state["asked"]], state.get("dropped_rows", 0)
        )


def _decode_records(saved: bytes) -> list[NewsRecord]:
    try:
        return msgspec.msgpack.decode(saved, type=list[NewsRecord])
    except msgspec.DecodeError as error:
        raise IntegrityError(
            f"the saved news was written by another version of htfi ({error}): repeat the run in a new folder"
        ) from error


def _has_part(note: NewsRecord) -> bool:
    """Whether the encoder's reading of an item says anything."""
    return note.scores is not None and note.scores.relevance * note.scores.novelty > 0.0
