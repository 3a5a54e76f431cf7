"""Our orders at a venue behind FIX: what its messages become, whatever it sends twice, late, or about no order."""

from decimal import Decimal

import pytest
from msgspec import structs

from htfi.domain.events import Bar, Quote, Trade
from htfi.domain.orders import (
    AlertRaised,
    CancelRejected,
    CancelRequest,
    FillBusted,
    NewOrder,
    OrderAcknowledged,
    OrderCanceled,
    OrderEvent,
    OrderFilled,
    OrderRejected,
    OrderReplaced,
    OrderSide,
    RejectedBy,
    ReplaceRequest,
)
from htfi.execution.accounting import Accounts
from htfi.execution.fix.checking import check_message
from htfi.execution.fix.dictionary import load_dictionary
from htfi.execution.fix.messages import FixMessage, decode, encode
from htfi.execution.fix.order_codes import Composed, Unreadable
from htfi.execution.fix.price_messages import Price, price_message, read_price
from htfi.execution.fix.venue_orders import NOT_SENT, VenueOrders

NOW = 1_700_000_000_123_456_789
FIX44 = load_dictionary("FIX44")
ORDER = NewOrder(
    at_ns=NOW, order_id="d7", instrument="IBM", venue="XNYS", side=OrderSide.BUY, quantity=100, price=Decimal("101.25")
)  # fmt: skip
VERSIONS = ("FIX44", "FIX50SP2")
REPORT = {37: "V1", 11: "ab-d7", 17: "E1", 150: "0", 39: "0", 55: "IBM", 54: "1", 151: "100", 14: "0", 6: "0",
          60: "20231114-22:13:20.500"}  # fmt: skip
FILL = REPORT | {17: "E2", 150: "F", 39: "2", 32: "100", 31: "101.20"}


def arrived(composed: Composed, version: str = "FIX44") -> FixMessage:
    """A message as it comes, checked."""
    dictionary = load_dictionary(version)
    header = [(34, "9"), (49, "VENUE"), (52, "20231114-22:13:21.000"), (56, "HTFI")]
    message = decode(encode("FIX.4.4", composed[0], header, composed[1]), dictionary)
    assert isinstance(message, FixMessage)
    assert check_message(message, dictionary, allow_user_fields=False) is None
    return message


def report(fields: dict[int, str], kind: str = "8") -> FixMessage:
    return arrived((kind, list(fields.items())))


class Desk:
    """One order that was sent as message 5, and what the venue's messages about it become."""

    def __init__(self) -> None:
        self.orders = VenueOrders(FIX44, "ab-")
        self.events: list[OrderEvent] = [ORDER]
        arrived(self.orders.compose(ORDER))
        self.orders.note_number(5, "ab-d7")

    def take(self, *messages: FixMessage) -> list[OrderEvent]:
        found = [event for message in messages for event in self.orders.read(message)]
        self.events += found
        return found

    def request(self, request: CancelRequest | ReplaceRequest) -> FixMessage:
        self.events.append(request)
        return arrived(self.orders.compose(request))

    def position(self) -> tuple[int, list[str]]:
        accounts = Accounts().take_all(self.events)
        lots = sum(one.lots for one in accounts.positions.values())
        assert accounts.orders["d7"].state.filled == lots
        return lots, accounts.problems


CANCEL = CancelRequest(at_ns=NOW, order_id="d7", cl_ord_id="d7-x1")
REFUSED = {37: "NONE", 11: "ab-d7-x1", 41: "ab-d7", 39: "8", 434: "1", 102: "1"}


def test_ids_go_out_behind_the_runs_prefix_and_come_back_without() -> None:
    desk = Desk()
    acknowledged, filled = desk.take(report(REPORT), report(FILL))
    assert isinstance(acknowledged, OrderAcknowledged)
    assert (acknowledged.order_id, acknowledged.cl_ord_id) == ("d7", "")
    assert isinstance(filled, OrderFilled)
    assert not desk.orders.is_unanswered("ab-d7")
    assert desk.position() == (100, [])


def test_an_execution_that_comes_again_counts_once_in_whatever_message() -> None:
    desk = Desk()
    side = [(552, "1"), (54, "1"), (37, "V1"), (11, "ab-d7")]
    trade = arrived(("AE", [(571, "T1"), (570, "N"), (17, "E2"), (55, "IBM"), (32, "100"), (31, "101.20"),
                            (75, "20231114"), (60, "20231114-22:13:20.500"), *side]))  # fmt: skip
    found = desk.take(report(REPORT), report(REPORT), report(FILL), report(FILL), trade)
    assert [type(one) for one in found] == [OrderAcknowledged, OrderFilled]
    assert desk.position() == (100, [])


def test_a_trade_report_alone_is_the_fill() -> None:
    desk = Desk()
    side = [(552, "1"), (54, "1"), (37, "V1"), (11, "ab-d7")]
    body = [(571, "T1"), (570, "N"), (17, "E2"), (55, "IBM"), (32, "40"), (31, "101.20"), (75, "20231114")]
    desk.take(report(REPORT), arrived(("AE", [*body, (60, "20231114-22:13:20.500"), *side])))
    assert desk.position() == (40, [])


