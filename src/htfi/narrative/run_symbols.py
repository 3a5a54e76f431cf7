"""The symbols that a run has series of: which items concern them, and which of them an item names."""

import re
from collections.abc import Iterable

from msgspec.structs import replace

from htfi.domain.news import NewsScores, ScreenedItem
from htfi.narrative.encoding.linking import is_company
from htfi.narrative.facts.naming import is_word_symbol
from htfi.narrative.facts.record import NewsFacts
from htfi.narrative.recent_news import NewsRecord
from htfi.narrative.symbol_readings import SymbolReadings
from htfi.narrative.unread_bodies import concerns_series

_TICKER = re.compile(
    r"[A-Z][A-Z0-9.]{2,11}(?<!\.)"
)  # three letters or more: shorter ones are common abbreviations


class RunSymbols:
    """A set that grows as series come."""

    def __init__(self, readings: SymbolReadings) -> None:
        self._readings = readings
        self.known: set[str] = set()  # the same object for ever: what reads ahead holds it
        self._all_named = True  # whether it is known what each of them is called

    def add(self, symbol: str) -> None:
        self.known.add(symbol)
        self._all_named = self._all_named and self._readings.has_name(symbol)

    def concerned_by(self, note: NewsRecord, facts: NewsFacts) -> bool:
        """Whether an item concerns a series of the run."""
        item = note.screened.item
        scored = () if note.scores is None else note.scores.symbols
        return concerns_series(
            item.symbols,
            facts,
            lambda: (*scored, *self._tickers_in(item.headline)),
            self.known,
            all_named=self._all_named,
        )

    def link(self, screened: ScreenedItem, scores: NewsScores | None, most: int) -> ScreenedItem:
        """The item with at most so many companies that it names as its symbols, if it came without any and the run has
        series of all of them.

        A symbol of the run that stands in the headline counts as a name. An item that names anything else concerns the
        whole market.
        """
        if screened.item.symbols or scores is None:
            return screened
        linked = tuple(dict.fromkeys((*scores.symbols, *self._tickers_in(screened.item.headline))))
        if not linked or not all(symbol in self.known and is_company(symbol) for symbol in linked):
            return screened
        return replace(screened, item=replace(screened.item, symbols=linked[:most]))

    def _tickers_in(self, headline: str) -> list[str]:
        """The run's symbols that stand in a headline as they are written; none in a headline that is all capitals."""
        if headline.isupper():
            return []
        return [
            word
            for word in _TICKER.findall(headline)
            if word in self.known and word.isupper() and not is_word_symbol(word)
        ]

    def restore(self, symbols: Iterable[str]) -> None:
        self.known.clear()
        self.known.update(symbols)
        self._all_named = all(map(self._readings.has_name, self.known))
