"""Baselines without a language model: word counts with logistic regression, no words, and the most common answer.

`htfi eval mini` fits them on stories like the models' own. scikit-learn comes with `htfi-eval[peers]`.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from htfi.domain.events import News
from htfi.narrative.answer import DIRECTIONS, SIZES, VOLATILITIES
from htfi.narrative.question import AGE_EDGES, Question, age_mark, shown_items
from htfi_eval.commands import load_library
from htfi_eval.eval.mini.scores import EvaluationCase, Floats, ReaderAnswers, answers_of

REGULARISATIONS = (0.01, 0.03, 0.1, 0.3, 1.0)  # C of the logistic regression
HELD_OUT = 0.1  # of the training stories, to choose C
_TOLERANCE, _MAX_ITERATIONS = 1e-3, 300
_LAST_RETURNS = 8
_SPANS = (2, 4, 8, 16, 32)
_WORD = re.compile(r"[^\s,;:!?\"“”()\[\]]+")
_DIGITS = re.compile(r"\d+")


class BaselineFeatures(Enum):
    """The input of a baseline: the words; words, tags, ages and recent returns; or all but the words."""

    WORDS = "words"
    ALL = "words+"
    NO_WORDS = "no words"


def most_common(training: Sequence[EvaluationCase], num: int) -> ReaderAnswers:
    """The answer that is right most often, given to `num` questions without reading anything."""
    way = Counter(case.truth.direction for case in training).most_common(1)[0][0]
    sizes = [case.truth.size_sigmas for case in training if case.truth.direction == way]
    return ReaderAnswers(
        direction=np.full(num, way),
        size_sigmas=np.full(num, float(np.median(sizes)) if way else 0.0),
        confidence=np.full(num, float(np.mean([case.truth.direction == way for case in training]))),
        volatility=np.full(num, float(np.median([case.truth.volatility_multiplier for case in training]))),
        cited=((),) * num,
        cause=(Counter(case.truth.cause for case in training).most_common(1)[0][0],) * num,
        consistency=(Counter(case.truth.consistency for case in training).most_common(1)[0][0],) * num,
    )


@dataclass(frozen=True, slots=True)
class BagOfWordsReader:
    """A bag-of-words reader. Its confidence is the probability of the direction it predicts."""

    features: BaselineFeatures
    regularisation: float  # the C that was best on the held-out part
    num_features: int
    table: "_CountTable"
    direction: Any  # LogisticRegression over DIRECTIONS
    size: Any  # over the places of SIZES
    volatility: Any  # over the places of VOLATILITIES

    def read(self, cases: Sequence[EvaluationCase]) -> ReaderAnswers:
        """Direction, size, volatility and confidence; cites the item whose words alone give the clearest prediction."""
        rows = self.table.rows(cases)
        chances = self._chances(self.direction, rows, len(DIRECTIONS))
        called = np.argmax(chances, axis=1)
        direction = np.array(DIRECTIONS)[called]
        return ReaderAnswers(
            direction=direction,
            size_sigmas=np.where(direction == 0.0, 0.0, self._median(self.size, rows, SIZES)),
            confidence=chances[np.arange(len(called)), called],
            volatility=self._median(self.volatility, rows, VOLATILITIES),
            cited=None if self.features is BaselineFeatures.NO_WORDS else self._strongest(cases),
        )

    def _strongest(self, cases: Sequence[EvaluationCase]) -> tuple[tuple[int, ...], ...]:
        alone = [
            _with_item(case, place) for case in cases for place in range(len(shown_items(case.question)))
        ]
        if not alone:
            return ((),) * len(cases)
        chances = self._chances(self.direction, self.table.rows(alone), len(DIRECTIONS))
        scores = np.abs(chances[:, -1] - chances[:, 0])
        cited: list[tuple[int, ...]] = []
        begin = 0
        for case in cases:
            end = begin + len(shown_items(case.question))
            cited.append((int(np.argmax(scores[begin:end])),) if end > begin else ())
            begin = end
        return tuple(cited)

    def _chances(self, model: Any, rows: Any, num_classes: int) -> Floats:
        """Probabilities [N, classes]; 0 for a class that did not occur in training."""
        chances = np.zeros((rows.shape[0], num_classes))
        chances[:, model.classes_] = model.predict_proba(rows)
        return chances

    def _median(self, model: Any, rows: Any, scale: Sequence[float]) -> Floats:
        """The middle of each distribution over the scale: this keeps absolute errors small."""
        below = np.cumsum(self._chances(model, rows, len(scale)), axis=1)
        return np.array(scale)[np.argmax(below >= 0.5, axis=1)]


def fit(training: Sequence[EvaluationCase], features: BaselineFeatures) -> BagOfWordsReader:
    """Learn from stories; C is chosen for the direction on a held-out part. Raises MissingExtra."""
    linear = load_library("sklearn.linear_model")
    table = _CountTable(features)
    rows = table.learn(training)
    truth = answers_of([case.truth for case in training])
    ways = np.searchsorted(DIRECTIONS, truth.direction)
    split = int(len(training) * (1.0 - HELD_OUT))
    strength = max(
        REGULARISATIONS,
        key=lambda c: float(
            _logistic(linear, c, rows[:split], ways[:split]).score(rows[split:], ways[split:])
        ),
    )
    # the size given a move: the direction says whether there is one
    moves = ways != DIRECTIONS.index(0.0)
    sizes, volatilities = _places(SIZES, truth.size_sigmas), _places(VOLATILITIES, truth.volatility)
    return BagOfWordsReader(
        features=features,
        regularisation=strength,
        num_features=rows.shape[1],
        table=table,
        direction=_logistic(linear, strength, rows, ways),
        size=_logistic(linear, strength, rows[moves], sizes[moves]),
        volatility=_logistic(linear, strength, rows, volatilities),
    )


class _CountTable:
    """Cases as rows of numbers: counts of words and pairs of words, and other measures."""

    def __init__(self, features: BaselineFeatures) -> None:
        self._features = features
        self._words: Any = None
        self._scaler: Any = None

    def learn(self, cases: Sequence[EvaluationCase]) -> Any:
        """Fix the vocabulary and the scale of measures, and return the rows."""
        parts: list[Any] = []
        if self._features is not BaselineFeatures.NO_WORDS:
            count = load_library("sklearn.feature_extraction.text").CountVectorizer
            analyse = _tokens if self._features is BaselineFeatures.WORDS else _tagged_tokens
            self._words = count(analyzer=analyse, min_df=min(3, len(cases)), dtype=np.float64)
            parts.append(self._words.fit_transform(cases))
        if self._features is not BaselineFeatures.WORDS:
            self._scaler = load_library("sklearn.preprocessing").StandardScaler()
            parts.append(self._scaler.fit_transform(_measures(cases)))
        return _joined(parts)

    def rows(self, cases: Sequence[EvaluationCase]) -> Any:
        parts: list[Any] = []
        if self._words is not None:
            parts.append(self._words.transform(cases))
        if self._scaler is not None:
            parts.append(self._scaler.transform(_measures(cases)))
        return _joined(parts)


def _joined(parts: Sequence[Any]) -> Any:
    sparse = load_library("scipy.sparse")
    return sparse.hstack([sparse.csr_matrix(part) for part in parts], format="csr")


def _tokens(case: EvaluationCase) -> list[str]:
    """Words and pairs of words of all headlines; all digits count as the same."""
    return [token for item in shown_items(case.question) for token in _grams(item)]


def _tagged_tokens(case: EvaluationCase) -> list[str]:
    """The same counts for items that name the symbol, and for new ones; and the words of the symbol's name."""
    question = case.question
    tokens = [f"name {word}" for word in question.name.split()]
    for item in shown_items(question):
        grams = _grams(item)
        tokens += grams
        if question.symbol in item.symbols:
            tokens += [f"own {gram}" for gram in grams]
            if _age_bars(question, item) <= AGE_EDGES[1]:
                tokens += [f"fresh {gram}" for gram in grams]
    return tokens


