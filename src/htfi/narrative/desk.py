"""The news desk: screens every item as it comes, has it scored, and keeps the news on each symbol. The loop tells it
items, decisions ask it what there is to read.

What is worth a model's time stands on one wire, what the encoder alone makes something of on another; what is set aside
is kept as well, with the reason, so that a decision can tell it.
"""

import re
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from htfi.domain.decision import Part, Plan
from htfi.domain.events import News
from htfi.domain.news import Heard, Hearing, Means, Route, Scores, Screened, Screening
from htfi.narrative.caching.encoded import derived_from
from htfi.narrative.config import NarrativeConfig
from htfi.narrative.encoder_reader import read_scores
from htfi.narrative.encoding.linking import is_company
from htfi.narrative.leverage import Shares, shares
from htfi.narrative.notes import NOTHING, Gathered, Note, heard_of
from htfi.narrative.question import MAX_ITEMS, item_name
from htfi.narrative.routing import worth_reading
from htfi.narrative.routing_config import RoutingConfig
from htfi.narrative.sanitising.sanitiser import Sanitiser
from htfi.narrative.secure import Secure
from htfi.narrative.text import clean
from htfi.narrative.wire import MAX_ID_CHARS, Wire

MAX_PENDING = 256  # items that are scored together
MAX_NOTES = 8_192
_LIVES_KEPT = 2  # lifetimes of an item: the oldest view that counts was made one ago, of items as old again
MAX_NOTED = 6  # items that the encoder alone reads for a decision
MAX_ASIDE = 6  # items set aside that a decision tells
MAX_AWAITED = 32  # items of a symbol whose price effect is awaited
_WORD = re.compile(r"[A-Z][A-Z0-9.]{2,11}(?<!\.)")  # long enough to be no common abbreviation
_SAYS = 0.3  # a weaker sentiment says nothing that prices could bear out


class Scoring(Protocol):
    """What scores screened items: `encoding.scorer.Scorer`."""

    version: str

    def score(self, items: Sequence[Screened]) -> list[Scores]: ...

    def state(self) -> dict[str, Any]: ...

    def restore(self, state: dict[str, Any]) -> None: ...


def forget_nothing(_: Sequence[str]) -> None:
    """Of a desk without a cache."""


