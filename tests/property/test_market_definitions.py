"""Each feature against its textbook definition, written anew in numpy over the whole history."""

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from htfi.domain.events import Bar, Quote, Trade
from htfi.market.config import MarketConfig
from htfi.market.state import MarketState

S = 10**9
START = 1_381_152_600 * S
SEEDS = st.integers(0, 2**32 - 1)
RELATIVE = 1e-9


def trade(at_ns: int, price: float, size: float = 100.0) -> Trade:
    return Trade(at_ns, at_ns, "test", 1, "AA", price, size, "N")


def run(market: MarketState, events: list[Trade] | list[Quote]) -> list[Bar]:
    bars: list[Bar] = []
    for event in events:
        for closed in (market.advance(event.available_at_ns), market.observe(event)):
            for bar in closed:
                market.close_bars([bar])
                bars.append(bar)
    return bars


def random_trades(seed: int, count: int) -> list[Trade]:
    rng = np.random.default_rng(seed)
    at_ns = START + np.cumsum(rng.integers(0, int(rng.integers(1, 20)) * S // 2, count))
    prices = 100.0 * np.exp(np.cumsum(1e-3 * rng.standard_normal(count)))
    sizes = rng.integers(1, 900, count)
    return [trade(int(t), float(p), float(n)) for t, p, n in zip(at_ns, prices, sizes, strict=True)]


@given(SEEDS, st.integers(1, 400))
@settings(deadline=None, max_examples=examples(40))
def test_realised_measures_match_previous_tick_sampling(seed: int, count: int) -> None:
    window = 25
    market = MarketState(MarketConfig(window=window))
    trades = random_trades(seed, count)
    run(market, trades)
    features = market.features("AA", "60s")
    times = np.array([t.available_at_ns for t in trades])
    log_prices = np.log([t.price for t in trades])
    for text, step in (("1s", S), ("10s", 10 * S), ("60s", 60 * S), ("300s", 300 * S)):
        grid = np.arange((times[0] // step + 1) * step, times[-1] + 1, step)
        sampled = log_prices[np.searchsorted(times, grid, side="left") - 1]
        moves = np.abs(np.diff(sampled))[-window:]
        n = len(moves)
        assert (f"rv_{text}" in features) == (n >= 10)
        if n < 10:
            continue
        rv = np.sum(moves**2)
        bv = math.pi / 2 * n / (n - 1) * np.sum(moves[1:] * moves[:-1])
        assert features[f"rv_{text}"] == pytest.approx(rv, rel=RELATIVE, abs=1e-18)
        assert features[f"bv_{text}"] == pytest.approx(bv, rel=RELATIVE, abs=1e-18)
        if text == "10s" and "jump_z" in features:
            mu = 2 ** (2 / 3) * math.gamma(7 / 6) / math.gamma(1 / 2)
            cubes = np.sum((moves[2:] * moves[1:-1] * moves[:-2]) ** (4 / 3))
            tp = n * mu**-3 * n / (n - 2) * cubes
            z = (1 - bv / rv) / math.sqrt((math.pi**2 / 4 + math.pi - 5) / n * max(1.0, tp / bv**2))
            assert features["jump_z"] == pytest.approx(z, rel=1e-6, abs=1e-9)


def test_jump_test_is_silent_on_diffusion_and_loud_on_a_jump() -> None:
    """False alarms: z > 3.09 once in 1000 by the limit law; at 120 returns about 2 in 1000, so 8 in 400 is far out."""
    rng = np.random.default_rng(5)
    alarms = found = 0
    for has_jump in (False, True):
        for _ in range(400):
            moves = 1e-3 * rng.standard_normal(121)
            if has_jump:
                moves[60] += 2e-2
            market = MarketState(MarketConfig())
            for k, log_price in enumerate(np.cumsum(moves)):
                market.observe(trade(START + k * 10 * S, float(100 * math.exp(log_price))))
            loud = market.features("AA", "60s")["jump_z"] > 3.09
            alarms += loud and not has_jump
            found += loud and has_jump
    assert alarms <= 8
    assert found >= 380


@given(SEEDS, st.integers(2, 120))
@settings(deadline=None, max_examples=examples(60))
def test_nbbo_and_order_flow_match_their_definitions(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    market = MarketState(MarketConfig(bar="60s"))
    books: dict[str, dict[str, tuple[float, float]]] = {"bid": {}, "ask": {}}
    states: list[tuple[int, float, float, float, float] | None] = []
    at_ns = START // (60 * S) * 60 * S
    for _ in range(count):
        at_ns += int(rng.integers(0, 4 * 10**8))
        venue, side = "NQPZ"[int(rng.integers(4))], ("bid", "ask")[int(rng.integers(2))]
        tick = int(rng.integers(1, 5))
        price = (10_000 - tick if side == "bid" else 10_000 + tick) / 100
        size = float(rng.integers(0, 6) * 100)
        books[side][venue] = (price, size)
        sides = (price, size, None, None) if side == "bid" else (None, None, price, size)
        market.observe(Quote(at_ns, at_ns, "test", 1, "AA", *sides, venue))
        bids = [pair for pair in books["bid"].values() if pair[1] > 0]
        asks = [pair for pair in books["ask"].values() if pair[1] > 0]
        if not bids or not asks:
            states.append(None)
            assert "spread_bps" not in market.features("AA", "60s")
            continue
        bid, ask = max(p for p, _ in bids), min(p for p, _ in asks)
        bid_size, ask_size = sum(n for p, n in bids if p == bid), sum(n for p, n in asks if p == ask)
        states.append((at_ns, bid, bid_size, ask, ask_size))
        features = market.features("AA", "60s")
        mid = (bid + ask) / 2
        micro = (bid * ask_size + ask * bid_size) / (bid_size + ask_size)
        assert features["spread_bps"] == pytest.approx(1e4 * (ask - bid) / mid, rel=1e-9)
        assert features["microprice_gap_bps"] == pytest.approx(1e4 * (micro - mid) / mid, rel=1e-6, abs=1e-8)
    sound = [state for state in states if state is not None]
    if states[-1] is None:
        return
    flows = [
        0.0 if now is None or before is None else flow(before, now)
        for before, now in zip([None, *states[:-1]], states, strict=True)
    ]
    kept = [(state, e) for state, e in zip(states, flows, strict=True) if state is not None]
    weights = [0.5 ** ((at_ns - state[0]) / (10 * S)) for state, _ in kept]
    depth = sum(w * (state[2] + state[4]) / 2 for w, (state, _) in zip(weights, kept, strict=True)) / sum(
        weights
    )
    decayed = sum(w * e for w, (_, e) in zip(weights, kept, strict=True))
    features = market.features("AA", "60s")
    assert features["ofi"] == pytest.approx(decayed / depth, rel=1e-6, abs=1e-9)
    mean_depth = sum((state[2] + state[4]) / 2 for state in sound) / len(sound)
    if at_ns < START // (60 * S) * 60 * S + 60 * S:
        assert features["ofi_open_bar"] == pytest.approx(sum(flows) / mean_depth, rel=1e-9, abs=1e-12)


def flow(
    before: tuple[int, float, float, float, float], now: tuple[int, float, float, float, float]
) -> float:
    """Cont, Kukanov and Stoikov (2014), equation 2."""
    _, pb0, qb0, pa0, qa0 = before
    _, pb, qb, pa, qa = now
    return (pb >= pb0) * qb - (pb <= pb0) * qb0 - (pa <= pa0) * qa + (pa >= pa0) * qa0


@given(SEEDS, st.integers(1, 300))
@settings(deadline=None, max_examples=examples(40))
def test_bars_match_a_plain_grouping_of_trades(seed: int, count: int) -> None:
    trades = random_trades(seed, count)
    market = MarketState(MarketConfig(bar="60s,volume:2000,dollar:150000"))
    bars = run(market, trades) + market.advance(trades[-1].available_at_ns + 60 * S)
    windows: dict[int, list[Trade]] = defaultdict(list)
    for t in trades:
        windows[t.available_at_ns // (60 * S)].append(t)
    expected = [(k * 60 * S, (k + 1) * 60 * S, *ohlcv(group)) for k, group in sorted(windows.items())]
    assert [shown(bar) for bar in bars if bar.interval == "60s"] == expected
    for interval, target, money in (("volume:2000", 2000.0, False), ("dollar:150000", 150_000.0, True)):
        groups: list[list[Trade]] = [[]]
        filled = 0.0
        for t in trades:
            groups[-1].append(t)
            filled += t.price * t.size if money else t.size
            if filled >= target:
                groups.append([])
                filled = 0.0
        whole = [(g[0].available_at_ns, g[-1].available_at_ns, *ohlcv(g)) for g in groups[:-1]]
        assert [shown(bar) for bar in bars if bar.interval == interval] == whole


def ohlcv(group: list[Trade]) -> tuple[float, ...]:
    prices = [t.price for t in group]
    return prices[0], max(prices), min(prices), prices[-1], sum(t.size for t in group)


def shown(bar: Bar) -> tuple[float, ...]:
    return bar.start_ns, bar.end_ns, bar.open, bar.high, bar.low, bar.close, bar.volume


@given(SEEDS, st.integers(2, 90))
@settings(deadline=None, max_examples=examples(40))
def test_bar_features_match_their_definitions(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    closes = 100 * np.exp(np.cumsum(0.01 * rng.standard_normal(count)))
    opens = closes * np.exp(0.003 * rng.standard_normal(count))
    highs = np.maximum(opens, closes) * np.exp(0.005 * rng.random(count))
    lows = np.minimum(opens, closes) * np.exp(-0.005 * rng.random(count))
    volumes = rng.integers(1, 1000, count).astype(float)
    market = MarketState(MarketConfig())
    day = 86_400 * S
    for k in range(count):
        row = (float(x[k]) for x in (opens, highs, lows, closes, volumes))
        end_ns = START + k * day
        market.close_bars([Bar(end_ns, START, "test", k + 1, "SPX", "1d", end_ns, end_ns, *row)])
    features = market.features("SPX", "1d")
    moves = np.diff(np.log(closes))
    variance = moves[0] ** 2
    for n, move in enumerate(moves[1:], start=2):
        weight = max(0.06, 1 / n)
        variance += weight * (move**2 - variance)
    ranges = np.log(highs / lows)[-20:]
    assert features["return_last"] == pytest.approx(moves[-1], rel=RELATIVE, abs=1e-15)
    assert features["ewma_vol"] == pytest.approx(math.sqrt(variance), rel=RELATIVE)
    assert features["range_vol"] == pytest.approx(
        math.sqrt(np.mean(ranges**2) / (4 * math.log(2))), rel=RELATIVE
    )
    assert features["range_last"] == pytest.approx(ranges[-1], rel=RELATIVE)
    assert features["volume_ratio"] == pytest.approx(volumes[-1] / np.mean(volumes[-21:-1]), rel=RELATIVE)
