"""What is known of variance: saved and restored it continues bit for bit, and nothing of it looks ahead."""

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from htfi.domain.events import Bar
from htfi.domain.scheduled_event import ScheduledEvent
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.experts import build_experts
from htfi.forecasting.forecaster import Forecaster

HOUR_NS = 3600 * NS_PER_S
START_NS = (
    1_709_960_400 * NS_PER_S
)  # Saturday 2024-03-09 00:00 in New York: its summer time begins the next day
CONFIG = ForecastConfig(horizons=(1, 4), experts=("ewma", "log_range_har", "market_har"))
KINDS = ("us_payrolls", "uk_cpi", "", "earnings")
SERIES = ("EURUSD", "USDJPY", "ACME")

events = st.lists(
    st.builds(
        lambda hour, minute, kind, currency, known, withdrawn: ScheduledEvent(
            time_ns=START_NS + hour * HOUR_NS + minute * 60 * NS_PER_S,
            kind=kind,
            name="A figure",
            currency="" if kind == "earnings" else currency,
            symbol="ACME" if kind == "earnings" else "",
            known_ns=0 if known is None else START_NS + known * HOUR_NS,
            withdrawn_ns=0 if withdrawn is None else START_NS + withdrawn * HOUR_NS,
        ),
        st.integers(0, 80),
        st.sampled_from([0, 30]),
        st.sampled_from(KINDS),
        st.sampled_from(["USD", "GBP"]),
        st.none() | st.integers(0, 80),
        st.none() | st.integers(1, 80),
    ),
    max_size=12,
)


def instants(num: int, seed: int, interval_ns: int, interval: str) -> list[list[Bar]]:
    """Bars of three series, some of which pause now and then."""
    rng, made = np.random.default_rng(seed), []
    for at in range(num):
        start_ns = START_NS + at * interval_ns
        there = [symbol for place, symbol in enumerate(SERIES) if (at // 7 + place) % 5 or at < 25]
        made.append([_bar(rng, symbol, interval, start_ns, interval_ns) for symbol in there])
    return made


def _bar(rng: np.random.Generator, symbol: str, interval: str, start_ns: int, length_ns: int) -> Bar:
    low, opened, closed, high = (100.0 * np.exp(np.sort(rng.normal(0.0, 0.01, 4)))).tolist()
    end_ns = start_ns + length_ns
    return Bar(end_ns, end_ns, "test", 1, symbol, interval, start_ns, end_ns, opened, high, low, closed)


def forecasts(
    one: Forecaster, bars: list[list[Bar]], order: list[ScheduledEvent] | None = None
) -> list[bytes]:
    found = []
    for together in bars:
        one.observe(together)
        batch = one.forecast([f"{symbol}/{bars[0][0].interval}" for symbol in SERIES])
        found.append(batch.quantiles.tobytes())
    return found


def fresh(lines: list[ScheduledEvent]) -> Forecaster:
    return Forecaster(CONFIG, build_experts(CONFIG), lines)


@settings(max_examples=12, deadline=None)
@given(
    events, st.integers(24, 70), st.integers(0, 2**32), st.sampled_from([("1h", HOUR_NS), ("1d", NS_PER_DAY)])
)
def test_a_saved_forecaster_continues_bit_for_bit_and_the_order_of_events_is_irrelevant(
    lines, cut, seed, length
):
    bars = instants(76, seed, length[1], length[0])
    whole = forecasts(fresh(lines), bars)
    first = fresh(lines[::-1])
    begun = forecasts(first, bars[:cut])
    saved = msgspec.msgpack.decode(msgspec.msgpack.encode(_plain(first.state())))
    second = fresh(lines)
    second.restore(_arrays(saved, first.state()))
    assert begun + forecasts(second, bars[cut:]) == whole


def _plain(state: object) -> object:
    if isinstance(state, dict):
        return {str(key): _plain(value) for key, value in state.items()}
    return state.tolist() if isinstance(state, np.ndarray) else state


def _arrays(saved: object, like: object) -> object:
    if isinstance(like, dict):
        return {key: _arrays(saved[str(key)], value) for key, value in like.items()}
    return np.array(saved, like.dtype).reshape(like.shape) if isinstance(like, np.ndarray) else saved


@settings(max_examples=12, deadline=None)
@given(events, st.integers(0, 2**32))
def test_lines_that_become_known_later_change_no_earlier_forecast(lines, seed):
    bars, cut_ns = instants(60, seed, HOUR_NS, "1h"), START_NS + 40 * HOUR_NS
    later = [
        ScheduledEvent(
            time_ns=START_NS + hour * HOUR_NS,
            kind="us_payrolls",
            name="",
            currency="USD",
            known_ns=cut_ns + 1,
        )
        for hour in (20, 41, 45)
    ]
    before = forecasts(fresh(lines), bars[:40])
    assert forecasts(fresh([*lines, *later]), bars[:40]) == before


@settings(max_examples=12, deadline=None)
@given(events, st.integers(0, 2**32))
def test_events_of_another_company_change_nothing(lines, seed):
    bars = instants(50, seed, HOUR_NS, "1h")
    foreign = [
        ScheduledEvent(time_ns=START_NS + hour * HOUR_NS, kind="earnings", name="", symbol="UNIDENTIFIED")
        for hour in (30, 31)
    ]
    assert forecasts(fresh([*lines, *foreign]), bars) == forecasts(fresh(lines), bars)
