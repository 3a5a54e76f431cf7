"""Trades and quotes of one session on a tick grid, with known truth; intraday tests and replays of stories use it.

Trades arrive by a Hawkes process over a U-shaped day. Their signs come from large orders that are split into many
trades (Lillo, Mike and Farmer, 2005), so signs have long memory. Returns have none all the same, because a trade moves
the price by the surprise in its sign only (Lillo and Farmer, 2004): what the split orders foretell is in the price.
The rest of the variance arrives with quotes. Queues lean to where the price will be found, so imbalance foretells.
"""

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.domain.events import Quote, Trade
from htfi.domain.time import NS_PER_S
from htfi_train.simulation.market.process import Floats, autoregress, u_shape
from simulated_session import FlowShock, SimulatedSession

CELL_S = (
    1.0  # rate, volatility and spread are constant within a cell; a shock changes them from the next cell on
)
NUM_LARGE_ORDERS = 2  # being split at the same time
ORDER_LENGTH_INDEX = 1.5  # Pareto index of their lengths in trades; signs then correlate as lag^-0.5
CHILD_DELAYS_S = (0.05, 1.0, 20.0)  # mean delays of trades that answer a trade, equally likely


@dataclass(frozen=True, slots=True)
class OrderFlow:
    """A session's columns. S steps in order of time; each is a quote, after a trade where `side` is not 0.

    time_ns [S] of the step; log_price [S] the true price after it; bid, ask in ticks [S], and their sizes; side [S]
    +1 bought, -1 sold; trade_size [S]. A trade is made at the quote of the step before, and its own quote comes
    `quote_delay_ns` later.
    """

    session: SimulatedSession
    time_ns: NDArray[np.int64]
    quote_delay_ns: NDArray[np.int64]
    log_price: Floats
    bid: NDArray[np.int64]
    ask: NDArray[np.int64]
    bid_size: Floats
    ask_size: Floats
    side: NDArray[np.int8]
    trade_size: Floats

    @property
    def num_events(self) -> int:
        return len(self.side) + int(np.count_nonzero(self.side))

    def events(self, source: str = "simulated") -> Iterator[Trade | Quote]:
        """Trades and quotes in order of available_at_ns; rows count from 1."""
        symbol, venue, latency_ns = self.session.symbol, self.session.venue, self.session.latency_ns
        bids, asks = (self.bid * self.session.tick).round(10), (self.ask * self.session.tick).round(10)
        bid, ask, row = float(bids[0]), float(asks[0]), 0
        columns = (
            self.time_ns,
            self.quote_delay_ns,
            self.side,
            self.trade_size,
            bids,
            asks,
            self.bid_size,
            self.ask_size,
        )
        for at_ns, delay_ns, side, size, new_bid, new_ask, bid_size, ask_size in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            if side:
                row += 1
                price = ask if side > 0 else bid
                yield Trade(at_ns + latency_ns, at_ns, source, row, symbol, price, size, venue)
            row += 1
            at_ns += delay_ns
            yield Quote(
                at_ns + latency_ns, at_ns, source, row, symbol, new_bid, bid_size, new_ask, ask_size, venue
            )
            bid, ask = new_bid, new_ask


def merged(flows: Sequence[OrderFlow], source: str = "simulated") -> Iterator[Trade | Quote]:
    """Events of several sessions in one order, at the same instant in that of `flows`. Each has a source of its own."""
    streams = [flow.events(f"{source}:{flow.session.symbol}") for flow in flows]
    return heapq.merge(*streams, key=lambda event: event.available_at_ns)


