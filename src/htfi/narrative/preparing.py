"""What of a news item follows from the item alone: its text without disguises, what the encoder and the reader of facts
make of it. It may be worked out before the item is received, and elsewhere; the bits are the same.
"""

from collections.abc import Callable, Sequence, Set
from functools import partial
from typing import Protocol

import msgspec

from htfi.domain.events import News
from htfi.narrative.encoding.scorer import text_to_score
from htfi.narrative.encoding.text_reading import TextReader, TextReading
from htfi.narrative.facts.bodies import num_passages_worth
from htfi.narrative.facts.fact_reader import FactReader
from htfi.narrative.facts.passages.facts import PassageFacts
from htfi.narrative.facts.record import NewsFacts
from htfi.narrative.sanitising.item_text import UndisguisedText
from htfi.narrative.symbol_readings import SymbolReadings
from htfi.narrative.unread_bodies import concerns_series

MAX_TOGETHER = 32  # items that are prepared together: as fast as 256, and answered sooner


class PreparedItem(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One item: its cleaned text, what was read of it as a whole, and its facts.

    `alone` are those without any passage of the body, `whole` with the passages that are worth reading for `symbols`;
    None where that is the same, or where there is a body that `is_unread`, as it concerned no series then. `passages`
    are the facts of these, each by itself.
    """

    shown: UndisguisedText
    texts: tuple[tuple[str, TextReading], ...]
    symbols: tuple[str, ...]
    alone: NewsFacts | None = None
    whole: NewsFacts | None = None
    passages: tuple[PassageFacts, ...] = ()
    is_unread: bool = False

    def facts(self, symbols: tuple[str, ...], max_passages: int) -> NewsFacts | None:
        """The facts of an item on these symbols, of whose body so many passages may be read; None where they were not
        worked out.
        """
        if max_passages == 0:
            return self.alone
        if self.is_unread:
            return None
        if self.whole is None:
            return self.alone if symbols == self.symbols else None
        num = 0 if self.whole.body is None else self.whole.body.num_passages
        return self.whole if symbols == self.symbols and num <= max_passages else None


class ItemsAhead(Protocol):
    """Prepares items before they are received."""

    def expect(self, items: Sequence[News], series: Set[str]) -> bool:
        """The items that will be received next, in order; false where it will not prepare them.

        `series` are the symbols of the run's series, which may become more meanwhile: of what concerns none of them
        the body is not read.
        """
        ...

    def take(self, item: News) -> PreparedItem | None:
        """What was prepared of an item that is received now; None where nothing was."""
        ...


class ItemPreparer:
    """Prepares items with a reader of texts and of facts."""

    def __init__(
        self,
        undisguise: Callable[[News], UndisguisedText],
        texts: TextReader,
        facts: FactReader,
        readings: SymbolReadings,
    ) -> None:
        self._undisguise, self._texts, self._facts, self._readings = undisguise, texts, facts, readings

    def prepare(self, items: Sequence[News], series: Set[str]) -> list[PreparedItem]:
        """One per item, in order, for a run with series of these symbols: headlines are read together, then passages.
        Raises: DependencyUnavailable.
        """
        shown = [self._undisguise(item) for item in items]
        wanted = [
            tuple(dict.fromkeys((text_to_score(one.headline, one.body), one.headline)))
            if one.headline
            else ()
            for one in shown
        ]
        unique = list(dict.fromkeys(text for texts in wanted for text in texts))
        read = dict(zip(unique, self._texts.read(unique), strict=True))
        texts = [tuple((text, read[text]) for text in of_item) for of_item in wanted]
        return self._with_facts(items, shown, texts, series)

    def _with_facts(
        self,
        items: Sequence[News],
        shown: Sequence[UndisguisedText],
        texts: Sequence[tuple[tuple[str, TextReading], ...]],
        series: Set[str],
    ) -> list[PreparedItem]:
        """Items whose texts were read, with their facts where the headline has any."""
        made = [
            PreparedItem(one, of_item, item.symbols)
            for item, one, of_item in zip(items, shown, texts, strict=True)
        ]
        places = [
            place
            for place, one in enumerate(shown)
            if one.headline and dict(texts[place])[one.headline].facts
        ]
        headlines, bodies = (
            [shown[place].headline for place in places],
            [shown[place].body for place in places],
        )
        all_named = all(map(self._readings.has_name, series))
        unread: set[int] = set()  # places of items whose body concerns none of the series

        def num_passages(number: int, facts: NewsFacts) -> int:
            place = places[number]
            symbols, linked = items[place].symbols, partial(self._linked_symbols, shown[place])
            if not concerns_series(symbols, facts, linked, series, all_named=all_named):
                unread.add(place)
                return 0
            readings = [self._readings.reading_of(facts, symbol) for symbol in symbols]
            return num_passages_worth(facts, bodies[number], readings)

        for place, read in zip(places, self._facts.begin(headlines, bodies, num_passages)(), strict=True):
            made[place] = msgspec.structs.replace(
                made[place],
                alone=read.alone,
                whole=None if read.whole == read.alone else read.whole,
                passages=read.passages,
                is_unread=place in unread,
            )
        return made

    def _linked_symbols(self, shown: UndisguisedText) -> tuple[str, ...]:
        return self._facts.linked_symbols(f"{shown.headline}\n{shown.body}")
