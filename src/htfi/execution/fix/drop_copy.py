"""A drop copy as text: FIX messages, one a line, with SOH or | between fields. What stands of their executions."""

from collections.abc import Iterable

from htfi.domain.errors import InvalidInput
from htfi.domain.orders import OrderSide
from htfi.execution.fix.checking import entries
from htfi.execution.fix.dictionary import Dictionary, load_dictionary
from htfi.execution.fix.messages import FixMessage
from htfi.execution.fix.order_codes import SIDES, NotRead, lots, needed, number
from htfi.execution.reconciliation import Execution

_NEW, _BUST, _CORRECTION = "F", "H", "G"  # ExecType (150)
_REPLACE, _CANCEL = "2", "1"  # TradeReportTransType (487)


def read_drop_copy(lines: Iterable[str], prefix: str, where: str) -> list[Execution]:
    """The executions of ExecutionReports (8) and TradeCaptureReports (AE) as they stand after busts and corrections.

    `prefix` begins the ClOrdIDs of the run's orders. An execution that comes twice counts once; other messages do not
    count. Raises: InvalidInput, naming the line.
    """
    standing: dict[str, Execution] = {}
    busted: set[str] = set()
    for count, line in enumerate(lines, 1):
        text = line.strip("\r\n ")
        if not text:
            continue
        message = _message(text)
        try:
            if message is None:
                raise NotRead("it is no FIX message", 0)
            _take(message, prefix, standing, busted)
        except NotRead as error:
            raise InvalidInput(f"{where} line {count}: {error.reason.why}") from error
    return list(standing.values())


def _take(message: FixMessage, prefix: str, standing: dict[str, Execution], busted: set[str]) -> None:
    if message.msg_type == "8":
        kind, refers_to = message.get(150), message.get(19)
    elif message.msg_type == "AE":
        kind = {_CANCEL: _BUST, _REPLACE: _CORRECTION}.get(message.get(487), _NEW)
        refers_to = message.get(19) or message.get(17)
    else:
        return
    if kind in (_BUST, _CORRECTION):
        if not refers_to:
            raise NotRead("a bust or correction without ExecRefID (19)", 19)
        standing.pop(refers_to, None)
        busted.add(refers_to)
    if kind in (_NEW, _CORRECTION):
        execution = _execution(message, prefix)
        if kind == _CORRECTION or execution.exec_id not in busted:
            standing[execution.exec_id] = execution


def _execution(message: FixMessage, prefix: str) -> Execution:
    side = {tag: message.get(tag) for tag in (54, 11)}
    if message.msg_type == "AE":
        sides = entries(message, _dictionary(message), 552)
        own = [one for one in sides if one.get(11, "").startswith(prefix)] or sides
        if not own:
            raise NotRead("a trade report without sides", 552)
        side = {tag: own[0].get(tag, "") for tag in (54, 11)}
    sign = next((one.sign for one, code in SIDES.items() if code == side[54]), None)
    if sign is None:
        raise NotRead(f"Side (54) is {side[54] or 'missing'}", 54)
    price = number(message, 31)
    if price is None:
        raise NotRead("a trade without LastPx (31)", 31)
    order_id = side[11]
    if prefix and order_id.startswith(prefix):
        order_id = order_id.removeprefix(prefix)
    elif prefix:
        order_id = f"{order_id} of another" if order_id else ""
    return Execution(needed(message, 17), order_id, needed(message, 55), sign, lots(message, 32), price)


def _message(text: str) -> FixMessage | None:
    parts = text.rstrip("|\x01").split("\x01" if "\x01" in text else "|")
    fields: list[tuple[int, str]] = []
    for part in parts:
        name, equals, value = part.partition("=")
        if not (name.isascii() and name.isdigit() and equals):
            return None
        fields.append((int(name), value))
    by_tag = dict(fields)
    if fields[0][0] != 8 or 35 not in by_tag:
        return None
    return FixMessage(by_tag[8], by_tag[35], fields, by_tag)


def _dictionary(message: FixMessage) -> Dictionary:
    return load_dictionary("FIX44" if message.begin_string == "FIX.4.4" else "FIX50SP2")


def side_sign(text: str) -> int | None:
    """1 or -1 of a side in words or as FIX's code; None where it is neither."""
    for side in OrderSide:
        if text.lower() == side.value or text == SIDES[side]:
            return side.sign
    return None
