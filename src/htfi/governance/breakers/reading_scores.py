"""Scores of 0–1 of views, answers and news: what readers write, how their views fare, and what is quarantined."""

import math
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from htfi.governance.breakers.observations import NewsObservation, ViewObservation
from htfi.governance.breakers.wealth import ScoreBound

Array = NDArray[np.float64]

# Breakers that watch the views and answers of a reader. Several scores of one breaker share its false alarms.
READER_TESTS: tuple[tuple[str, ScoreBound], ...] = (
    ("draft_acceptance", ScoreBound(slack=0.12, gain=1.0, prior=0.3, prior_weight=5.0, num_warm=20.0)),
    ("draft_runaway", ScoreBound(slack=0.08, gain=1.0, prior=0.5, prior_weight=5.0, num_warm=20.0)),
    ("answers_shift", ScoreBound(slack=0.1, gain=1.2, prior=0.1, prior_weight=5.0, num_warm=20.0)),
    ("answers_shift", ScoreBound(slack=0.1, gain=1.2, prior=0.1, prior_weight=5.0, num_warm=20.0)),
    ("views_shift", ScoreBound(slack=0.15, gain=1.0, prior=0.4, prior_weight=10.0, num_warm=30.0)),
    ("views_shift", ScoreBound(slack=0.15, gain=1.0, prior=0.4, prior_weight=10.0, num_warm=30.0)),
    ("views_shift", ScoreBound(slack=0.1, gain=1.0, prior=0.2, prior_weight=10.0, num_warm=30.0)),
    ("views_shift", ScoreBound(slack=0.15, gain=1.0, prior=0.5, prior_weight=10.0, num_warm=30.0)),
    ("views_repeat", ScoreBound(slack=0.15, gain=1.0, prior=0.2, prior_weight=10.0, num_warm=20.0)),
    ("views_flip", ScoreBound(slack=0.05, gain=1.0, prior=0.02, prior_weight=10.0)),
    ("confidence_apart", ScoreBound(slack=0.06, gain=1.0, prior=0.5, prior_weight=20.0, num_warm=20.0)),
)
OUTCOME = len(READER_TESTS) - 1  # the score that an outcome gives, all others being those of a view
SERIES_NEWS_TESTS: tuple[tuple[str, ScoreBound], ...] = (
    ("sources_contradict", ScoreBound(slack=0.2, gain=1.5, prior=0.05, prior_weight=50.0)),
)
NEWS_TESTS: tuple[tuple[str, ScoreBound], ...] = (
    ("quarantine_swells", ScoreBound(slack=0.05, gain=2.0, prior=0.03, prior_weight=50.0)),
)
REACH_BOUND = 0.07  # of the series that one unconfirmed item does not name, the share that it may move

_USUAL_GAIN = 0.02
_LENGTH_RANGE = math.log(4.0)
_SIGMAS_RANGE = 5.0
_MAX_READ = 4_096  # series whose last view is remembered, and items


class LastView(msgspec.Struct, frozen=True, gc=False):
    """The last new view on a series."""

    reader: str
    direction: float
    confidence: float
    cited: tuple[str, ...]
    awaits_outcome: bool


