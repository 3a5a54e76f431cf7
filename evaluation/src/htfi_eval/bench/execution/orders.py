"""Order entry: durable orders a second, the time from a tick to an order on its way, cancelling a thousand orders."""

import gc
import time
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from htfi.domain.decision import Receipt
from htfi.domain.orders import (
    DecisionNoted,
    InstrumentTerms,
    LimitsInForce,
    MarketSnapshot,
    MassCancelRequest,
    OrderAcknowledged,
    OrderEvent,
    OrderSide,
)
from htfi.execution.intents import OrderIntent
from htfi.execution.order_entry import OrderEntry
from htfi.execution.ports import VenueRequest
from htfi.wiring.order_record import RecordedOrders
from htfi_eval.results import PartFigures

SECOND = 10**9
NUM_ORDERS, NUM_QUICK = 20_000, 1_000
GROUP = 16  # orders of one moment, as a desk of that many instruments sends them
NUM_TICKS, NUM_TICKS_QUICK = 3_000, 300
NUM_CANCELS, NUM_ROUNDS = 1_000, 7


class CountingVenue:
    """A venue link that counts what it is handed."""

    def __init__(self) -> None:
        self.num = 0

    def send(self, request: VenueRequest) -> None:
        del request
        self.num += 1

    def next(self, until_ns: int) -> OrderEvent | None:
        del until_ns
        return None


def figures(quick: bool) -> PartFigures:
    """orders_per_s, tick_to_order_p99_ms, cancel_1000_ms."""
    with TemporaryDirectory(prefix="htfi-orders-") as scratch:
        folder = Path(scratch)
        rates = [
            order_rate(folder / f"rate{n}", NUM_QUICK if quick else NUM_ORDERS)
            for n in range(1 if quick else 5)
        ]
        ticks_ms = tick_to_order_ms(folder / "ticks", NUM_TICKS_QUICK if quick else NUM_TICKS)
        cancels_ms = [cancel_ms(folder / f"cancel{n}") for n in range(2 if quick else NUM_ROUNDS)]
    rate, cancel = float(np.median(rates)), float(np.median(cancels_ms))
    p50, p99 = (float(np.percentile(ticks_ms, q)) for q in (50, 99))
    return PartFigures(
        title="Order entry",
        metrics={"orders_per_s": rate, "tick_to_order_p99_ms": p99, "cancel_1000_ms": cancel},
        rows=[
            {"what": f"orders judged, recorded durably in groups of {GROUP}, handed over", "orders/s": rate},
            {"what": "tick in, order recorded durably and handed over, alone", "p50 ms": p50, "p99 ms": p99},
            {
                "what": f"cancel all of {NUM_CANCELS:,} open orders, recorded and handed over",
                "p50 ms": cancel,
            },
        ],
        notes=[
            "Every figure includes the disk's sync before an order is handed over, and the transparency log after it."
        ],
    )


def opened(folder: Path, num_symbols: int) -> tuple[OrderEntry, RecordedOrders, CountingVenue]:
    """Order entry with wide limits on instruments S0, S1, …"""
    folder.mkdir()
    log, venue = RecordedOrders(folder), CountingVenue()
    entry = OrderEntry(log, {"XSIM": venue})
    put_in_force(entry, num_symbols)
    return entry, log, venue


def put_in_force(entry: OrderEntry, num_symbols: int) -> None:
    """Wide limits and the instruments."""
    entry.put_in_force(
        [
            LimitsInForce(
                at_ns=1, scope="firm", price_collar=0.05, window_collar=0.1, max_book_distance=0.02,
                max_order_value=Decimal(10**7), max_order_quantity=10**6, max_messages_per_s=90_000,
                max_open_value=Decimal(10**12), max_position_value=Decimal(10**13), max_market_age_ns=SECOND,
                max_decision_age_ns=60 * SECOND, max_repeated_executions=90_000, max_identical_orders=1_000,
            ),
            *(InstrumentTerms(at_ns=1, instrument=f"S{n}", tick=Decimal("0.01")) for n in range(num_symbols)),
        ]
    )  # fmt: skip


def quote(symbol: int, at_ns: int) -> MarketSnapshot:
    return MarketSnapshot(
        at_ns=at_ns, instrument=f"S{symbol}", venue="XSIM", bid=Decimal("99.99"), ask=Decimal("100.01")
    )


def order(number: int, symbol: int, at_ns: int) -> tuple[DecisionNoted, OrderIntent]:
    receipt = Receipt(number, "ab" * 32)
    return (
        DecisionNoted(at_ns=at_ns, receipt=receipt, instrument=f"S{symbol}", is_released=True),
        OrderIntent(
            at_ns=at_ns, order_id=f"o{number}", instrument=f"S{symbol}", venue="XSIM", side=OrderSide.BUY, lots=10,
            price_ticks=9_000 + 600 + number % 400, receipt=receipt, algo="trend", desk="equities",
        ),
    )  # fmt: skip


def order_rate(folder: Path, num: int) -> float:
    """Orders a second, of moments at which each of `GROUP` instruments sends one."""
    entry, log, venue = opened(folder, GROUP)
    now = SECOND
    began = time.perf_counter()
    for first in range(0, num, GROUP):
        now += SECOND // 100
        notes: list[OrderEvent] = []
        intents: list[OrderIntent] = []
        for symbol in range(GROUP):
            entry.observe(quote(symbol, now))
            note, intent = order(first + symbol, symbol, now)
            notes.append(note)
            intents.append(intent)
        entry.put_in_force(notes)
        refused = [one for one in entry.submit(intents) if one.objections]
        assert not refused, refused[0]
        entry.receive([OrderAcknowledged(at_ns=now, order_id=one.order_id) for one in intents])
    rate = venue.num / (time.perf_counter() - began)
    log.close()
    return rate


def tick_to_order_ms(folder: Path, num: int) -> Sequence[float]:
    """Milliseconds from a quote to the order that follows from it, recorded and handed over."""
    entry, log, venue = opened(folder, 1)
    times: list[float] = []
    now = SECOND
    gc.collect()
    gc.disable()
    try:
        for number in range(num):
            now += SECOND
            note, intent = order(number, 0, now)
            entry.put_in_force([note])
            began = time.perf_counter_ns()
            entry.observe(quote(0, now))
            (verdict,) = entry.submit([intent])
            times.append((time.perf_counter_ns() - began) / 1e6)
            assert not verdict.objections, verdict
    finally:
        gc.enable()
        log.close()
    assert venue.num == num
    return times


def cancel_ms(folder: Path) -> float:
    """Milliseconds to ask for the cancel of every open order."""
    entry, log, venue = opened(folder, 1)
    now = SECOND
    entry.observe(quote(0, now))
    orders = [order(number, 0, now) for number in range(NUM_CANCELS)]
    entry.put_in_force([note for note, _ in orders])
    refused = [one for one in entry.submit([intent for _, intent in orders]) if one.objections]
    assert not refused, refused[0]
    before = venue.num
    began = time.perf_counter()
    entry.cancel_all(MassCancelRequest(at_ns=now, by="bench", why="bench"))
    took = (time.perf_counter() - began) * 1e3
    assert venue.num - before == NUM_CANCELS
    log.close()
    return took
