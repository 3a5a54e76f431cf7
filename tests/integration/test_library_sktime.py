"""The forecaster of sktime: sktime's own checks, and the same forecasts as the library's."""

import copy
import pickle
import warnings
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

import htfi

pytestmark = pytest.mark.skipif(
    not all(map(find_spec, ("sktime", "skpro"))), reason="needs the extra [sktime]"
)

DAYS = pd.bdate_range("2020-01-01", periods=60)
STEPS = np.random.default_rng(4).standard_normal(60)
CLOSES = pd.Series(100.0 * np.exp(np.cumsum(0.01 * STEPS)), DAYS, name="AAA")
LEVELS = [0.05, 0.5, 0.95]
SOME_CHECKS = [
    "test_constructor",
    "test_clone",
    "test_fit_does_not_overwrite_hyper_params",
    "test_pred_int_tag",
    "test_update_with_exogenous_variables",
    "test__y_remember_data",
]


def forecaster_type():
    """Imported when a test asks: each process collects every file, and sktime takes two seconds."""
    from htfi.library.sktime import HtfiForecaster

    return HtfiForecaster


def forecaster_of(**parameters):
    return forecaster_type()(**parameters)


def quantiles(closes, horizons):
    table = htfi.forecast(closes, horizons=horizons).quantiles
    return table[table["measure"] == "price"].set_index("horizon")


def failures(forecaster, **chosen):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of sktime, and of its series that hold a price of zero
        from sktime.utils.estimator_checks import check_estimator

        found = check_estimator(forecaster, verbose=False, **chosen)
    return len(found), {name: said for name, said in found.items() if said != "PASSED"}


def test_some_of_sktimes_checks_pass():
    num, failed = failures(forecaster_of(history_bars=5), tests_to_run=SOME_CHECKS)
    assert num >= len(SOME_CHECKS)
    assert failed == {}


@pytest.mark.slow
def test_all_of_sktimes_checks_pass():
    num, failed = failures(forecaster_type())
    assert num > 300
    assert failed == {}


def test_it_forecasts_what_the_library_forecasts():
    forecaster = forecaster_of().fit(CLOSES)
    found = forecaster.predict_quantiles(fh=[1, 2, 5], alpha=LEVELS)
    expected = quantiles(CLOSES, [1, 2, 5])
    assert found.columns.tolist() == [("AAA", level) for level in LEVELS]
    assert found.index.tolist() == [DAYS[-1] + bars * pd.offsets.BDay() for bars in (1, 2, 5)]
    np.testing.assert_allclose(found.to_numpy(), expected[["0.05", "0.5", "0.95"]].to_numpy(), rtol=1e-12)
    between = forecaster.predict_quantiles(fh=[1], alpha=[0.9, 0.025, 0.925]).to_numpy()[0]
    assert between[0] == pytest.approx(expected.loc[1, "0.9"], rel=1e-12)
    assert expected.loc[1, "0.01"] < between[1] < expected.loc[1, "0.05"]
    assert expected.loc[1, "0.9"] < between[2] < expected.loc[1, "0.95"]
    assert forecaster.predict(fh=[1, 2, 5]).iloc[2] == pytest.approx(expected.loc[5, "0.5"], rel=1e-12)


def test_an_update_is_as_a_fit_to_all_prices():
    forecaster = forecaster_of().fit(CLOSES[:40], fh=[1, 5])
    for day in (40, 41):
        forecaster.update(CLOSES[day : day + 1])
    forecaster.update(CLOSES[40:])  # what is known is not taken in again
    found = forecaster.predict_quantiles(alpha=LEVELS)
    expected = forecaster_of().fit(CLOSES).predict_quantiles(fh=[1, 5], alpha=LEVELS)
    np.testing.assert_allclose(found.to_numpy(), expected.to_numpy(), rtol=1e-12)
    for other in (copy.deepcopy(forecaster), pickle.loads(pickle.dumps(forecaster))):
        np.testing.assert_allclose(
            other.predict_quantiles(alpha=LEVELS).to_numpy(), found.to_numpy(), rtol=1e-12
        )


def test_a_horizon_may_have_more_bars_than_one_forecaster():
    found = forecaster_of().fit(CLOSES).predict_quantiles(fh=range(1, 21), alpha=LEVELS)
    width = (found.iloc[:, 2] - found.iloc[:, 0]).to_numpy()
    assert len(found) == 20
    assert (found.diff(axis=1).iloc[:, 1:] > 0).all(axis=None)
    assert width[-1] > 2 * width[0]


def test_the_distribution_has_the_quantiles():
    forecaster = forecaster_of().fit(CLOSES, fh=[1, 3])
    distribution = forecaster.predict_proba()
    found, expected = distribution.quantile(LEVELS), forecaster.predict_quantiles(alpha=LEVELS)
    np.testing.assert_allclose(found.to_numpy(), expected.to_numpy(), rtol=1e-12)


@pytest.mark.parametrize(
    "index",
    [
        pd.RangeIndex(7, 67),
        pd.period_range("2015-01", periods=60, freq="M"),
        pd.date_range("2020", periods=60, freq="5min"),
    ],
    ids=["integers", "months", "five minutes"],
)
def test_any_index_that_sktime_has_is_forecast(index):
    forecaster = forecaster_of().fit(CLOSES.set_axis(index)[:50], fh=[1, 2])
    forecaster.update(CLOSES.set_axis(index)[50:])
    found = forecaster.predict_interval(coverage=0.9)
    assert found.index.tolist() == [index[-1] + step * (index[1] - index[0]) for step in (1, 2)]
    assert np.isfinite(found.to_numpy()).all()


def test_what_cannot_be_forecast_is_said():
    with pytest.raises(htfi.HtfiError, match="y holds 10 prices: a forecast needs 20 bars"):
        forecaster_of().fit(CLOSES[:10], fh=[1]).predict()
    months = CLOSES.set_axis(pd.period_range("2015-01", periods=60, freq="M"))
    with pytest.warns(htfi.RowsSetAside, match="of 60 prices: bad_interval: "):
        forecaster_of(interval="1d").fit(months, fh=[1])
    with pytest.warns(htfi.RowsSetAside, match="30 of 60 prices, which are not positive"):
        forecaster = forecaster_of(history_bars=5).fit(CLOSES.where(np.arange(60) >= 30, -1.0), fh=[1])
    assert forecaster.predict().iloc[0] == pytest.approx(CLOSES.iloc[-1], rel=0.01)
    with (
        pytest.warns(htfi.RowsSetAside),
        pytest.raises(htfi.HtfiError, match="y holds no positive price"),
    ):
        forecaster_of().fit(-CLOSES, fh=[1])
