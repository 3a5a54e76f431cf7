"""Compares heads, word counts and TF-IDF on each labelled set, by three protocols.

Shipped: heads trained on the project's templates, word counts, and TF-IDF trained on the same lines; no row of the set
is used. By source: head and TF-IDF trained on the other labelled sets, or on earlier years. In domain: both trained on
the rest of the set itself, for orientation.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.narrative.encoding.heads import Floats, Heads, cue_ids
from htfi.narrative.ports import TextEncoder
from htfi_eval.commands import load_library
from htfi_eval.eval.sentiment.sets import LabelledSet
from htfi_train.head_fitting import FittingConfig, HeadExamples, fit_head

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

    def of(self, texts: Sequence[str]) -> tuple[Floats, list[Floats], list[tuple[int, ...]]]:
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
    examples = HeadExamples(
        points, [encoded.states[text] for text in chosen], chosen, targets[places], weights
    )
    # Two fits are enough for real texts; templates need an average of several.
    head = fit_head("tried", labels, examples, FittingConfig(num_fits=2, num_seen=64, seed=seed))
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


LATER_SHARE = 0.5  # share of the dated policy sentences that are tested, the latest
MAX_FLIP_TEXTS = 1_500  # texts of each set that are encoded again in full precision
_IN_DOMAIN_TEST = 5  # one text in so many


@dataclass(frozen=True, slots=True)
class MethodLabels:
    """Each method's labels of the same rows."""

    of: LabelledSet
    by_method: dict[str, Targets]

    def f1(self, method: str) -> float:
        return float(f1_of(confusion(self.of.targets, self.by_method[method], len(self.of.labels))))

    def gain(self, method: str, rivals: Sequence[str]) -> tuple[float, str]:
        """The gain over the best baseline, and its name."""
        best = max(rivals, key=self.f1)
        return self.f1(method) - self.f1(best), best


@dataclass(slots=True)
class SentimentJudgement:
    """One set by all protocols. `shares` [n, labels] are the shipped head's."""

    of: LabelledSet
    shipped: MethodLabels
    shares: NDArray[np.float64]
    by_source: MethodLabels | None = None
    in_domain: MethodLabels | None = None


HEAD, COUNTS, TFIDF = "head", "word counts", "TF-IDF"


def judge_shipped(
    sets: Sequence[LabelledSet], encoded: EncodedTexts, heads: Heads,
    words: Mapping[str, Callable[[Sequence[str]], Targets]], lists: tuple[frozenset[str], frozenset[str]],
) -> list[SentimentJudgement]:  # fmt: skip
    """`words`: by head, the TF-IDF that learnt from the same lines."""
    found: list[SentimentJudgement] = []
    for one in sets:
        shares = heads.heads[one.head].probabilities(*encoded.of(one.texts))
        by = {
            HEAD: shares.argmax(axis=1),
            COUNTS: count_words(one.texts, *lists),
            TFIDF: words[one.head](one.texts),
        }
        found.append(SentimentJudgement(one, MethodLabels(one, by), shares))
    return found


def judge_by_source(
    one: LabelledSet, others: Sequence[LabelledSet], encoded: EncodedTexts,
    lists: tuple[frozenset[str], frozenset[str]], seed: int,
) -> MethodLabels | None:  # fmt: skip
    """Learnt from other sources, or from earlier years where there are no others; None where neither is there."""
    if others:
        known = set(one.keys)
        pool = [other.at(np.array([key not in known for key in other.keys])) for other in others]
        texts = [text for other in pool for text in other.texts]
        return _learnt(one, texts, np.concatenate([other.targets for other in pool]), encoded, lists, seed)
    dated = one.years[one.years > 0]
    if len(dated) < 200:
        return None
    first = int(np.quantile(dated, 1 - LATER_SHARE)) + 1
    test = one.at(one.years >= first)
    examples = one.at((one.years > 0) & (one.years < first))
    return _learnt(test, examples.texts, examples.targets, encoded, lists, seed)


