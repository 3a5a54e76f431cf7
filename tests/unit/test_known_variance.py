"""Variance that is known before it comes: the week's pattern, gaps and scheduled events, as a factor on all experts."""

from collections.abc import Mapping

import msgspec
import numpy as np
import pytest

from checks import nonempty
from htfi.domain.events import Bar
from htfi.domain.scheduled_event import ScheduledEvent
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.evaluation.leak import find_leaks
from htfi.forecasting.experts import build_experts
from htfi.forecasting.forecaster import Forecaster
from htfi.forecasting.known_variance.event_effects import SHARED_EXCESS, combine, shares
from htfi.forecasting.known_variance.event_table import tabulate
from htfi.forecasting.known_variance.factor import KnownVariance
from htfi.forecasting.known_variance.priors import Priors
from htfi.forecasting.known_variance.relations import OTHER, OWN, UNRELATED, relations
from htfi.forecasting.panel import BarBatch

HOUR_NS = 3600 * NS_PER_S
MONDAY_NS = 1_704_085_200 * NS_PER_S  # Monday 2024-01-01 00:00 in New York
CONFIG = ForecastConfig(horizons=(1, 5))
FX = Priors(
    {
        "fx": {
            "bar_hours": 1.0,
            "kinds": {
                "us_payrolls": {
                    "own": 1.0,
                    "own_next": 0.3,
                    "other": 0.4,
                    "other_next": 0.0,
                    "strength": 20.0,
                },
                "us_other": {"own": 0.5, "own_next": 0.0, "other": 0.0, "other_next": 0.0, "strength": 20.0},
                "gap_weekend": {
                    "own": -0.2,
                    "own_next": 0.0,
                    "other": 0.0,
                    "other_next": 0.0,
                    "strength": 40.0,
                },
            },
        }
    }
)


def event(time_ns: int, kind: str = "us_payrolls", **more: object) -> ScheduledEvent:
    return ScheduledEvent(**{"time_ns": time_ns, "kind": kind, "name": kind, "currency": "USD", **more})


def known(*events: ScheduledEvent, series: str = "EURUSD", interval: str = "1h") -> KnownVariance:
    made = KnownVariance((1, 5), 5.0, events, FX)
    made.grow([(series, interval)])
    return made


ROW = np.array([0])


def close(one: KnownVariance, start_ns: int, length_ns: int = HOUR_NS) -> tuple[float, float]:
    """g of a bar's return and of its range."""
    found = one.of_closed(ROW, np.array([start_ns]), np.array([start_ns + length_ns]))
    return (1.0, 1.0) if found is None else (float(found[0][0]), float(found[1][0]))


def ahead(one: KnownVariance) -> list[float]:
    found = one.ahead(ROW)
    return [1.0, 1.0] if found is None else found[0].tolist()


def test_an_event_widens_the_hour_that_holds_it_and_less_the_next():
    one = known(event(MONDAY_NS + 9 * HOUR_NS + 30 * 60 * NS_PER_S))
    close(one, MONDAY_NS + 8 * HOUR_NS)
    first, five = ahead(one)
    assert first == pytest.approx(np.e)
    assert five == pytest.approx(np.sqrt((np.exp(2.0) + np.exp(0.6) + 3.0) / 5.0))


def test_an_event_at_the_full_hour_is_of_the_bar_that_begins_then():
    one = known(event(MONDAY_NS + 9 * HOUR_NS))
    close(one, MONDAY_NS + 7 * HOUR_NS)
    assert ahead(one)[0] == 1.0
    close(one, MONDAY_NS + 8 * HOUR_NS)
    assert ahead(one)[0] == pytest.approx(np.e)


def test_the_range_of_the_bar_that_holds_it_is_divided_by_less_than_its_return():
    one = known(event(MONDAY_NS + 9 * HOUR_NS))
    close(one, MONDAY_NS + 8 * HOUR_NS)
    of_return, of_range = close(one, MONDAY_NS + 9 * HOUR_NS)
    assert of_return == pytest.approx(np.e)
    assert of_range == pytest.approx(np.exp(0.75))


def test_events_of_one_bar_add_to_the_largest_and_do_not_multiply():
    at = MONDAY_NS + 9 * HOUR_NS
    one = known(event(at), event(at, "us_other"))
    close(one, at - HOUR_NS)
    largest, other = np.exp(2.0), np.exp(1.0)
    assert ahead(one)[0] ** 2 == pytest.approx(largest + SHARED_EXCESS * (other - 1.0))


