"""Splits of time: no label on both sides, nothing within the embargo, whole paths."""

from math import comb

import numpy as np
import pytest

from checks import nonempty
from htfi.domain.errors import InvalidInput
from htfi.forecasting.evaluation.splits import combinatorial, paths, walk_forward

BEGINS = np.arange(100, dtype=np.int64)


@pytest.mark.parametrize("span", [0, 1, 22])
def test_walk_forward_purges_labels_that_reach_into_the_test(span: int) -> None:
    ends = BEGINS + span
    for split in nonempty(walk_forward(BEGINS, ends, 4, embargo=3)):
        first = BEGINS[split.test[0]]
        assert (ends[split.train] < first - 3).all()
        assert len(split.train) == max(first - 3 - span, 0)  # and no more is lost than must be


def test_walk_forward_tests_follow_each_other_and_skip_the_first_block() -> None:
    splits = walk_forward(BEGINS, BEGINS, 4)
    assert np.concatenate([split.test for split in splits]).tolist() == list(range(20, 100))


def test_walk_forward_window_forgets() -> None:
    last = walk_forward(BEGINS, BEGINS, 4, window=10)[-1]
    assert last.train.tolist() == list(range(70, 80))


def test_combinatorial_purges_both_sides_and_embargoes_after() -> None:
    ends = BEGINS + 5
    splits = list(combinatorial(BEGINS, ends, 5, 2, embargo=7))
    assert len(splits) == comb(5, 2)
    for split in splits:
        for place in split.train:
            overlaps = (BEGINS[split.test] <= ends[place]) & (ends[split.test] >= BEGINS[place])
            after = BEGINS[place] - ends[split.test]
            assert not overlaps.any()
            assert not ((after > 0) & (after <= 7)).any()


def test_paths_take_every_group_once_from_splits_that_tested_it() -> None:
    tested = [set(split.test // 20) for split in combinatorial(BEGINS, BEGINS, 5, 2)]
    whole = paths(5, 2)
    assert len(whole) == 4  # k·C(N, k)/N
    for path in whole:
        assert [group for _, group in path] == [0, 1, 2, 3, 4]
        assert all(group in tested[split] for split, group in path)
    used = [step for path in whole for step in path]
    assert len(set(used)) == len(used)


@pytest.mark.parametrize(
    ("begins", "ends", "what"),
    [
        (BEGINS[::-1], BEGINS[::-1], "order of time"),
        (BEGINS, BEGINS - 1, "before it begins"),
        (BEGINS[:1], BEGINS[:1], "two samples"),
    ],
)
def test_unusable_labels_are_refused(begins: np.ndarray, ends: np.ndarray, what: str) -> None:
    with pytest.raises(InvalidInput, match=what):
        walk_forward(begins, ends, 1)


def test_more_groups_than_samples_are_refused() -> None:
    with pytest.raises(InvalidInput, match="groups"):
        next(combinatorial(BEGINS[:3], BEGINS[:3], 4, 1))