def order_flow(session: SimulatedSession, shocks: Sequence[FlowShock], seed: int) -> OrderFlow:
    """The session's flow; the seed gives it back bit for bit. Raises InvalidInput for a shock outside the session."""
    for shock in shocks:
        if not 0.0 <= shock.at_s < session.duration_s:
            raise InvalidInput(f"a shock at {shock.at_s} s lies outside a session of {session.duration_s} s")
    if seed < 0:
        raise InvalidInput(f"the seed {seed} is negative")
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, 3])))
    sigma, rate, half_spread = _conditions(session, shocks, rng)  # each [cells]
    trade_s = _hawkes(rng, rate, session.answering_share, session.duration_s)
    quote_s = _poisson(rng, session.quotes_per_trade * rate, session.duration_s)
    size = np.maximum(
        np.round(rng.lognormal(math.log(session.mean_trade_size) - 0.5, 1.0, len(trade_s))), 1.0
    )
    side, surprise = _signs(rng, len(trade_s), size)
    moved = float(np.sqrt(np.mean(np.square(surprise)))) if len(trade_s) else 1.0
    at_trade, at_quote = _cell(trade_s, len(rate)), _cell(quote_s, len(rate))
    by_trades = np.sqrt(session.trade_share / rate[at_trade]) * sigma[at_trade] * surprise / moved
    by_quotes = (
        np.sqrt((1.0 - session.trade_share) / (session.quotes_per_trade * rate[at_quote])) * sigma[at_quote]
    )

    shock_s = np.array([shock.at_s for shock in shocks])
    seconds = np.concatenate([[0.0], trade_s, quote_s, shock_s])
    move = np.concatenate(
        [[0.0], by_trades, by_quotes * rng.standard_normal(len(quote_s)), [shock.move for shock in shocks]]
    )
    sides = np.zeros(len(seconds), dtype=np.int8)
    sides[1 : len(trade_s) + 1] = side
    sizes = np.zeros(len(seconds))
    sizes[1 : len(trade_s) + 1] = size
    order = np.argsort(seconds, kind="stable")
    seconds = seconds[order]
    log_price = math.log(session.start_price) + np.cumsum(move[order])
    bid, ask, bid_size, ask_size = _quotes(session, rng, log_price, half_spread[_cell(seconds, len(rate))])
    time_ns = session.start_ns + np.round(seconds * NS_PER_S).astype(np.int64)
    gap_ns = np.append(np.diff(time_ns), NS_PER_S)
    delay_ns = np.where(sides[order] != 0, np.minimum(gap_ns // 2, 1_000_000), 0)
    return OrderFlow(
        session, time_ns, delay_ns, log_price, bid, ask, bid_size, ask_size, sides[order], sizes[order]
    )


def _conditions(
    session: SimulatedSession, shocks: Sequence[FlowShock], rng: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Per cell: deviation per root second, trades per second, half the spread as a log distance."""
    num_cells = math.ceil(session.duration_s / CELL_S)
    middle_s = (np.arange(num_cells, dtype=np.float64) + 0.5) * CELL_S
    usual = session.sigma / math.sqrt(session.duration_s)
    if session.sigma_parts:
        parts = np.asarray(session.sigma_parts)
        part = np.minimum((middle_s / session.duration_s * len(parts)).astype(np.int64), len(parts) - 1)
        relative = parts[part] / math.sqrt(session.duration_s / len(parts)) / usual
    else:
        phi = 0.5 ** (CELL_S / 900.0)
        push = session.vol_of_vol * math.sqrt(1.0 - phi * phi) * rng.standard_normal((num_cells, 1))
        push[0] /= math.sqrt(1.0 - phi * phi)
        wave = autoregress(push, np.array([phi]))[:, 0]
        relative = u_shape(middle_s / session.duration_s, session.day_shape) * np.exp(
            wave - session.vol_of_vol**2
        )
    rate = (
        session.trades_per_s * u_shape(middle_s / session.duration_s, session.day_shape) * np.sqrt(relative)
    )
    half_spread = (
        0.5e-4 * session.spread_bps * np.sqrt(relative) * np.exp(0.15 * rng.standard_normal(num_cells))
    )
    sigma = usual * relative
    for shock in shocks:
        since_s = middle_s - 0.5 * CELL_S - shock.at_s  # below 0 before: nothing foresees the event
        fading = np.where(since_s >= 0.0, 0.5 ** (np.maximum(since_s, 0.0) / shock.half_life_s), 0.0)
        sigma *= 1.0 + (shock.volatility - 1.0) * fading
        rate *= 1.0 + (shock.intensity - 1.0) * fading
        half_spread *= 1.0 + (shock.spread - 1.0) * fading
    return sigma, rate, half_spread


def _poisson(rng: np.random.Generator, rate: Floats, duration_s: float) -> Floats:
    """Times in s, in order, of a Poisson process with this rate per second in each cell."""
    counts = rng.poisson(rate * CELL_S)
    times = (np.repeat(np.arange(len(rate)), counts) + rng.random(int(counts.sum()))) * CELL_S
    return np.sort(times[times < duration_s])


def _hawkes(rng: np.random.Generator, rate: Floats, answering_share: float, duration_s: float) -> Floats:
    """Times in s of a Hawkes process with this mean rate, built as a family tree: every trade is answered by a
    Poisson number of others, generation after generation (Hawkes and Oakes, 1974)."""
    generation = _poisson(rng, (1.0 - answering_share) * rate, duration_s)
    everyone = [generation]
    delays_s = np.array(CHILD_DELAYS_S)
    while len(generation):
        born = np.repeat(generation, rng.poisson(answering_share, len(generation)))
        born += delays_s[rng.integers(len(delays_s), size=len(born))] * rng.standard_exponential(len(born))
        generation = born[born < duration_s]
        everyone.append(generation)
    return np.sort(np.concatenate(everyone))


def _signs(rng: np.random.Generator, num_trades: int, size: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Sides of trades and the surprise in each: side times weight of its size, less what was to be expected.

    Each trade belongs to one of the large orders under way, drawn at random. An order that has made `age` trades makes
    another with chance (age / (age + 1))^index; knowing all of them, the expected side is the mean over the orders.
    """
    slot = rng.integers(NUM_LARGE_ORDERS, size=num_trades)
    side = np.zeros(num_trades)
    expected = np.zeros(num_trades)
    for k in range(NUM_LARGE_ORDERS):
        mine = np.flatnonzero(slot == k)
        lengths = np.empty(0, dtype=np.int64)
        while lengths.sum() <= len(mine):  # the mean length is about 2.6 trades, the longest far longer
            more = np.floor(rng.random(len(mine) // 2 + 8) ** (-1.0 / ORDER_LENGTH_INDEX)).astype(np.int64)
            lengths = np.concatenate([lengths, np.minimum(more, len(mine) + 1)])
        whose = np.repeat(np.arange(len(lengths)), lengths)[: len(mine)]
        age = np.arange(len(mine)) - (np.cumsum(lengths) - lengths)[whose] + 1
        side[mine] = (2.0 * rng.integers(2, size=len(lengths)) - 1.0)[whose]
        foretold = np.append(0.0, side[mine] * (age / (age + 1.0)) ** ORDER_LENGTH_INDEX)
        before = np.cumsum(slot == k) - (slot == k)  # how many trades this slot has made before each trade
        expected += foretold[before] / NUM_LARGE_ORDERS
    weight = size**0.3
    mean_weight = np.mean(weight) if num_trades else 1.0
    return side.astype(np.int8), side * weight / mean_weight - expected


def _quotes(
    session: SimulatedSession, rng: np.random.Generator, log_price: Floats, half_spread: Floats
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats, Floats]:
    """Best bid and ask in ticks, at least one apart, and their sizes, which put the microprice near the true price."""
    in_ticks = np.exp(log_price) / session.tick
    bid = np.maximum(np.floor(in_ticks * np.exp(-half_spread)).astype(np.int64), 1)
    ask = np.maximum(np.ceil(in_ticks * np.exp(half_spread)).astype(np.int64), bid + 1)
    lean = np.clip((in_ticks - bid) / (ask - bid), 0.08, 0.92)
    bid_size, ask_size = (_queue(rng, 2.0 * session.mean_queue_size * part) for part in (lean, 1.0 - lean))
    return bid, ask, bid_size, ask_size


def _cell(seconds: Floats, num_cells: int) -> NDArray[np.int64]:
    return np.minimum((seconds / CELL_S).astype(np.int64), num_cells - 1)


def _queue(rng: np.random.Generator, mean: Floats) -> Floats:
    """Sizes in whole units around `mean`; as noisy as queues are, so that order flow explains half of returns."""
    return np.maximum(np.round(mean * np.exp(0.8 * rng.standard_normal(len(mean)) - 0.32)), 1.0)