def test_an_event_of_another_currency_moves_less():
    one = known(event(MONDAY_NS + 9 * HOUR_NS), series="EURGBP")
    close(one, MONDAY_NS + 8 * HOUR_NS)
    assert ahead(one)[0] == pytest.approx(np.exp(0.4))


def test_the_same_event_twice_counts_once_whatever_the_order():
    at = MONDAY_NS + 9 * HOUR_NS
    lines = [event(at), event(at, "us_other"), event(at), event(at + HOUR_NS)]
    forward, backward = tabulate(lines), tabulate(lines[::-1])
    assert len(forward.time_ns) == 3
    assert (forward.time_ns == backward.time_ns).all()
    assert (forward.kind == backward.kind).all()


def test_a_line_counts_from_when_it_is_known_until_it_is_withdrawn():
    at = MONDAY_NS + 9 * HOUR_NS
    late = known(event(at, known_ns=at + 1))
    close(late, at - HOUR_NS)
    assert ahead(late) == [1.0, 1.0], "nobody knew of it yet"
    late = known(event(at, known_ns=at))
    close(late, at - HOUR_NS)
    assert ahead(late)[0] == pytest.approx(np.e)
    moved = known(event(at, withdrawn_ns=at), event(at + HOUR_NS, known_ns=at))
    close(moved, at - HOUR_NS)
    assert ahead(moved)[0] == 1.0
    assert ahead(moved)[1] > 1.0


def test_what_was_prepared_is_thrown_away_where_a_line_became_known_meanwhile():
    at = MONDAY_NS + 9 * HOUR_NS
    one = known(event(at, known_ns=at))
    close(one, at - 3 * HOUR_NS)
    ahead(one)
    one.learn(batch(at - 3 * HOUR_NS), np.array([np.nan]))
    close(one, at - 2 * HOUR_NS)
    assert ahead(one) == [1.0, 1.0]
    one.learn(batch(at - 2 * HOUR_NS), np.array([np.nan]))
    close(one, at - HOUR_NS)
    assert ahead(one)[0] == pytest.approx(np.e)


def batch(start_ns: int) -> BarBatch:
    numbers = dict.fromkeys(
        ("returns", "variance", "log_variance", "within_log_variance", "usual", "volume"), np.zeros(1)
    )
    whole = {"age": np.array([0]), "group": np.array([0])}
    times = {"start_ns": np.array([start_ns]), "end_ns": np.array([start_ns + HOUR_NS])}
    return BarBatch(
        rows=slice(0, 1), index=ROW, due=np.array([False]), outcomes=np.full((1, 2), np.nan),
        covariates=np.zeros((1, 0)), **numbers, **whole, **times,
    )  # fmt: skip


def test_an_event_between_two_sessions_moves_no_bar():
    friday = MONDAY_NS + 4 * NS_PER_DAY
    one = known(event(friday + NS_PER_DAY))
    for day in (-7, 0):
        for hour in range(20):
            close(one, friday + day * NS_PER_DAY + (hour - 3) * HOUR_NS)
            ahead(one)
        if day < 0:
            close(one, friday - 7 * NS_PER_DAY + 65 * HOUR_NS)
            ahead(one)
            one.of_closed(ROW, np.array([friday - 4 * HOUR_NS]), np.array([friday - 3 * HOUR_NS]))
            ahead(one)
    assert ahead(one) == [1.0, 1.0]


def test_daily_bars_hold_what_came_since_the_close_before_and_pass_over_weekends_and_closed_days():
    close_ns = MONDAY_NS + 4 * NS_PER_DAY + 16 * HOUR_NS  # Friday
    tuesday = MONDAY_NS + 8 * NS_PER_DAY + 17 * HOUR_NS
    report = event(tuesday, "earnings", currency="", symbol="ACME")
    closed = ScheduledEvent(
        time_ns=1_704_672_000 * NS_PER_S, kind="market_closed", name="", currency="USD", is_exact=False
    )
    told = Priors({"other": {"bar_hours": 24.0, "kinds": {"earnings": FX_ENTRY}}})
    for lines, place in (((report,), 3), ((report, closed), 2)):
        one = KnownVariance((1, 2, 3, 4), 5.0, lines, told)
        one.grow([("ACME", "1d"), ("OTHER", "1d")])
        both, ends = np.array([0, 1]), np.array([close_ns, close_ns])
        one.of_closed(both, ends - NS_PER_DAY, ends)
        found = one.ahead(both)
        assert found is not None
        widened = (found[0] ** 2 * np.arange(1, 5)).round(6)
        assert np.diff(widened, prepend=0.0).argmax() == place - 1 + 0, f"{widened}"
        assert (found[1] == 1.0).all(), "it is another company's"


