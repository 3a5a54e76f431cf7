"""The regime detector: hysteresis by hand, and what it says of the S&P 500 through 2006–2009."""

import math
from collections import Counter
from datetime import date
from itertools import pairwise

import numpy as np
import pyarrow.parquet as pq
import pytest

from htfi import sample
from htfi.domain.decision import Regime
from htfi.domain.events import Bar, Trade
from htfi.market.config import MarketConfig
from htfi.market.regime import Detector, target
from htfi.market.state import MarketState

S = 10**9
DAY = 86_400 * S
RANK = {regime: rank for rank, regime in enumerate(Regime)}


def feed(detector: Detector, moves) -> list[Regime]:
    regimes: list[Regime] = []
    for move in moves:
        detector.update(float(move) ** 2, float(move))
        regimes.append(detector.regime())
    return regimes


def test_detector_is_normal_until_it_can_compare() -> None:
    assert set(feed(Detector(10.0, 250.0), [0.01, 0.0, 5.0] * 6)) == {Regime.NORMAL}


def test_price_that_never_moves_is_normal() -> None:
    assert feed(Detector(10.0, 250.0), [0.0] * 500)[-1] is Regime.NORMAL


def test_quiet_after_noise_is_calm_and_noise_after_quiet_is_worse() -> None:
    rng = np.random.default_rng(1)
    detector = Detector(10.0, 250.0)
    assert feed(detector, 0.01 * rng.standard_normal(300))[-1] in (Regime.CALM, Regime.NORMAL)
    assert feed(detector, 0.002 * rng.standard_normal(60))[-1] is Regime.CALM
    assert RANK[feed(detector, 0.03 * rng.standard_normal(20))[-1]] >= RANK[Regime.STRESSED]


def test_one_outlier_is_a_shock_at_once_and_leaves_by_way_of_stressed() -> None:
    rng = np.random.default_rng(2)
    detector = Detector(10.0, 250.0)
    feed(detector, 0.01 * rng.standard_normal(300))
    assert feed(detector, [0.08]) == [Regime.SHOCK]
    after = feed(detector, 0.01 * rng.standard_normal(80))
    assert after[:2] == [Regime.SHOCK, Regime.SHOCK]
    assert after[-1] in (Regime.NORMAL, Regime.CALM)
    steps = [RANK[a] - RANK[b] for a, b in zip([Regime.SHOCK, *after], after, strict=False)]
    assert max(steps) <= 1


def test_wild_print_does_not_rule_the_scale_for_long() -> None:
    rng = np.random.default_rng(3)
    detector = Detector(10.0, 250.0)
    feed(detector, 0.01 * rng.standard_normal(300))
    feed(detector, [math.log(1000.0), -math.log(1000.0)])
    assert feed(detector, 0.01 * rng.standard_normal(120))[-1] in (Regime.NORMAL, Regime.CALM)
    assert detector.ratio() > 0.2


@pytest.mark.parametrize(("score", "fresh", "held_from"), [(1.4, 1, 2), (2.0, 2, 3), (0.7, 1, 0)])
def test_threshold_to_stay_is_nearer_than_the_one_to_enter(score: float, fresh: int, held_from: int) -> None:
    assert target(score, 1) == fresh
    assert target(score, held_from) == held_from


def test_regime_does_not_flap_around_a_threshold() -> None:
    detector = Detector(10.0, 250.0)
    rng = np.random.default_rng(4)
    feed(detector, 0.01 * rng.standard_normal(300))
    regimes = feed(detector, 0.015 * rng.standard_normal(200))
    assert sum(a != b for a, b in pairwise(regimes)) <= 12


@pytest.fixture(scope="module")
def spx() -> dict[str, Counter[Regime]]:
    """Regimes of the index by month."""
    file = next(path for path in sample.paths() if path.name == "spx_daily.parquet")
    market = MarketState(MarketConfig())
    months: dict[str, Counter[Regime]] = {}
    for row, day in enumerate(pq.read_table(file).to_pylist()):
        start_ns = (day["date"] - date(1970, 1, 1)).days * DAY
        prices = (day["open"], day["high"], day["low"], day["close"])
        end_ns = start_ns + DAY
        bar = Bar(end_ns, end_ns, "spx", row + 1, "SPX", "1d", start_ns, end_ns, *prices, day["volume"])
        market.close_bars([bar])
        months.setdefault(f"{day['date']:%Y-%m}", Counter())[market.regime("SPX", "1d")] += 1
    return months


def test_autumn_of_2008_is_stressed_or_in_shock(spx: dict[str, Counter[Regime]]) -> None:
    assert spx["2008-09"][Regime.STRESSED] + spx["2008-09"][Regime.SHOCK] >= 10
    for month in ("2008-10", "2008-11"):
        assert set(spx[month]) <= {Regime.STRESSED, Regime.SHOCK}
    assert spx["2008-10"][Regime.SHOCK] >= 15


def test_early_2007_is_normal_until_the_fall_of_27_february(spx: dict[str, Counter[Regime]]) -> None:
    assert set(spx["2007-01"]) <= {Regime.CALM, Regime.NORMAL}
    assert spx["2007-02"][Regime.SHOCK] <= 2
    assert spx["2007-02"][Regime.CALM] + spx["2007-02"][Regime.NORMAL] >= 16


def test_recovery_of_late_2009_is_calm_or_normal(spx: dict[str, Counter[Regime]]) -> None:
    for month in ("2009-08", "2009-09", "2009-10", "2009-11", "2009-12"):
        assert set(spx[month]) <= {Regime.CALM, Regime.NORMAL}


def test_tick_series_take_the_worse_of_ticks_and_bars() -> None:
    market = MarketState(MarketConfig(scales=("1s",), base_scale="1s"))
    rng = np.random.default_rng(6)
    price, at_ns = 100.0, 1_381_152_600 * S
    for k in range(400):
        price *= math.exp(1e-4 * rng.standard_normal())
        market.observe(Trade(at_ns + k * S, at_ns + k * S, "test", 1, "AA", price, 100.0))
    assert RANK[market.regime("AA", "60s")] <= RANK[Regime.NORMAL]
    for k in range(400, 403):
        market.observe(Trade(at_ns + k * S, at_ns + k * S, "test", 1, "AA", price * 1.05, 100.0))
    assert market.regime("AA", "60s") is Regime.SHOCK
    assert market.regime("unknown", "60s") is Regime.NORMAL
