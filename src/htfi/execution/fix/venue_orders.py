"""What we know of our orders at a venue behind a FIX session: requests become messages, messages become order events.

ClOrdIDs (11) are the run's ids behind a prefix of the run's own, since a session outlives runs. An execution is taken
once, by its ExecID (17), whether it comes as report, as trade report or again. What names no request of ours becomes an
alert that says what it was.
"""

from collections.abc import Sequence

from msgspec import structs

from htfi.domain.order_states import IllegalTransition, OrderState, OrderStatus, advance
from htfi.domain.orders import (
    AlertRaised,
    CancelRejected,
    CancelRequest,
    NewOrder,
    OrderEvent,
    OrderFilled,
    OrderMessage,
    OrderRejected,
    OrderReplaced,
    RejectedBy,
    ReplaceRequest,
)
from htfi.execution.fix.dictionary import Dictionary
from htfi.execution.fix.execution_reports import read_report
from htfi.execution.fix.market_messages import read_trade_report
from htfi.execution.fix.messages import FixMessage
from htfi.execution.fix.order_codes import Composed, OrderContext, Unreadable, time_of
from htfi.execution.fix.order_requests import order_request
from htfi.execution.ports import VenueRequest

NOT_SENT = "not sent"  # begins the reason of a request that the link refuses
_UNKNOWN_ORDER = "1"  # CxlRejReason (102)
_SIDE_WORDS = {"1": "buy", "2": "sell", "5": "sell short"}


