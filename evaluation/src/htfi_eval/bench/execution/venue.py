"""How many events a second the simulated venue takes, with orders of ours in the queue, beside NautilusTrader's."""

import time
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from htfi.domain.events import Quote, Trade
from htfi.domain.orders import InstrumentTerms, NewOrder, OrderFilled, OrderSide
from htfi.execution.instruments import instrument_of
from htfi.simulation.venue.config import VenueConfig
from htfi.simulation.venue.simulated import SimulatedVenue
from htfi_eval.bench.execution import nautilus
from htfi_eval.bench.execution.venue_flow import LOTS, ORDER_EVERY, make_events, orders_of
from htfi_eval.results import PartFigures

NUM_EVENTS, NUM_QUICK = 200_000, 20_000


def figures(quick: bool) -> PartFigures:
    """venue_events_per_s, and how many times NautilusTrader's rate that is."""
    num = NUM_QUICK if quick else NUM_EVENTS
    events = make_events(num)
    rates, fills = zip(*(run(events) for _ in range(1 if quick else 5)), strict=True)
    rate = float(np.median(rates))
    peer = nautilus.events_per_s(num)
    rows: list[dict[str, Any]] = [
        {
            "what": f"quotes and trades, an own order every {ORDER_EVERY}",
            "events": num,
            "fills": fills[0],
            "events/s": rate,
        }
    ]
    notes = [
        "The venue alone; NautilusTrader keeps accounts, positions and a cache of orders beside its venue."
    ]
    if peer is None:
        notes = ["No figure of NautilusTrader: it is not installed; `make test-all` installs it."]
    else:
        rows.append({"what": "the same through NautilusTrader's backtest", "events": num, "events/s": peer})
    return PartFigures(
        title="The simulated venue",
        metrics={"venue_events_per_s": rate, "venue_vs_nautilus": None if peer is None else rate / peer},
        rows=rows,
        notes=notes,
    )


def run(events: Sequence[Quote | Trade]) -> tuple[float, int]:
    """Events a second, and fills of our orders."""
    venue = SimulatedVenue("XSIM", VenueConfig())
    venue.list_instrument(instrument_of(InstrumentTerms(at_ns=1, instrument="ACME", tick=Decimal("0.01"))))
    orders = iter(orders_of(events))
    num_fills = 0
    began = time.perf_counter()
    for number, event in enumerate(events):
        venue.observe(event)
        if number % ORDER_EVERY == 0:
            at_ns, price = next(orders)
            venue.send(
                NewOrder(
                    at_ns=at_ns, order_id=f"o{number}", instrument="ACME", venue="XSIM", side=OrderSide.BUY,
                    quantity=LOTS, price=price,
                )
            )  # fmt: skip
        while (report := venue.next(event.available_at_ns)) is not None:
            num_fills += isinstance(report, OrderFilled)
    return len(events) / (time.perf_counter() - began), num_fills
