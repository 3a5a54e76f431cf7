"""The room's own log, exp, linear solver and quantile tables against independent ones."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from checks import nonempty
from htfi.domain import portable_math as exact
from htfi.forecasting.regression import DiscountedRegression, solve_normal_equations
from htfi.forecasting.shapes import gaussian_quantiles, student_quantiles


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_log_is_that_of_the_c_library_to_the_last_bits(x: float):
    assert exact.log(np.array([x]))[0] == pytest.approx(math.log(x), rel=5e-16, abs=3e-16)


@given(st.floats(min_value=-690.0, max_value=690.0))
def test_exp_is_that_of_the_c_library_to_the_last_bits(x: float):
    assert exact.exp(np.array([x]))[0] == pytest.approx(math.exp(x), rel=7e-16)


def test_exp_beyond_its_range_stays_finite():
    assert np.isfinite(exact.exp(np.array([1e9]))).all()
    assert exact.exp(np.array([-1e300]))[0] < 1e-300


@given(st.floats(allow_nan=False))
def test_exp_of_one_number_has_the_bits_of_an_array(x: float):
    assert exact.scalar_exp(x) == exact.exp(np.array([x]))[0]


def test_log_and_exp_give_the_bits_they_gave_when_written():
    logs = [-2.3025850929940455, -0.3566749439387324, 0.4054651081081644, 7.118476228297786]
    assert exact.log(np.array([0.1, 0.7, 1.5, 1234.5678])).tolist() == logs
    powers = [0.9048374180359595, 0.4965853037914095, 0.22313016014842982]
    assert exact.exp(-np.array([0.1, 0.7, 1.5])).tolist() == powers


def bits_of(function: Callable[[exact.Array], exact.Array], x: exact.Array) -> NDArray[np.uint64]:
    with np.errstate(all="ignore"):
        return function(x).view(np.uint64)


@pytest.mark.skipif(exact.core is None, reason="log and exp were not compiled")
def test_log_and_exp_have_the_same_bits_compiled_and_by_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    positive = [*np.exp(rng.normal(0.0, 50.0, 20_000)), *(1.0 + rng.normal(0.0, 1e-8, 5_000))]
    numbers = [*rng.normal(0.0, 300.0, 20_000), *rng.normal(0.0, 1.0, 20_000), *rng.normal(0.0, 1e-9, 5_000)]
    edges = [
        5e-324,
        1e-310,
        2.2250738585072014e-308,
        0.0,
        -0.0,
        1.0,
        -1.0,
        700.0,
        -700.5,
        1e300,
        math.inf,
        math.nan,
    ]
    logs, powers = np.array([*positive, *edges[:6], math.inf]), np.array([*numbers, *edges, -math.inf])
    compiled = bits_of(exact.log, logs), bits_of(exact.exp, powers)
    strided = bits_of(exact.exp, powers[: len(powers) // 2 * 2].reshape(-1, 2).T)
    monkeypatch.setattr(exact, "core", None)
    assert np.array_equal(compiled[0], bits_of(exact.log, logs))
    assert np.array_equal(compiled[1], bits_of(exact.exp, powers))
    assert np.array_equal(strided, bits_of(exact.exp, powers[: len(powers) // 2 * 2].reshape(-1, 2).T))


def test_solve_agrees_with_lapack():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((7, 2, 30, 6))
    gram = np.swapaxes(x, -1, -2) @ x
    moment = rng.standard_normal((7, 2, 6))
    np.testing.assert_allclose(
        solve_normal_equations(gram, moment), np.linalg.solve(gram, moment[..., None])[..., 0], rtol=1e-9
    )


def test_regression_recovers_coefficients_and_forgets_old_ones():
    rng = np.random.default_rng(5)
    fit = DiscountedRegression(1, np.zeros(3), 1.0, 100.0)
    fit.columns.grow(1)
    for truth in (np.array([1.0, -2.0, 0.5]), np.array([0.0, 1.0, 1.0])):
        for _ in range(2000):
            x = rng.standard_normal((1, 1, 3))
            fit.learn(np.array([0]), x, x @ truth, np.array([[True]]))
        fit.fit(np.array([0]))
        np.testing.assert_allclose(fit.columns["beta"][0, 0], truth, atol=0.03)


def test_regression_ignores_outcomes_that_are_not_known():
    fit = DiscountedRegression(1, np.array([0.5]), 10.0, 100.0)
    fit.columns.grow(1)
    before = {name: column.copy() for name, column in fit.columns.items()}
    fit.learn(np.array([0]), np.ones((1, 1, 1)), np.array([[math.nan]]), np.array([[False]]))
    for name, column in nonempty(fit.columns.items()):
        np.testing.assert_array_equal(column, before[name])


def test_student_quantiles_are_those_of_the_printed_tables():
    levels = (0.01, 0.05, 0.1, 0.5, 0.9, 0.95, 0.99)
    table = np.array([-3.36493, -2.01505, -1.47588, 0.0, 1.47588, 2.01505, 3.36493])  # ν = 5
    np.testing.assert_allclose(student_quantiles(levels, 5.0) * math.sqrt(5 / 3), table, atol=1e-5)
    np.testing.assert_allclose(student_quantiles(levels, 1e3), gaussian_quantiles(levels), atol=2e-3)
