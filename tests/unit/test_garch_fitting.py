"""The likelihood's derivatives, its top as arch finds it, and the same bits with and without a compiler."""

import importlib.util
import math
from array import array
from types import ModuleType

import numpy as np
import pytest

from checks import nonempty
from garch_fits import GarchFit, fit_garch
from htfi.forecasting import garch_core

FREE = array("d", bytes(40))
PRIOR = array("d", [1.0, 0.98, 0.06, 0.8, 0.2])
PRECISION = array("d", [16.0, 1e4, 1600.0, 44.0, 100.0])


def simulated(num: int, seed: int, alpha: float, gamma: float, beta: float, nu: float) -> np.ndarray:
    """GJR returns at a long-run volatility of 1%."""
    rng, var, returns = np.random.Generator(np.random.PCG64(seed)), 1e-4, np.empty(num + 200)
    shocks = rng.standard_t(nu, num + 200) * math.sqrt((nu - 2.0) / nu)
    for t, shock in enumerate(shocks):
        returns[t] = math.sqrt(var) * shock
        news = (alpha + gamma * (shock < 0.0)) * returns[t] ** 2
        var = 1e-4 * (1.0 - alpha - 0.5 * gamma - beta) + news + beta * var
    return returns[200:]


def interpreted() -> ModuleType:
    """garch_core as plain Python, whatever was compiled."""
    source = garch_core.__file__.split(".")[0] + ".py"
    spec = importlib.util.spec_from_file_location("garch_core_interpreted", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert not module.COMPILED
    return module


def looked_at(returns: np.ndarray, x: list[float], module: ModuleType = garch_core, prior: bool = False):
    weights = (PRIOR, PRECISION) if prior else (FREE, FREE)
    fit = module.Fit(returns.data, True, *weights)
    fit.start(array("d", x))
    return fit


def student_loglik(returns: np.ndarray, x: list[float]) -> float:
    """The log-likelihood as a textbook writes it."""
    omega, persistence, share, falls, tail = x
    news, nu = persistence * share, 1.0 / tail
    alpha, gamma = 2.0 * news * (1.0 - falls), 2.0 * news * (2.0 * falls - 1.0)
    weights = 0.94 ** np.arange(min(75, len(returns)))
    back = float((weights * returns[: len(weights)] ** 2).sum() / weights.sum())
    var, total = omega + persistence * back, 0.0
    for move in returns:
        total += (
            math.lgamma((nu + 1) / 2)
            - math.lgamma(nu / 2)
            - 0.5 * math.log(math.pi * (nu - 2) * var)
            - (nu + 1) / 2 * math.log1p(move * move / (var * (nu - 2)))
        )
        var = omega + (alpha + gamma * (move < 0)) * move * move + (persistence - news) * var
    return total


POINTS = [
    [0.02, 0.97, 0.07, 0.7, 0.18],
    [0.3, 0.6, 0.4, 0.2, 0.45],
    [1e-5, 0.9995, 0.02, 1.0, 0.02],
    [1.5, 0.3, 0.9, 0.5, 0.3],
]


@pytest.mark.parametrize("x", POINTS)
def test_likelihood_is_the_textbooks(x: list[float]):
    returns = 100.0 * simulated(400, 1, 0.04, 0.08, 0.9, 5.0)
    assert looked_at(returns, x).loglik == pytest.approx(student_loglik(returns, x), rel=1e-11)


@pytest.mark.parametrize("prior", [False, True])
@pytest.mark.parametrize("x", POINTS)
def test_gradient_is_that_of_finite_differences(x: list[float], prior: bool):
    returns = 100.0 * simulated(400, 2, 0.04, 0.08, 0.9, 5.0)
    x = [min(value, 0.9998) for value in x]  # a bound has no slope on its far side
    gradient = looked_at(returns, x, prior=prior).gradient
    for j in range(5):
        width = 1e-5 * x[j]
        ends = [looked_at(returns, [*x[:j], x[j] + way * width, *x[j + 1 :]], prior=prior) for way in (1, -1)]
        slope = (ends[0].height - ends[1].height) / (2.0 * width)
        assert gradient[j] == pytest.approx(slope, rel=2e-4, abs=1e-4 * max(1.0, abs(gradient[j])))


def test_information_is_the_mean_square_of_the_score():
    """At the truth E[score·scoreᵀ] is the information. 300 series: the margins are four standard errors wide."""
    x = [0.05, 0.95, 0.1, 0.7, 0.15]
    news = 0.095
    fits = []
    for seed in range(300):
        returns = simulated(300, seed, 2 * news * 0.3, 2 * news * 0.4, 0.95 - news, 1 / 0.15) * 100.0
        fits.append(looked_at(returns, x))
    scores = np.array([fit.gradient for fit in fits])
    information = np.mean([np.array(fit.information).reshape(5, 5) for fit in fits], axis=0)
    np.testing.assert_allclose((scores * scores).mean(axis=0), np.diag(information), rtol=0.35)
    root = np.sqrt(np.diag(information))
    together = scores.T @ scores / len(scores)
    np.testing.assert_allclose(together / root / root[:, None], information / root / root[:, None], atol=0.3)


@pytest.mark.parametrize("leverage", [False, True])
def test_no_likelihood_is_below_the_one_arch_finds(leverage: bool):
    from arch import arch_model

    rng = np.random.Generator(np.random.PCG64(5))
    series = []
    for seed in range(20):
        persistence, news = rng.choice([0.9, 0.96, 0.99]), rng.uniform(0.03, 0.12)
        gamma = rng.uniform(0.0, news) if seed % 2 else 0.0
        alpha = news - 0.5 * gamma
        series.append(simulated(1500, seed, alpha, gamma, persistence - news, rng.uniform(3.5, 12.0)))
    fits = fit_garch(np.array(series), leverage)
    for i, returns in nonempty(enumerate(series)):
        peer = arch_model(
            100.0 * returns, mean="Zero", vol="GARCH", p=1, o=int(leverage), q=1, dist="t", rescale=False
        ).fit(disp="off")
        loglik = peer.loglikelihood + len(returns) * math.log(100.0)
        assert fits.loglik[i] >= loglik - 0.01
        if fits.loglik[i] > loglik + 0.05:
            continue  # arch stopped on a lower hill
        var = peer.forecast(horizon=1).variance.to_numpy()[-1, 0] / 1e4
        assert fits.variance[i] == pytest.approx(var, rel=0.01)
        assert fits.beta[i] == pytest.approx(peer.params["beta[1]"], abs=0.02)
        assert fits.alpha[i] == pytest.approx(peer.params["alpha[1]"], abs=0.01)
        assert fits.nu[i] == pytest.approx(peer.params["nu"], rel=0.02)


def test_parameters_are_found_again_in_a_long_series():
    fit = fit_garch(simulated(20_000, 3, 0.03, 0.08, 0.9, 6.0)[None], leverage=True)
    assert fit.alpha[0] == pytest.approx(0.03, abs=0.01)
    assert fit.gamma[0] == pytest.approx(0.08, abs=0.02)
    assert fit.beta[0] == pytest.approx(0.9, abs=0.015)
    assert fit.nu[0] == pytest.approx(6.0, rel=0.1)
    level = fit.omega[0] / (1.0 - fit.alpha[0] - fit.gamma[0] / 2 - fit.beta[0])
    assert level == pytest.approx(1e-4, rel=0.25)


@pytest.mark.skipif(not garch_core.COMPILED, reason="garch_core was not compiled")
@pytest.mark.parametrize("seed", range(12))
def test_compiled_fit_has_the_bits_of_the_interpreted(seed: int):
    rng = np.random.Generator(np.random.PCG64(seed))
    returns = rng.standard_t(2.2, 150) * np.where(rng.random(150) < 0.3, 0.0, 1.0)
    returns /= math.sqrt((returns * returns).mean())
    found = []
    for module in (garch_core, interpreted()):
        fit = module.Fit(returns.data, seed % 2 == 0, PRIOR, PRECISION if seed % 3 else FREE)
        for x in POINTS:
            fit.start(array("d", x))
        fit.climb(25, 1e-9)
        found.append((list(fit.x), list(fit.information), fit.loglik, fit.variance, fit.num_passes))
    assert found[0] == found[1]


def test_series_that_tell_nothing_are_nan_and_the_rest_is_fitted():
    rows = np.full((5, 300), np.nan)
    rows[0] = 0.0
    rows[1, :5] = 0.01
    rows[2, 50:] = simulated(250, 4, 0.05, 0.0, 0.9, 5.0)
    rows[3] = np.inf
    rows[4] = 1e-200
    fit = fit_garch(rows, leverage=False)
    assert np.isnan(fit.omega[[0, 1, 3, 4]]).all()
    alone = fit_garch(rows[2:3, 50:], leverage=False)
    assert np.isfinite(alone.loglik[0])
    for name in GarchFit.__dataclass_fields__:
        assert getattr(fit, name)[2] == getattr(alone, name)[0]
    assert fit.gamma[2] == 0.0


@pytest.mark.parametrize(
    "returns",
    [
        np.where(np.arange(500) % 50 == 0, 1.0, 1e-9),
        np.concatenate([np.zeros(499), [0.5]]),
        np.tile([0.01, -0.01], 250),
        np.full(500, -0.02),
        np.concatenate([np.full(250, 1e-12), np.full(250, 3.0)]),
        np.exp(np.linspace(-300.0, 0.0, 500)),
    ],
    ids=["spikes", "one jump", "alternating", "falling", "two worlds", "growing"],
)
@pytest.mark.parametrize("leverage", [False, True])
def test_ugly_series_have_finite_parameters_within_their_bounds(returns: np.ndarray, leverage: bool):
    fit = fit_garch(returns[None], leverage)
    values = {name: float(getattr(fit, name)[0]) for name in GarchFit.__dataclass_fields__}
    assert all(math.isfinite(value) for value in values.values()), values
    assert min(values["omega"], values["variance"]) > 0.0
    assert min(values["alpha"], values["alpha"] + values["gamma"], values["beta"]) >= -1e-12
    assert values["alpha"] + values["gamma"] / 2 + values["beta"] <= 0.9999 + 1e-12
    assert 2.1 - 1e-9 <= values["nu"] <= 60.0 + 1e-9
