"""The labelled sets by source: the reader as its users get it, beside word counts, TF-IDF and the encoder's heads.

Nothing is trained on these sets, which belong to third parties and are staged outside the project. TF-IDF learns from
the project's own templates, as the heads did.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from htfi.domain.errors import InvalidInput
from htfi.narrative.config import EncodingConfig
from htfi.narrative.facts.fact_reader import FactReader
from htfi.narrative.understanding import NewsText
from htfi.wiring.encoder import open_heads, shipped_encoder
from htfi_eval.commands import ProgressLine
from htfi_eval.eval.prices import read_rows
from htfi_eval.eval.reading.readings import ReadItem, read_items
from htfi_eval.eval.reading.scores import (
    Array,
    SignFigures,
    Signs,
    as_signs,
    expected_calibration_error,
    sign_figures,
)
from htfi_eval.eval.sanitise.data import is_seen
from htfi_eval.eval.sentiment.judging import count_words, encode, learn_words
from htfi_eval.eval.sentiment.sets import SENTIMENT, load_word_lists, normalised
from htfi_train.simulation.head_training import SEED, read_corpora
from htfi_train.simulation.labelled_lines import draw_lines

ROWS_PER_SET = 1_000  # a set counts like so many rows, however large it is
READER, HEADS, TFIDF, COUNTS, ALWAYS_UP = "reader", "heads alone", "TF-IDF", "word counts", "always up"
_SIGNS = {"positive": 1, "neutral": 0, "negative": -1}
_SIGN_OF_PLACE = as_signs([_SIGNS[label] for label in SENTIMENT])
_TICKERS_SET = "fiqa2018_task1_posts"  # its entities are tickers, the others' are names
_PARTS = {
    "PhraseBank": ("financial_phrasebank_50agree",),
    "TFNS": ("twitter_financial_news_sentiment",),
    "FiQA": (_TICKERS_SET, "fiqa_sa_finlora"),
    "SemEval": ("semeval2017_task5_headlines",),
    "SEntFiN": ("sentfin_1.1",),
}
_MIN_KIND = 30  # rows, from which a kind of event is a row of the table


@dataclass(frozen=True, slots=True)
class LabelledItems:
    """Items of one source with the annotators' signs [n]; `num_whole` rows before a sample was drawn."""

    name: str
    items: tuple[NewsText, ...]
    labels: Signs
    num_whole: int

    @property
    def weights(self) -> Array:
        """Rows of a set count together like `ROWS_PER_SET` at most."""
        return np.full(len(self.items), min(1.0, ROWS_PER_SET / max(len(self.items), 1)))


@dataclass(frozen=True, slots=True)
class SetReadings:
    """One set as read, and the signs [n] of the other methods by name."""

    of: LabelledItems
    read: tuple[ReadItem, ...]
    others: Mapping[str, Signs]

    @property
    def said(self) -> Signs:
        return as_signs([one.direction for one in self.read])

    def by_method(self) -> dict[str, Signs]:
        return {READER: self.said, **self.others}


def load_labelled(folder: Path, sample: int | None, seed: int) -> list[LabelledItems]:
    """The five sets without repeated rows; of each at most `sample` rows, drawn by the seed. Raises: InvalidInput."""
    file = folder / "sentiment" / "financial_sentiment.parquet"
    if not file.is_file():
        raise InvalidInput(f"{file} is missing: name the folder of staged data with --data")
    columns = read_rows(file)
    rows = list(
        zip(*(columns[name].tolist() for name in ("dataset", "text", "entity", "label")), strict=True)
    )
    known: dict[str, set[str]] = {}  # the entities of each text
    found: list[LabelledItems] = []
    for name, parts in _PARTS.items():
        items: list[NewsText] = []
        labels: list[int] = []
        for dataset, text, entity, label in rows:
            asked = entity if isinstance(entity, str) else ""
            entities = known.setdefault(normalised(text), set()) if dataset in parts else None
            # A text that is there both with and without an entity is one row.
            if entities is not None and not ({asked.casefold(), ""} & entities or (entities and not asked)):
                entities.add(asked.casefold())
                is_ticker = dataset == _TICKERS_SET
                items.append(
                    NewsText(text, symbol=asked if is_ticker else "", name="" if is_ticker else asked)
                )
                labels.append(_SIGNS[label])
        if items:
            found.append(_drawn(name, items, labels, sample, seed))
    if not found:
        raise InvalidInput(f"{file} has no row of {', '.join(_PARTS)}")
    return found


