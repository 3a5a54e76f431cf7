"""What the facts of items mean for each symbol, and what followed: readings by item and symbol, and how they proved."""

from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Set
from typing import Any, NamedTuple

from msgspec.structs import replace

from htfi.domain.news import ItemReading
from htfi.narrative.config import NarrativeConfig
from htfi.narrative.encoding.linking import has_built_in_name
from htfi.narrative.facts.outcomes import KindOutcomes
from htfi.narrative.facts.reading import read_for, reading_record
from htfi.narrative.facts.record import NewsFacts
from htfi.narrative.recent_news import NewsRecord

MAX_AWAITED_EFFECTS = 32  # items of a symbol whose price effect is still to be observed
_MIN_SENTIMENT = 0.3  # a weaker sentiment predicts nothing that prices could confirm


class AwaitedEffect(NamedTuple):
    """An item that states a move, in standard deviations or as a sentiment −1…1, before prices have answered."""

    item: str
    stated: float
    available_at_ns: int


class SymbolReadings:
    """Readings of items, each derived once for a symbol, with the share that their kind of event has earned."""

    def __init__(self, config: NarrativeConfig) -> None:
        self._config = config
        self._outcomes = KindOutcomes()
        self._by_item: dict[str, dict[str, ItemReading]] = {}
        self._awaited: OrderedDict[str, deque[AwaitedEffect]] = OrderedDict()  # by symbol

    def reading(self, note: NewsRecord, symbol: str) -> ItemReading | None:
        """What the facts of an item mean for a symbol now; None where none were read."""
        if note.facts is None:
            return None
        by_symbol = self._by_item.setdefault(note.screened.item.id, {})
        if symbol not in by_symbol:
            item = note.screened.item
            by_symbol[symbol] = self.reading_of(
                replace(note.facts, text=item.headline), symbol, is_tagged=bool(item.symbols)
            )
        reading = by_symbol[symbol]
        earned = self._outcomes.earned(reading.event) if reading.direction else 0.0
        return reading if earned == reading.earned else replace(reading, earned=earned)

    def reading_of(self, facts: NewsFacts, symbol: str, *, is_tagged: bool = True) -> ItemReading:
        """What facts mean for a symbol, before anything was earned."""
        name = self._config.symbol_names.get(symbol, "")
        return reading_record(facts, read_for(facts, symbol, name, is_tagged=is_tagged))

    def has_name(self, symbol: str) -> bool:
        """Whether it is known what a symbol is called, and so whether a text names it."""
        return bool(self._config.symbol_names.get(symbol)) or has_built_in_name(symbol)

    def forget(self, name: str) -> None:
        """Forget the readings of an item."""
        self._by_item.pop(name, None)

    def await_effects(self, note: NewsRecord, series_symbols: Set[str]) -> None:
        """Await what prices do after an item that states a move for those of its symbols that have a series."""
        item, scores = note.screened.item, note.scores
        for symbol in item.symbols:
            if symbol not in series_symbols:
                continue
            reading = self.reading(note, symbol)
            if reading is not None:
                stated = reading.direction * reading.size_sigmas
            else:
                stated = 0.0 if scores is None or abs(scores.sentiment) < _MIN_SENTIMENT else scores.sentiment
            if stated:
                self._await(symbol, AwaitedEffect(item.id, stated, item.available_at_ns))

    def learn_return(
        self,
        symbol: str,
        return_sigmas: float,
        start_ns: int,
        records: Mapping[str, NewsRecord],
        judge: Callable[[str, float, float], None],
    ) -> None:
        """Learn a symbol's return over a bar, in standard deviations; `judge` learns what each item from before the bar
        stated, and the return.
        """
        awaited = self._awaited.get(symbol)
        while awaited and awaited[0].available_at_ns <= start_ns:
            one = awaited.popleft()
            judge(one.item, one.stated, return_sigmas)
            note = records.get(one.item)
            if note is not None and note.facts is not None:
                self._outcomes.learn(note.facts.event.value, one.stated, return_sigmas)

    def _await(self, symbol: str, effect: AwaitedEffect) -> None:
        self._awaited.setdefault(symbol, deque(maxlen=MAX_AWAITED_EFFECTS)).append(effect)
        self._awaited.move_to_end(symbol)
        if len(self._awaited) > self._config.max_symbols:
            self._awaited.popitem(last=False)

    def state(self) -> dict[str, Any]:
        return {
            "outcomes": self._outcomes.state(),
            "awaited": [
                [symbol, [list(effect) for effect in effects]] for symbol, effects in self._awaited.items()
            ],
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._by_item = {}
        self._outcomes.restore(state.get("outcomes", {}))
        self._awaited = OrderedDict(
            (symbol, deque((AwaitedEffect(*effect) for effect in effects), maxlen=MAX_AWAITED_EFFECTS))
            for symbol, effects in state["awaited"]
        )