FX_ENTRY = {"own": 1.0, "own_next": 0.0, "other": 0.0, "other_next": 0.0, "strength": 20.0}


def test_a_weekend_narrows_daily_bars_of_currencies_and_leaves_shares_alone():
    friday = np.array([MONDAY_NS + 4 * NS_PER_DAY + 17 * HOUR_NS])
    pair, share = known(interval="1d"), known(series="ACME", interval="1d")
    pair.of_closed(ROW, friday - NS_PER_DAY, friday)
    assert ahead(pair)[0] == pytest.approx(np.exp(-0.2))
    assert share.of_closed(ROW, friday - NS_PER_DAY, friday) is None
    assert share.ahead(ROW) is None


@pytest.mark.parametrize(
    ("days", "teaches"),
    [((3, 4, 7), True), ((0, 3), False)],
    ids=["the weekend, which was expected", "days without a trade, which none expected"],
)
def test_a_gap_teaches_what_gaps_do_where_the_band_was_made_for_it(days: tuple[int, ...], teaches: bool):
    one = known(interval="1d")
    for day in days:
        end_ns = MONDAY_NS + day * NS_PER_DAY + 17 * HOUR_NS
        one.of_closed(ROW, np.array([end_ns - NS_PER_DAY]), np.array([end_ns]))
        ahead(one)
        one.learn(batch(end_ns - NS_PER_DAY), np.array([3.0]))
    before, learnt = one.effects.class_factors(0, one.effects.kinds.index("gap_weekend"), OWN)
    assert (learnt > before) is teaches


def test_bars_without_a_length_in_time_have_no_factor():
    one = known(event(MONDAY_NS), interval="volume:5000")
    assert one.of_closed(ROW, np.array([MONDAY_NS - 1]), np.array([MONDAY_NS])) is None
    assert one.ahead(ROW) is None


def test_relations():
    currencies, symbols = np.array(["USD", "GBP", ""]), np.array(["", "", "ACME"])
    assert relations("EURUSD", currencies, symbols).tolist() == [OWN, OTHER, UNRELATED]
    assert relations("EUR/GBP", currencies, symbols).tolist() == [OTHER, OWN, UNRELATED]
    assert relations("acme", currencies, symbols).tolist() == [OWN, OTHER, OWN]
    assert relations("OTHER", currencies, symbols).tolist() == [OWN, OTHER, UNRELATED]


def test_shares_are_the_derivatives_of_what_is_combined():
    variances = np.array([[4.0, 2.0, 0.5, 0.0]])
    found = shares(variances)[0]
    for place in nonempty(range(4)):
        step = np.zeros((1, 4))
        step[0, place] = 1e-6
        moved = np.log(combine(variances * np.exp(step))) - np.log(combine(variances))
        expected = 0.0 if place == 2 else float(moved[0]) / 1e-6
        assert found[place] == pytest.approx(expected, abs=1e-4)


def hours(num: int, seed: int, loud_hour: int | None = None, symbol: str = "EURUSD") -> list[Bar]:
    """Bars of business hours that move three times as much in one hour of the day."""
    rng, price, bars = np.random.default_rng(seed), 1.0, []
    for hour in range(num):
        scale = 0.003 if loud_hour is not None and hour % 24 == loud_hour else 0.001
        low, opened, closed, high = np.sort(rng.normal(0.0, scale, 4))
        if rng.random() < 0.5:
            opened, closed = closed, opened
        start_ns = MONDAY_NS + hour * HOUR_NS
        prices = [price * np.exp(move) for move in (opened, high, low, closed)]
        bars.append(
            Bar(
                start_ns + HOUR_NS,
                start_ns + HOUR_NS,
                "test",
                hour,
                symbol,
                "1h",
                start_ns,
                start_ns + HOUR_NS,
                *prices,
            )
        )
        price = prices[3]
    return bars


def forecaster(*events: ScheduledEvent) -> Forecaster:
    return Forecaster(CONFIG, build_experts(CONFIG), events)