def test_a_busted_and_a_corrected_fill_leave_the_position_that_the_venue_has() -> None:
    desk = Desk()
    busted = FILL | {17: "E3", 150: "H", 19: "E2", 39: "0", 32: "0"}
    desk.take(report(REPORT), report(FILL), report(busted), report(busted))
    assert desk.position() == (0, [])
    desk = Desk()
    corrected = FILL | {17: "E3", 150: "G", 19: "E2", 31: "101.10", 32: "90"}
    found = desk.take(report(REPORT), report(FILL), report(corrected), report(corrected))
    assert [type(one) for one in found[2:]] == [FillBusted, OrderFilled]
    assert desk.position() == (90, [])


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        (FILL | {11: "someone"}, "unknown order, ClOrdID someone (buy IBM, 100 at 101.20, ExecID E2"),
        (FILL | {11: "ab-d8", 54: "2"}, "unknown order, ClOrdID ab-d8 (sell IBM, 100 at 101.20"),
        (FILL | {32: "1.5"}, "field 32 is no positive whole number of lots"),
    ],
)
def test_an_execution_of_no_order_of_ours_is_an_alert_that_says_what_it_was(
    fields: dict[int, str], what: str
) -> None:
    desk = Desk()
    (alert,) = desk.take(report(fields), report(fields))
    assert isinstance(alert, AlertRaised)
    assert what in alert.what


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("3", {45: "5", 58: "Required tag missing", 372: "D", 373: "1"}),
        ("j", {45: "5", 58: "Required tag missing", 372: "D", 380: "5"}),
        ("j", {45: "99", 58: "Required tag missing", 372: "D", 379: "ab-d7", 380: "5"}),
    ],
)
def test_a_message_that_the_venue_cannot_read_is_a_rejected_order(kind: str, body: dict[int, str]) -> None:
    (rejected,) = Desk().take(report(body, kind))
    assert isinstance(rejected, OrderRejected)
    assert (rejected.order_id, rejected.by) == ("d7", RejectedBy.VENUE)
    assert "Required tag missing" in rejected.reason


def test_a_reject_of_nothing_that_is_open_is_an_alert() -> None:
    desk = Desk()
    (_, alert) = desk.take(report(REPORT), report({45: "5", 58: "late", 373: "99"}, "3"))
    assert isinstance(alert, AlertRaised)
    assert "is not an open request: late" in alert.what


def test_an_order_that_the_venue_does_not_know_when_it_is_cancelled_was_never_there() -> None:
    desk = Desk()
    desk.request(CANCEL)
    found = desk.take(report(REFUSED, "9"), report(REFUSED, "9"))
    assert [type(one) for one in found] == [CancelRejected, OrderRejected]
    assert desk.position() == (0, [])
    desk = Desk()
    desk.take(report(REPORT))
    desk.request(CANCEL)
    (refused,) = desk.take(
        report(REFUSED | {39: "2", 102: "0", 58: "too late"}, "9")
    )  # the order is acknowledged
    assert isinstance(refused, CancelRejected)
    assert refused.cl_ord_id == "d7-x1"


def test_requests_name_the_request_that_the_venue_accepted_last() -> None:
    desk = Desk()
    desk.take(report(REPORT))
    message = desk.request(ReplaceRequest(at_ns=NOW, order_id="d7", cl_ord_id="d7-r1", quantity=80))
    assert (message.get(11), message.get(41)) == ("ab-d7-r1", "ab-d7")
    replaced = REPORT | {11: "ab-d7-r1", 41: "ab-d7", 17: "E4", 150: "5", 38: "80", 44: "101.30"}
    (event,) = desk.take(report(replaced))
    assert isinstance(event, OrderReplaced)
    message = desk.request(CANCEL)
    assert (message.get(11), message.get(41), message.get(38)) == ("ab-d7-x1", "ab-d7-r1", "80")
    canceled = REPORT | {11: "ab-d7-x1", 41: "ab-d7-r1", 17: "E5", 150: "4", 39: "4"}
    (event,) = desk.take(report(canceled))
    assert isinstance(event, OrderCanceled)
    assert not any(map(desk.orders.is_unanswered, ("ab-d7", "ab-d7-r1", "ab-d7-x1")))


def test_an_order_that_came_back_unsent_is_refused_once() -> None:
    desk = Desk()
    own = arrived(VenueOrders(FIX44, "ab-").compose(ORDER))
    (refused,) = desk.take(own, own)
    assert isinstance(refused, OrderRejected)
    assert refused.by is RejectedBy.LINK
    assert refused.reason.startswith(NOT_SENT)


PRICES = [
    Quote(NOW, NOW, "fix", 1, "IBM", 101.1, 300.0, 101.30000000000001, 0.5, "N"),
    Quote(NOW, NOW, "fix", 1, "IBM", None, None, 101.3, None, ""),
    Trade(NOW + 1, NOW + 1, "fix", 1, "IBM", 0.00012345, 1e9, "T"),
    Bar(NOW, NOW, "fix", 1, "IBM", "fix", NOW - 60_000_000_000, NOW - 1, 1.0, 3.0, 0.5, 2.0, 1e12),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("price", PRICES, ids=lambda price: type(price).__name__)
def test_a_price_arrives_at_a_simulated_venue_as_the_same_floats(version: str, price: Price) -> None:
    composed = price_message(price, load_dictionary(version))
    assert composed is not None
    assert read_price(arrived(composed, version), load_dictionary(version)) == price


def test_a_quote_of_no_side_is_not_sent_and_a_snapshot_of_nothing_is_refused() -> None:
    assert price_message(structs.replace(PRICES[1], ask=None), FIX44) is None
    body = [(55, "IBM"), (268, "1"), (269, "3"), (270, "1"), (272, "20231114"), (273, "10:00:00")]
    assert isinstance(read_price(arrived(("W", body)), FIX44), Unreadable)
