"""Puts views to the swap test: the same news is read again with other names, by the draft and the target alike.

A view rests on readings of facts and on a model's; each is read with swapped texts. Where a target verifies drafts,
the draft reads them too: an accepted token was proposed by it. A reader that may answer late is asked by the
deadline of its decision; what it answers later is put to a test of its own (`late_swap_tests`).
"""

from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from htfi.domain.decision import Decision, Rung
from htfi.domain.events import News
from htfi.domain.governance import SwapFacts, SwapMove
from htfi.domain.news import ItemReading
from htfi.domain.news_view import NewsView
from htfi.governance.fairness.config import FairnessConfig
from htfi.governance.fairness.swap_test import judge_swaps
from htfi.narrative.merging import unmerged
from htfi.narrative.name_swaps import SwapKind, swapped_questions, swapped_texts
from htfi.narrative.processor import NewsProcessor
from htfi.narrative.question import Question, question_id
from htfi.pipeline.view_cache import APART_DEADLINE_MS, ReadRequest, ViewCache
from htfi.scheduling.fidelity import is_prepared

SWAPS_KEY, SWAPS_VERSION = (
    "swaps",
    "swaps/2",
)  # since 2 readers that answer late are tested too, and those in depth
MAX_CACHED = 4_096  # series whose last test is kept
_DECIMALS = 6
MODEL_RUNGS = (Rung.EDGE, Rung.SPECULATIVE, Rung.SECURE)


class SwapTests:
    """The swap tests of views, each made once for the same news, reader and limits."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, tuple[SwapMove, ...]] = OrderedDict()

    def run(
        self,
        request: ReadRequest,
        view: NewsView,
        news: NewsProcessor,
        views: ViewCache,
        config: FairnessConfig,
    ) -> SwapFacts:
        """The swap test of a view. Raises: DependencyUnavailable."""
        return judge_swaps(self._moves(request, view, news, views, config), config)

    def note_late(
        self,
        series: str,
        question: Question,
        view: NewsView,
        moves: Sequence[SwapMove],
        config: FairnessConfig,
    ) -> None:
        """Keep the test of a view that came late, for the decisions that keep the view."""
        self._store(_late_key(series, question, view, config), tuple(moves))

    def _moves(
        self,
        request: ReadRequest,
        view: NewsView,
        news: NewsProcessor,
        views: ViewCache,
        config: FairnessConfig,
    ) -> tuple[SwapMove, ...]:
        usual = self._usual_moves(request, news, views, config)
        read, rung = unmerged(view), request.plan.rung
        if read is None or not request.question.items or rung not in MODEL_RUNGS:
            return usual
        if read.reader == views.version_of(Rung.DEEP):
            rung = Rung.DEEP
        elif not views.answers_late(rung):
            return usual
        key = _late_key(request.series, request.question, read, config)
        if key not in self._known:
            test = ModelSwaps.of(request.question, request.news.items, news, config.num_swaps)
            answers = test.read(views, rung, request.plan.deadline_ms) if test.unread else {}
            self._store(key, test.moves(rung, read, answers))
        return usual + self._known[key]

    def _usual_moves(
        self, request: ReadRequest, news: NewsProcessor, views: ViewCache, config: FairnessConfig
    ) -> tuple[SwapMove, ...]:
        """Those of the facts, of the draft, and of a reader that is never late."""
        question, rung = request.question, request.plan.rung
        items = (*request.news.items, *(note.screened.item for note in request.news.encoder_only))
        key = (
            request.series,
            rung,
            tuple((item.id, item.headline) for item in items),
            tuple(item.id for item in question.items),
            config.num_swaps,
        )
        if key not in self._known:
            moves = fact_moves([item.headline for item in items], question.symbol, news, config.num_swaps)
            if question.items and rung in MODEL_RUNGS:
                rungs = [rung] if not views.answers_late(rung) else []
                if rung is not Rung.EDGE and rung is not Rung.SECURE and Rung.EDGE in views.rungs:
                    rungs.append(Rung.EDGE)
                for one in rungs:
                    moves += model_moves(request, one, news, views, config.num_swaps)
            self._store(key, tuple(moves))
        return self._known[key]

    def _store(self, key: Hashable, moves: tuple[SwapMove, ...]) -> None:
        self._known[key] = moves
        self._known.move_to_end(key)
        while len(self._known) > MAX_CACHED:
            self._known.popitem(last=False)


def _late_key(series: str, question: Question, view: NewsView, config: FairnessConfig) -> Hashable:
    items = tuple(item.id for item in question.items)
    return series, items, view.reader, view_move(view), config.num_swaps


class ModelSwaps(NamedTuple):
    """A question to a model and its swaps, of which those are `unread` that it is not asked already. `swaps` gives the
    kind of each, and the id of what is asked then.
    """

    own: str
    swaps: tuple[tuple[SwapKind, str], ...]
    unread: Mapping[str, Question]

    @classmethod
    def of(
        cls, question: Question, items: Sequence[News], news: NewsProcessor, num_swaps: int
    ) -> "ModelSwaps":
        """The swaps of a question as a model is asked it; `items` have the names as they were written."""
        named = replace(question, items=tuple(items), asked_as="") if news.facts.is_neutral else question
        found = [
            (kind, _as_asked(swapped, name, question.symbol, news))
            for kind, swapped, name in swapped_questions(
                named, news.facts.name_of(question.symbol), news.facts.linker, num_swaps
            )
        ]
        own = question_id(question)
        asked = {question_id(one): one for _, one in found}
        return cls(
            own,
            tuple((kind, question_id(one)) for kind, one in found),
            {name: one for name, one in asked.items() if name != own},
        )

    def read(self, views: ViewCache, rung: Rung, deadline_ms: float) -> dict[str, NewsView]:
        """What the reader of a rung answers to the unread ones. Raises: DependencyUnavailable."""
        read = views.read_apart(rung, list(self.unread.values()), deadline_ms)
        return dict(zip(self.unread, read, strict=True))

    def moves(self, rung: Rung, view: NewsView, answers: Mapping[str, NewsView]) -> tuple[SwapMove, ...]:
        """The moves of a view, by the answers to all that was unread."""
        after = {self.own: view, **answers}
        return tuple(
            SwapMove(mover(rung, view), kind.value, view_move(view), view_move(after[name]))
            for kind, name in self.swaps
        )


def fact_moves(texts: Sequence[str], symbol: str, news: NewsProcessor, num_swaps: int) -> list[SwapMove]:
    """What the facts of headlines mean for a symbol, before and after each swap."""
    name = news.facts.name_of(symbol)
    made = [(text, swapped_texts(text, (symbol, name), news.facts.linker, num_swaps)) for text in texts]
    asked = [(text, (symbol, name)) for text, _ in made]
    asked += [(one.text, (one.symbol or symbol, one.name)) for _, swaps in made for one in swaps]
    readings = news.facts.read_swapped([text for text, _ in asked], [whom for _, whom in asked])
    after = iter(readings[len(made) :])
    return [
        SwapMove(f"facts {before.reader}", one.kind.value, reading_move(before), reading_move(next(after)))
        for (_, swaps), before in zip(made, readings, strict=False)
        for one in swaps
        if before is not None
    ]


def model_moves(
    request: ReadRequest, rung: Rung, news: NewsProcessor, views: ViewCache, num_swaps: int
) -> list[SwapMove]:
    """What a rung's reader makes of the news before and after each swap."""
    test = ModelSwaps.of(request.question, request.news.items, news, num_swaps)
    if not test.swaps:
        return []
    asked = [request.question, *test.unread.values()]
    before, *after = views.read_apart(rung, asked, APART_DEADLINE_MS)
    return list(test.moves(rung, before, dict(zip(test.unread, after, strict=True))))


