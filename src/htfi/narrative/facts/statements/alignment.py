"""Pairs the sentences of two texts, and the words of two sentences, by their overlap and the best path in order."""

from collections import Counter
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from htfi.narrative.calendar.headlines import plain_letters
from htfi.narrative.patterns import Patterns

MAX_SENTENCES = 400  # of a text that are compared
_WORD = Patterns("htfi.narrative.facts.statements", "patterns.toml", "comparison").compiled("word")
_MIN_ALIKE, _MIN_ALIKE_MOVED = 0.25, 0.6  # likeness of sentences that are a pair, in order and out of it
_OVERLAP_SHARE = 0.7  # of the likeness of a sentence that another holds
_WEIGHT = 840  # of a word that stands in one sentence; divided by how many it stands in
_MAX_CELLS = 250_000  # of a table of words: longer sentences are shown as replaced

Points = NDArray[np.float32]
Encode = Callable[[Sequence[str]], Points]


class RunKind(StrEnum):
    """What became of words."""

    SAME = "same"
    ADDED = "added"
    REMOVED = "removed"


class WordRun(NamedTuple):
    """Neighbouring words that stayed, came or went."""

    kind: RunKind
    text: str


class Pair(NamedTuple):
    """Places of a sentence in the old and the new text; None where it has no partner."""

    old: int | None
    new: int | None
    is_moved: bool = False


def align_sentences(old: Sequence[str], new: Sequence[str], encode: Encode | None = None) -> list[Pair]:
    """Each sentence of both texts once, in the order of the new text; what went stands where it stood.

    Likeness is Dice's coefficient over words, each weighted by its rarity, or a share of the overlap where one sentence
    holds the other; with an encoder its mean with the cosine of their points. Pairs in order maximise the sum of
    likeness; then sentences that moved are paired.
    """
    alike = _likeness(old, new)
    if encode is not None and old and new:
        cosines = encode(old).astype(np.float64) @ encode(new).astype(np.float64).T
        alike = (alike + np.rint(np.clip(cosines, 0.0, 1.0) * 1e3) / 1e3) / 2.0
    paired = _best_path(alike)
    moved = _moved_pairs(alike, paired)
    partner_of = dict(paired) | dict(moved)
    gone = [place for place in range(len(old)) if place not in partner_of]
    old_of = {new_place: old_place for old_place, new_place in partner_of.items()}
    found: list[Pair] = []
    moved_new = {new_place for _, new_place in moved}
    limits: list[int] = []  # up to which old sentence those that went stand before each new one
    limit = len(old)
    for place in range(len(new) - 1, -1, -1):
        if place in old_of and place not in moved_new:
            limit = old_of[place]
        limits.append(limit)
    for place, limit in enumerate(reversed(limits)):
        while gone and gone[0] < limit:
            found.append(Pair(gone.pop(0), None))
        found.append(Pair(old_of.get(place), place, place in moved_new))
    return [*found, *(Pair(place, None) for place in gone)]


def word_runs(old: str, new: str) -> tuple[WordRun, ...]:
    """What became of the words of a sentence: the longest common subsequence stays, whatever its case and stops."""
    before, after = old.split(), new.split()
    left, right = [_folded(word) for word in before], [_folded(word) for word in after]
    if len(left) * len(right) > _MAX_CELLS:
        return (WordRun(RunKind.REMOVED, old), WordRun(RunKind.ADDED, new))
    lengths = np.zeros((len(left) + 1, len(right) + 1), np.int32)
    for row in range(len(left) - 1, -1, -1):
        for column in range(len(right) - 1, -1, -1):
            same = left[row] == right[column]
            lengths[row, column] = (
                lengths[row + 1, column + 1] + 1
                if same
                else max(lengths[row + 1, column], lengths[row, column + 1])
            )
    runs: list[tuple[RunKind, list[str]]] = []
    row = column = 0
    while row < len(left) or column < len(right):
        if row < len(left) and column < len(right) and left[row] == right[column]:
            _extend(runs, RunKind.SAME, after[column])
            row, column = row + 1, column + 1
        elif column == len(right) or (
            row < len(left) and lengths[row + 1, column] >= lengths[row, column + 1]
        ):
            _extend(runs, RunKind.REMOVED, before[row])
            row += 1
        else:
            _extend(runs, RunKind.ADDED, after[column])
            column += 1
    return tuple(WordRun(kind, " ".join(words)) for kind, words in runs)


