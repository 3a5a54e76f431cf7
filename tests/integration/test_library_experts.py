"""Experts by name from the library: those of arch, and a folder of the Chronos family."""

import json
import sys
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

import htfi
from htfi.domain.events import Bar
from htfi.forecasting.config import LEVELS, ForecastConfig
from htfi.forecasting.forecaster import Forecaster
from htfi.wiring.experts import open_experts

HORIZONS = (1, 5, 22)
DAY_NS = 86_400_000_000_000


def garch_returns(num=500, seed=0):
    rng = np.random.default_rng(seed)
    variance, found = 1e-4, np.empty(num)
    for t in range(num):
        found[t] = np.sqrt(variance * 0.6) * rng.standard_t(5)
        variance = 5e-6 + 0.1 * found[t] ** 2 + 0.85 * variance
    return found


RETURNS = garch_returns()
CLOSES = pd.Series(
    100.0 * np.exp(np.cumsum(RETURNS[:160])), pd.bdate_range("2020-01-01", periods=160), name="AAA"
)
needs_arch = pytest.mark.skipif(find_spec("arch") is None, reason="needs the extra [arch]")


@needs_arch
def test_quantiles_are_those_that_arch_forecasts():
    from arch import arch_model

    from htfi.adapters.arch.model import ArchModel

    model = ArchModel("gjr_t")
    parameters = model.fit(RETURNS)
    scale = RETURNS.std()
    direct = arch_model(RETURNS / scale, mean="Zero", p=1, o=1, q=1, dist="t", rescale=False).fit(disp="off")
    np.testing.assert_allclose(parameters, [scale, *direct.params], rtol=1e-12)
    sums = direct.forecast(horizon=22).variance.to_numpy()[-1].cumsum()
    shape = direct.model.distribution.ppf(LEVELS, direct.params["nu"])
    expected = scale * np.sqrt(sums[[0, 4, 21]])[:, None] * shape
    np.testing.assert_allclose(
        model.quantiles_of(RETURNS, parameters, HORIZONS, LEVELS), expected, rtol=1e-12
    )
    found = model.quantiles([RETURNS, RETURNS[:50], np.zeros(200)], HORIZONS, LEVELS)
    np.testing.assert_allclose(found[0], expected, rtol=1e-12)
    assert np.isnan(found[1:]).all()


@needs_arch
@pytest.mark.parametrize("name", ["figarch_t", "garch_skewt", "garch_t", "gjr_t"])
def test_each_model_of_arch_forecasts_wider_bands_further_ahead(name):
    from htfi.adapters.arch.model import ArchModel

    (found,) = ArchModel(name).quantiles([RETURNS], HORIZONS, LEVELS)
    assert (np.diff(found, axis=1) > 0).all()
    width = found[:, LEVELS.index(0.95)] - found[:, LEVELS.index(0.05)]
    assert (np.diff(width) > 0).all()
    assert 2.0 < width[0] / RETURNS.std() < 4.5


@needs_arch
def test_an_expert_of_arch_goes_on_from_its_saved_state_and_is_fitted_in_turns(monkeypatch):
    from htfi.adapters.arch.model import ArchModel

    fitted = []
    fit = ArchModel.fit
    monkeypatch.setattr(
        ArchModel, "fit", lambda self, context: fitted.append(len(context)) or fit(self, context)
    )
    config = ForecastConfig(experts=("arch:garch_t", "ewma"), horizons=(1, 3))
    forecaster = Forecaster(config, open_experts(config))
    bars, close = [], 100.0
    for day, move in enumerate(RETURNS[:150].tolist(), 1):
        close *= float(np.exp(move))
        ends_ns = day * DAY_NS
        bars.append(
            Bar(ends_ns, ends_ns, "t", day, "A", "1d", ends_ns - DAY_NS, ends_ns, close, close, close, close)
        )
    for bar in bars[:130]:
        forecaster.observe([bar])
    other = Forecaster(config, open_experts(config))
    other.restore(forecaster.state())
    for bar in bars[130:]:
        forecaster.observe([bar])
        other.observe([bar])
    found = [one.forecast(["A/1d"]).item(0).experts["arch:garch_t"] for one in (forecaster, other)]
    assert found[0] == found[1]
    assert np.isfinite(found[0]).all()
    assert len(fitted) < 2 * (150 - 100) / 10
    assert min(fitted) == 100


@needs_arch
def test_an_expert_of_arch_is_combined_by_its_name():
    result = htfi.backtest(CLOSES, experts=["ewma", "arch:garch_t"], start="2020-07-01", horizons=[1])
    assert result.scores["name"].tolist() == ["fused", "arch:garch_t", "ewma"]
    forecast = htfi.forecast(CLOSES, experts=["ewma", "arch:garch_t"], horizons=[1])
    assert forecast.explain().weights.keys() == {"arch:garch_t", "ewma"}
    assert "arch:" not in str(forecast.explain())
    alone = htfi.forecast(CLOSES, experts="ewma", horizons=[1])
    assert alone.explain().weights == {"ewma": 1.0}


@pytest.mark.parametrize(
    ("experts", "says"),
    [
        (
            ["arch:nonsense"],
            "unknown 'arch:nonsense': of arch there are figarch_t, garch_skewt, garch_t, gjr_t",
        ),
        (["ewma", "nonsense"], r"unknown \['nonsense'\]: the experts are .*arch:MODEL"),
        ("chronos:no/such/folder", "no/such/folder: no config.json"),
        ("chronos", "name its folder as forecasting.foundation"),
    ],
)
def test_an_expert_that_is_not_there_is_said_in_one_line(experts, says):
    if str(experts).startswith("chronos:"):
        pytest.importorskip("chronos", reason="needs the extra [foundation]")
    with pytest.raises(htfi.HtfiError, match=says):
        htfi.forecast(CLOSES, experts=experts)


def test_without_arch_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "arch", None)
    with pytest.raises(htfi.HtfiError, match=r"arch:garch_t needs arch: pip install 'htfi\[arch\]'"):
        htfi.forecast(CLOSES, experts=["arch:garch_t"])


def test_a_folder_of_chronos_is_an_expert_by_its_path(tmp_path):
    pytest.importorskip("chronos", reason="needs the extra [foundation]")
    import torch
    from chronos.chronos_bolt import ChronosBoltModelForForecasting
    from transformers import T5Config

    config = T5Config(
        d_model=16, d_kv=4, d_ff=32, num_layers=1, num_heads=4, num_decoder_layers=1, vocab_size=2,
        decoder_start_token_id=0, pad_token_id=0,
    )  # fmt: skip
    config.chronos_config = {
        "context_length": 64, "input_patch_size": 8, "input_patch_stride": 8, "use_reg_token": True,
        "prediction_length": 32, "quantiles": [i / 10 for i in range(1, 10)],
    }  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        ChronosBoltModelForForecasting(config).save_pretrained(tmp_path / "bolt")
    assert json.loads((tmp_path / "bolt/config.json").read_text())["architectures"]
    forecast = htfi.forecast(CLOSES[:40], experts=["ewma", f"chronos:{tmp_path / 'bolt'}"], horizons=[1])
    assert forecast.explain().weights.keys() == {"chronos", "ewma"}
    assert forecast.one().decision.models["chronos"].startswith("bolt@")
