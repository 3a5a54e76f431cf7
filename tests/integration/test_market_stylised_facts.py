"""The simulated market against the stylised facts: by signs, which need no data, and by bands from real panels.

Sign tests: of 60 independent worlds (one asset each is looked at), a fact holds in more than 42. Were its sign a coin's
toss, that would happen in 0.07% of runs. "No return autocorrelation" is the same test turned round: its sign must look
like a coin's toss, and 19 to 41 of 60 fails for a fair coin in 0.3% of runs. Seeds are fixed, so the runs repeat.
"""

import os
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from htfi_train.simulation.market.process import simulate
from htfi_train.simulation.market.spec import MarketSpec
from stylised_facts import comovement, stylised_facts, volume_volatility

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("HTFI_TEST_DATA", ROOT.parent / "shared" / "data"))
NUM_WORLDS = 60
FAMILIES = [
    "stock",
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("index", "fx", "crypto", "commodity")),
]
HOLDS = 43


@cache
def worlds(family, num_bars, num_worlds=NUM_WORLDS, num_assets=6):
    rng = np.random.default_rng(17)
    specs = [MarketSpec.random(rng, num_assets, family, intraday=False) for _ in range(num_worlds)]
    return [simulate(spec, [], num_bars, seed) for seed, spec in enumerate(specs)]


@cache
def one_of_each(family, num_bars=1500):
    return stylised_facts(np.stack([path.log_returns[:, 0] for path in worlds(family, num_bars)], axis=1))


@pytest.mark.parametrize("family", FAMILIES)
def test_volatility_clusters_and_decays_slowly(family):
    facts = one_of_each(family)
    for name in ("abs_acf_1", "abs_acf_5", "abs_acf_20"):
        assert np.sum(getattr(facts, name) > 0) >= HOLDS, name
    medians = facts.median()
    assert medians["abs_acf_1"] > medians["abs_acf_5"] > medians["abs_acf_20"] > medians["abs_acf_50"]


@pytest.mark.slow
def test_memory_of_volatility_outlasts_one_exponential():
    paths = worlds("stock", 2900, 40) + worlds("index", 2900, 20)
    facts = stylised_facts(np.hstack([path.log_returns for path in paths])).median()
    # what an exponential through lags 5 and 20 would leave at lag 50, two such steps further
    assert facts["abs_acf_50"] > facts["abs_acf_20"] ** 3 / facts["abs_acf_5"] ** 2


@pytest.mark.parametrize("family", FAMILIES)
def test_tails_are_fat_and_thin_out_with_the_horizon(family):
    facts = one_of_each(family)
    assert np.sum(facts.kurtosis > 0) >= HOLDS
    assert np.sum(facts.kurtosis > facts.kurtosis_of_20) >= HOLDS
    assert 2.0 < facts.median()["hill_index"] < 5.0


@pytest.mark.parametrize("family", FAMILIES)
def test_returns_do_not_foretell_returns(family):
    facts = one_of_each(family)
    assert 19 <= np.sum(facts.return_acf_1 > 0) <= 41
    assert 19 <= np.sum(facts.return_acf_2_to_10 > 0) <= 41


@pytest.mark.parametrize("family", FAMILIES[:2])
def test_falls_raise_volatility_in_equities(family):
    assert np.sum(one_of_each(family).leverage < 0) >= HOLDS


def test_correlation_rises_in_stress():
    seen = [comovement(path.log_returns) for path in worlds("stock", 1500)]
    assert sum(co.in_stress > co.in_calm for co in seen) >= HOLDS


def test_volume_rises_with_volatility():
    paths = worlds("stock", 1500)
    seen = [volume_volatility(path.log_returns[:, 0], path.volumes()[:, 0])[0] for path in paths]
    assert sum(value > 0 for value in seen) >= HOLDS


def real_panel(name, volume, num_bars):
    """Returns and volumes [T, N] of the symbols that trade on all of the last `num_bars` days, without split errors."""
    path = DATA / "panels" / name
    if not path.exists():
        pytest.skip("the real panels are not at hand; HTFI_TEST_DATA may name their folder")
    table = pq.read_table(path, columns=["date", "symbol", "close", volume])
    days, at = np.unique(table["date"].to_numpy(), return_inverse=True)
    symbols, who = np.unique(table["symbol"].to_numpy(zero_copy_only=False).astype(str), return_inverse=True)
    close, traded = np.full((2, len(days), len(symbols)), np.nan)
    close[at, who] = table["close"].to_numpy()
    traded[at, who] = table[volume].to_numpy()
    close, traded = close[-num_bars - 1 :], traded[-num_bars:]
    with np.errstate(divide="ignore", invalid="ignore"):
        r = np.diff(np.log(close), axis=0)
    whole = (
        np.isfinite(r).all(axis=0) & (np.abs(np.nan_to_num(r)).max(axis=0) < 0.6) & (traded > 0).all(axis=0)
    )
    return r[:, whole], traded[:, whole]


def outside(simulated, real):
    """Facts whose simulated median lies outside 5–95% of real symbols."""
    bands = real.between(0.05, 0.95)
    return [
        name for name, value in simulated.median().items() if not bands[name][0] <= value <= bands[name][1]
    ]


def simulated_panel(family, num_bars):
    return stylised_facts(np.hstack([path.log_returns for path in worlds(family, num_bars, 40)]))


@pytest.mark.parametrize("num_bars", [1000, pytest.param(2900, marks=pytest.mark.slow)])
def test_simulated_stocks_lie_among_real_ones(num_bars):
    r, traded = real_panel("us_equities_daily_2006_2017.parquet", "volume", num_bars)
    assert r.shape[1] > 100
    assert outside(simulated_panel("stock", num_bars), stylised_facts(r)) == []
    paths = worlds("stock", num_bars, 40)
    seen = np.median([volume_volatility(path.log_returns, path.volumes()) for path in paths])
    low, high = np.quantile(volume_volatility(r, traded), [0.05, 0.95])
    assert low < seen < high
    real, ours = comovement(r), [comovement(path.log_returns) for path in paths]
    assert (
        np.quantile([co.overall for co in ours], 0.02)
        < real.overall
        < np.quantile([co.overall for co in ours], 0.98)
    )
    assert real.in_stress > real.in_calm


def test_simulated_currencies_lie_among_real_ones():
    # ten pairs give narrow bands by chance, so one fact of thirteen may lie outside
    r, _ = real_panel("fx_daily_2012_201910.parquet", "tick_volume", 1500)
    assert r.shape[1] >= 8
    assert len(outside(simulated_panel("fx", 1500), stylised_facts(r))) <= 1