def _as_asked(swapped: Question, name: str, symbol: str, news: NewsProcessor) -> Question:
    """A swapped question as a model is asked it; with neutral names its noise is that of the symbol itself."""
    return (
        replace(news.facts.with_neutral_names(swapped, name), symbol=symbol)
        if news.facts.is_neutral
        else swapped
    )


def mover(rung: Rung, view: NewsView) -> str:
    """Whom the record names as the reader of a move."""
    return f"{rung.value} {view.reader}"


def model_swap_problems(decision: Decision) -> list[str]:
    """Whether the model that a view was read by was put to the swaps that the draft was put to, with that very view.

    Before `swaps/2` readers that answer late, and those in depth, were not.
    """
    read = None if decision.view is None else unmerged(decision.view)
    moves = swap_moves(decision)
    num_of_draft = sum(one.reader.startswith(f"{Rung.EDGE.value} ") for one in moves)
    if SWAPS_KEY not in decision.models or read is None or not num_of_draft or is_prepared(decision.plan):
        return []
    own = [one for one in moves if one.reader.endswith(f" {read.reader}")]
    if len(own) < num_of_draft:
        return [f"the view of {read.reader} was not put to the swaps that the draft was put to"]
    if read.read_at_ns == decision.as_of_ns and any(one.before != view_move(read) for one in own):
        return [f"the swap test of {read.reader} is not of the view that it gave"]
    return []


def swap_moves(decision: Decision) -> tuple[SwapMove, ...]:
    """The moves of a decision's swap test; none where it had none."""
    governed = decision.governance
    return () if governed is UNSET or governed.swaps is UNSET else governed.swaps.moves


def view_move(view: NewsView) -> float:
    """What a view expects, in standard deviations of one bar."""
    return round(view.direction * view.size_sigmas * view.confidence, _DECIMALS)


def reading_move(reading: ItemReading | None) -> float:
    """The same of what facts mean; nothing where none were read."""
    if reading is None:
        return 0.0
    return round(reading.direction * reading.size_sigmas * reading.confidence * reading.relevance, _DECIMALS)