class VenueOrders:
    """Orders of one run at one venue."""

    def __init__(self, dictionary: Dictionary, prefix: str) -> None:
        self._dictionary, self._prefix = dictionary, prefix
        self._contexts: dict[str, OrderContext] = {}
        self._order_ids: dict[str, str] = {}  # by ClOrdID
        self._unanswered: dict[str, VenueRequest] = {}  # by ClOrdID
        self._numbers: dict[int, str] = {}  # ClOrdIDs by MsgSeqNum (34)
        self._exec_ids: set[str] = set()
        self._fills: dict[str, int] = {}  # lots by ExecID (17)

    def is_unanswered(self, cl_ord_id: str) -> bool:
        """Whether the venue has not answered a request yet."""
        return cl_ord_id in self._unanswered

    @property
    def has_open(self) -> bool:
        """Whether the venue may still fill something."""
        return any(context.state.is_open for context in self._contexts.values())

    def cl_ord_id(self, request: VenueRequest) -> str:
        """ClOrdID (11) of a request."""
        return self._prefix + (request.cl_ord_id or request.order_id)

    def compose(self, request: VenueRequest) -> Composed:
        """The message of a request, which is noted as sent. Raises: InvalidInput where the version cannot say it."""
        cl_ord_id = self.cl_ord_id(request)
        composed = order_request(request, cl_ord_id, self._dictionary, self._contexts.get(request.order_id))
        if isinstance(request, NewOrder):
            state = OrderState(OrderStatus.PENDING_NEW, request.quantity)
            self._contexts[request.order_id] = OrderContext(request, cl_ord_id, state, request.price)
        self._order_ids[cl_ord_id] = request.order_id
        self._unanswered[cl_ord_id] = request
        return composed

    def note_number(self, number: int, cl_ord_id: str) -> None:
        """A request was sent as the message of a number, by which a Reject names it (45)."""
        self._numbers[number] = cl_ord_id

    def refuse(self, request: VenueRequest, why: str) -> OrderEvent:
        """The event of a request that was not sent."""
        self._unanswered.pop(self.cl_ord_id(request), None)
        refusal = _refusal(request, RejectedBy.LINK, f"{NOT_SENT}: {why}")
        if request.order_id in self._contexts:  # else the version could not say it
            self._advance(refusal)
        return refusal

    def read(self, message: FixMessage) -> list[OrderEvent]:
        """The events of a checked message: of one that was seen before, or that is about no order, none.

        A new order or replace is one of ours that did not arrive, and is not sent any more.
        """
        match message.msg_type:
            case "8" | "9":
                return self._read_report(message)
            case "AE":
                fill = read_trade_report(message, self._dictionary, self._order_ids)
                return (
                    self._take([fill], message) if isinstance(fill, OrderFilled) else [_alert(message, fill)]
                )
            case "3":
                return self._refused(message, self._numbers.get(_number(message.get(45)), ""))
            case "D" | "G":
                request = self._unanswered.get(message.get(11))
                return [] if request is None else [self.refuse(request, "it did not arrive in time")]
            case "j":
                reference = message.get(379) or self._numbers.get(_number(message.get(45)), "")
                return self._refused(message, reference)
            case _:
                return []

    def _read_report(self, message: FixMessage) -> list[OrderEvent]:
        events = read_report(message, self._order_ids, self._fills)
        if isinstance(events, Unreadable):
            return [] if self._is_repeated(message) else [_alert(message, events)]
        if not events:
            return []
        request = self._unanswered.pop(message.get(11), None)
        if message.msg_type == "9" and request is None:
            return []  # it was answered before
        taken = self._take(list(events), message)
        if message.msg_type == "9" and (message.get(102) == _UNKNOWN_ORDER or message.get(39) == "8"):
            taken += self._never_arrived(taken[0])
        return taken

    def _never_arrived(self, answer: OrderEvent) -> list[OrderEvent]:
        """The venue does not know an order that it has never acknowledged: it is not there."""
        assert isinstance(answer, CancelRejected)
        context = self._contexts[answer.order_id]
        if context.state.status is not OrderStatus.PENDING_NEW:
            return []
        self._unanswered.pop(self.cl_ord_id(context.order), None)
        rejected = OrderRejected(
            at_ns=answer.at_ns,
            order_id=answer.order_id,
            by=RejectedBy.VENUE,
            reason="the venue does not know it",
        )
        self._advance(rejected)
        return [rejected]

    def _is_repeated(self, message: FixMessage) -> bool:
        exec_id = message.get(17)
        if not exec_id or exec_id in self._exec_ids:
            return bool(exec_id)
        self._exec_ids.add(exec_id)
        return False

    def _take(self, events: Sequence[OrderMessage], message: FixMessage) -> list[OrderEvent]:
        if self._is_repeated(message):
            return []
        taken: list[OrderEvent] = []
        for event in events:
            own_id = event.cl_ord_id.removeprefix(self._prefix)
            self._advance(event)
            if isinstance(event, OrderFilled):
                self._fills[event.exec_id] = event.quantity
            taken.append(structs.replace(event, cl_ord_id="" if own_id == event.order_id else own_id))
        return taken

    def _advance(self, event: OrderMessage) -> None:
        context = self._contexts[event.order_id]
        state = advance(context.state, event)
        if not isinstance(state, IllegalTransition):
            context = structs.replace(context, state=state)
        if isinstance(event, OrderReplaced):
            price = context.price if event.price is None else event.price
            context = structs.replace(context, cl_ord_id=event.cl_ord_id, price=price)
        self._contexts[event.order_id] = context

    def _refused(self, message: FixMessage, cl_ord_id: str) -> list[OrderEvent]:
        """A Reject (35=3) or BusinessMessageReject (35=j) of a request of ours."""
        request = self._unanswered.pop(cl_ord_id, None)
        if request is None:
            return [_alert(message, Unreadable("the venue refused a message that is not an open request"))]
        why = (
            f"the venue cannot read it: {message.get(58) or f'reason {message.get(373) or message.get(380)}'}"
        )
        event = structs.replace(_refusal(request, RejectedBy.VENUE, why), at_ns=time_of(message))
        self._advance(event)
        return [event]


def _refusal(request: VenueRequest, by: RejectedBy, why: str) -> OrderRejected | CancelRejected:
    match request:
        case NewOrder():
            return OrderRejected(at_ns=request.at_ns, order_id=request.order_id, by=by, reason=why)
        case CancelRequest() | ReplaceRequest():
            return CancelRejected(
                at_ns=request.at_ns, order_id=request.order_id, cl_ord_id=request.cl_ord_id, reason=why
            )


def _alert(message: FixMessage, found: Unreadable) -> AlertRaised:
    """What came and could not be taken, in words."""
    get = message.get
    what = f"FIX message {message.msg_type}: {found.why}"
    if message.msg_type in ("8", "AE"):
        side = _SIDE_WORDS.get(get(54), "side not stated")
        last = f", {get(32)} at {get(31)}" if get(31) else ""
        what += f" ({side} {get(55)}{last}, ExecID {get(17)}, ClOrdID {get(11) or 'missing'})"
    elif get(58):
        what += f": {get(58)[:200]}"
    return AlertRaised(at_ns=time_of(message), event_at_ns=time_of(message), what=what)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else 0
