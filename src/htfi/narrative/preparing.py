"""What of a news item follows from the item alone: its text without disguises, what the encoder and the reader of facts
make of it. It may be worked out before the item is received, and elsewhere; the bits are the same.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from htfi.domain.events import News
from htfi.narrative.encoding.scorer import text_to_score
from htfi.narrative.encoding.text_reading import TextReader, TextReading
from htfi.narrative.facts.bodies import num_passages_worth
from htfi.narrative.facts.fact_reader import FactReader, decode_facts
from htfi.narrative.facts.record import NewsFacts
from htfi.narrative.sanitising.sanitiser import UndisguisedText
from htfi.narrative.symbol_readings import SymbolReadings

MAX_TOGETHER = 64  # items that are prepared in one pass of the encoder


class PreparedItem(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One item: its cleaned text, what was read of it as a whole, and the facts of the passages of its body."""

    shown: UndisguisedText
    texts: tuple[tuple[str, TextReading], ...]
    passages: tuple[NewsFacts, ...]


class ItemsAhead(Protocol):
    """Prepares items before they are received."""

    def expect(self, items: Sequence[News]) -> bool:
        """The items that will be received next, in order; false where it will not prepare them."""
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

    def prepare(self, items: Sequence[News]) -> list[PreparedItem]:
        """One per item, in order. Raises: DependencyUnavailable."""
        shown = [self._undisguise(item) for item in items]
        wanted = [
            tuple(dict.fromkeys((text_to_score(one.headline, one.body), one.headline)))
            if one.headline
            else ()
            for one in shown
        ]
        unique = list(dict.fromkeys(text for texts in wanted for text in texts))
        read = dict(zip(unique, self._texts.read(unique), strict=True))
        with_facts = [
            place for place, one in enumerate(shown) if one.headline and read[one.headline].facts and one.body
        ]
        headlines = [decode_facts(read[shown[place].headline].facts) for place in with_facts]

        def num_passages(number: int, facts: NewsFacts) -> int:
            place = with_facts[number]
            readings = [self._readings.reading_of(facts, symbol) for symbol in items[place].symbols]
            return num_passages_worth(facts, shown[place].body, readings)

        found = self._facts.passages(headlines, [shown[place].body for place in with_facts], num_passages)
        below = dict(zip(with_facts, found, strict=True))
        return [
            PreparedItem(one, tuple((text, read[text]) for text in texts), below.get(place, ()))
            for place, (one, texts) in enumerate(zip(shown, wanted, strict=True))
        ]