def _drawn(
    name: str, items: Sequence[NewsText], labels: Sequence[int], sample: int | None, seed: int
) -> LabelledItems:
    places = np.arange(len(items))
    if sample is not None and len(items) > sample:
        rng = np.random.Generator(np.random.PCG64([seed, sum(name.encode())]))
        places = np.sort(rng.choice(len(items), sample, replace=False))
    order = places.tolist()
    return LabelledItems(
        name, tuple(items[place] for place in order), as_signs([labels[place] for place in order]), len(items)
    )


def read_labelled(
    folder: Path, sets: Sequence[LabelledItems], reader: FactReader, corpora: Path, seed: int
) -> list[SetReadings]:
    """Every set by every method. Raises: InvalidInput, DependencyUnavailable, MissingExtra."""
    words = _word_methods(folder, corpora, seed)
    encoder, head = shipped_encoder(EncodingConfig()), open_heads().heads["sentiment"]
    signs = as_signs([_SIGNS[label] for label in head.labels])
    found: list[SetReadings] = []
    for one in sets:
        texts = [item.text for item in one.items]
        read = read_items(reader, one.items, ProgressLine(f"{one.name}: reading"))
        encoded = encode(encoder, texts, ProgressLine(f"{one.name}: heads alone"))
        others = {HEADS: signs[head.probabilities(*encoded.of(texts)).argmax(axis=1)]}
        others |= {name: method(texts) for name, method in words.items()}
        others[ALWAYS_UP] = np.ones(len(texts), np.int64)
        found.append(SetReadings(one, tuple(read), others))
    return found


def _word_methods(folder: Path, corpora: Path, seed: int) -> dict[str, Callable[[Sequence[str]], Signs]]:
    """TF-IDF of the project's own lines and counts of good and bad words, where both are at hand."""
    found: dict[str, Callable[[Sequence[str]], Signs]] = {}
    if corpora.is_dir():
        corpus = next(one for one in read_corpora(corpora) if one.head == "sentiment")
        lines = draw_lines(corpus.templates, corpus.slots, corpus.per_template, SEED)
        labels = list(corpus.labels)
        signs = as_signs([_SIGNS[label] for label in corpus.labels.values()])
        progress = ProgressLine(f"TF-IDF of {len(lines):,} lines of the project's own")
        predict = learn_words(
            [line.text for line in lines], np.array([labels.index(line.label) for line in lines]), seed
        )
        progress(1, 1)
        found[TFIDF] = lambda texts: signs[predict(texts)]
    if (folder / "sentiment" / "loughran_mcdonald_words.parquet").is_file():
        lists = load_word_lists(folder)
        found[COUNTS] = lambda texts: _SIGN_OF_PLACE[count_words(texts, *lists)]
    return found


@dataclass(frozen=True, slots=True)
class PooledReadings:
    """The rows of all sets, [n] each, weighted so that sets count alike."""

    labels: Signs
    said: Signs
    weights: Array
    read: tuple[ReadItem, ...]
    items: tuple[NewsText, ...]
    sets: tuple[str, ...]
    others: Mapping[str, Signs]

    @property
    def confidence(self) -> Array:
        return np.array([one.confidence for one in self.read], np.float64)


def pool(sets: Sequence[SetReadings]) -> PooledReadings:
    methods = tuple(sets[0].others) if sets else ()
    return PooledReadings(
        np.concatenate([one.of.labels for one in sets]),
        np.concatenate([one.said for one in sets]),
        np.concatenate([one.of.weights for one in sets]),
        tuple(read for one in sets for read in one.read),
        tuple(item for one in sets for item in one.of.items),
        tuple(one.of.name for one in sets for _ in one.read),
        {name: np.concatenate([one.others[name] for one in sets]) for name in methods},
    )


def labelled_metrics(sets: Sequence[SetReadings]) -> dict[str, float | None]:
    """The goals' figures over all sets, those of each set, and those of the other methods."""
    pooled = pool(sets)
    whole = sign_figures(pooled.labels, pooled.said, pooled.weights)
    views = (pooled.said != 0) & (pooled.labels != 0)
    all_views = pooled.said != 0
    found: dict[str, float | None] = {
        "sign_right": whole.sign_right,
        "three_class": whole.three_class,
        "fires_on_neutral": whole.fires_on_neutral,
        "sign_right_of_all_views": whole.right_of_all_views,
        "speaks": whole.speaks,
        "confidence_ece": _ece(pooled, views),
        "confidence_ece_of_all_views": _ece(pooled, all_views),
    }
    unseen = np.array([not is_seen(item.text) for item in pooled.items], np.bool_)
    half = sign_figures(pooled.labels[unseen], pooled.said[unseen], pooled.weights[unseen])
    found |= {
        "sign_right_unseen_half": half.sign_right,
        "three_class_unseen_half": half.three_class,
        "fires_on_neutral_unseen_half": half.fires_on_neutral,
    }
    for name, said in pooled.others.items():
        found[f"three_class_{_id(name)}"] = sign_figures(pooled.labels, said, pooled.weights).three_class
        found[f"sign_right_{_id(name)}"] = sign_figures(pooled.labels, said, pooled.weights).sign_right
    for one in sets:
        figures = sign_figures(one.of.labels, one.said)
        found[f"sign_right_{_id(one.of.name)}"] = figures.sign_right
        found[f"three_class_{_id(one.of.name)}"] = figures.three_class
    return found


