"""What kind of series a name and its bars suggest, and which experts and weights follow."""

import numpy as np
import pytest

from htfi.domain.errors import InvalidInput
from htfi.domain.events import Bar
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.experts import EXPERTS, build_experts
from htfi.forecasting.forecaster import Forecaster
from htfi.forecasting.kinds import (
    AUTO_EXPERTS,
    CURRENCY,
    EQUITY,
    EXPERTS_BY_KIND,
    INTRADAY,
    KINDS,
    WILD,
    by_volatility,
    expand,
    is_currency_pair,
    is_yield,
    kind_of,
    starting_weights,
    steady_kinds,
)
from htfi.forecasting.kinds_of_series import KindsOfSeries

HORIZONS = (1, 5)
NS_PER_HOUR = 3600 * NS_PER_S
FIRST_NS = 1_400_000_000 * NS_PER_S // NS_PER_DAY * NS_PER_DAY


def config(**changes) -> ForecastConfig:
    return ForecastConfig(**({"horizons": HORIZONS} | changes))


def forecaster(**changes) -> Forecaster:
    chosen = config(**changes)
    return Forecaster(chosen, build_experts(chosen))


class Prices:
    """Bars of series with normal moves of `sigma` a bar."""

    def __init__(self, sigmas: dict[str, float], seed: int = 1, length_ns: int = NS_PER_DAY) -> None:
        self.sigmas, self.length_ns = sigmas, length_ns
        self.interval = "1d" if length_ns == NS_PER_DAY else "1h"
        self.rng = np.random.default_rng(seed)
        self.last = dict.fromkeys(sigmas, 100.0)

    def bars(self, t: int, first_ns: int = FIRST_NS) -> list[Bar]:
        start_ns = first_ns + t * self.length_ns
        end_ns, found = start_ns + self.length_ns, []
        for name, sigma in self.sigmas.items():
            first = self.last[name]
            path = first * np.exp(np.cumsum(sigma / 2 * self.rng.standard_normal(4)))
            last = float(path[-1])
            low, high = min(first, float(path.min())), max(first, float(path.max()))
            found.append(
                Bar(
                    end_ns, end_ns, "t", t, name, self.interval, start_ns, end_ns, first, high, low, last, 1.0
                )
            )
            self.last[name] = last
        return found


@pytest.mark.parametrize("symbol", ["EURUSD", "eur/usd", "USD-JPY", "XAUUSD=X", "GBP.CHF"])
def test_pairs_of_currencies_are_told_by_their_codes(symbol: str) -> None:
    assert is_currency_pair(symbol)


@pytest.mark.parametrize("symbol", ["GOOGLE", "EUREUR", "SPX", "EURUSD1", "", "É€$USD", "AUDITS"])
def test_other_names_are_no_pairs(symbol: str) -> None:
    assert not is_currency_pair(symbol)


def test_bars_of_part_of_a_day_come_before_names() -> None:
    assert [kind_of("EURUSD", "1h"), kind_of("EURUSD", "1d"), kind_of("SPX", "1d")] == [
        INTRADAY,
        CURRENCY,
        EQUITY,
    ]
    assert [kind_of("SPX", "8h"), kind_of("SPX", "volume:5000"), kind_of("SPX", "60s")] == [
        EQUITY,
        EQUITY,
        INTRADAY,
    ]


def test_wild_and_equity_are_told_by_the_move_of_a_day() -> None:
    kinds = np.array([EQUITY, EQUITY, WILD, CURRENCY, INTRADAY])
    sigma = np.array([0.06, 0.02, 0.01, 0.09, 0.09])
    days = np.full(5, NS_PER_DAY)
    assert by_volatility(kinds, sigma, days).tolist() == [WILD, EQUITY, EQUITY, CURRENCY, INTRADAY]
    assert by_volatility(kinds[:1], sigma[:1], 7 * days[:1]).tolist() == [EQUITY]  # 6% a week


def test_auto_stands_for_the_experts_of_all_kinds_and_others_may_be_added() -> None:
    assert expand(("auto",)) == AUTO_EXPERTS
    assert set(AUTO_EXPERTS) <= set(EXPERTS)
    assert expand(("har", "auto", "ewma")) == (*AUTO_EXPERTS, "har")
    assert expand(("ewma", "har")) == ("ewma", "har")
    with pytest.raises(InvalidInput, match=r"unknown .*the experts are auto, ewma"):
        build_experts(config(experts=("automatic",)))


def test_every_kind_has_a_weight_for_each_of_its_experts_and_they_sum_to_one() -> None:
    weights = starting_weights(AUTO_EXPERTS, (1, 5, 22))
    for place in range(len(KINDS)):
        chosen = [AUTO_EXPERTS.index(name) for name in EXPERTS_BY_KIND[place]]
        np.testing.assert_allclose(weights[place][:, chosen].sum(axis=1), 1.0, atol=0.004)
    assert (weights > 0.0).all()