def _grams(item: News) -> list[str]:
    words = _WORD.findall(_DIGITS.sub("0", item.headline.lower()))
    return [*words, *(f"{one} {other}" for one, other in pairwise(words))]


def _measures(cases: Sequence[EvaluationCase]) -> Floats:
    """Recent returns, their sums and largest moves; number, age and tags of the items: [N, F]."""
    rows: list[list[float]] = []
    for case in cases:
        question, items = case.question, shown_items(case.question)
        returns = np.array([0.0] * max(_SPANS) + list(question.context))[-max(_SPANS) :]
        row = returns[-_LAST_RETURNS:].tolist()
        for span in _SPANS:
            last = returns[-span:]
            jump = float(last[np.argmax(np.abs(last))])
            row += [float(last.sum()), jump, abs(jump)]
        ages = [age_mark(_age_bars(question, item)).name for item in items]
        own = [question.symbol in item.symbols for item in items]
        for age in range(len(AGE_EDGES) + 1):
            row += [
                float(ages.count(f"a{age}")),
                float(sum(mine for mine, name in zip(own, ages, strict=True) if name == f"a{age}")),
            ]
        wide = sum(not item.symbols for item in items)
        row += [float(len(items)), float(sum(own)), float(wide), float(any(own)), float(not items)]
        rows.append(row)
    return np.array(rows)


def _age_bars(question: Question, item: News) -> float:
    return max(question.as_of_ns - item.available_at_ns, 0) / question.bar_ns


def _with_item(case: EvaluationCase, place: int) -> EvaluationCase:
    item = case.question.items[place]
    return replace(case, question=msgspec.structs.replace(case.question, items=(item,)))


def _places(scale: Sequence[float], values: Floats | None) -> NDArray[np.int64]:
    assert values is not None  # a truth has every field
    return np.argmin(np.abs(values[:, None] - np.array(scale)), axis=1)


def _logistic(linear: Any, strength: float, rows: Any, classes: NDArray[np.int64]) -> Any:
    return linear.LogisticRegression(C=strength, tol=_TOLERANCE, max_iter=_MAX_ITERATIONS).fit(rows, classes)
