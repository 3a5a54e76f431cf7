"""Tests of what `htfi eval governance fairness` measures: coverage by groups, and the cost of the swap test."""

import numpy as np
import pytest

from htfi.domain.time import NS_PER_DAY
from htfi.governance.fairness.forecasts import COVERAGE
from htfi_eval.eval.governance import group_coverage
from htfi_eval.eval.governance.group_coverage import score_groups
from htfi_eval.eval.governance.swap_cost import SwapCost
from htfi_eval.eval.price_grid import Prices


def test_cost_is_the_rise_of_the_summed_loss_with_its_interval() -> None:
    without = np.tile([1.0, 2.0, 3.0], 40)
    days = np.repeat(np.arange(40), 3)
    found = SwapCost(without, 1.1 * without, days, 7, 3)
    assert found.cost == pytest.approx(0.1)
    assert found.interval() == pytest.approx((0.1, 0.1))
    assert "CRPS +10.000%" in found.note
    assert "7 views were weighed down, 3 of these decisions withheld" in found.note


def test_interval_of_a_cost_that_comes_from_one_day_reaches_nothing() -> None:
    without = np.ones(50)
    tested = without.copy()
    tested[0] = 2.0
    low, high = SwapCost(without, tested, np.arange(50), 1, 0).interval()
    assert low == 0.0
    assert high > 0.02


def test_group_whose_prices_jump_is_covered_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_coverage, "FIRST_SCORED", "2020-06-01")
    rng = np.random.Generator(np.random.PCG64(4))
    moves = 0.01 * rng.standard_normal((400, 4))
    late = np.arange(400) > 150
    moves[np.ix_(late & (np.arange(400) % 4 == 0), [2, 3])] *= 8.0  # too seldom to be within a band of 90%
    close = 100.0 * np.exp(np.cumsum(moves, axis=0))
    ends_ns = 1_577_836_800_000_000_000 + NS_PER_DAY * np.arange(400)
    prices = Prices("x", ("A", "B", "C", "D"), "1d", ends_ns, ends_ns, close, close, close, close)
    found = score_groups(prices, {"size": {"A": "large", "B": "large", "C": "small", "D": "small"}})
    coverage = {one.group: one.value for one in found.audit.figures if one.measure == COVERAGE}
    assert coverage["small"] < coverage["large"] - 0.02
    assert found.num_forecasts == 4 * (400 - 152 - 1)