class Desk:
    """What came in, by symbol, in bounded memory."""

    def __init__(
        self,
        config: NarrativeConfig,
        routing: RoutingConfig,
        sanitiser: Sanitiser,
        scorer: Scoring,
        secure: Secure,
        *,
        has_frontier: bool = False,
        forget: Callable[[Sequence[str]], None] = forget_nothing,
    ) -> None:
        """`forget` hears what was made of an item that is corrected or taken back, for caches.

        `has_frontier` where a frontier model reads in depth: then each such reading is reckoned to cost money."""
        self._forget_derived = forget
        self._has_frontier = has_frontier
        self.frontier_cents = routing.frontier_budget_cents if has_frontier else 0.0
        self._config, self.routing = config, routing
        self.sanitiser, self.scorer, self.secure = sanitiser, scorer, secure
        self.wire, self._noted, self._aside = Wire(config), Wire(config), Wire(config)
        self._notes: OrderedDict[str, Note] = OrderedDict()
        self._pending: list[Screened] = []
        self._asked: set[str] = set()  # symbols of the run's series
        self._awaited: OrderedDict[str, deque[tuple[str, float, int]]] = OrderedDict()

    @property
    def models(self) -> dict[str, str]:
        """Who scores, for the record of a decision."""
        return {"encoder": self.scorer.version} if self.scorer.version else {}

    def hear(self, item: News) -> Screened:
        """Take in one item, in order of `available_at_ns`. One whose headline is blank is no news.

        Raises: DependencyUnavailable.
        """
        name = clean(item.id, MAX_ID_CHARS) or f"{item.source}:{item.row}"
        if item.released_by:  # it stands aside until now
            self._forget(name)
        screened = self.sanitiser.screen(replace(item, id=name))
        self.secure.observe(self.sanitiser.take_troubles(), item.available_at_ns)
        for gone in self.sanitiser.invalidated():
            self._forget(gone)
        if not screened.item.headline:
            return screened
        self._pending.append(screened)
        if len(self._pending) >= MAX_PENDING:
            self.settle()
        return screened

    def settle(self) -> None:
        """Have what came in scored, and put it where it belongs. Raises: DependencyUnavailable."""
        if not self._pending:
            return
        pending, self._pending = self._pending, []
        usable = [one for one in pending if one.verdict is not Screening.QUARANTINE]
        scored = iter(self.scorer.score(usable))
        for one in pending:
            self._shelve(one, None if one.verdict is Screening.QUARANTINE else next(scored))

    def _shelve(self, screened: Screened, scores: Scores | None) -> None:
        screened = self._about(screened, scores)
        item = screened.item
        told_before = screened.cluster if screened.cluster != item.id else ""
        position = max(map(self.routing.at_stake, item.symbols), default=self.routing.position)
        tagged = bool(item.symbols)
        most, why = worth_reading(
            screened.verdict, told_before, scores, position, self.routing, is_tagged=tagged
        )
        self._expire(item.available_at_ns)
        derived = derived_from(screened)
        lean = replace(screened, item=replace(item, body="", url=""))
        note = self._notes[item.id] = Note(lean, scores, most, why, position, derived)
        self._notes.move_to_end(item.id)
        if len(self._notes) > MAX_NOTES:
            self._drop(next(iter(self._notes)))
        if most is Route.TEMPLATE:
            self._aside.hear(item)
        elif most is Route.ENCODER:
            self._noted.hear(item)
        else:
            self.wire.hear(item)
        if scores is not None and abs(scores.sentiment) >= _SAYS and note.most is not Route.TEMPLATE:
            for symbol in item.symbols:
                self._await(symbol, (item.id, scores.sentiment, item.available_at_ns))

    def _expire(self, now_ns: int) -> None:
        """Drop what is so old that no view which rests on it counts any longer."""
        oldest_ns = now_ns - _LIVES_KEPT * self.wire.lifetime_ns
        while self._notes:
            name, note = next(iter(self._notes.items()))
            if note.screened.item.available_at_ns >= oldest_ns:
                return
            self._drop(name)

    def _drop(self, name: str) -> None:
        """Let go of a note, and of its item wherever it stands: the shelves hold no more items than there are notes."""
        note = self._notes.pop(name)
        for wire in (self.wire, self._noted, self._aside):
            wire.forget(name, note.screened.item.symbols)

    def _about(self, screened: Screened, scores: Scores | None) -> Screened:
        """The item on the companies that it names, where it comes without symbols and the run has series of them all.

        A symbol of the run that stands in the headline is such a name. What else it names concerns the whole market.
        """
        if screened.item.symbols or scores is None:
            return screened
        linked = tuple(dict.fromkeys((*scores.symbols, *self._spelled(screened.item.headline))))
        if not linked or not all(symbol in self._asked and is_company(symbol) for symbol in linked):
            return screened
        most = self.sanitiser.max_symbols_moved
        return replace(screened, item=replace(screened.item, symbols=linked[:most]))

    def _spelled(self, headline: str) -> list[str]:
        """The run's symbols that stand in a headline as they are spelled; in capitals throughout they tell nothing."""
        if headline.isupper():
            return []
        return [word for word in _WORD.findall(headline) if word in self._asked and word.isupper()]

    def gather(self, symbol: str, as_of_ns: int) -> Gathered:
        """The news on a symbol that were known at an instant."""
        self.settle()  # before the symbol is known of: a saved state, taken any time, settles alike
        self._asked.add(symbol)
        if not self._notes and self.secure.is_calm:
            return NOTHING
        items = [item for item in self.wire.recent(symbol, as_of_ns) if item.id in self._notes]
        noted = self._noted.recent(symbol, as_of_ns, MAX_NOTED)
        aside = self._aside.recent(symbol, as_of_ns, MAX_ASIDE)
        suspicion = self.secure.suspicion(symbol, as_of_ns)
        if not (items or noted or aside or suspicion):
            return NOTHING
        if suspicion:  # what is not beyond doubt waits until it has passed
            aside = [item for item in noted if item.id in self._notes] + aside
            noted = []
        cleared = self.secure.cleared(symbol, as_of_ns)
        return Gathered(tuple(items), self._known(noted), self._known(aside), suspicion, cleared)

    def routes(self, items: Sequence[News]) -> list[Route]:
        """The dearest reader that each item is worth."""
        return [note.most for note in self._known(items)]

    def num_affordable(self, num_readings: int) -> int:
        """How many readings in depth there is money for, of so many."""
        if not self._has_frontier:
            return num_readings
        return min(num_readings, int(self.frontier_cents / self.routing.frontier_cents + 1e-9))

    def doubt(self, gathered: Gathered) -> float:
        """How far reading these news should go behind reading others', 0–1: by the least believed of their sources."""
        if gathered.suspicion:
            return 1.0
        return self.sanitiser.doubt(dict.fromkeys(item.source for item in gathered.items))

    def worth_frontier(self, gathered: Gathered) -> bool:
        """Whether some of the news are worth a frontier model, where there is one."""
        return self._has_frontier and not gathered.suspicion and Route.FRONTIER in self.routes(gathered.items)

    def spend(self, num_readings: int) -> None:
        """Count readings in depth."""
        if self._has_frontier:
            self.frontier_cents = round(self.frontier_cents - num_readings * self.routing.frontier_cents, 6)

    def items(self, names: Sequence[str]) -> list[News]:
        """Items by their ids, newest first; what has been forgotten is left out."""
        found = [note.screened.item for name in names if (note := self._notes.get(name)) is not None]
        return sorted(found, key=lambda item: (-item.available_at_ns, item.source, -item.row))

    def noted_parts(self, gathered: Gathered) -> list[Part]:
        """The encoder's own readings, of the items that no model reads."""
        return [
            read_scores(
                note.screened.item.id,
                note.screened.item.available_at_ns,
                note.screened.trust,
                note.scores,
                self._config,
            )
            for note in gathered.noted
            if note.scores is not None and note.scores.relevance * note.scores.novelty > 0.0
        ]

    def hearing(self, gathered: Gathered, plan: Plan, means: Means | None) -> Hearing | None:
        """What a decision records of the news: who was to read each item, and why."""
        if means is None:
            return None
        considered = (*self._known(gathered.items[:MAX_ITEMS]), *gathered.noted)
        return Hearing(
            considered=tuple(self._heard(note, plan, means) for note in considered),
            set_aside=tuple(self._heard(note, plan, means) for note in gathered.aside),
            means=means,
            suspicion=gathered.suspicion,
            cleared=gathered.cleared,
        )

    def _heard(self, note: Note, plan: Plan, means: Means) -> Heard:
        return heard_of(note, plan, means, self.routing, self.sanitiser.max_moved(note.screened))

    def shares(self, gathered: Gathered) -> Shares:
        """How far these news may move a forecast."""
        read = self._known(gathered.items[:MAX_ITEMS])
        by_item = {
            note.screened.item.id: self.sanitiser.max_moved(note.screened)
            for note in (*read, *gathered.noted)
        }
        return shares(by_item, [note.screened.item.id for note in read])

    def trust(self, names: Sequence[str]) -> float:
        """The mean trust, 0–1, in items that a view rests on; 1 where none is known."""
        trusts = [note.screened.trust for name in names if (note := self._notes.get(name)) is not None]
        return round(sum(trusts) / len(trusts), 3) if trusts else 1.0

    @property
    def has_heard(self) -> bool:
        """Whether there was any news."""
        return bool(self._notes) or bool(self._pending)

    def awaits(self, symbol: str) -> bool:
        """Whether some item's effect on a symbol's price is awaited."""
        return bool(self._awaited.get(symbol))

    def learn(self, symbol: str, return_sigmas: float, start_ns: int, end_ns: int) -> None:
        """What a symbol's bar returned, in standard deviations: it judges the sources of items from before it."""
        self.sanitiser.moved(symbol, end_ns, return_sigmas)
        awaited = self._awaited.get(symbol)
        while awaited and awaited[0][2] <= start_ns:
            name, direction, _ = awaited.popleft()
            self.sanitiser.learn(name, direction, return_sigmas)

    def _await(self, symbol: str, said: tuple[str, float, int]) -> None:
        self._awaited.setdefault(symbol, deque(maxlen=MAX_AWAITED)).append(said)
        self._awaited.move_to_end(symbol)
        if len(self._awaited) > self._config.max_symbols:
            self._awaited.popitem(last=False)

    def _known(self, items: Sequence[News]) -> tuple[Note, ...]:
        return tuple(note for item in items if (note := self._notes.get(item.id)) is not None)

    def _forget(self, name: str) -> None:
        """Drop an item that was corrected or taken back, wherever it stands."""
        self.settle()
        note = self._notes.get(name)
        self._forget_derived((item_name(name),) if note is None else note.derived)
        if note is not None:
            self._drop(name)

    def state(self) -> dict[str, Any]:
        self.settle()
        return {
            "frontier_cents": self.frontier_cents,
            "sanitiser": self.sanitiser.state(),
            "scorer": self.scorer.state(),
            "secure": self.secure.state(),
            "wire": self.wire.state(),
            "noted": self._noted.state(),
            "aside": self._aside.state(),
            "notes": msgspec.msgpack.encode(list(self._notes.values())),
            "asked": sorted(self._asked),
            "awaited": [
                [symbol, [list(said) for said in all_said]] for symbol, all_said in self._awaited.items()
            ],
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.frontier_cents = state["frontier_cents"]
        self.sanitiser.restore(state["sanitiser"])
        self.scorer.restore(state["scorer"])
        self.secure.restore(state["secure"])
        self.wire.restore(state["wire"])
        self._noted.restore(state["noted"])
        self._aside.restore(state["aside"])
        notes = msgspec.msgpack.decode(state["notes"], type=list[Note])
        self._notes = OrderedDict((note.screened.item.id, note) for note in notes)
        self._asked = set(state["asked"])
        self._awaited = OrderedDict(
            (symbol, deque([(name, way, at) for name, way, at in said], maxlen=MAX_AWAITED))
            for symbol, said in state["awaited"]
        )
