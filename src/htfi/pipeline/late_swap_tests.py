"""Swap tests of views that came after their decision: what a reader answers late is tested before it amends anything.

Where all swaps come to the question that was asked, the view is its own test. Else the swapped questions are asked too:
at once of a reader that is here, by requests that nothing waits for of one that answers late. A view whose test gets no
answer amends nothing.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from htfi.domain.decision import Rung
from htfi.domain.generation import RequestRefused
from htfi.domain.governance import SwapMove
from htfi.domain.news_view import NewsView
from htfi.governance.fairness.config import FairnessConfig
from htfi.narrative.processor import NewsProcessor
from htfi.narrative.question import Question
from htfi.pipeline.swap_tests import ModelSwaps
from htfi.pipeline.view_cache import APART_DEADLINE_MS, ViewCache, late_question_id

Moves = tuple[SwapMove, ...]


class TestedView(NamedTuple):
    """The answer to a pending question, by its id, with what its test found; None where it cannot be tested."""

    name: str
    view: NewsView
    moves: Moves | None


class _OpenTest(NamedTuple):
    name: str
    rung: Rung
    view: NewsView
    swaps: ModelSwaps
    answers: dict[str, NewsView]


class LateSwapTests:
    """The tests under way, by the id of the view's question: at most `max_open`, the oldest end without an answer."""

    def __init__(
        self,
        news: NewsProcessor,
        views: ViewCache,
        limits: Callable[[], FairnessConfig | None],
        max_open: int,
    ) -> None:
        self._news, self._views, self._limits, self._max_open = news, views, limits, max_open
        self._open: OrderedDict[str, _OpenTest] = OrderedDict()

    def begin(self, name: str, rung: Rung, question: Question, view: NewsView) -> list[TestedView]:
        """What is tested once the answer to a question has come. Raises: DependencyUnavailable."""
        limits = self._limits()
        if limits is None:
            return [TestedView(name, view, ())]
        swaps = self._swaps_of(question, limits)
        if not swaps.unread or not self._views.answers_late(rung):
            answers = swaps.read(self._views, rung, APART_DEADLINE_MS) if swaps.unread else {}
            return [TestedView(name, view, swaps.moves(rung, view, answers))]
        self._open[name] = _OpenTest(name, rung, view, swaps, {})
        self._views.resume_requests(rung, list(swaps.unread.values()))
        given_up: list[TestedView] = []
        while len(self._open) > self._max_open:
            _, oldest = self._open.popitem(last=False)
            given_up.append(TestedView(oldest.name, oldest.view, None))
        return given_up

    def take(self, answered: str, view: NewsView | RequestRefused) -> list[TestedView]:
        """What an answer to a swapped question, by its late id, completes."""
        done: list[TestedView] = []
        for test in list(self._open.values()):
            asked = next(
                (name for name in test.swaps.unread if late_question_id(test.rung, name) == answered), None
            )
            if asked is None:
                continue
            if isinstance(view, RequestRefused):
                done.append(TestedView(test.name, test.view, None))
            else:
                test.answers[asked] = view
                if len(test.answers) == len(test.swaps.unread):
                    done.append(
                        TestedView(test.name, test.view, test.swaps.moves(test.rung, test.view, test.answers))
                    )
        for one in done:
            del self._open[one.name]
        return done

    def _swaps_of(self, question: Question, limits: FairnessConfig) -> ModelSwaps:
        """The swaps of a question, from its items as they were written, where they are held still."""
        written = {item.id: item for item in self._news.held.items([item.id for item in question.items])}
        items = [written.get(item.id, item) for item in question.items]
        return ModelSwaps.of(question, items, self._news, limits.num_swaps)
