"""Which experts settings open, and what is said where they cannot be."""

import sys
from pathlib import Path

import numpy as np
import pytest

from htfi.domain.errors import InvalidInput, MissingExtra
from htfi.domain.events import Bar
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.forecaster import Forecaster
from htfi.wiring.experts import open_experts

DAY_NS = 86_400_000_000_000


def test_experts_come_in_the_order_of_the_settings() -> None:
    names = ("mini", "ewma", "random_walk")
    assert tuple(expert.name for expert in open_experts(ForecastConfig(experts=names))) == names


def test_an_unknown_expert_is_refused_beside_a_modelled_one() -> None:
    with pytest.raises(InvalidInput, match="nonsense"):
        open_experts(ForecastConfig(experts=("mini", "nonsense")))


def test_chronos_without_a_folder_says_which_setting_is_missing() -> None:
    with pytest.raises(InvalidInput, match=r"forecasting\.foundation"):
        open_experts(ForecastConfig(experts=("chronos",)))


@pytest.mark.parametrize("library", ["chronos", "torch"])
def test_without_the_extra_one_line_names_it(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtra, match=r"pip install 'htfi\[foundation\]'"):
        open_experts(ForecastConfig(experts=("chronos",)), foundation=str(tmp_path))


def test_a_folder_without_price_tokens_is_refused_as_mini(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        open_experts(ForecastConfig(experts=("mini",)), mini=str(tmp_path))


def test_the_forecaster_mixes_the_trajectory_model_in_once_it_has_spoken() -> None:
    config = ForecastConfig(experts=("ewma", "mini"), horizons=(1, 3))
    forecaster = Forecaster(config, open_experts(config))
    rng, close = np.random.default_rng(0), 100.0
    for day in range(1, 45):
        after = close * float(np.exp(0.01 * rng.standard_normal()))
        high, low = max(close, after) * 1.002, min(close, after) / 1.002
        bar = Bar(
            day * DAY_NS,
            day * DAY_NS,
            "t",
            day,
            "A",
            "1d",
            (day - 1) * DAY_NS,
            day * DAY_NS,
            close,
            high,
            low,
            after,
        )
        forecaster.observe([bar])
        close = after
    batch = forecaster.forecast(["A/1d"])
    assert batch.ready[0]
    weights = batch.item(0).weights
    assert sum(np.ravel(weights["mini"])) > 0.0
