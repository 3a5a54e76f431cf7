"""Order events and market data through FIX and back, in both versions: what is written passes the dictionary."""

from decimal import Decimal

import msgspec
import pytest

from htfi.domain.errors import InvalidInput
from htfi.domain.order_states import OrderState, OrderStatus
from htfi.domain.orders import (
    CancelRejected,
    CancelRequest,
    FillBusted,
    InstrumentTerms,
    Liquidity,
    MarketSnapshot,
    MassCancelRequest,
    NewOrder,
    OrderAcknowledged,
    OrderCanceled,
    OrderExpired,
    OrderFilled,
    OrderRejected,
    OrderReplaced,
    OrderSide,
    OrderType,
    ReplaceRequest,
    SessionPhase,
    TimeInForce,
)
from htfi.execution.fix.checking import check_message
from htfi.execution.fix.dictionary import load_dictionary
from htfi.execution.fix.execution_reports import Report, business_reject, execution_report, read_report
from htfi.execution.fix.market_messages import (
    definition_message,
    market_data_reject,
    market_data_request,
    read_definition,
    read_market_data_request,
    read_session_status,
    read_snapshot,
    read_trade_report,
    session_status_message,
    snapshot_message,
    trade_report_message,
)
from htfi.execution.fix.messages import FixMessage, decode, encode
from htfi.execution.fix.order_codes import Composed, OrderContext, Unreadable
from htfi.execution.fix.order_requests import Request, order_request, read_request

NOW = 1_700_000_000_123_000_000
VERSIONS = ("FIX44", "FIX50SP2")
ORDER = NewOrder(
    at_ns=NOW, order_id="O1", cl_ord_id="O1", instrument="IBM", venue="XNYS", side=OrderSide.SELL_SHORT, quantity=300,
    order_type=OrderType.STOP_LIMIT, price=Decimal("101.25"), stop_price=Decimal("101.50"),
    time_in_force=TimeInForce.GOOD_TILL_CANCEL, display_quantity=100, trader="ann", client="acme", account="A7",
)  # fmt: skip
CONTEXT = OrderContext(
    ORDER, "O1", OrderState(OrderStatus.PARTIALLY_FILLED, 300, 100), ORDER.price, Decimal("10125.00")
)
IDS = {"O1": "O1", "O1/2": "O1"}


def sent(composed: Composed, version: str) -> FixMessage:
    """The message as it arrives, checked."""
    kind, body = composed
    dictionary = load_dictionary(version)
    header = [(34, "2"), (49, "A"), (52, "20231114-22:13:21.000"), (56, "B")]
    message = decode(encode("FIX.4.4", kind, header, body), dictionary)
    assert isinstance(message, FixMessage)
    assert check_message(message, dictionary, allow_user_fields=False) is None
    return message


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "request_",
    [
        ORDER,
        msgspec.structs.replace(ORDER, order_type=OrderType.MARKET, price=None, stop_price=None, display_quantity=None),
        msgspec.structs.replace(ORDER, side=OrderSide.BUY, order_type=OrderType.LIMIT, stop_price=None, client=""),
        ReplaceRequest(at_ns=NOW, order_id="O1", cl_ord_id="O1/2", quantity=200, price=Decimal("100.5")),
        CancelRequest(at_ns=NOW, order_id="O1", cl_ord_id="O1/2", venue_order_id="V9"),
        MassCancelRequest(at_ns=NOW, why="desk closes"),
        MassCancelRequest(at_ns=NOW, instrument="IBM"),
    ],
)  # fmt: skip
def test_request_arrives_as_it_was_made(version: str, request_: Request) -> None:
    dictionary = load_dictionary(version)
    cl_ord_id = getattr(request_, "cl_ord_id", "M1")
    message = sent(order_request(request_, cl_ord_id, dictionary, CONTEXT), version)
    assert read_request(message, dictionary, IDS) == request_


def test_algorithm_and_desk_arrive_where_the_version_has_them() -> None:
    order = msgspec.structs.replace(ORDER, algo="twap-1", desk="equities")
    read = {
        v: read_request(sent(order_request(order, "O1", load_dictionary(v)), v), load_dictionary(v), {})
        for v in VERSIONS
    }
    assert read == {"FIX44": ORDER, "FIX50SP2": order}


