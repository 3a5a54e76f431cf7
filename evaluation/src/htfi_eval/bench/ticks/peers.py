"""Features of ticks by other libraries, on the same data: polars and pandas by columns, river event by event.

Each does less than the market kernel: polars and pandas make 60 s bars, realised and bipower variance over 120
one-second returns and a weighted volatility of the trades; river three statistics of each trade.
A library that is not installed is a note under the table.
"""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any

import numpy as np

from htfi.domain.events import Quote, Trade
from htfi_eval.commands import load_library

WINDOW = 120  # returns in a rolling variance
SPAN = 32  # of an exponentially weighted variance: λ = 0.94


@dataclass(frozen=True, slots=True)
class TickPeer:
    """`runs(data, n)`: seconds of each run over a file of trades; or, by event, arrays of µs over a list of events."""

    name: str
    runs: Callable[[Any, int], list[Any]]


def _polars_runs(trades: Path, num_runs: int) -> list[float]:
    os.environ.setdefault("POLARS_MAX_THREADS", "1")  # one core, as ours
    pl = load_library("polars")

    def run() -> None:
        frame = pl.read_parquet(trades, columns=["ts", "symbol", "price", "size"])
        price, size = pl.col("price"), pl.col("size")
        frame.group_by_dynamic("ts", every="60s", group_by="symbol").agg(
            price.first().alias("open"), price.max().alias("high"), price.min().alias("low"),
            price.last().alias("close"), size.sum().alias("volume"),
        )  # fmt: skip
        seconds = frame.group_by_dynamic("ts", every="1s", group_by="symbol").agg(price.last())
        move = price.log().diff()
        seconds.with_columns(
            (move**2).rolling_sum(WINDOW).over("symbol").alias("rv"),
            (move.abs() * move.abs().shift()).rolling_sum(WINDOW).over("symbol").alias("bv"),
            move.ewm_std(span=SPAN).over("symbol").alias("vol"),
        )

    return _timed(run, num_runs)


def _pandas_runs(trades: Path, num_runs: int) -> list[float]:
    pd = load_library("pandas")

    def run() -> None:
        frame = pd.read_parquet(
            trades, columns=["ts", "symbol", "price", "size"], use_threads=False
        ).set_index("ts")
        for _, ticks in frame.groupby("symbol", observed=True):
            ticks["price"].resample("60s").ohlc()
            ticks["size"].resample("60s").sum()
            move = np.log(ticks["price"].resample("1s").last().dropna()).diff()
            (move**2).rolling(WINDOW).sum()
            (move.abs() * move.abs().shift()).rolling(WINDOW).sum()
            move.ewm(span=SPAN).std()

    return _timed(run, num_runs)


def _river_runs(events: Sequence[Trade | Quote], num_runs: int) -> list[Any]:
    """Two variances of tick returns and a mean size, updated and read at each trade. Units: µs an event."""
    stats, utils = load_library("river.stats"), load_library("river.utils")
    trades = [event for event in events if isinstance(event, Trade)]
    runs: list[Any] = []
    for _ in range(num_runs):
        statistics: dict[str, list[Any]] = {}
        last_log: dict[str, float] = {}
        taken_ns = np.empty(len(trades), np.int64)
        clock = time.perf_counter_ns
        for place, trade in enumerate(trades):
            began = clock()
            found = statistics.get(trade.symbol)
            if found is None:
                found = [stats.EWVar(0.06), utils.Rolling(stats.Var, window_size=WINDOW), stats.EWMean(0.06)]
                statistics[trade.symbol] = found
            log_price = log(trade.price)
            move = log_price - last_log.get(trade.symbol, log_price)
            last_log[trade.symbol] = log_price
            for statistic, value in zip(found, (move, move, trade.size), strict=True):
                statistic.update(value)
                statistic.get()
            taken_ns[place] = clock() - began
        runs.append(taken_ns / 1e3)
    return runs


def _timed(run: Callable[[], None], num_runs: int) -> list[float]:
    taken_s: list[float] = []
    for _ in range(num_runs):
        began = time.perf_counter()
        run()
        taken_s.append(time.perf_counter() - began)
    return taken_s


BATCH_PEERS = (TickPeer("trades: polars", _polars_runs), TickPeer("trades: pandas", _pandas_runs))
EVENT_PEERS = (TickPeer("event: river", _river_runs),)
