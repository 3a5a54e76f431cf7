"""The labelled sets of sentiment and of monetary stance, cleaned, and whether corpora repeat their rows.

The sets belong to third parties and are staged outside the project: nothing that ships is trained on them, and this
module returns only figures. Two texts count as near duplicates when they are equal once normalised and have five words
or more, or share a run of 13 words, figures aside; or when two thirds of the runs of three words of one text, if it
has eight or more, are in the other.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi_eval.eval.prices import read_rows

SENTIMENT, STANCE = ("positive", "negative", "neutral"), ("hawkish", "dovish", "neutral")
_FILES = {
    "PhraseBank": ("financial_phrasebank_50agree",),
    "TFNS": ("twitter_financial_news_sentiment",),
    # FiQA's test split overlaps its posts, and its headlines are those of SemEval: one set without repetitions.
    "FiQA": ("fiqa2018_task1_posts", "fiqa_sa_finlora", "semeval2017_task5_headlines"),
    "SEntFiN": ("sentfin_1.1",),
}
_KEY_CHARS = 60  # of a normalised sentence, to find its document


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """Texts with targets, places in `labels`. `years` [n] of their origin, 0 where not known; `keys` normalised."""

    name: str
    head: str
    labels: tuple[str, ...]
    texts: tuple[str, ...]
    targets: NDArray[np.int64]
    keys: tuple[str, ...]
    years: NDArray[np.int64]

    def at(self, chosen: NDArray[np.bool_]) -> "LabelledSet":
        places = np.flatnonzero(chosen).tolist()
        return LabelledSet(
            self.name, self.head, self.labels, tuple(self.texts[place] for place in places),
            self.targets[places], tuple(self.keys[place] for place in places), self.years[places],
        )  # fmt: skip


def load_sets(folder: Path) -> tuple[list[LabelledSet], list[str]]:
    """All five, and notes on what was corrected. Raises: InvalidInput, where the folder lacks them."""
    rows = _read(folder / "sentiment" / "financial_sentiment.parquet")
    found = [_sentiment(name, parts, rows) for name, parts in _FILES.items()]
    stance, notes = _stance(folder)
    return [*found, stance], notes


def load_word_lists(folder: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Positive and negative words of Loughran and McDonald. Raises: InvalidInput."""
    rows = _read(folder / "sentiment" / "loughran_mcdonald_words.parquet")
    good, bad = (
        frozenset(row["word"].lower() for row in rows if row[kind]) for kind in ("positive", "negative")
    )
    return good, bad


def normalised(text: str) -> str:
    """Lower-case words and figures alone, links left out: equal for two copies of a text."""
    return re.sub(r"\W+", " ", re.sub(r"https?://\S+", " ", text.lower())).strip()


def _sentiment(name: str, parts: tuple[str, ...], rows: Iterable[Mapping[str, Any]]) -> LabelledSet:
    kept: dict[tuple[str, str], tuple[str, int]] = {}
    for row in rows:
        if row["dataset"] in parts:
            # A headline of SEntFiN has a label for each of its entities, and so a row.
            entity = (row["entity"] or "") if name == "SEntFiN" else ""
            kept.setdefault((normalised(row["text"]), entity), (row["text"], SENTIMENT.index(row["label"])))
    if not kept:
        raise InvalidInput(f"no rows of {', '.join(parts)} in the staged sentiment sets")
    texts, targets = zip(*kept.values(), strict=True)
    return LabelledSet(
        name, "sentiment", SENTIMENT, texts, np.array(targets), tuple(key for key, _ in kept),
        np.zeros(len(texts), np.int64),
    )  # fmt: skip


