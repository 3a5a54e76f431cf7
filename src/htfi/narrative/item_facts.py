"""Reads the facts of items: as usual or from texts with neutral names, ahead of time where their texts are known."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from htfi.domain.events import News
from htfi.domain.news import ItemReading
from htfi.narrative.config import NarrativeConfig
from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.encoding.read_ahead import ReadAheadTextReader
from htfi.narrative.encoding.scorer import text_to_score
from htfi.narrative.facts.bodies import num_passages_worth
from htfi.narrative.facts.extraction import MAX_TEXT_CHARS
from htfi.narrative.facts.fact_reader import NOTHING_ASKED, Asked, FactReader, without_text
from htfi.narrative.facts.naming import find_name
from htfi.narrative.facts.reading import read_for, reading_record
from htfi.narrative.facts.record import FACTS_VERSION, NewsFacts
from htfi.narrative.neutral_questions import neutral_question
from htfi.narrative.preparing import ItemPreparer, PreparedItem
from htfi.narrative.question import Question
from htfi.narrative.recent_news import NewsRecord
from htfi.narrative.routing import max_passages
from htfi.narrative.run_symbols import RunSymbols
from htfi.narrative.sanitising.item_text import UndisguisedText
from htfi.narrative.symbol_readings import SymbolReadings
from htfi.narrative.text import one_line


class ItemFacts:
    """The readers of facts, and what was read before its item was scored."""

    def __init__(
        self,
        config: NarrativeConfig,
        usual: FactReader | None,
        neutral: FactReader | None,
        read_ahead: ReadAheadTextReader | None,
        symbols: RunSymbols,
        readings: SymbolReadings,
        deadline_ms: float,
    ) -> None:
        """`deadline_ms` is that of a reading: it limits the passages of a body that are read."""
        self._config, self._symbols, self._readings = config, symbols, readings
        self._usual, self._neutral, self._read_ahead = usual, neutral, read_ahead
        self._reader = usual
        self._deadline_ms = deadline_ms
        self._prepared: dict[str, PreparedItem] = {}  # of items that are not scored yet

    @property
    def version(self) -> str:
        """Of the reader; empty where no facts are read."""
        return "" if self._reader is None else self._reader.version

    @property
    def is_neutral(self) -> bool:
        """Whether facts are read from texts with neutral names."""
        return self._reader is not self._usual

    def is_change(self, is_on: bool) -> bool:
        """Whether `read_neutrally` would change the reader."""
        return self._reader_for(is_on) is not self._reader

    def read_neutrally(self, is_on: bool) -> None:
        """Read from texts with neutral names from now on, or as usual."""
        self._reader = self._reader_for(is_on)

    def _reader_for(self, is_neutral: bool) -> FactReader | None:
        return self._neutral if is_neutral and self._neutral is not None else self._usual

    def name_of(self, symbol: str) -> str:
        """What the settings call a symbol; empty where they do not."""
        return self._config.symbol_names.get(symbol, "")

    @property
    def linker(self) -> EntityLinker:
        """What finds the names that a text holds."""
        return EntityLinker({}) if self._reader is None else self._reader.linker

    def with_neutral_names(self, question: Question, name: str | None = None) -> Question:
        """The question as a model is asked it: with neutral names where facts are read so. `name` is what its symbol is
        called, if not as in the settings.
        """
        if not self.is_neutral or not question.items:
            return question
        return neutral_question(
            question, self.name_of(question.symbol) if name is None else name, self.linker
        )

    def expect(self, items: Sequence[News]) -> None:
        """Have the texts of the items that will be received next read together when the first of them is."""
        if self._read_ahead is None:
            return
        texts: dict[str, None] = {}
        for item in items:
            headline, body = one_line(item.headline), item.body
            texts[text_to_score(headline, body)] = None
            if self._reader is not None:
                texts[headline[:MAX_TEXT_CHARS]] = None
        self._read_ahead.expect(list(texts))

    def preparer(self, undisguise: Callable[[News], UndisguisedText]) -> ItemPreparer | None:
        """What prepares items with the readers here; None where facts or texts are not read."""
        if self._read_ahead is None or self._usual is None:
            return None
        return ItemPreparer(undisguise, self._read_ahead, self._usual, self._readings)

    def hold(self, name: str, prepared: PreparedItem) -> None:
        """Hold what was read of an item until it is scored."""
        if self._read_ahead is None or self._reader is None:
            return
        self._prepared[name] = prepared
        for text, reading in prepared.texts:
            self._read_ahead.hold(text, reading)
        for facts in prepared.passages:
            self._reader.keep_passage(facts)

    def forget(self, headline: str) -> None:
        """Drop what was read ahead of an item's headline."""
        if self._read_ahead is not None:
            self._read_ahead.forget(headline)

    def begin_routed(self, routed: Sequence[NewsRecord]) -> Callable[[], Sequence[NewsFacts]]:
        """What gives the facts of items, in order, once it is called: of each body what its route allows, and nothing
        where it concerns no series of the run. None where no facts are read. Headlines are read now, and other cores
        read passages meanwhile. Raises: DependencyUnavailable, as what it gives does.
        """
        if self._reader is None:
            return lambda: ()
        found = [self._prepared_facts(one) for one in routed]
        unread = [one for one, facts in zip(routed, found, strict=True) if facts is None]
        finish = self.begin_bodies(unread, [one.screened.item.body for one in unread])

        def with_prepared() -> list[NewsFacts]:
            read = iter(finish())
            return [next(read) if facts is None else facts for facts in found]

        return with_prepared

    def drop_prepared(self) -> None:
        """Drop what was held of items that are scored by now."""
        self._prepared.clear()

    def _prepared_facts(self, note: NewsRecord) -> NewsFacts | None:
        """The facts of an item as they were prepared; None where they were not."""
        item = note.screened.item
        known = self._prepared.get(item.id)
        if known is None or known.alone is None or self.is_neutral:
            return None
        allowed = max_passages(note.most, self._deadline_ms)
        return known.facts(item.symbols, allowed if self._symbols.concerned_by(note, known.alone) else 0)

    def begin_bodies(
        self, notes: Sequence[NewsRecord], bodies: Sequence[str]
    ) -> Callable[[], Sequence[NewsFacts]]:
        """What gives the facts of items with these bodies, once it is called: of these, the passages are read that are
        allowed and worth it. Raises: DependencyUnavailable, as what it gives does.
        """

        def num_passages(place: int, facts: NewsFacts) -> int:
            note = notes[place]
            allowed = max_passages(note.most, self._deadline_ms)
            if not allowed or not self._symbols.concerned_by(note, facts):
                return 0
            readings = [
                self._readings.reading_of(facts, symbol, is_tagged=True)
                for symbol in note.screened.item.symbols
            ]
            return min(allowed, num_passages_worth(facts, bodies[place], readings))

        if self._reader is None or not notes:
            return lambda: ()
        items = [one.screened.item for one in notes]
        finish = self._reader.begin(
            [one.headline for one in items], bodies, num_passages, self._named_in(items)
        )
        return lambda: [one.whole for one in finish()]

    def leaves_body(self, note: NewsRecord, facts: NewsFacts | None) -> bool:
        """Whether a body that may be read was not, because its item concerns no series of the run so far."""
        is_readable = note.screened.item.body != "" and max_passages(note.most, self._deadline_ms) > 0
        return bool(
            is_readable and facts and facts.body is None and not self._symbols.concerned_by(note, facts)
        )

    def read_headlines_of(self, notes: Sequence[NewsRecord]) -> Sequence[NewsFacts]:
        """The facts of the headlines of items; none where none are read. Raises: DependencyUnavailable."""
        if self._reader is None:
            return []
        items = [note.screened.item for note in notes]
        return self._reader.read([item.headline for item in items], asked=self._named_in(items))

    def brought_up_to_date(self, notes: Sequence[NewsRecord]) -> list[NewsRecord]:
        """Those of these records whose facts are of an older version, with facts read again from the headline, which is
        all that is kept. Raises: DependencyUnavailable.
        """
        old = [note for note in notes if note.facts is not None and note.facts.version != FACTS_VERSION]
        found = self.read_headlines_of(old) or [None] * len(old)
        return [
            replace(note, facts=None if facts is None else without_text(facts))
            for note, facts in zip(old, found, strict=True)
        ]

    def read_items(self, items: Sequence[News]) -> Sequence[NewsFacts | None]:
        """The facts of items that no one reported: they are not kept. Raises: DependencyUnavailable."""
        if self._reader is None:
            return [None] * len(items)
        return self._reader.read([item.headline for item in items], [item.body for item in items])

    def read_swapped(
        self, texts: Sequence[str], asked: Sequence[tuple[str, str]]
    ) -> list[ItemReading | None]:
        """What headlines mean for assets, by symbol and name, as those of items are read; none is kept.

        Raises: DependencyUnavailable.
        """
        if self._reader is None:
            return [None] * len(texts)
        facts = self._reader.read(texts, asked=asked if self.is_neutral else ())
        return [reading_record(one, read_for(one, *whom)) for one, whom in zip(facts, asked, strict=True)]

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