def test_mass_cancel_of_a_desk_needs_the_later_version() -> None:
    request = MassCancelRequest(at_ns=NOW, desk="equities", algo="twap-1")
    later = load_dictionary("FIX50SP2")
    assert read_request(sent(order_request(request, "M1", later), "FIX50SP2"), later, {}) == request
    with pytest.raises(InvalidInput, match=r"FIX\.4\.4 cannot cancel all orders of one desk, algo"):
        order_request(request, "M1", load_dictionary("FIX44"))
    with pytest.raises(InvalidInput, match="names no order"):
        order_request(MassCancelRequest(at_ns=NOW, order="d7"), "M1", later)


def test_order_that_fix_cannot_say_is_refused() -> None:
    order = msgspec.structs.replace(ORDER, time_in_force=TimeInForce.GOOD_TILL_DATE)
    with pytest.raises(InvalidInput, match="good_till_date has no date"):
        order_request(order, "O1", load_dictionary("FIX44"))
    with pytest.raises(InvalidInput, match="order O7: it is not known"):
        order_request(CancelRequest(at_ns=NOW, order_id="O7"), "O7/2", load_dictionary("FIX44"))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({38: "1.5"}, "field 38 is no positive whole number of lots"),
        ({38: "-3"}, "field 38 is no positive whole number of lots"),
        ({38: None}, "field 38 is no positive whole number of lots"),
        ({44: None}, "a limit order without Price"),
        ({99: None}, "a stop order without StopPx"),
        ({55: None}, "field 55 is missing"),
        ({54: "3"}, "field 54 is 3, which we do not trade"),
        ({59: "6"}, "field 59 is 6, which we do not trade"),
    ],
)
def test_order_that_lacks_what_it_needs_is_unreadable(changes: dict[int, str | None], why: str) -> None:
    dictionary = load_dictionary("FIX44")
    kind, body = order_request(ORDER, "O1", dictionary)
    changed = [(tag, changes.get(tag, value)) for tag, value in body]
    fields = [(tag, value) for tag, value in changed if value is not None]
    found = read_request(sent((kind, fields), "FIX44"), dictionary, {})
    assert isinstance(found, Unreadable)
    assert found.why == why


def test_cancel_of_an_unknown_order_is_unreadable() -> None:
    dictionary = load_dictionary("FIX44")
    request = CancelRequest(at_ns=NOW, order_id="O1", cl_ord_id="O1/2")
    assert read_request(
        sent(order_request(request, "O1/2", dictionary, CONTEXT), "FIX44"), dictionary, {}
    ) == Unreadable("unknown order", 41)


REPORTS: list[Report] = [
    OrderAcknowledged(at_ns=NOW, order_id="O1", cl_ord_id="O1", venue_order_id="V9"),
    OrderRejected(at_ns=NOW, order_id="O1", cl_ord_id="O1", venue_order_id="V9", reason="price band"),
    OrderReplaced(
        at_ns=NOW, order_id="O1", cl_ord_id="O1/2", venue_order_id="V9", quantity=300, price=Decimal("101.25")
    ),
    OrderCanceled(at_ns=NOW, order_id="O1", cl_ord_id="O1/2", venue_order_id="V9", reason="asked for"),
    CancelRejected(at_ns=NOW, order_id="O1", cl_ord_id="O1/2", venue_order_id="V9", reason="too late"),
    OrderFilled(
        at_ns=NOW, order_id="O1", cl_ord_id="O1", venue_order_id="V9", exec_id="E5", quantity=100,
        price=Decimal("101.25"), liquidity=Liquidity.REMOVED,
    ),
    FillBusted(at_ns=NOW, order_id="O1", cl_ord_id="O1", venue_order_id="V9", exec_id="E4", quantity=100),
    OrderExpired(at_ns=NOW, order_id="O1", cl_ord_id="O1", venue_order_id="V9"),
]  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("event", REPORTS, ids=lambda event: type(event).__name__)
def test_report_arrives_as_it_was_made(version: str, event: Report) -> None:
    message = sent(execution_report(event, CONTEXT, "E5", load_dictionary(version)), version)
    assert read_report(message, IDS) == (event,)


def test_report_states_what_is_left_and_the_average_price() -> None:
    message = sent(execution_report(REPORTS[5], CONTEXT, "E5", load_dictionary("FIX44")), "FIX44")
    assert [message.get(tag) for tag in (38, 14, 151, 6, 39, 150)] == [
        "300",
        "100",
        "200",
        "101.25",
        "1",
        "F",
    ]


def test_match_id_arrives_where_the_version_has_it() -> None:
    fill = msgspec.structs.replace(REPORTS[5], match_id="M3")
    read = {
        v: read_report(sent(execution_report(fill, CONTEXT, "E5", load_dictionary(v)), v), IDS)
        for v in VERSIONS
    }
    assert read == {"FIX44": (REPORTS[5],), "FIX50SP2": (fill,)}