def _stance(folder: Path) -> tuple[LabelledSet, list[str]]:
    """FOMC sentences with the year of the document that they were found in.

    The set's own `year` is not used: of the sentences that are found in a dated document, few carry its year.
    """
    rows = _read(folder / "sentiment" / "fomc_hawkish_dovish.parquet")
    kept = {normalised(row["text"]): row for row in reversed(rows)}
    keys = tuple(kept)
    documents = _documents(folder)
    years = np.array([_year(key, documents) for key in keys], dtype=np.int64)
    dated = np.flatnonzero(years)
    agree = np.mean([years[place] == kept[keys[place]]["year"] for place in dated]) if len(dated) else 0.0
    notes = [
        f"FOMC: {len(dated):,} of {len(keys):,} sentences are found in a dated document; the set's own year equals "
        f"the document's year for {agree:.0%} of them, so the documents' years are used"
    ]
    targets = np.array([STANCE.index(kept[key]["stance"]) for key in keys])
    texts = tuple(kept[key]["text"] for key in keys)
    return LabelledSet("FOMC", "stance", STANCE, texts, targets, keys, years), notes


def _documents(folder: Path) -> dict[int, str]:
    """The text of each year's communications and speeches, normalised; empty where they are not staged."""
    by_year: dict[int, list[str]] = {}
    for file, date, text in (
        ("fomc_communications_1994_2024.parquet", "release_date", "text"),
        ("fed_speeches_1996_2022.parquet", "date", "policy_sentences"),
    ):
        if (folder / "central_bank" / file).is_file():
            for row in _read(folder / "central_bank" / file):
                published = row.get("meeting_date") or row[date]
                if published is not None and row[text]:
                    by_year.setdefault(published.year, []).append(normalised(row[text]))
    return {year: " ".join(texts) for year, texts in sorted(by_year.items())}


def _year(key: str, documents: Mapping[int, str]) -> int:
    """The first year that contains it; 0 if none does."""
    wanted = key[:_KEY_CHARS]
    if len(wanted) < _KEY_CHARS // 2:
        return 0
    return next((year for year, text in documents.items() if wanted in text), 0)


def _read(file: Path) -> list[dict[str, Any]]:
    if not file.is_file():
        raise InvalidInput(f"{file} is missing: name the folder of staged data with --data")
    columns = {name: values.tolist() for name, values in read_rows(file).items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


_LONG_NGRAM, _SHORT_NGRAM, _MIN_SHARED_SHARE = 13, 3, 2 / 3
_MIN_WORDS, _MIN_NGRAMS = 5, 8


def overlaps(lines: Sequence[str], rows: Sequence[str]) -> int:
    """How many lines nearly repeat a row."""
    return len(near_duplicates(lines, rows))


def near_duplicates(lines: Sequence[str], rows: Sequence[str]) -> list[tuple[str, str]]:
    """The lines that nearly repeat a row, each with one row that it repeats."""
    whole: dict[tuple[str, ...], str] = {}
    long_runs: dict[tuple[str, ...], str] = {}
    by_short_run: dict[tuple[str, ...], list[int]] = {}
    for place, row in enumerate(rows):
        words = _words(row)
        whole.setdefault(words, row)
        long_runs |= dict.fromkeys(_ngrams(words, _LONG_NGRAM), row)
        for run in _ngrams(words, _SHORT_NGRAM):
            by_short_run.setdefault(run, []).append(place)
    found: list[tuple[str, str]] = []
    for line in lines:
        words = _words(line)
        if len(words) >= _MIN_WORDS and words in whole:
            found.append((line, whole[words]))
            continue
        run = next((run for run in _ngrams(words, _LONG_NGRAM) if run in long_runs), None)
        if run is not None:
            found.append((line, long_runs[run]))
            continue
        short = _ngrams(words, _SHORT_NGRAM)
        if len(short) >= _MIN_NGRAMS:
            hits: dict[int, int] = {}
            for one in short:
                for place in by_short_run.get(one, ()):
                    hits[place] = hits.get(place, 0) + 1
            best = max(hits, key=lambda place: hits[place], default=None)
            if best is not None and hits[best] >= _MIN_SHARED_SHARE * len(short):
                found.append((line, rows[best]))
    return found


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in normalised(text).split() if not re.fullmatch(r"[\d_]+", word))


def _ngrams(words: tuple[str, ...], length: int) -> set[tuple[str, ...]]:
    return {words[start : start + length] for start in range(len(words) - length + 1)}
