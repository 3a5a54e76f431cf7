"""Quotes and trades of a random walk, with orders of ours among them; the same in every run."""

import random
from collections.abc import Sequence
from decimal import Decimal

from htfi.domain.events import Quote, Trade

ORDER_EVERY = 50  # events
LOTS = 100  # of an order
MS = 10**6


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


def orders_of(events: Sequence[Quote | Trade]) -> list[tuple[int, Decimal]]:
    """When our orders are sent, and at which price: that of the newest bid."""
    found: list[tuple[int, Decimal]] = []
    bid = 100.0
    for number, event in enumerate(events):
        if isinstance(event, Quote) and event.bid is not None:
            bid = event.bid
        if number % ORDER_EVERY == 0:
            found.append((event.available_at_ns, round(Decimal(bid), 2)))
    return found
