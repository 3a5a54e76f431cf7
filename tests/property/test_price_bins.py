"""The price tokenizer for any value: inverse up to a bin, monotone, symmetric; the volatility recursion inverts."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from htfi.decoding.prices import PriceBins
from return_scaling import bin_widths, from_bins, scale_returns, unscale_returns

BINS = PriceBins()
ANY = st.floats(-1e6, 1e6)


@given(ANY)
def test_a_value_and_what_its_bin_stands_for_share_the_bin(z):
    index = BINS.to_bins(z)
    back = from_bins(BINS, index)
    assert abs(back - z) <= bin_widths(BINS, index)
    assert BINS.to_bins(back) == index


@given(ANY, ANY)
def test_a_larger_value_never_has_a_lower_bin(a, b):
    low, high = BINS.to_bins([min(a, b), max(a, b)])
    assert low <= high


@given(ANY)
def test_the_bin_of_the_opposite_is_the_opposite_bin(z):
    assert BINS.to_bins(z) + BINS.to_bins(-z) == BINS.num_bins - 1
    assert from_bins(BINS, BINS.to_bins(-z)) == -from_bins(BINS, BINS.to_bins(z))


@given(st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=60), st.floats(0.0, 1.0))
def test_unscaling_gives_back_the_returns_that_were_scaled(returns, sigma):
    z, _ = scale_returns(returns, sigma)
    np.testing.assert_allclose(unscale_returns(z, sigma), returns, rtol=1e-9, atol=1e-15)
