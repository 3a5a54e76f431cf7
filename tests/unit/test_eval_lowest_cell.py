"""The lowest of many cells of a forecaster that is right everywhere."""

import numpy as np
import pytest

from htfi_eval.eval.returns.lowest_cell import Cells, MissedVolatility, draw_held, lowest_of_calibrated


@pytest.mark.parametrize("missed", [MissedVolatility(0.0, 1.0), MissedVolatility(0.35, 22.0)])
@pytest.mark.parametrize("horizon", [1, 22])
def test_its_bands_hold_ninety_percent(missed: MissedVolatility, horizon: int):
    held = draw_held(np.ones((20_000, 8), bool), horizon, missed, np.random.default_rng(3))
    assert np.isnan(held[-horizon:]).all()
    assert np.isfinite(held[:-horizon]).all()
    assert np.nanmean(held) == pytest.approx(0.9, abs=0.01)


def test_a_bar_that_is_not_there_has_no_forecast():
    there = np.ones((50, 2), bool)
    there[10, 1] = False
    held = draw_held(there, 1, MissedVolatility(0.0, 1.0), np.random.default_rng(4))
    assert np.isnan(held[10, 1])
    assert np.isfinite(held[10, 0])


def test_the_lowest_of_more_cells_is_lower_and_is_named():
    there = np.ones((2_200, 1), bool)
    parts = [(f"part {k}", there & (np.arange(2_200)[:, None] // 110 == k)) for k in range(20)]
    whole = [Cells("set", there, [("all", there)])]
    divided = [Cells("set", there, parts)]
    missed = MissedVolatility(0.0, 1.0)
    one, where = lowest_of_calibrated(whole, (22,), missed, np.random.default_rng(5))
    lowest, place = lowest_of_calibrated(divided, (22,), missed, np.random.default_rng(5))
    assert (where, place[:5], place[-14:]) == ("all, set, 22 bars", "part ", ", set, 22 bars")
    assert lowest < one - 0.05
