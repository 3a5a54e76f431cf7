"""Covariates: series whose level is itself a volatility, as regressors of other series' variance."""

import math

import numpy as np
import pytest

from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.events import Bar
from htfi.domain.time import NS_PER_DAY
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.experts import build_experts
from htfi.forecasting.forecaster import Forecaster
from htfi.forecasting.panel import Panel

HORIZONS = (1, 5)
CONFIG = ForecastConfig(horizons=HORIZONS, experts=("market_har",), covariates=("VIX/1d",))
HIGH = CONFIG.levels.index(0.95)


def bar(symbol: str, day: int, close: float, reach: float = 0.01) -> Bar:
    start_ns, end_ns = day * NS_PER_DAY, (day + 1) * NS_PER_DAY
    high, low = close * (1.0 + reach), close * (1.0 - reach)
    return Bar(end_ns, end_ns, "test", day + 1, symbol, "1d", start_ns, end_ns, close, high, low, close)


def fear(day: int, top: float = 40.0) -> float:
    return 20.0 if day < 59 else top


def test_regressor_is_the_log_variance_above_its_slow_mean_and_none_for_the_covariate_itself():
    panel, batch = Panel(HORIZONS, 5.0, ("VIX/1d",)), None
    for day in range(60):
        batch = panel.enter([bar("A", day, 100.0 + day), bar("VIX", day, fear(day))])
    level = 2.0 * math.log(20.0) + max(1 / 60, 0.005) * 2.0 * math.log(2.0)
    assert batch is not None
    assert batch.covariates[0, 0] == pytest.approx(2.0 * math.log(40.0) - level, rel=1e-12)
    assert batch.covariates[1, 0] == 0.0


@pytest.mark.parametrize(
    ("num_known", "days_later", "is_used"), [(21, 0, False), (22, 0, True), (22, 7, True), (22, 8, False)]
)
def test_covariate_counts_once_its_level_is_known_and_while_it_is_recent(
    num_known: int, days_later: int, is_used: bool
):
    panel = Panel(HORIZONS, 5.0, ("VIX/1d",))
    for day in range(num_known):
        panel.enter([bar("VIX", day, 20.0 + day)])
    batch = panel.enter([bar("A", num_known - 1 + days_later, 100.0)])
    assert batch is not None
    assert (batch.covariates[0, 0] > 0.1) == is_used


@pytest.mark.parametrize("symbol", ["VIX", "^VIX", ".VIX", "$VIX"])
def test_an_index_is_known_by_the_marks_of_its_sources(symbol: str):
    panel, batch = Panel(HORIZONS, 5.0, ("VIX/1d",)), None
    for day in range(30):
        batch = panel.enter([bar("A", day, 100.0 + day), bar(symbol, day, 20.0 + day)])
    assert batch is not None
    assert batch.covariates[0, 0] > 0.5
    assert panel.missing_covariates == []


def test_another_index_of_like_name_is_no_covariate_and_is_said_to_be_missing():
    panel, batch = Panel(HORIZONS, 5.0, ("VIX/1d",)), None
    for day in range(30):
        batch = panel.enter([bar("A", day, 100.0 + day), bar("VIXM", day, 20.0 + day)])
    assert batch is not None
    assert (batch.covariates == 0.0).all()
    assert panel.missing_covariates == ["VIX/1d"]


def test_covariate_that_comes_after_a_bar_does_not_reach_it():
    """Known from its own bar on: what a later VIX says, an earlier forecast cannot depend on."""
    found: list[tuple[float, float]] = []
    for top in (20.0, 80.0):
        panel = Panel(HORIZONS, 5.0, ("VIX/1d",))
        for day in range(59):
            panel.enter([bar("A", day, 100.0 + day), bar("VIX", day, 20.0)])
        first = panel.enter([bar("A", 59, 160.0)])
        panel.enter([bar("VIX", 59, top)])
        second = panel.enter([bar("A", 60, 161.0)])
        assert first is not None
        assert second is not None
        found.append((first.covariates[0, 0], second.covariates[0, 0]))
    assert found[0][0] == found[1][0]
    assert found[0][1] < found[1][1]


def bands(top: float, covariates: tuple[str, ...], num_days: int = 60) -> np.ndarray:
    """The upper end [H] of A's band after days of which the VIX rose on the last, and how A's own bars went."""
    config = ForecastConfig(horizons=HORIZONS, experts=("market_har",), covariates=covariates)
    forecaster, rng = Forecaster(config, build_experts(config)), np.random.default_rng(4)
    close = 100.0
    for day in range(num_days):
        close *= math.exp(0.01 * rng.standard_normal())
        forecaster.observe([bar("A", day, close), bar("VIX", day, fear(day, top))])
    return forecaster.forecast(["A/1d"]).quantiles[0, :, HIGH]


def test_band_is_wider_while_the_covariate_is_high():
    assert (bands(80.0, ("VIX/1d",)) > 1.03 * bands(20.0, ("VIX/1d",))).all()


def test_series_that_is_no_covariate_has_no_such_effect():
    np.testing.assert_array_equal(bands(80.0, ()), bands(20.0, ()))


def test_covariate_that_never_comes_leaves_the_forecast_as_it_is_without():
    np.testing.assert_allclose(bands(20.0, ("VXN/1d",)), bands(20.0, ()), rtol=1e-6)


def test_saved_covariates_go_on_bit_for_bit():
    panel = Panel(HORIZONS, 5.0, ("VIX/1d",))
    for day in range(40):
        panel.enter([bar("A", day, 100.0 + day), bar("VIX", day, 20.0 + day % 7)])
    second = Panel(HORIZONS, 5.0, ("VIX/1d",))
    second.restore(panel.state())
    bars = [bar("A", 40, 141.0), bar("VIX", 40, 33.0)]
    first, again = panel.enter(bars), second.enter(bars)
    assert first is not None
    assert again is not None
    np.testing.assert_array_equal(first.covariates, again.covariates)
    assert first.covariates[0, 0] != 0.0


def test_state_of_other_covariates_is_refused():
    state = Panel(HORIZONS, 5.0, ("VIX/1d",)).state()
    with pytest.raises(IntegrityError, match="covariates"):
        Panel(HORIZONS, 5.0, ("VIX/1d", "VXN/1d")).restore(state)


def test_covariate_named_twice_is_refused():
    with pytest.raises(InvalidInput, match=r"forecasting\.covariates must name each once"):
        ForecastConfig(covariates=("VIX/1d", "VIX/1d"))