class ReadingMemory:
    """What scores of views compare with: each reader's usual answer and last view, and the last view on each series."""

    def __init__(self) -> None:
        self._usual: dict[str, tuple[float, float, int]] = {}  # reader → mean log length and entropy, answers
        self._last_of: dict[
            str, tuple[tuple[float, ...], tuple[str, ...]]
        ] = {}  # reader → numbers and items cited
        self._last_on: dict[str, LastView] = {}  # series →

    def view_scores(self, series: str, view: ViewObservation, *, is_late: bool = False) -> Array:
        """Scores [B] of a new view in the order of READER_TESTS; the memory learns it.

        One that `is_late` came after the bar that it is on, so that the next bar does not judge it.
        """
        scores = np.full(len(READER_TESTS), np.nan)
        answer = view.answer
        if answer is not None and answer.num_tokens > 0:
            if answer.num_drafted > 0:
                scores[0] = 1.0 - min(answer.num_accepted / answer.num_drafted, 1.0)
                scores[1] = answer.num_drafted / (answer.num_drafted + answer.num_tokens)
            scores[2:4] = self._answer_scores(view.reader, math.log(answer.num_tokens), answer.entropy_nats)
        scores[4], scores[5] = max(view.direction, 0.0), max(-view.direction, 0.0)
        scores[6] = min(abs(view.shift_sigmas) / _SIGMAS_RANGE, 1.0)
        scores[7] = min(max(view.confidence, 0.0), 1.0)
        numbers = (view.direction, view.shift_sigmas, view.confidence, view.volatility_multiplier)
        before = self._last_of.get(view.reader)
        if before is not None and view.cited and not set(before[1]) & set(view.cited):
            scores[8] = float(before[0] == numbers)
        self._last_of[view.reader] = (numbers, view.cited)
        earlier = self._last_on.pop(series, None)
        if earlier is not None and earlier.reader == view.reader and set(earlier.cited) & set(view.cited):
            scores[9] = float(earlier.direction * view.direction < 0.0)
        self._last_on[series] = LastView(
            view.reader,
            view.direction,
            view.confidence,
            view.cited,
            view.direction != 0.0 and view.confidence > 0.0 and not is_late,
        )
        if len(self._last_on) > _MAX_READ:
            del self._last_on[next(iter(self._last_on))]
        return scores

    def outcome_score(self, series: str, log_return: float) -> tuple[str, float] | None:
        """Who read last on a series, and the score of the view by the bar after it; None where none awaits one."""
        last = self._last_on.get(series)
        if last is None or not last.awaits_outcome or not math.isfinite(log_return):
            return None
        self._last_on[series] = msgspec.structs.replace(last, awaits_outcome=False)
        is_right = log_return * last.direction > 0.0
        return last.reader, 0.5 * (1.0 + last.confidence - is_right)

    @property
    def awaiting(self) -> bool:
        """Whether a view on any series was read."""
        return bool(self._last_on)

    def _answer_scores(self, reader: str, length: float, entropy: float) -> tuple[float, float]:
        usual_length, usual_entropy, num = self._usual.get(reader, (length, entropy, 0))
        gain = max(1.0 / (num + 1.0), _USUAL_GAIN)
        away = min(abs(length - usual_length) / _LENGTH_RANGE, 1.0), min(abs(entropy - usual_entropy), 1.0)
        if num < 20 or max(away) < 0.5:  # what is far from the usual does not teach it
            usual_length += gain * (length - usual_length)
            usual_entropy += gain * (entropy - usual_entropy)
            self._usual[reader] = (usual_length, usual_entropy, num + 1)
        return away

    def state(self) -> dict[str, Any]:
        return {
            "usual": {name: list(one) for name, one in self._usual.items()},
            "last_of": {
                name: [list(numbers), list(cited)] for name, (numbers, cited) in self._last_of.items()
            },
            "last_on": {name: msgspec.to_builtins(one) for name, one in self._last_on.items()},
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._usual = {name: (one[0], one[1], one[2]) for name, one in state["usual"].items()}
        self._last_of = {name: (tuple(one[0]), tuple(one[1])) for name, one in state["last_of"].items()}
        self._last_on = {name: msgspec.convert(one, LastView) for name, one in state["last_on"].items()}


class ItemMemory:
    """The newest items of the news: whom they name, and how many reported the same."""

    def __init__(self) -> None:
        self._items: dict[str, tuple[tuple[str, ...], str]] = {}  # item → symbols, cluster
        self._num_alike: dict[str, int] = {}  # cluster → sources
        self._judged: dict[str, bool] = {}

    def learn(self, item: NewsObservation) -> None:
        self._items[item.id] = (item.symbols, item.cluster or item.id)
        self._num_alike[item.cluster or item.id] = item.num_alike
        for memory in (self._items, self._num_alike):
            if len(memory) > _MAX_READ:
                del memory[next(iter(memory))]

    def is_unconfirmed(self, item: str) -> bool:
        """Whether a known item is the only one that reports so, and was not judged yet."""
        known = self._items.get(item)
        return known is not None and self._num_alike.get(known[1], 1) <= 1 and item not in self._judged

    def symbols(self, item: str) -> tuple[str, ...]:
        return self._items[item][0]

    def mark_judged(self, item: str) -> None:
        self._judged[item] = True
        if len(self._judged) > _MAX_READ:
            del self._judged[next(iter(self._judged))]

    def state(self) -> dict[str, Any]:
        return {
            "items": {name: [list(symbols), cluster] for name, (symbols, cluster) in self._items.items()},
            "num_alike": dict(self._num_alike),
            "judged": list(self._judged),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._items = {name: (tuple(one[0]), one[1]) for name, one in state["items"].items()}
        self._num_alike = dict(state["num_alike"])
        self._judged = dict.fromkeys(state["judged"], True)
