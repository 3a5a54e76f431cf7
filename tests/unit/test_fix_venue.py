"""The simulated venue behind FIX: its client's messages in, its own out, the same again for the same."""

from typing import Any

import pytest

from htfi.domain.events import Quote
from htfi.domain.orders import InstrumentTerms
from htfi.execution.fix.checking import check_message
from htfi.execution.fix.dictionary import load_dictionary
from htfi.execution.fix.messages import FixMessage, decode, encode
from htfi.execution.fix.order_codes import Composed
from htfi.execution.fix.price_messages import price_message
from htfi.execution.instruments import Instrument, instrument_of
from htfi.simulation.venue.config import VenueConfig
from htfi.simulation.venue.fix_venue import FixVenue

FIX44 = load_dictionary("FIX44")
T = 1_700_000_000_000_000_000
ORDER = {11: "a-d1", 55: "ACME", 54: "1", 38: "50", 40: "2", 44: "100.00", 60: "20231114-22:13:20.000"}


def message(kind: str, fields: dict[int, str] | Composed) -> FixMessage:
    body = fields[1] if isinstance(fields, tuple) else list(fields.items())
    header = [(34, "2"), (49, "HTFI"), (52, "20231114-22:13:20.000"), (56, "XSIM")]
    found = decode(encode("FIX.4.4", kind, header, body), FIX44)
    assert isinstance(found, FixMessage)
    assert check_message(found, FIX44, allow_user_fields=False) is None
    return found


def instrument(symbol: str) -> Instrument:
    return instrument_of(InstrumentTerms(at_ns=1, instrument=symbol))


class Client:
    """A client of one venue; what it is answered with."""

    def __init__(self, **settings: Any) -> None:
        self.venue = FixVenue("XSIM", VenueConfig(**settings), instrument, FIX44)

    def send(self, kind: str, fields: dict[int, str] | Composed) -> list[dict[int, str]]:
        return [read(one) for one in self.venue.handle(message(kind, fields))]

    def quote(self, at_ns: int = T, ask: float = 100.02) -> None:
        composed = price_message(Quote(at_ns, at_ns, "q", 1, "ACME", 99.98, 100.0, ask, 200.0), FIX44)
        assert composed is not None
        assert self.send("W", composed) == []

    def ask(self, at_ns: int) -> list[dict[int, str]]:
        body = [(262, f"T{at_ns}"), (263, "0"), (264, "1"), (267, "1"), (269, "0"), (146, "1"), (55, "ACME")]
        return self.send("V", ("V", body))


def read(composed: Composed) -> dict[int, str]:
    found = message(*composed[:1], composed)
    return found.by_tag | {35: found.msg_type}


def summary(messages: list[dict[int, str]]) -> list[tuple[str, str]]:
    return [(one[35], one.get(150) or one.get(262, "")) for one in messages]


def test_what_happened_by_an_instant_is_reported_and_the_answer_comes_last() -> None:
    client = Client()
    client.quote()
    assert summary(client.ask(T)) == [("W", ""), ("W", f"T{T}")]
    assert client.send("D", ORDER | {44: "100.02"}) == []
    assert summary(client.ask(T + 1)) == [("W", f"T{T + 1}")]
    acknowledged, filled, _ = client.ask(T + 10_000_000)
    assert (acknowledged[150], filled[150], filled[31], filled[32], filled[12]) == (
        "0",
        "F",
        "100.02",
        "50",
        "0.250050",
    )
    assert filled[60] == "20231114-22:13:20.002"


def test_a_client_without_a_clock_is_answered_at_once() -> None:
    client = Client()
    client.quote()
    assert summary(client.send("D", ORDER)) == [("8", "0")]
    cancel = {11: "a-x1", 41: "a-d1", 55: "ACME", 54: "1", 38: "50", 60: "20231114-22:13:21.000"}
    (canceled,) = client.send("F", cancel)
    assert (canceled[150], canceled[11], canceled[41]) == ("4", "a-x1", "a-d1")


def test_what_is_open_is_cancelled_where_the_connection_broke() -> None:
    client = Client()
    client.quote()
    client.ask(T)
    client.send("D", ORDER)
    client.ask(T + 10_000_000)
    client.send("D", ORDER | {11: "a-d2", 60: "20231114-22:13:20.010"})  # on its way when it breaks
    assert client.venue.has_open_orders
    reports = [read(one) for one in client.venue.interrupt()]
    assert [(one[11], one[150], one.get(58)) for one in reports if one[35] == "8"] == [
        ("a-d1", "4", "canceled on disconnect"), ("a-d2", "4", "canceled on disconnect")
    ]  # fmt: skip
    assert not client.venue.has_open_orders
    client.quote(T + 20_000_000, ask=99.0)
    assert [one for one in client.ask(T + 30_000_000) if one[35] == "8"] == []


def test_the_hours_of_a_venue_do_not_run_on_while_it_answers_at_once() -> None:
    client = Client(hours="09:30-16:00 America/New_York")
    client.quote()  # at a quarter past five there
    (rejected,) = client.send("D", ORDER)
    assert (rejected[150], rejected[58]) == ("8", "the venue is closed")
    assert client.ask(T)[-1][625] == "5"


def test_a_mass_cancel_reaches_what_it_names() -> None:
    client = Client()
    client.quote()
    client.send("D", ORDER)
    answer, canceled = client.send("q", {11: "a-q1", 530: "1", 55: "ACME", 60: "20231114-22:13:21.000"})
    assert (answer[35], answer[531]) == ("r", "1")
    assert (canceled[11], canceled[150]) == ("a-d1", "4")


@pytest.mark.parametrize(
    ("kind", "fields", "answer"),
    [
        ("D", ORDER | {55: "OTHER"}, {35: "8", 150: "8", 58: "OTHER is not listed"}),
        ("D", ORDER | {44: "100.001"}, {35: "8", 150: "8", 58: "its price lies between two ticks"}),
        ("D", ORDER | {38: "1.5"}, {35: "j", 380: "5"}),
        ("D", ORDER | {11: "a-d0"}, {35: "j", 380: "0", 58: "ClOrdID was used before"}),
        ("F", {11: "a-x", 41: "a-d9", 55: "ACME", 54: "1", 38: "50", 60: "20231114-22:13:20.000"},
         {35: "9", 102: "1", 39: "8"}),
        ("h", {336: "1", 340: "2"}, {35: "j", 380: "3"}),
        ("W", {55: "ACME", 268: "1", 269: "3", 270: "1", 272: "20231114", 273: "10:00:00"}, {35: "j", 380: "5"}),
    ],
)  # fmt: skip
def test_what_it_does_not_take_is_refused_by_the_message_for_that(
    kind: str, fields: dict[int, str], answer: dict[int, str]
) -> None:
    client = Client()
    client.quote()
    client.send("D", ORDER | {11: "a-d0"})
    (found,) = client.send(kind, fields)
    assert {tag: found.get(tag) for tag in answer} == answer


def test_prices_that_run_back_begin_another_run_on_books_of_its_own() -> None:
    client = Client()
    client.quote()
    client.ask(T)
    client.send("D", ORDER)
    client.ask(T + 10_000_000)
    client.quote(T - 1)
    assert not client.venue.has_open_orders
    cancel = {11: "a-x1", 41: "a-d1", 55: "ACME", 54: "1", 38: "50", 60: "20231114-22:13:20.000"}
    (refused,) = client.send("F", cancel)
    assert (refused[35], refused[102]) == ("9", "1")
