"""What large moves bring to others: of histories in which they are shared, and in which they are one series' own."""

import numpy as np
import pytest

from htfi.forecasting.joint.dependence import FactorModel, fit_factors
from htfi.forecasting.joint.transmission import shock_regression, transmit_shock

NUM, T = 8, 500


def correlation(model: FactorModel) -> np.ndarray:
    return model.multiply(np.eye(model.num_series))


def shared(seed=0):
    """All large moves are common, as those of currencies are: a multivariate t."""
    rng = np.random.default_rng(seed)
    scale = np.sqrt(4.0 / rng.chisquare(4.0, (T, 1)))
    return scale * (0.8 * rng.standard_normal((T, 1)) + 0.6 * rng.standard_normal((T, NUM)))


def own(seed=0):
    """Small moves are common, the largest are one series' own, as those of stocks are."""
    rng = np.random.default_rng(seed)
    moves = 0.7 * rng.standard_normal((T, 1)) + 0.7 * rng.standard_normal((T, NUM))
    jumps = rng.random((T, NUM)) < 0.01
    return moves + jumps * rng.choice([-7.0, 7.0], (T, NUM))


def brought(history, place, target):
    return transmit_shock(fit_factors(history), history, np.array([place]), np.array([target]))


@pytest.mark.parametrize("size", [3.0, -6.0])
def test_shared_moves_arrive_and_widen_what_is_left_open(size):
    found = brought(shared(), 0, size)
    assert found.share > 0.75
    assert found.shift[1:] == pytest.approx(0.64 * size * np.ones(NUM - 1), rel=0.35)
    assert found.scale > 1.3
    assert found.scale < abs(size)


def test_moves_that_were_one_series_own_hardly_arrive():
    found = brought(own(), 0, -7.0)
    assert found.share < 0.3
    assert found.scale < brought(shared(), 0, -7.0).scale
    usual = brought(own(), 0, -2.0)
    assert usual.share > 2.0 * found.share


def test_without_evidence_a_shift_is_small_and_bounded_by_the_shock():
    noise = np.random.default_rng(1).standard_normal((T, NUM))
    found = brought(noise, 0, -12.0)
    assert np.abs(found.shift[1:]).max() < 0.1 * 12.0  # a slope of chance, once in √500, would bring .5
    none = transmit_shock(fit_factors(np.zeros((0, 3))), np.zeros((0, 3)), np.array([0]), np.array([5.0]))
    assert none.shift[1:].tolist() == [0.0, 0.0]
    alike = shared()
    alike[:, 1] = alike[:, 0] + 0.01 * np.random.default_rng(2).standard_normal(T)
    against = transmit_shock(
        fit_factors(alike), alike, np.array([0, 1]), np.array([-5.0, 5.0])
    )  # what never was
    assert np.abs(against.shift).max() <= 5.0
    assert np.isfinite(against.scale)


def test_many_shocks_at_once_leave_the_rest_bounded():
    rng = np.random.default_rng(8)
    history = 0.6 * rng.standard_normal((120, 1)) + 0.8 * rng.standard_normal((120, 60))
    targets = rng.standard_normal(55)
    found = transmit_shock(fit_factors(history), history, np.arange(55), targets)
    assert np.abs(found.shift[55:]).max() < 1.5
    assert (found.explained >= 0.0).all()
    assert (found.explained < 1.0).all()
    assert 0.7 < found.scale < 1.5


def test_gaps_in_the_history_break_nothing():
    history = shared()
    history[np.random.default_rng(4).random(history.shape) < 0.4] = np.nan
    found = brought(history, 2, 4.0)
    assert np.isfinite(found.shift).all()
    assert found.shift[0] > 1.0


def test_neither_names_nor_order_change_what_arrives():
    history = shared(5)
    order = np.array([3, 1, 7, 0, 2, 6, 5, 4])
    model = fit_factors(history)
    one = transmit_shock(model, history, np.array([3, 1]), np.array([-3.0, -2.0]))
    again = fit_factors(history[:, order])
    other = transmit_shock(again, history[:, order], np.array([0, 1]), np.array([-3.0, -2.0]))
    assert other.shift == pytest.approx(one.shift[order], abs=1e-6)
    assert other.scale == pytest.approx(one.scale, rel=1e-6)


def test_a_correlation_that_noise_explains_is_shrunk():
    rng = np.random.default_rng(7)
    history = rng.standard_normal((60, 4))
    gain, _ = shock_regression(fit_factors(history), 60, np.array([0]))
    model = correlation(fit_factors(history))[0]
    weak = np.abs(model[1:]) < 0.1
    assert weak.any()
    assert (np.abs(gain[0, 1:])[weak] < 0.5 * np.abs(model[1:])[weak] + 1e-12).all()


@pytest.mark.slow
@pytest.mark.parametrize("make", [shared, own])
def test_bands_given_a_large_move_hold_what_came(make):
    """90% bands from half of a history for the other half, given moves of three sigmas and more."""
    hits: list[float] = []
    for seed in range(12):
        history = make(seed)
        past, later = history[:250], history[250:]
        sigma = np.diff(np.quantile(past, [0.05, 0.95], axis=0), axis=0)[0] / 3.29
        past, later = past / sigma, later / sigma
        model = fit_factors(past)
        for t, place in zip(*np.nonzero(np.abs(later) > 3.0), strict=True):
            found = transmit_shock(model, past, np.array([place]), later[t, [place]])
            reach = 1.645 * found.scale * np.sqrt(1.0 - found.explained)
            hits += [float(abs(later[t, j] - found.shift[j]) <= reach[j]) for j in range(NUM) if j != place]
    assert len(hits) > 500
    assert 0.82 < np.mean(hits) < 0.98