def band(one: Forecaster, series: str = "EURUSD/1h") -> float:
    quantiles = one.forecast([series]).quantiles[0, 0]
    return float(quantiles[-2] - quantiles[1])


def test_the_band_widens_before_the_loud_hour_of_the_day():
    one, quiet, loud = forecaster(), [], []
    for bar in hours(24 * 20, 1, loud_hour=8):
        one.observe([bar])
        if bar.end_ns >= MONDAY_NS + 15 * NS_PER_DAY:
            hour = (bar.end_ns - MONDAY_NS) // HOUR_NS % 24
            (loud if hour == 8 else quiet).append(band(one))
    assert np.mean(nonempty(loud)) > 1.8 * np.mean(nonempty(quiet))


def test_an_event_that_is_not_known_teaches_its_kind():
    bars = hours(24 * 30, 2)
    days = range(0, 30, 1)
    at = [MONDAY_NS + day * NS_PER_DAY + ((day * 7) % 24) * HOUR_NS for day in days]
    loud = set(at)
    changed = [stretched(bar, 5.0) if bar.start_ns in loud else bar for bar in bars]
    one = forecaster(*(event(time_ns, "", name="Rumour") for time_ns in at))
    wide, usual = [], []
    for bar in changed:
        one.observe([bar])
        if bar.end_ns >= MONDAY_NS + 24 * NS_PER_DAY:
            (wide if bar.end_ns in loud else usual).append(band(one))
    assert np.mean(nonempty(wide)) > 1.5 * np.mean(nonempty(usual))


def test_forecasts_with_a_calendar_do_not_change_with_later_prices():
    bars = hours(80, 3)
    fields = {
        name: np.array([[getattr(bar, name)] for bar in bars]) for name in ("open", "high", "low", "close")
    }
    events = [event(MONDAY_NS + hour * HOUR_NS) for hour in range(5, 80, 9)]

    def walked(changed: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        one, found = forecaster(*events), []
        for at, bar in enumerate(bars):
            prices = {name: float(values[at, 0]) for name, values in changed.items()}
            one.observe([msgspec.structs.replace(bar, **prices)])
            found.append(one.forecast(["EURUSD/1h"]).quantiles.reshape(1, -1)[0])
        return {"fused": np.array(found)}

    assert find_leaks(walked, fields, [40, 70], np.random.default_rng(1)) == {}


def test_a_calendar_that_ends_leaves_the_forecasts_as_without_one():
    bars = hours(60, 4)
    with_old, without = forecaster(event(MONDAY_NS - 30 * NS_PER_DAY)), forecaster()
    for bar in bars:
        with_old.observe([bar])
        without.observe([bar])
    both = [one.forecast(["EURUSD/1h"]).quantiles for one in (with_old, without)]
    assert (both[0] == both[1]).all()


def stretched(bar: Bar, times: float) -> Bar:
    """A bar whose moves from its open are so many times as large."""
    moved = {name: bar.open * (getattr(bar, name) / bar.open) ** times for name in ("high", "low", "close")}
    return msgspec.structs.replace(bar, **moved)


def test_a_bar_that_comes_on_a_closed_day_is_taken_as_it_comes():
    """A holiday that is none: daily bars of shares go on through it."""
    rng, price, closes_ns = np.random.default_rng(6), 100.0, MONDAY_NS + 16 * HOUR_NS
    closure = ScheduledEvent(
        time_ns=1_704_067_200 * NS_PER_S + 30 * NS_PER_DAY, kind="market_closed", name="", currency="USD",
        is_exact=False,
    )  # fmt: skip
    with_it, without = forecaster(closure), forecaster()
    widths: list[float] = []
    for day in range(45):
        if day % 7 > 4:
            continue
        before, price = price, price * float(np.exp(0.01 * rng.standard_normal()))
        end_ns = closes_ns + day * NS_PER_DAY
        one = Bar(end_ns, end_ns, "t", day, "ACME", "1d", end_ns - NS_PER_DAY, end_ns, before, max(before, price),
                  min(before, price), price)  # fmt: skip
        for each in (with_it, without):
            each.observe([one])
        if day > 29:
            widths.append(band(with_it, "ACME/1d") / band(without, "ACME/1d"))
    assert len(widths) > 10
    assert min(widths) > 0.8
    assert max(widths) < 1.25