def _ece(pooled: PooledReadings, inside: np.ndarray) -> float:
    return expected_calibration_error(
        pooled.confidence[inside], (pooled.said == pooled.labels)[inside], pooled.weights[inside]
    )


def _id(name: str) -> str:
    return name.lower().replace(" ", "_").replace("-", "_")


def set_rows(sets: Sequence[SetReadings]) -> list[dict[str, object]]:
    """One row for each set and method, and the pool."""
    pooled = pool(sets)
    rows: list[dict[str, object]] = []
    for method in (READER, *pooled.others):
        said = pooled.said if method == READER else pooled.others[method]
        rows.append(_row("all sets alike", method, sign_figures(pooled.labels, said, pooled.weights)))
    for one in sets:
        rows += [
            _row(one.of.name, method, sign_figures(one.of.labels, said))
            for method, said in one.by_method().items()
        ]
    return rows


def _row(name: str, method: str, figures: SignFigures) -> dict[str, object]:
    return {
        "set": name,
        "method": method,
        "rows": figures.num,
        "sign right": figures.sign_right,
        "right of all views": figures.right_of_all_views,
        "three classes": figures.three_class,
        "fires on neutral": figures.fires_on_neutral,
        "speaks otherwise": figures.speaks,
    }


def kind_rows(sets: Sequence[SetReadings]) -> list[dict[str, object]]:
    """The reader by kind of event, the most frequent first; rare kinds are one row."""
    pooled = pool(sets)
    kinds = np.array([one.event.value for one in pooled.read])
    counts = Counter(one.event.value for one in pooled.read)
    frequent = [kind for kind, num in counts.most_common() if num >= _MIN_KIND]
    rows: list[dict[str, object]] = []
    for kind in (*frequent, ""):
        inside = kinds == kind if kind else ~np.isin(kinds, frequent)
        if not inside.any():
            continue
        figures = sign_figures(pooled.labels[inside], pooled.said[inside], pooled.weights[inside])
        views = inside & (pooled.said != 0) & (pooled.labels != 0)
        row = _row("", "", figures)
        del row["set"], row["method"]
        rows.append(
            {
                "event": kind.replace("_", " ") or "rarer kinds",
                **row,
                "calibration error": _ece(pooled, views),
            }
        )
    return rows


def silence_rows(sets: Sequence[SetReadings]) -> list[dict[str, object]]:
    """Why the reader says nothing: of lines labelled up or down, and of neutral ones."""
    pooled = pool(sets)
    silent: dict[str, list[int]] = {}
    for label, one in zip(pooled.labels.tolist(), pooled.read, strict=True):
        if not one.speaks:
            silent.setdefault(one.why or "no direction", [0, 0])[int(label == 0)] += 1
    return [
        {"silent because": why, "lines up or down": coloured, "neutral lines": neutral}
        for why, (coloured, neutral) in sorted(silent.items(), key=lambda one: -sum(one[1]))
    ]


def worst_rows(sets: Sequence[SetReadings], num: int) -> list[dict[str, object]]:
    """The boldest mistakes, views of the wrong sign, in the half of the lines that may be looked at."""
    pooled = pool(sets)
    wrong = [
        place
        for place, (label, said) in enumerate(zip(pooled.labels.tolist(), pooled.said.tolist(), strict=True))
        if label * said < 0 and is_seen(pooled.items[place].text)
    ]
    wrong.sort(key=lambda place: -pooled.read[place].confidence * pooled.read[place].size_sigmas)
    return [
        {
            "label": _WORDS[int(pooled.labels[place])],
            "confidence": pooled.read[place].confidence,
            "σ": pooled.read[place].size_sigmas,
            "set": pooled.sets[place],
            "text": pooled.items[place].text[:_MAX_SHOWN],
            "said": pooled.read[place].words,
            "asked": pooled.items[place].name or pooled.items[place].symbol,
        }
        for place in wrong[:num]
    ]


_MAX_SHOWN = 110  # characters of a text in a table
_WORDS = {1: "up", 0: "neutral", -1: "down"}
