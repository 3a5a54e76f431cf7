"""Whether lines of the corpora repeat rows of the labelled sets; `htfi eval sentiment` and a test ask.

Two texts count as alike when they are equal once normalised and have five words or more, or share a run of 13 words,
figures aside; or when two thirds of the runs of three words of one, if it has eight or more, are the other's.
"""

import re
from collections.abc import Sequence

from htfi_eval.eval.sentiment.sets import normalised

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
