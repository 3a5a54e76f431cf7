"""How many events a second the simulated venue takes: quotes and trades with orders of ours in the queue."""

import random
import time
from decimal import Decimal

import numpy as np

from htfi.domain.events import Quote, Trade
from htfi.domain.orders import InstrumentTerms, NewOrder, OrderFilled, OrderSide
from htfi.execution.instruments import instrument_of
from htfi.simulation.venue.config import VenueConfig
from htfi.simulation.venue.simulated import SimulatedVenue
from htfi_eval.results import PartFigures

NUM_EVENTS, NUM_QUICK = 200_000, 20_000
ORDER_EVERY = 50  # events
MS = 10**6


def figures(quick: bool) -> PartFigures:
    """venue_events_per_s."""
    num = NUM_QUICK if quick else NUM_EVENTS
    events = make_events(num)
    rates, fills = zip(*(run(events) for _ in range(1 if quick else 5)), strict=True)
    rate = float(np.median(rates))
    return PartFigures(
        title="The simulated venue",
        metrics={"venue_events_per_s": rate},
        rows=[
            {
                "what": f"quotes and trades, an own order every {ORDER_EVERY}",
                "events": num,
                "fills": fills[0],
                "events/s": rate,
            }
        ],
    )


def make_events(num: int) -> list[Quote | Trade]:
    """A random walk of quotes, a third of the events trades at the touch."""
    rng = random.Random(7)
    mid, found = 10_000, list[Quote | Trade]()
    for number in range(num):
        at = (number + 1) * MS
        if rng.random() < 0.33:
            price = (mid + rng.choice((-1, 1))) / 100
            found.append(Trade(at, at, "t", number, "ACME", price, rng.randrange(1, 300)))
            continue
        mid += rng.choice((-1, 0, 0, 1))
        found.append(
            Quote(
                at, at, "q", number, "ACME", (mid - 1) / 100, rng.randrange(1, 900), (mid + 1) / 100,
                rng.randrange(1, 900),
            )
        )  # fmt: skip
    return found


def run(events: list[Quote | Trade]) -> tuple[float, int]:
    """Events a second, and fills of our orders."""
    venue = SimulatedVenue("XSIM", VenueConfig())
    venue.list_instrument(instrument_of(InstrumentTerms(at_ns=1, instrument="ACME", tick=Decimal("0.01"))))
    num_fills, bid = 0, 100.0
    began = time.perf_counter()
    for number, event in enumerate(events):
        venue.observe(event)
        if isinstance(event, Quote) and event.bid is not None:
            bid = event.bid
        if number % ORDER_EVERY == 0:
            venue.send(
                NewOrder(
                    at_ns=event.available_at_ns, order_id=f"o{number}", instrument="ACME", venue="XSIM",
                    side=OrderSide.BUY, quantity=100, price=round(Decimal(bid), 2),
                )
            )  # fmt: skip
        while (report := venue.next(event.available_at_ns)) is not None:
            num_fills += isinstance(report, OrderFilled)
    return len(events) / (time.perf_counter() - began), num_fills
