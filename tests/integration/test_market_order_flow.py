"""Simulated order flow: as it is made, and as our own market kernel sees it."""

import itertools
from functools import cache

import numpy as np
import pytest

from checks import nonempty
from htfi.domain.errors import InvalidInput
from htfi.domain.events import Quote, Trade
from htfi.market.config import MarketConfig
from htfi.market.state import MarketState
from simulated_order_flow import merged, order_flow
from simulated_session import FlowShock, SimulatedSession
from stylised_facts import stylised_facts

START_NS = 1_760_016_600_000_000_000
MINUTE_NS = 60_000_000_000
SESSION = SimulatedSession("SIM", START_NS)
NUM_SESSIONS = 24


@cache
def sessions():
    return [order_flow(SESSION, (), seed) for seed in range(NUM_SESSIONS)]


def minute_returns(flow):
    mid = (flow.bid + flow.ask) / 2.0
    grid = START_NS + MINUTE_NS * np.arange(391)
    return np.diff(np.log(mid[np.searchsorted(flow.time_ns, grid, side="right") - 1]))


def through_the_kernel(flow):
    """Closed minute bars and the order flow that the kernel measured in each."""
    market, bars, imbalances = MarketState(MarketConfig(bar="60s")), [], []
    for event in flow.events():
        for bar in market.advance(event.available_at_ns):
            market.close_bars([bar])
            bars.append(bar)
            imbalances.append(market.features("SIM", "60s")["ofi_bar"])
        market.observe(event)
    return bars, np.array(imbalances)


def test_events_come_in_order_and_trade_at_the_quote():
    last_ns, last_row, quote, num_trades = 0, 0, None, 0
    for event in order_flow(SESSION, [FlowShock(9000.0, -0.03)], 1).events():
        assert event.available_at_ns >= last_ns
        assert event.event_time_ns < event.available_at_ns
        assert event.row == last_row + 1
        if isinstance(event, Quote):
            assert 0 < event.bid < event.ask
            assert min(event.bid_size, event.ask_size) >= 1
            quote = event
        else:
            num_trades += 1
            assert event.price in (quote.bid, quote.ask)
            assert event.size >= 1
        last_ns, last_row = event.available_at_ns, event.row
    assert num_trades > 10_000


def test_prices_lie_on_the_tick_grid():
    flow = order_flow(
        SimulatedSession("SIM", START_NS, tick=0.05, start_price=20.0, duration_s=3600.0), (), 2
    )
    for event in nonempty(flow.events()):
        for price in (event.price,) if isinstance(event, Trade) else (event.bid, event.ask):
            assert price / 0.05 == pytest.approx(round(price / 0.05), abs=1e-6)


def test_same_seed_gives_the_same_events():
    short = SimulatedSession("SIM", START_NS, duration_s=600.0)
    one, two, other = (list(order_flow(short, [FlowShock(100.0, 0.01)], seed).events()) for seed in (4, 4, 5))
    assert one == two
    assert one != other


def test_kernel_sees_order_flow_that_moves_the_price():
    bars, imbalance = through_the_kernel(sessions()[0])
    assert 385 <= len(bars) <= 391
    closes = np.log([bar.close for bar in bars])
    # independent series of 389 would correlate above 0.2 in fewer than one run in 10,000
    assert np.corrcoef(np.diff(closes), imbalance[1:])[0, 1] > 0.2
    assert all(bar.low <= min(bar.open, bar.close) <= max(bar.open, bar.close) <= bar.high for bar in bars)


def test_signed_trades_move_the_price_and_their_signs_have_long_memory():
    lags, memory = (1, 10, 100), []
    for flow in sessions():
        signed = np.cumsum(flow.side * flow.trade_size)
        grid = START_NS + MINUTE_NS * np.arange(391)
        net = np.diff(signed[np.searchsorted(flow.time_ns, grid, side="right") - 1])
        assert np.corrcoef(net, minute_returns(flow))[0, 1] > 0.2
        sides = flow.side[flow.side != 0].astype(float)
        memory.append([np.corrcoef(sides[lag:], sides[:-lag])[0, 1] for lag in lags])
    one, ten, hundred = np.mean(memory, axis=0)
    assert one > ten > hundred > 0.01  # 24 sessions of 20,000 trades: the standard error is below 0.002
    assert hundred > ten * (ten / one) ** 10  # slower than exponential


def test_minute_returns_have_fat_tails_and_clusters_and_no_memory():
    facts = stylised_facts(np.stack([minute_returns(flow) for flow in sessions()], axis=1))
    # signs over 24 sessions: 20 or more by chance in 0.08% of runs
    assert np.sum(facts.kurtosis > 0) >= 20
    assert np.sum(facts.abs_acf_1 > 0) >= 20
    assert np.sum(facts.abs_acf_5 > 0) >= 20
    # 24 sessions of 390: the standard error of the mean is 0.012, of lags 2 to 10 0.004; five of each
    assert abs(np.mean(facts.return_acf_1)) < 0.06
    assert abs(np.mean(facts.return_acf_2_to_10)) < 0.02


