"""Fits that do not converge: what was fitted before holds, an expert without any is left out, and bands stay sane."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from htfi.domain.events import Bar
from htfi.domain.time import NS_PER_DAY
from htfi.forecasting.config import LEVELS, ForecastConfig
from htfi.forecasting.experts import build_experts, garch
from htfi.forecasting.experts.garch import GarchTExpert
from htfi.forecasting.experts.pretrained import FittedExpert
from htfi.forecasting.forecaster import Forecaster

CONFIG = ForecastConfig(experts=("ewma",), horizons=(1, 5))
NUM_BARS = 260


def bars() -> list[Bar]:
    dice, price, found = np.random.default_rng(2), 100.0, list[Bar]()
    for day in range(NUM_BARS):
        before, price = price, price * float(np.exp(0.01 * dice.standard_normal()))
        start, end = day * NS_PER_DAY, (day + 1) * NS_PER_DAY
        high, low = max(before, price), min(before, price)
        found.append(Bar(end, end, "t", day + 1, "A", "1d", start, end, before, high, low, price))
    return found


class FailingModel:
    """A model whose fit succeeds `num_good` times, and never again."""

    version, max_context, min_context, num_parameters = "failing/1", 500, 30, 1

    def __init__(self, num_good: int) -> None:
        self.num_good, self.num_asked = num_good, 0

    def fit(self, context: NDArray[np.float64]) -> NDArray[np.float64]:
        self.num_asked += 1
        return np.array([context.std() if self.num_asked <= self.num_good else np.nan])

    def quantiles_of(
        self,
        context: NDArray[np.float64],
        parameters: NDArray[np.float64],
        horizons: Sequence[int],
        levels: Sequence[float],
    ) -> NDArray[np.float64]:
        del context
        spread = np.linspace(-2.3, 2.3, len(levels))
        return float(parameters[0]) * np.sqrt(np.array(horizons))[:, None] * spread

    def quantiles(self, contexts: Sequence[Any], horizons: Sequence[int], levels: Sequence[float]) -> Any:
        raise AssertionError("a fitted expert asks for its fit")


def newest(num_good: int) -> tuple[FailingModel, Any]:
    model = FailingModel(num_good)
    failing = FittedExpert(CONFIG, model, name="failing", num_asked=4)
    forecaster = Forecaster(CONFIG, [*build_experts(CONFIG), failing])
    for bar in bars():
        forecaster.observe([bar])
    return model, forecaster.forecast(["A/1d"]).item(0)


def test_the_last_fit_that_converged_holds() -> None:
    model, forecast = newest(2)
    assert model.num_asked > 5
    low, high = (forecast.experts["failing"][0][LEVELS.index(level)] for level in (0.05, 0.95))
    assert 0.02 < high - low < 0.05
    assert set(forecast.experts) == {"ewma", "failing"}


def test_an_expert_that_never_converged_is_left_out_of_the_mix() -> None:
    model, forecast = newest(0)
    assert model.num_asked > 20  # asked again at every bar
    assert set(forecast.experts) == {"ewma"}
    low, high = forecast.central_band
    assert 0.02 < high - low < 0.05


def test_our_garch_that_is_stopped_on_its_way_up_has_a_sane_band(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garch, "_REFIT_MAX_PASSES", 1)
    forecaster = Forecaster(CONFIG, [GarchTExpert(CONFIG)])
    for bar in bars():
        forecaster.observe([bar])
    low, high = forecaster.forecast(["A/1d"]).item(0).central_band
    assert 0.02 < high - low < 0.05


@pytest.mark.skipif(find_spec("arch") is None, reason="needs the extra [arch]")
def test_a_fit_of_arch_that_does_not_converge_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    from htfi.adapters.arch.model import ArchModel

    returns = 0.01 * np.random.default_rng(3).standard_t(4, 300)
    model = ArchModel("garch_t")
    assert np.isfinite(model.fit(returns)).all()
    whole = model._model

    def stopped(context: NDArray[np.float64]) -> Any:
        one = whole(context)
        fit = one.fit
        monkeypatch.setattr(one, "fit", lambda **asked: fit(**asked, options={"maxiter": 1}))
        return one

    monkeypatch.setattr(model, "_model", stopped)
    assert np.isnan(model.fit(returns)).all()
    assert np.isnan(model.quantiles([returns], (1,), LEVELS)).all()