def test_corrected_trade_is_a_bust_and_a_fill() -> None:
    kind, body = execution_report(REPORTS[5], CONTEXT, "E6", load_dictionary("FIX44"))
    corrected = [(tag, "G" if tag == 150 else value) for tag, value in body]
    corrected.insert(3, (19, "E5"))
    events = read_report(sent((kind, corrected), "FIX44"), IDS)
    assert isinstance(events, tuple)
    assert [type(event) for event in events] == [FillBusted, OrderFilled]
    assert [event.exec_id for event in events if isinstance(event, FillBusted | OrderFilled)] == ["E5", "E6"]


@pytest.mark.parametrize("exec_type", ["6", "A", "E", "I", "7", "9", "B"])
def test_report_that_changes_nothing_gives_no_event(exec_type: str) -> None:
    kind, body = execution_report(REPORTS[0], CONTEXT, "E5", load_dictionary("FIX44"))
    changed = [(tag, exec_type if tag == 150 else value) for tag, value in body]
    assert read_report(sent((kind, changed), "FIX44"), IDS) == ()


def test_execution_of_an_unknown_order_says_so() -> None:
    message = sent(execution_report(REPORTS[5], CONTEXT, "E5", load_dictionary("FIX44")), "FIX44")
    assert read_report(message, {}) == Unreadable("an execution of an unknown order, ClOrdID O1", 11)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("phase", SessionPhase)
@pytest.mark.parametrize("bid", [None, Decimal("9.5")])
def test_a_snapshot_arrives_with_its_phase_also_where_it_has_no_price(
    version: str, phase: SessionPhase, bid: Decimal | None
) -> None:
    snapshot = MarketSnapshot(
        at_ns=NOW + 7, instrument="IBM", venue="XSIM", bid=bid, bid_quantity=3 if bid else 0, phase=phase
    )
    message = sent(snapshot_message(snapshot, "", load_dictionary(version)), version)
    assert read_snapshot(message, load_dictionary(version)) == snapshot


@pytest.mark.parametrize("version", VERSIONS)
def test_unsupported_message_is_answered_by_a_business_reject(version: str) -> None:
    order = sent(order_request(ORDER, "O1", load_dictionary(version)), version)
    reject = sent(business_reject(order, 3, "Unsupported Message Type"), version)
    assert [reject.get(tag) for tag in (45, 372, 380)] == ["2", "D", "3"]


BOOK = MarketSnapshot(
    at_ns=NOW, instrument="IBM", venue="XNYS", bid=Decimal("101.2"), bid_quantity=5, ask=Decimal("101.3"),
    ask_quantity=7, last=Decimal("101.25"), last_quantity=2,
)  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
def test_market_data_arrives_as_it_was(version: str) -> None:
    dictionary = load_dictionary(version)
    assert read_market_data_request(
        sent(market_data_request("R1", ["IBM", "MSFT"]), version), dictionary
    ) == ("R1", ("IBM", "MSFT"))
    assert sent(market_data_reject("R1", "unknown symbol"), version).get(58) == "unknown symbol"
    assert read_snapshot(sent(snapshot_message(BOOK, "R1", dictionary), version), dictionary) == BOOK


@pytest.mark.parametrize("version", VERSIONS)
def test_definition_arrives_as_it_was(version: str) -> None:
    terms = InstrumentTerms(
        at_ns=1_700_000_001_000_000_000, instrument="ES", venue="XCME", currency="USD", lot_size=1,
        tick=Decimal("0.25") if version == "FIX50SP2" else None, multiplier=Decimal(50),
    )  # fmt: skip
    dictionary = load_dictionary(version)
    assert read_definition(sent(definition_message(terms, "1", "2", dictionary), version)) == terms


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("phase", SessionPhase)
def test_session_phase_arrives_as_it_was(version: str, phase: SessionPhase) -> None:
    assert read_session_status(sent(session_status_message(phase, "1"), version)) is phase


@pytest.mark.parametrize("version", VERSIONS)
def test_drop_copy_of_a_fill_arrives(version: str) -> None:
    dictionary = load_dictionary(version)
    fill = msgspec.structs.replace(REPORTS[5], liquidity=None, match_id="M3")
    message = sent(trade_report_message(fill, CONTEXT, "T1", dictionary), version)
    assert read_trade_report(message, dictionary, IDS) == fill
    assert read_trade_report(message, dictionary, {}) == Unreadable(
        "a trade of an order that is not known", 552
    )
