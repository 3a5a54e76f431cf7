"""Compares the heads with word counts and TF-IDF on each labelled set, by three protocols.

Shipped: heads trained on the project's templates, word counts, and TF-IDF trained on the same lines; no row of
the set is used. By source: head and TF-IDF learnt from the other labelled sets, or from earlier years.
In domain: both learnt from the rest of the set itself, for orientation.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from htfi.narrative.encoding.heads import Heads
from htfi.narrative.ports import TextEncoder
from htfi_eval.eval.sentiment.methods import (
    EncodedTexts,
    Targets,
    confusion,
    count_words,
    encode,
    f1_of,
    gain_interval,
    learn_head,
    learn_words,
)
from htfi_eval.eval.sentiment.sets import LabelledSet

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
    notes: list[str] = field(default_factory=list[str])


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
    lessons = one.at((one.years > 0) & (one.years < first))
    return _learnt(test, lessons.texts, lessons.targets, encoded, lists, seed)


def judge_in_domain(
    one: LabelledSet, encoded: EncodedTexts, lists: tuple[frozenset[str], frozenset[str]], seed: int
) -> MethodLabels:
    """Trained on four fifths of the set's texts, tested on the rest: the effect of knowing the source."""
    held = np.array([crc32(key.encode()) % _IN_DOMAIN_TEST == 0 for key in one.keys])
    lessons = one.at(~held)
    return _learnt(one.at(held), lessons.texts, lessons.targets, encoded, lists, seed)


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