def judge_in_domain(
    one: LabelledSet, encoded: EncodedTexts, lists: tuple[frozenset[str], frozenset[str]], seed: int
) -> MethodLabels:
    """Trained on four fifths of the set's texts, tested on the rest: the effect of knowing the source."""
    held = np.array([crc32(key.encode()) % _IN_DOMAIN_TEST == 0 for key in one.keys])
    examples = one.at(~held)
    return _learnt(one.at(held), examples.texts, examples.targets, encoded, lists, seed)


def label_flips(
    all_judged: Sequence[SentimentJudgement],
    heads: Heads,
    exact: TextEncoder,
    progress: Callable[[int, int], None],
) -> float:
    """Share of texts whose label differs with the encoder in full precision, on the first texts of each set."""
    parts = [judged.of.texts[:MAX_FLIP_TEXTS] for judged in all_judged]
    in_full = encode(exact, [text for part in parts for text in part], progress)
    num_flips = 0
    for judged, part in zip(all_judged, parts, strict=True):
        exact_labels = heads.heads[judged.of.head].probabilities(*in_full.of(part)).argmax(axis=1)
        num_flips += int((exact_labels != judged.shipped.by_method[HEAD][: len(part)]).sum())
    return num_flips / sum(len(part) for part in parts)


def row_of(judged: SentimentJudgement, seed: int) -> dict[str, Any]:
    """One row of the table."""
    shipped = judged.shipped
    gain, best = shipped.gain(HEAD, (COUNTS, TFIDF))
    low, high = gain_interval(
        judged.of.targets,
        shipped.by_method[HEAD],
        shipped.by_method[best],
        judged.of.keys,
        len(judged.of.labels),
        seed,
    )
    row: dict[str, Any] = {
        "set": judged.of.name,
        "rows": len(judged.of.texts),
        "head": shipped.f1(HEAD),
        "counts": shipped.f1(COUNTS),
        "TF-IDF": shipped.f1(TFIDF),
        "gain": gain,
        "95%": f"{low:+.3f}…{high:+.3f}",
    }
    for name, labels in (("by source", judged.by_source), ("in domain", judged.in_domain)):
        row |= {
            f"{name}: head": "" if labels is None else labels.f1(HEAD),
            f"{name}: TF-IDF": "" if labels is None else labels.f1(TFIDF),
        }
    return row


def metrics_of(all_judged: Sequence[SentimentJudgement]) -> dict[str, float | None]:
    """The worst gains by protocol, and macro-F1 by set."""
    gains = [judged.shipped.gain(HEAD, (COUNTS, TFIDF))[0] for judged in all_judged]
    sources = [
        judged.by_source.gain(HEAD, (COUNTS, TFIDF))[0]
        for judged in all_judged
        if judged.by_source is not None
    ]
    unseen = [_unseen(judged.shipped).gain(HEAD, (COUNTS, TFIDF))[0] for judged in all_judged]
    found: dict[str, float | None] = {
        "macro_f1_min_gain": min(gains),
        "macro_f1_min_gain_unseen_half": min(unseen),
        "macro_f1_min_gain_by_source": min(sources, default=None),
    }
    for judged in all_judged:
        name = judged.of.name.lower()
        found[f"macro_f1_{name}"] = judged.shipped.f1(HEAD)
        if judged.by_source is not None:
            found[f"macro_f1_{name}_by_source"] = judged.by_source.f1(HEAD)
    return found


def _unseen(labels: MethodLabels) -> MethodLabels:
    """The half of the texts that improved no template and no setting; mistakes on the other half were read."""
    half = np.array([crc32(text.encode()) % 2 == 1 for text in labels.of.texts])
    return MethodLabels(labels.of.at(half), {method: said[half] for method, said in labels.by_method.items()})


def _learnt(
    test: LabelledSet, texts: Sequence[str], targets: Targets, encoded: EncodedTexts,
    lists: tuple[frozenset[str], frozenset[str]], seed: int,
) -> MethodLabels:  # fmt: skip
    head = learn_head(encoded, texts, targets, test.labels, seed)
    words = learn_words(texts, targets, seed)
    return MethodLabels(
        test, {HEAD: head(test.texts), COUNTS: count_words(test.texts, *lists), TFIDF: words(test.texts)}
    )
