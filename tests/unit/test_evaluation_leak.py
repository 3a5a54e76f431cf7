"""The leak detector on forecasters whose sight is known."""

from collections.abc import Mapping

import numpy as np
import pytest

from htfi.domain.errors import InvalidInput
from htfi.forecasting.evaluation.leak import disturb_after, find_leaks

PRICES = {"close": np.exp(np.random.Generator(np.random.PCG64(1)).standard_normal((60, 2)) * 0.01)}
DICE_SEED = 7


def _dice() -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(DICE_SEED))


def _run(prices: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    close = prices["close"]
    ahead = np.vstack([close[1:], np.full((1, close.shape[1]), np.nan)])
    return {
        "trailing": np.cumsum(close, axis=0),
        "whole file": close / close.mean(axis=0),
        "one ahead": ahead,
        "silent": np.full_like(close, np.nan),
    }


def test_only_those_who_see_the_future_are_found_and_from_where() -> None:
    found = find_leaks(_run, PRICES, [30, 45], _dice())
    assert set(found) == {"whole file", "one ahead"}
    assert found["whole file"] == 0
    assert found["one ahead"] == 30  # sees one bar: only the last before the change moves


def test_the_past_is_left_as_it_is_and_fields_move_together() -> None:
    prices = {"high": PRICES["close"] * 1.01, "close": PRICES["close"]}
    changed = disturb_after(prices, 20, _dice())
    assert (changed["close"][:21] == prices["close"][:21]).all()
    assert (changed["close"][21:] != prices["close"][21:]).all()
    np.testing.assert_allclose(changed["high"] / changed["close"], 1.01)


@pytest.mark.parametrize("cuts", [[], [59], [-1]])
def test_a_cut_that_leaves_nothing_to_change_is_refused(cuts: list[int]) -> None:
    with pytest.raises(InvalidInput, match="cuts"):
        find_leaks(_run, PRICES, cuts, _dice())