def test_day_is_busy_and_volatile_at_both_ends():
    trades = np.zeros(13)
    squares = np.zeros(13)
    for flow in sessions():
        trades += np.histogram((flow.time_ns[flow.side != 0] - START_NS) / 1e9, 13, (0.0, 23_400.0))[0]
        squares += np.square(minute_returns(flow)).reshape(13, 30).sum(axis=1)
    for curve in (trades, squares):
        assert min(curve[0], curve[-1]) > 1.2 * curve[6:8].mean()


def test_session_follows_the_sigmas_of_its_parts():
    quiet, loud = 0.002, 0.006
    session = SimulatedSession("SIM", START_NS, sigma_parts=(quiet, quiet, loud, loud))
    seen = np.mean([np.square(minute_returns(order_flow(session, (), seed))) for seed in range(12)], axis=0)
    by_part = np.sqrt(seen[: 97 * 4].reshape(4, 97).sum(axis=1))
    assert by_part[:2] == pytest.approx(quiet, rel=0.2)
    assert by_part[2:] == pytest.approx(loud, rel=0.2)


def test_event_moves_the_mid_widens_the_spread_and_brings_trades_and_nothing_foresees_it():
    at_s, move = 10_000.0, 0.03
    calm = [order_flow(SESSION, (), seed) for seed in range(8)]
    hit = [order_flow(SESSION, [FlowShock(at_s, move, half_life_s=300.0)], seed) for seed in range(8)]

    def between(flow, low_s, high_s):
        seconds = (flow.time_ns - START_NS) / 1e9
        here = (seconds >= low_s) & (seconds < high_s)
        return np.mean((flow.ask - flow.bid)[here]), np.count_nonzero(flow.side[here]), flow.log_price[here]

    for low_s, high_s, least in ((at_s - 300, at_s, 0.0), (at_s + 1, at_s + 200, 1.5)):
        spread, trades, _ = zip(*(between(flow, low_s, high_s) for flow in hit), strict=True)
        usual_spread, usual_trades, _ = zip(*(between(flow, low_s, high_s) for flow in calm), strict=True)
        if least:
            assert np.mean(spread) > least * np.mean(usual_spread)
            assert np.mean(trades) > least * np.mean(usual_trades)
        else:
            assert np.mean(spread) == pytest.approx(np.mean(usual_spread), rel=0.15)
            assert np.mean(trades) == pytest.approx(np.mean(usual_trades), rel=0.3)
    jumps = [between(flow, at_s, at_s + 0.5)[2][0] - between(flow, at_s - 60, at_s)[2][-1] for flow in hit]
    assert np.allclose(jumps, move)


def test_sessions_merge_in_one_order():
    flows = [
        order_flow(SimulatedSession(name, START_NS, duration_s=900.0), (), seed)
        for seed, name in enumerate("AB")
    ]
    events = list(merged(flows))
    assert len(events) == sum(flow.num_events for flow in flows)
    assert all(a.available_at_ns <= b.available_at_ns for a, b in itertools.pairwise(events))
    assert {event.source for event in events} == {"simulated:A", "simulated:B"}


@pytest.mark.parametrize(
    "make",
    [
        lambda: SimulatedSession("", START_NS),
        lambda: SimulatedSession("A", START_NS, sigma=float("nan")),
        lambda: SimulatedSession("A", START_NS, tick=50.0),
        lambda: SimulatedSession("A", START_NS, answering_share=1.0),
        lambda: SimulatedSession("A", START_NS, sigma_parts=(0.01, 0.0)),
        lambda: SimulatedSession("A", START_NS, trades_per_s=50_000.0),
        lambda: FlowShock(1.0, move=float("nan")),
        lambda: FlowShock(1.0, intensity=0.0),
        lambda: FlowShock(1.0, half_life_s=0.0),
        lambda: order_flow(SESSION, [FlowShock(23_400.0)], 1),
        lambda: order_flow(SESSION, (), -1),
    ],
)
def test_flow_that_cannot_be_made_is_refused_in_one_line(make):
    with pytest.raises(InvalidInput) as refused:
        make()
    assert "\n" not in str(refused.value)


def test_silent_session_is_a_session():
    flow = order_flow(
        SimulatedSession("A", START_NS, trades_per_s=1e-4, quotes_per_trade=0.1, duration_s=1.0), (), 0
    )
    assert [type(event) for event in flow.events()] == [Quote]