def test_weights_between_horizons_lie_between_and_unknown_experts_start_even() -> None:
    weights = starting_weights(("market_har", "own", "seasonal"), (1, 2, 5, 22, 250))
    near, between, far = weights[EQUITY, :3, 0]
    assert min(near, far) < between < max(near, far)
    np.testing.assert_array_equal(weights[EQUITY, 3], weights[EQUITY, 4])
    np.testing.assert_allclose(weights[:, :, 1], 1 / 3, atol=1e-6)


@pytest.mark.parametrize(
    ("asked", "steady"),
    [
        (("auto",), (CURRENCY, INTRADAY)),
        (("garch_t", "market_har"), (CURRENCY,)),
        (("ewma", "market_har"), (INTRADAY,)),
        (("auto", "ewma"), (INTRADAY,)),  # which then forecasts currencies too
        (("auto", "own"), ()),
    ],
)
def test_first_losses_count_for_less_where_no_expert_of_a_kind_starts_even(
    asked: tuple[str, ...], steady: tuple[int, ...]
) -> None:
    assert steady_kinds(KindsOfSeries(expand(asked), asked).experts_by_kind) == steady


def test_each_series_has_the_experts_of_its_kind_and_no_others() -> None:
    f, daily = forecaster(), Prices({"EURUSD": 0.005, "SPX": 0.01, "VIX": 0.07})
    hourly = Prices({"SPX": 0.002}, length_ns=NS_PER_HOUR)
    for t in range(60):
        f.observe(daily.bars(t))
        f.observe(hourly.bars(t, FIRST_NS + 70 * NS_PER_DAY))
    batch = f.forecast(["EURUSD/1d", "SPX/1d", "VIX/1d", "SPX/1h"])
    chosen = [set(batch.item(i).expert_ticks) for i in range(4)]
    assert chosen == [set(EXPERTS_BY_KIND[kind]) for kind in (CURRENCY, EQUITY, WILD, INTRADAY)]
    assert [(one.kind, one.num_series) for one in f.choices] == [(kind, 1) for kind in KINDS]
    np.testing.assert_allclose(batch.weights.sum(axis=1), 1.0, atol=1e-9)


def test_experts_that_no_series_needs_stand_in_no_record() -> None:
    f, daily = forecaster(), Prices({"SPX": 0.01})
    for t in range(60):
        f.observe(daily.bars(t))
    batch = f.forecast(["SPX/1d"])
    assert set(batch.names) == set(EXPERTS_BY_KIND[EQUITY])
    assert batch.full.all()
    assert {row.name for row in f.scores()} == {"fused", *EXPERTS_BY_KIND[EQUITY]}


def test_an_explicit_list_forecasts_every_series_whatever_its_kind() -> None:
    f, daily = forecaster(experts=("ewma", "seasonal")), Prices({"EURUSD": 0.005, "SPX": 0.01})
    for t in range(60):
        f.observe(daily.bars(t))
    batch = f.forecast(["EURUSD/1d", "SPX/1d"])
    assert batch.names == ("ewma", "seasonal")
    assert batch.full.all()
    assert f.choices == []


def test_a_mixed_stream_continues_from_its_state_to_the_same_bits() -> None:
    sigmas = {"EURUSD": 0.005, "SPX": 0.01, "VIX": 0.07}
    first, daily = forecaster(), Prices(sigmas)
    for t in range(50):
        first.observe(daily.bars(t))
    second = forecaster()
    second.restore(first.state())
    for t in range(50, 80):
        bars = daily.bars(t)
        first.observe(bars)
        second.observe(bars)
    names = [f"{name}/1d" for name in sigmas]
    assert first.forecast(names).quantiles.tobytes() == second.forecast(names).quantiles.tobytes()
    assert first.choices == second.choices


def test_a_series_that_starts_in_a_crisis_is_an_equity_again_after_a_year() -> None:
    f, prices = forecaster(), Prices({"BANK": 0.08})
    kinds: list[str] = []
    for t in range(252):
        if t == 60:
            prices.sigmas["BANK"] = 0.015
        f.observe(prices.bars(t))
        kinds.append(f.choices[0].kind)
    assert kinds[30] == "wild"
    assert kinds[-1] == "equity"
    batch = f.forecast(["BANK/1d"])
    assert batch.ready.all()
    np.testing.assert_allclose(batch.weights.sum(axis=1), 1.0, atol=1e-9)


@pytest.mark.parametrize(
    "symbol",
    [
        "^TNX",
        "TNX",
        "IRX",
        "DGS10",
        "DGS3MO",
        "DTB4WK",
        "us10y",
        "DE10YT=RR",
        "10YR",
        "USGG10YR Index",
        "GB2Y",
    ],
)
def test_a_yield_is_told_by_its_name(symbol: str) -> None:
    assert is_yield(symbol)


@pytest.mark.parametrize(
    "symbol",
    [
        "AAPL",
        "SPX",
        "MMM",
        "3M",
        "7203.T",
        "TYX2",
        "ES1",
        "GS",
        "BABY",
        "Y",
        "V2X",
        "ZN10",
        "0R2Y",
        "0A1Y",
        "C3Y",
    ],
)
def test_names_of_shares_and_futures_are_no_yields(symbol: str) -> None:
    assert not is_yield(symbol)
