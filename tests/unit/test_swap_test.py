"""Tests of the swap test of views: what counts as noise, what is left of a view, when a decision is held."""

import math

import pytest

from htfi.domain.governance import HoldKind, SwapMove
from htfi.governance.fairness.config import FairnessConfig
from htfi.governance.fairness.swap_test import judge_swaps, num_moved, swap_hold, swap_problems

CONFIG = FairnessConfig(max_move_sigmas=0.1, min_weight=0.25)


def swap(before: float, after: float, kind: str = "fame") -> SwapMove:
    return SwapMove("target", kind, before, after)


@pytest.mark.parametrize(
    ("before", "after", "weight"),
    [
        (0.8, 0.75, 1.0),
        (0.8, 0.4, 0.5),
        (0.8, -0.4, 0.0),
        (0.8, 1.6, 1.0),
        (-0.8, -0.2, 0.25),
        (0.0, 0.9, 1.0),
    ],
)
def test_what_is_left_of_a_view_is_what_it_and_its_swap_agree_on(
    before: float, after: float, weight: float
) -> None:
    assert judge_swaps([swap(before, after)], CONFIG).weight == pytest.approx(weight)


def test_the_worst_swap_decides() -> None:
    assert judge_swaps([swap(0.8, 0.8), swap(0.8, 0.2), swap(0.8, 0.6)], CONFIG).weight == pytest.approx(0.25)


def test_a_view_without_a_swap_keeps_its_weight() -> None:
    facts = judge_swaps([], CONFIG)
    assert facts.weight == 1.0
    assert swap_hold("A/1d", facts) is None


def test_a_move_that_is_no_number_leaves_nothing() -> None:
    assert judge_swaps([swap(0.8, math.nan)], CONFIG).weight == 0.0


def test_a_view_that_stands_too_little_holds_its_decision() -> None:
    assert swap_hold("A/1d", judge_swaps([swap(0.8, 0.3)], CONFIG)) is None
    hold = swap_hold("A/1d", judge_swaps([swap(0.8, 0.1), swap(0.8, 0.6)], CONFIG))
    assert hold is not None
    assert (hold.kind, hold.scope) == (HoldKind.FAIRNESS, "series:A/1d")
    assert "+0.80 to +0.10" in hold.cause


def test_a_recorded_weight_must_follow_from_its_moves() -> None:
    facts = judge_swaps([swap(0.8, 0.4)], CONFIG)
    assert swap_problems(facts) == []
    forged = type(facts)(facts.moves, 1.0, facts.max_move_sigmas, facts.min_weight)
    assert len(swap_problems(forged)) == 1


def test_moves_beyond_noise_are_counted() -> None:
    assert num_moved([swap(0.5, 0.55), swap(0.5, 0.7), swap(0.0, math.nan)], 0.1) == 2
