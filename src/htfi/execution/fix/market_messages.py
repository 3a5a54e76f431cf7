"""Market data and reference data to and from FIX: requests, snapshots, increments, definitions, sessions, trades."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

import msgspec

from htfi.domain.orders import InstrumentTerms, MarketSnapshot, OrderFilled, SessionPhase
from htfi.execution.fix.checking import entries
from htfi.execution.fix.dictionary import Dictionary
from htfi.execution.fix.messages import FixMessage
from htfi.execution.fix.order_codes import SIDES, Composed, OrderContext, Unreadable
from htfi.execution.fix.timestamps import exact_timestamp, format_timestamp, parse_timestamp

_BID, _OFFER, _TRADE = "0", "1", "2"  # MDEntryType (269)
_SESSION_ID = "1"  # TradingSessionID (336): the day
_QUIESCENT = "7"  # TradingSessionSubID (625) of a snapshot while trading is halted
_DELETE = "2"  # MDUpdateAction (279)
# TradSesStatus (340) and TradingSessionSubID (625)
_PHASES = {
    SessionPhase.PRE_OPEN: ("4", "1"),
    SessionPhase.OPENING_AUCTION: ("2", "2"),
    SessionPhase.CONTINUOUS: ("2", "3"),
    SessionPhase.CLOSING_AUCTION: ("2", "4"),
    SessionPhase.CLOSED: ("3", "5"),
    SessionPhase.HALTED: ("1", ""),
}


def market_data_request(request_id: str, instruments: Iterable[str]) -> Composed:
    """MarketDataRequest (35=V): best bid, best offer and trades of the instruments, from now on, by increments."""
    symbols = list(instruments)
    body = [(262, request_id), (263, "1"), (264, "1"), (265, "1"), (267, "3")]
    body += [(269, _BID), (269, _OFFER), (269, _TRADE), (146, str(len(symbols)))]
    return "V", body + [(55, symbol) for symbol in symbols]


def read_market_data_request(message: FixMessage, dictionary: Dictionary) -> tuple[str, tuple[str, ...]]:
    """Its MDReqID (262) and the instruments."""
    return message.get(262), tuple(entry.get(55, "") for entry in entries(message, dictionary, 146))


def market_data_reject(request_id: str, text: str, reason: str = "") -> Composed:
    """MarketDataRequestReject (35=Y); `reason` is MDReqRejReason (281)."""
    return "Y", [(262, request_id), *([(281, reason)] if reason else []), (58, text)]


def snapshot_message(snapshot: MarketSnapshot, request_id: str, dictionary: Dictionary) -> Composed:
    """MarketDataSnapshotFullRefresh (35=W)."""
    time = exact_timestamp(snapshot.at_ns)
    body = [(262, request_id)] if request_id else []
    body.append((55, snapshot.instrument))
    if snapshot.venue:
        body.append((207, snapshot.venue))
    if 779 in dictionary.messages["W"].required:
        body.append((779, time))
    quoted = (
        (_BID, snapshot.bid, snapshot.bid_quantity),
        (_OFFER, snapshot.ask, snapshot.ask_quantity),
        (_TRADE, snapshot.last, snapshot.last_quantity),
    )
    known = [one for one in quoted if one[1] is not None]
    if not known and snapshot.phase is not None:  # there is no price yet
        known = [(_TRADE, None, 0)]
    body.append((268, str(len(known))))
    part = "" if snapshot.phase is None else _PHASES[snapshot.phase][1] or _QUIESCENT
    for kind, price, quantity in known:
        body.append((269, kind))
        if price is not None:
            body += [(270, f"{price:f}"), (271, str(quantity))]
        body += [(272, time[:8]), (273, time[9:])]
        if part:
            body += [(336, _SESSION_ID), (625, part)]
    return "W", body


def read_snapshot(message: FixMessage, dictionary: Dictionary) -> MarketSnapshot | Unreadable:
    """The snapshot of a W; its time is that of the newest entry, else SendingTime (52)."""
    symbol = message.get(55)
    if not symbol:
        return Unreadable("a snapshot without Symbol", 55)
    empty = MarketSnapshot(at_ns=_sent_ns(message), instrument=symbol, venue=message.get(207))
    rows = entries(message, dictionary, 268)
    times = [time for row in rows if (time := _entry_ns(row)) is not None]
    part = rows[0].get(625, "") if rows else ""
    phase = next(
        (phase for phase, codes in _PHASES.items() if part and (codes[1] or _QUIESCENT) == part), None
    )
    snapshot = msgspec.structs.replace(empty, at_ns=max(times, default=empty.at_ns), phase=phase)
    for row in rows:
        snapshot = _with_entry(snapshot, row)
    return snapshot


def definition_message(
    terms: InstrumentTerms, request_id: str, response_id: str, dictionary: Dictionary
) -> Composed:
    """SecurityDefinition (35=d). FIX 4.4 has no tick (969)."""
    body = [(320, request_id), (322, response_id), (323, "2"), (55, terms.instrument)]
    if terms.venue:
        body.append((207, terms.venue))
    known = dictionary.messages["d"].fields
    optional = (
        (231, f"{terms.multiplier:f}"),
        (969, f"{terms.tick:f}" if terms.tick is not None else ""),
        (15, terms.currency),
        (561, str(terms.lot_size)),
    )
    return "d", body + [(tag, value) for tag, value in optional if value and tag in known]


def read_definition(message: FixMessage) -> InstrumentTerms | Unreadable:
    """What a lot of an instrument is."""
    lot = Decimal(message.get(561, "1"))
    if not message.get(55):
        return Unreadable("a definition without Symbol", 55)
    if lot < 1 or lot != lot.to_integral_value():
        return Unreadable("RoundLot is no positive whole number", 561)
    return InstrumentTerms(
        at_ns=_sent_ns(message),
        instrument=message.get(55),
        venue=message.get(207),
        currency=message.get(15),
        tick=Decimal(message.get(969)) if message.get(969) else None,
        lot_size=int(lot),
        multiplier=Decimal(message.get(231, "1")),
    )


def session_status_message(phase: SessionPhase, session_id: str) -> Composed:
    """TradingSessionStatus (35=h)."""
    status, part = _PHASES[phase]
    body = [(336, session_id)] + ([(625, part)] if part else [])
    return "h", [*body, (340, status)]


def read_session_status(message: FixMessage) -> SessionPhase | Unreadable:
    status, part = message.get(340), message.get(625)
    for phase, codes in _PHASES.items():
        if codes == (status, part):
            return phase
    plain = {
        "1": SessionPhase.HALTED,
        "2": SessionPhase.CONTINUOUS,
        "3": SessionPhase.CLOSED,
        "4": SessionPhase.PRE_OPEN,
    }
    return plain.get(status) or Unreadable(f"TradSesStatus {status} is not known", 340)


def trade_report_message(
    fill: OrderFilled, context: OrderContext, report_id: str, dictionary: Dictionary
) -> Composed:
    """TradeCaptureReport (35=AE), as a drop copy has it: one side."""
    time = format_timestamp(fill.at_ns)
    body = [(571, report_id), (570, "N"), (17, fill.exec_id), (55, context.order.instrument)]
    body += [(32, str(fill.quantity)), (31, f"{fill.price:f}"), (75, time[:8]), (60, time)]
    if fill.match_id:
        body.append((880, fill.match_id))
    side = dictionary.messages["AE"].fields[552].group
    body += [(552, "1"), (54, SIDES[context.order.side])]
    ids = ((37, fill.venue_order_id or "NONE"), (11, fill.cl_ord_id or fill.order_id))
    if side is not None:
        body += [(tag, value) for tag, value in ids if tag in side.members]
    return "AE", body


def read_trade_report(
    message: FixMessage, dictionary: Dictionary, order_ids: Mapping[str, str]
) -> OrderFilled | Unreadable:
    """The fill of a drop copy, where a side of it names an order of ours by ClOrdID (11)."""
    for side in entries(message, dictionary, 552):
        order_id = order_ids.get(side.get(11, ""))
        quantity = Decimal(message.get(32, "0"))
        if order_id is not None and quantity == quantity.to_integral_value():
            return OrderFilled(
                at_ns=parse_timestamp(message.get(60)) or _sent_ns(message),
                order_id=order_id,
                cl_ord_id=side.get(11, ""),
                venue_order_id=side.get(37, ""),
                exec_id=message.get(17),
                quantity=int(quantity),
                price=Decimal(message.get(31, "0")),
                match_id=message.get(880),
            )
    return Unreadable("a trade of an order that is not known", 552)


def _with_entry(book: MarketSnapshot, row: Mapping[int, str]) -> MarketSnapshot:
    price = None if row.get(279) == _DELETE or 270 not in row else Decimal(row[270])
    quantity = 0 if price is None else int(Decimal(row.get(271, "0")))
    match row.get(269):
        case "0":
            return msgspec.structs.replace(book, bid=price, bid_quantity=quantity)
        case "1":
            return msgspec.structs.replace(book, ask=price, ask_quantity=quantity)
        case "2":
            return msgspec.structs.replace(book, last=price, last_quantity=quantity)
        case _:  # a kind of entry that we did not ask for
            return book


def _entry_ns(row: Mapping[int, str]) -> int | None:
    return parse_timestamp(f"{row[272]}-{row[273]}") if 272 in row and 273 in row else None


def _sent_ns(message: FixMessage) -> int:
    return parse_timestamp(message.get(52)) or 0
