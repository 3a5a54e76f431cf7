"""Puts views to the swap test: the same news is read again with other names, by the draft and the target alike.

A view rests on readings of facts and on a model's; each is read with swapped texts. Where a target verifies drafts,
the draft reads them too: an accepted token was proposed by it.
"""

from collections import OrderedDict
from collections.abc import Sequence

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from htfi.domain.decision import NewsView, Rung
from htfi.domain.governance import SwapFacts, SwapMove
from htfi.domain.news import ItemReading
from htfi.governance.fairness.config import FairnessConfig
from htfi.governance.fairness.swap_test import judge_swaps
from htfi.narrative.name_swaps import swapped_questions, swapped_texts
from htfi.narrative.processor import NewsProcessor
from htfi.narrative.question import Question, question_id
from htfi.pipeline.view_cache import ReadRequest, ViewCache

MAX_CACHED = 4_096  # series whose last test is kept
_DECIMALS = 6
_MODEL_RUNGS = (Rung.EDGE, Rung.SPECULATIVE, Rung.SECURE)


class SwapTests:
    """The swap tests of views, each made once for the same news, reader and limits."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[object, ...], tuple[SwapMove, ...]] = OrderedDict()

    def run(
        self,
        requests: Sequence[ReadRequest | None],
        news: NewsProcessor,
        views: ViewCache,
        config: FairnessConfig,
    ) -> list[SwapFacts | UnsetType]:
        """The swap test of each view; unset where there is none. Raises: DependencyUnavailable."""
        return [
            UNSET if request is None else judge_swaps(self._moves(request, news, views, config), config)
            for request in requests
        ]

    def _moves(
        self, request: ReadRequest, news: NewsProcessor, views: ViewCache, config: FairnessConfig
    ) -> tuple[SwapMove, ...]:
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
            if question.items and rung in _MODEL_RUNGS:
                rungs = [rung] if not views.answers_late(rung) else []
                if rung is not Rung.EDGE and rung is not Rung.SECURE and Rung.EDGE in views.rungs:
                    rungs.append(Rung.EDGE)
                for one in rungs:
                    moves += model_moves(request, one, news, views, config.num_swaps)
            self._known[key] = tuple(moves)
        self._known.move_to_end(key)
        while len(self._known) > MAX_CACHED:
            self._known.popitem(last=False)
        return self._known[key]


def fact_moves(texts: Sequence[str], symbol: str, news: NewsProcessor, num_swaps: int) -> list[SwapMove]:
    """What the facts of headlines mean for a symbol, before and after each swap."""
    name = news.name_of(symbol)
    made = [(text, swapped_texts(text, (symbol, name), news.linker, num_swaps)) for text in texts]
    asked = [(text, (symbol, name)) for text, _ in made]
    asked += [(one.text, (one.symbol or symbol, one.name)) for _, swaps in made for one in swaps]
    readings = news.read_swapped([text for text, _ in asked], [whom for _, whom in asked])
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
    question = request.question
    named = replace(question, items=request.news.items, asked_as="") if news.is_neutral else question
    swaps = swapped_questions(named, news.name_of(question.symbol), news.linker, num_swaps)
    if not swaps:
        return []
    asked = [question, *(_as_asked(swapped, name, question.symbol, news) for _, swapped, name in swaps)]
    unique = {question_id(one): one for one in asked}
    read = dict(zip(unique, views.read_apart(rung, list(unique.values())), strict=True))
    before, *after = (read[question_id(one)] for one in asked)
    return [
        SwapMove(f"{rung.value} {before.reader}", kind.value, view_move(before), view_move(one))
        for (kind, *_), one in zip(swaps, after, strict=True)
    ]


def _as_asked(swapped: Question, name: str, symbol: str, news: NewsProcessor) -> Question:
    """A swapped question as a model is asked it; with neutral names its noise is that of the symbol itself."""
    return replace(news.with_neutral_names(swapped, name), symbol=symbol) if news.is_neutral else swapped


def view_move(view: NewsView) -> float:
    """What a view expects, in standard deviations of one bar."""
    return round(view.direction * view.size_sigmas * view.confidence, _DECIMALS)


def reading_move(reading: ItemReading | None) -> float:
    """The same of what facts mean; nothing where none were read."""
    if reading is None:
        return 0.0
    return round(reading.direction * reading.size_sigmas * reading.confidence * reading.relevance, _DECIMALS)