def _extend(runs: list[tuple[RunKind, list[str]]], kind: RunKind, word: str) -> None:
    if runs and runs[-1][0] is kind:
        runs[-1][1].append(word)
    else:
        runs.append((kind, [word]))


def _folded(word: str) -> str:
    """A word as it counts for likeness: plain letters, without punctuation around it."""
    return plain_letters(word).strip(".,;:!?()[]\"'*“”‘’ ") or word


def _likeness(old: Sequence[str], new: Sequence[str]) -> NDArray[np.float64]:
    """Weighted overlap of words [O, N], 0–1. Whole numbers in float64 add exactly, in any order."""
    bags = [frozenset(_WORD.findall(plain_letters(text))) for text in (*old, *new)]
    num_with = Counter(word for bag in bags for word in bag)
    columns = {word: place for place, word in enumerate(sorted(num_with))}
    weights = np.array([_WEIGHT // num_with[word] for word in columns], np.float64)
    present = np.zeros((len(bags), max(len(columns), 1)))
    for row, bag in enumerate(bags):
        present[row, [columns[word] for word in bag]] = 1.0
    totals = present[:, : len(weights)] @ weights
    common = (present[: len(old), : len(weights)] * weights) @ present[len(old) :, : len(weights)].T  # [O, N]
    left, right = totals[: len(old), None], totals[None, len(old) :]
    dice = np.divide(2.0 * common, left + right, out=np.zeros_like(common), where=left + right > 0.0)
    least = np.minimum(left, right)
    overlap = np.divide(common, least, out=np.zeros_like(common), where=least > 0.0)
    return np.maximum(dice, _OVERLAP_SHARE * np.where(overlap > 0.9, overlap, 0.0))


def _best_path(alike: NDArray[np.float64]) -> list[tuple[int, int]]:
    """The pairs in order with the largest sum of likeness beyond the least."""
    num_old, num_new = alike.shape
    gains = np.where(alike >= _MIN_ALIKE, np.rint(alike * 1e6), 0.0)
    best = np.zeros((num_old + 1, num_new + 1))
    for row in range(num_old - 1, -1, -1):
        diagonal = gains[row] + best[row + 1, 1:]
        down = best[row + 1, :-1]
        for column in range(num_new - 1, -1, -1):
            best[row, column] = max(down[column], best[row, column + 1], diagonal[column])
    found: list[tuple[int, int]] = []
    row = column = 0
    while row < num_old and column < num_new:
        here = best[row, column]
        if gains[row, column] > 0.0 and here == gains[row, column] + best[row + 1, column + 1]:
            found.append((row, column))
            row, column = row + 1, column + 1
        elif here == best[row + 1, column]:
            row += 1
        else:
            column += 1
    return found


def _moved_pairs(alike: NDArray[np.float64], paired: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sentences without a partner that are much alike, the likest first."""
    taken_old, taken_new = {old for old, _ in paired}, {new for _, new in paired}
    places = np.argwhere(alike >= _MIN_ALIKE_MOVED).tolist()
    free = [(old, new) for old, new in places if old not in taken_old and new not in taken_new]
    found: list[tuple[int, int]] = []
    for old, new in sorted(free, key=lambda one: (-float(alike[one]), one)):
        if old not in taken_old and new not in taken_new:
            found.append((old, new))
            taken_old.add(old)
            taken_new.add(new)
    return found
