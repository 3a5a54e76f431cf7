"""How to split time into what is fitted and what is judged, so that no label is on both sides. Evaluations call it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput

Places = NDArray[np.intp]
Instants = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class TrainTestSplit:
    """Places of samples to fit on and to judge on, rising."""

    train: Places
    test: Places


def walk_forward(
    begins: Instants, ends: Instants, num_folds: int, *, embargo: int = 0, window: int | None = None
) -> list[TrainTestSplit]:
    """`num_folds` tests of equal length, each after what it is fitted on.

    Sample i is known from begins[i] on and its label spans [begins[i], ends[i]], both [n] in one unit and begins
    rising. Training samples lie before their test, are purged where their label reaches into it, and go back
    `window` units at most where one is given; nothing within `embargo` before a test is fitted on.
    Raises: InvalidInput. Source: López de Prado (2018), chapter 7.
    """
    _check(begins, ends, embargo)
    if not 1 <= num_folds < len(begins):
        raise InvalidInput(
            f"{num_folds} folds of {len(begins)} samples: give 1 or more, and fewer than samples"
        )
    blocks = np.array_split(np.arange(len(begins)), num_folds + 1)
    splits: list[TrainTestSplit] = []
    for test in blocks[1:]:
        start = begins[test[0]]
        fit = (begins < start) & (ends < start - embargo)
        if window is not None:
            fit &= begins >= start - window
        splits.append(TrainTestSplit(np.flatnonzero(fit), test))
    return splits


def combinatorial(
    begins: Instants, ends: Instants, num_groups: int, num_test_groups: int, *, embargo: int = 0
) -> Iterator[TrainTestSplit]:
    """Combinatorial purged cross-validation: each choice of k of N groups is a test, the rest is fitted on.

    Training labels that overlap a test label's span are purged, and so are samples that begin within `embargo` after
    one ends. There are C(N, k) splits, which make k·C(N, k)/N whole paths: `paths`.
    Raises: InvalidInput. Source: López de Prado (2018), chapter 12.
    """
    _check(begins, ends, embargo)
    if not 1 <= num_test_groups < num_groups <= len(begins):
        raise InvalidInput(
            f"{num_test_groups} of {num_groups} groups of {len(begins)} samples: "
            "test fewer groups than there are, and have no more groups than samples"
        )
    groups = np.array_split(np.arange(len(begins)), num_groups)
    for chosen in combinations(range(num_groups), num_test_groups):
        test = np.concatenate([groups[g] for g in chosen])
        yield TrainTestSplit(_purged(begins, ends, [groups[g] for g in chosen], embargo), test)


def paths(num_groups: int, num_test_groups: int) -> list[list[tuple[int, int]]]:
    """Whole histories from the splits of `combinatorial`: each takes every group from one split, (split, group)."""
    of_group: list[list[int]] = [[] for _ in range(num_groups)]
    for split, chosen in enumerate(combinations(range(num_groups), num_test_groups)):
        for group in chosen:
            of_group[group].append(split)
    num_paths = comb(num_groups, num_test_groups) * num_test_groups // num_groups
    return [[(of_group[group][path], group) for group in range(num_groups)] for path in range(num_paths)]


def _purged(begins: Instants, ends: Instants, tests: Sequence[Places], embargo: int) -> Places:
    """Samples outside the tests whose labels neither overlap one nor begin within `embargo` after it."""
    keep = np.ones(len(begins), np.bool_)
    for test in tests:
        first, last = begins[test[0]], ends[test].max()
        keep &= (ends < first) | (begins > last + embargo)
        keep[test] = False
    return np.flatnonzero(keep)


def _check(begins: Instants, ends: Instants, embargo: int) -> None:
    if begins.shape != ends.shape or len(begins) < 2:
        raise InvalidInput("a split needs two samples or more, each with a begin and an end")
    if (np.diff(begins) < 0).any() or (ends < begins).any():
        raise InvalidInput("samples must stand in order of time, and no label may end before it begins")
    if embargo < 0:
        raise InvalidInput(f"an embargo of {embargo} is negative: give 0 or more")
