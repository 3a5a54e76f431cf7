"""An expert that returns something else than quantiles is named in an error, before compiled code reads it."""

import numpy as np
import pytest

from htfi.domain.errors import ShapeMismatch
from htfi.domain.events import Bar
from htfi.domain.time import NS_PER_DAY
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.experts import build_experts
from htfi.forecasting.forecaster import Forecaster

CONFIG = ForecastConfig()
NUM_HORIZONS, NUM_LEVELS = len(CONFIG.horizons), len(CONFIG.levels)


class FixedExpert:
    """Returns the same object as its quantiles, whatever it is asked."""

    name, version = "fixed", "1"

    def __init__(self, answer):
        self._answer = answer

    def grow(self, num_series):
        pass

    def update(self, bars):
        pass

    def learn(self, bars):
        pass

    def quantiles(self, rows):
        return self._answer

    def state(self):
        return {}

    def restore(self, state):
        pass


def observe_one_bar(answer):
    forecaster = Forecaster(CONFIG, [*build_experts(CONFIG), FixedExpert(answer)])
    ends_ns = 2 * NS_PER_DAY
    forecaster.observe([Bar(ends_ns, ends_ns, "t", 1, "A", "1d", NS_PER_DAY, ends_ns, 1.0, 1.0, 1.0, 1.0)])
    return forecaster


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "not None"),
        ([[0.0]], "not an object of type list"),
        (np.zeros((NUM_HORIZONS, NUM_LEVELS)), r"not an array \[3, 13\] of float64"),
        (np.zeros((2, NUM_HORIZONS, NUM_LEVELS)), r"not an array \[2, 3, 13\] of float64"),
        (np.zeros((1, NUM_HORIZONS, NUM_LEVELS - 1)), r"not an array \[1, 3, 12\] of float64"),
        (np.zeros((1, NUM_HORIZONS, NUM_LEVELS), np.float32), r"of float32"),
        (np.zeros((1, NUM_HORIZONS, NUM_LEVELS), object), r"of object"),
    ],
    ids=["none", "list", "too_few_dimensions", "too_many_rows", "too_few_levels", "float32", "object"],
)
def test_quantiles_of_another_type_or_shape_are_an_error_that_names_the_expert(answer, words):
    with pytest.raises(ShapeMismatch, match=f"expert 'fixed'.*{words}"):
        observe_one_bar(answer)


def test_quantiles_that_are_not_a_number_leave_the_expert_without_weight():
    forecaster = observe_one_bar(np.full((1, NUM_HORIZONS, NUM_LEVELS), np.nan))
    assert forecaster.forecast(["A/1d"]).ready.tolist() == [False]
