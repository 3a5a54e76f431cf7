"""What a feed displays, as an order log states it: the same for a market that is watched and one that is simulated."""

from decimal import Decimal

from htfi.domain.events import Bar, FeedItem, Quote, Trade
from htfi.domain.orders import InstrumentTerms, MarketSnapshot
from htfi.execution.instruments import instrument_of
from htfi.execution.market_view import MarketView
from htfi.simulation.venue.config import VenueConfig
from htfi.simulation.venue.simulated import SimulatedVenue

MS = 10**6


def quote(
    at: int, bid: float | None, ask: float | None, venue: str = "", bid_size: float = 5, ask_size: float = 7
) -> Quote:
    sizes = (bid_size if bid else 0 if bid == 0 else None, ask_size if ask else 0 if ask == 0 else None)
    return Quote(at * MS, at * MS, "t", at, "ACME", bid, sizes[0], ask, sizes[1], venue)


def trade(at: int, price: float) -> Trade:
    return Trade(at * MS, at * MS, "t", at, "ACME", price, 3)


def watched(items: list[FeedItem], tick: str = "0.01") -> list[MarketSnapshot]:
    view = MarketView("XSIM")
    view.list_instrument(instrument_of(InstrumentTerms(at_ns=1, instrument="ACME", tick=Decimal(tick))))
    return [one for item in items if (one := view.observe(item)) is not None]


def simulated(items: list[FeedItem]) -> list[MarketSnapshot]:
    venue = SimulatedVenue("XSIM", VenueConfig())
    venue.list_instrument(instrument_of(InstrumentTerms(at_ns=1, instrument="ACME", tick=Decimal("0.01"))))
    found: list[MarketSnapshot] = []
    for item in items:
        venue.observe(item)
        while (report := venue.next(item.available_at_ns)) is not None:
            assert isinstance(report, MarketSnapshot)
            found.append(report)
    return found


def sides(found: list[MarketSnapshot]) -> list[tuple[str | None, str | None]]:
    return [
        (None if one.bid is None else str(one.bid), None if one.ask is None else str(one.ask))
        for one in found
    ]


ITEMS: list[FeedItem] = [
    trade(1, 10.0),
    quote(2, 9.99, None),
    quote(3, 9.99, 10.01),
    quote(4, 9.98, 0),
    trade(5, 9.98),
    quote(6, 0, 10.0),
    quote(7, 9.99, 10.0, "Q"),
    quote(8, 9.95, None, "N"),
    quote(9, 9.99, 9.99, "Q"),
]


def test_an_empty_side_is_at_zero_once_something_was_displayed_there_and_not_stated_before() -> None:
    assert sides(watched(ITEMS[:6])) == [
        (None, None), ("9.99", None), ("9.99", "10.01"), ("9.98", "0.00"), ("9.98", "0.00"), ("0.00", "10.00"),
    ]  # fmt: skip


def test_a_market_that_is_watched_and_one_that_is_simulated_state_the_same() -> None:
    assert len(ITEMS) == 9
    assert watched(ITEMS) == simulated(ITEMS)


def test_a_price_that_is_stated_again_is_on_the_grid_of_a_new_tick() -> None:
    view = MarketView("XSIM")
    bids: list[Decimal | None] = []
    for tick in ("0.01", "0.05"):
        view.list_instrument(instrument_of(InstrumentTerms(at_ns=1, instrument="ACME", tick=Decimal(tick))))
        snapshot = view.observe(quote(1, 9.99, 10.01))
        assert snapshot is not None
        bids.append(snapshot.bid)
    assert bids == [Decimal("9.99"), Decimal("9.95")]


def test_a_bar_and_what_is_not_listed() -> None:
    bar = Bar(60 * MS, 60 * MS, "t", 1, "ACME", "1m", 0, 60 * MS, 10.0, 10.5, 9.5, 10.25, 40)
    other = quote(1, 1.0, 2.0)
    (snapshot,) = watched([bar])
    assert (snapshot.bid, snapshot.last, snapshot.last_quantity) == (None, Decimal("10.25"), 40)
    assert MarketView("XSIM").observe(other) is None
