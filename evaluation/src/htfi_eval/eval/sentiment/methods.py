"""Methods to label a text: word counts, TF-IDF with logistic regression, heads on the encoder.

`htfi eval sentiment` compares them.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.narrative.encoding.fitting import FittingConfig, HeadExamples, fit_head
from htfi.narrative.encoding.heads import Floats, cue_ids
from htfi.narrative.ports import TextEncoder
from htfi_eval.commands import load_library

Targets = NDArray[np.int64]
_BATCH = 512
_COSTS = (1.0, 4.0, 16.0)  # of logistic regression: the best on a fifth of some training examples
_MAX_TUNING_TEXTS, _MAX_FEATURES = 4_000, 30_000
_MAX_TRAINING_TEXTS = 40_000  # of the labelled sets, for one fit


@dataclass(frozen=True, slots=True)
class EncodedTexts:
    """Encoded texts, each once: points by text, and states as half floats."""

    points: dict[str, Floats]
    states: dict[str, NDArray[np.float16]]

    def of(self, texts: Sequence[str]) -> tuple[Floats, list[Floats], list[list[int]]]:
        """Points, states and cues of texts, the input of a head."""
        points = np.stack([self.points[text] for text in texts])
        states = [self.states[text].astype(np.float32) for text in texts]
        return points, states, [cue_ids(text) for text in texts]


def encode(encoder: TextEncoder, texts: Sequence[str], progress: Callable[[int, int], None]) -> EncodedTexts:
    """Every text once, in batches."""
    wanted = sorted(set(texts), key=lambda text: (len(text), text))
    found = EncodedTexts({}, {})
    for start in range(0, len(wanted), _BATCH):
        batch = wanted[start : start + _BATCH]
        points, states = encoder.read(batch)
        for place, text in enumerate(batch):
            found.points[text] = points[place]
            found.states[text] = states[place].astype(np.float16)
        progress(min(start + _BATCH, len(wanted)), len(wanted))
    return found


def count_words(texts: Sequence[str], good: frozenset[str], bad: frozenset[str]) -> Targets:
    """The first label where more words are good than bad, the second where more are bad, else the third."""
    labels: list[int] = []
    for text in texts:
        words = re.findall(r"[a-z]+", text.lower())
        balance = sum(word in good for word in words) - sum(word in bad for word in words)
        labels.append(2 if balance == 0 else int(balance < 0))
    return np.array(labels)


def learn_words(texts: Sequence[str], targets: Targets, seed: int) -> Callable[[Sequence[str]], Targets]:
    """TF-IDF of one and two words with logistic regression, its cost chosen on a fifth of the training examples.

    Raises: MissingExtra.
    """
    vectorizer = load_library("sklearn.feature_extraction.text").TfidfVectorizer
    regression = load_library("sklearn.linear_model").LogisticRegression
    rng = np.random.Generator(np.random.PCG64(seed))
    order = rng.permutation(len(texts))
    tried = order[:_MAX_TUNING_TEXTS]
    cut = len(tried) // 5

    def fit(places: NDArray[np.int64], cost: float) -> Callable[[Sequence[str]], Targets]:
        vectors = vectorizer(ngram_range=(1, 2), sublinear_tf=True, max_features=_MAX_FEATURES)
        model = regression(C=cost, class_weight="balanced", tol=1e-3, max_iter=200)
        model.fit(vectors.fit_transform([texts[int(place)] for place in places.tolist()]), targets[places])
        return lambda unseen: np.asarray(model.predict(vectors.transform(unseen)))

    def worth(cost: float) -> float:
        predicted = fit(tried[cut:], cost)([texts[int(place)] for place in tried[:cut].tolist()])
        return float(f1_of(confusion(targets[tried[:cut]], predicted, int(targets.max()) + 1)))

    return fit(order, max(_COSTS, key=worth))


def learn_head(
    encoded: EncodedTexts, texts: Sequence[str], targets: Targets, labels: Sequence[str], seed: int
) -> Callable[[Sequence[str]], Targets]:
    """A head like the shipped ones, trained on labelled texts. It is not stored."""
    rng = np.random.Generator(np.random.PCG64(seed))
    places = rng.permutation(len(texts))[:_MAX_TRAINING_TEXTS]
    chosen = [texts[int(place)] for place in places.tolist()]
    points = np.stack([encoded.points[text] for text in chosen])
    counts = np.bincount(targets[places], minlength=len(labels))
    if not counts.all():
        raise InvalidInput("a label has no training example")
    weights = len(places) / np.maximum(counts, 1)[targets[places]]
    lessons = HeadExamples(
        points, [encoded.states[text] for text in chosen], chosen, targets[places], weights
    )
    # Two fits are enough for real texts; templates need an average of several.
    head = fit_head("tried", labels, lessons, FittingConfig(num_fits=2, num_seen=64, seed=seed))
    return lambda unseen: head.probabilities(*encoded.of(unseen)).argmax(axis=1)


def confusion(targets: Targets, predicted: Targets, num_labels: int) -> NDArray[np.float64]:
    """Counts [true label, predicted label]."""
    counts = np.bincount(targets * num_labels + predicted, minlength=num_labels**2)
    return counts.reshape(num_labels, -1).astype(np.float64)


def f1_of(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Macro-F1 of confusions [..., true label, predicted label]."""
    hits = np.diagonal(counts, axis1=-2, axis2=-1)
    sums = counts.sum(axis=-1) + counts.sum(axis=-2)
    return np.asarray((2 * hits / np.maximum(sums, 1)).mean(axis=-1), np.float64)


def gain_interval(
    targets: Targets, predicted: Targets, rival: Targets, groups: Sequence[str], num_labels: int, seed: int,
    num_draws: int = 400,
) -> tuple[float, float]:  # fmt: skip
    """95% interval of the gain in macro-F1 over a baseline: paired bootstrap over texts, not over rows."""
    _, of_row = np.unique(np.array(groups), return_inverse=True)
    num_groups = int(of_row.max()) + 1
    rng = np.random.Generator(np.random.PCG64(seed))
    gains = np.empty(num_draws)
    for draw in range(num_draws):
        weight = np.bincount(rng.integers(num_groups, size=num_groups), minlength=num_groups)[of_row]
        ours, theirs = (
            f1_of(
                np.bincount(targets * num_labels + one, weights=weight, minlength=num_labels**2)
                .reshape(num_labels, num_labels)
                .astype(np.float64)
            )
            for one in (predicted, rival)
        )
        gains[draw] = ours - theirs
    low, high = np.quantile(gains, (0.025, 0.975))
    return float(low), float(high)
