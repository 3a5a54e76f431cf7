"""What is shown at a price can be taken once, however often quotes repeat it."""

from htfi.domain.orders import TimeInForce
from htfi.simulation.venue.book import RestingOrder, SimulatedBook


def taken(book: SimulatedBook, bid: int, ask: int, ask_lots: int) -> int:
    return sum(match.lots for match in book.quote(bid, 500, ask, ask_lots, 2))


def test_a_size_that_is_shown_again_is_not_taken_again() -> None:
    book = SimulatedBook()
    assert taken(book, 98, 100, 30) == 0
    order = RestingOrder("a", 1, 101, 200, 1, TimeInForce.DAY)
    assert sum(match.lots for match in book.add(order)) == 30
    assert taken(book, 99, 100, 30) == 0  # only the bid is new
    assert taken(book, 99, 100, 50) == 20  # what came to it
    assert taken(book, 99, 100, 50) == 0
    assert taken(book, 99, 101, 40) == 40  # another price
    assert taken(book, 99, 101, 10) == 0
    assert order.leaves == 110
