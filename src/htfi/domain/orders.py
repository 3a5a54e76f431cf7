"""The order event stream: what was sent to venues, what they answered, and which controls were in force.

The execution path emits it; regulators' monitors read it, also from files. Names and states are those of FIX 4.4 and
5.0 SP2; tags stand beside the fields. Prices are `Decimal`, as text in JSON; quantities are whole lots; times are UTC
nanoseconds. An event is final once written: a correction is an event of its own. New fields come last, with a default.
"""

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from typing import cast

import msgspec

from htfi.domain.decision import Receipt


class OrderSide(StrEnum):
    """OrderSide (54)."""

    BUY = "buy"
    SELL = "sell"
    SELL_SHORT = "sell_short"

    @property
    def sign(self) -> int:
        return 1 if self is _BUY else -1


_BUY = OrderSide.BUY  # to find a member by its enum takes longer than a sign may


class OrderType(StrEnum):
    """OrdType (40)."""

    MARKET = "market"
    LIMIT = "limit"
    STOP = "stop"
    STOP_LIMIT = "stop_limit"


class TimeInForce(StrEnum):
    """TimeInForce (59)."""

    DAY = "day"
    GOOD_TILL_CANCEL = "good_till_cancel"
    AT_THE_OPENING = "at_the_opening"
    IMMEDIATE_OR_CANCEL = "immediate_or_cancel"
    FILL_OR_KILL = "fill_or_kill"
    GOOD_TILL_DATE = "good_till_date"
    AT_THE_CLOSE = "at_the_close"


class Liquidity(StrEnum):
    """LastLiquidityInd (851): whether a fill added liquidity, removed it, or came of an auction."""

    ADDED = "added"
    REMOVED = "removed"
    AUCTION = "auction"


class SessionPhase(StrEnum):
    """TradingSessionSubID (625)."""

    PRE_OPEN = "pre_open"
    OPENING_AUCTION = "opening_auction"
    CONTINUOUS = "continuous"
    CLOSING_AUCTION = "closing_auction"
    CLOSED = "closed"
    HALTED = "halted"


class RejectedBy(StrEnum):
    """Who refused an order: the own execution gate, before it was sent, the own link to the venue, or the venue."""

    GATE = "gate"
    VENUE = "venue"
    LINK = "link"  # it could not be sent


class _Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True, gc=False):
    at_ns: int  # TransactTime (60)
    turn: int = 0  # of the run, in which it took this from outside: there it takes it when it is made again


class _OrderMessage(_Event, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True, gc=False):
    order_id: str  # of the order for its whole life, given by its sender: the first ClOrdID (11) of its chain
    cl_ord_id: str = ""  # ClOrdID (11) of this request; empty where it is the order's id
    venue_order_id: str = ""  # OrderID (37), given by the venue
    venue_at_ns: int = (
        0  # TransactTime (60) of a live venue's report, whose `at_ns` is when the run took it; 0: the same
    )


class NewOrder(_OrderMessage, frozen=True, kw_only=True, tag="new", omit_defaults=True):
    """NewOrderSingle (35=D). `decision` is the receipt of the decision that the order acts on."""

    instrument: str  # Symbol (55)
    venue: str  # ExDestination (100), an ISO 10383 code
    side: OrderSide
    quantity: int  # OrderQty (38), lots
    order_type: OrderType = OrderType.LIMIT
    price: Decimal | None = None  # Price (44); None at market
    stop_price: Decimal | None = None  # StopPx (99)
    time_in_force: TimeInForce = TimeInForce.DAY
    display_quantity: int | None = None  # DisplayQty (1138), lots; None: all of it
    algo: str = ""  # PartyRole (452) 3000: the algorithm that took the investment decision
    trader: str = ""  # PartyRole 12, executing trader
    desk: str = ""
    client: str = ""  # PartyRole 3, client id
    account: str = ""  # Account (1)
    decision: Receipt | None = None
    parent_id: str = ""  # of the order that this is a part of; empty: it is whole
    parent_quantity: int = 0  # of that order, lots; 0: this order's


class ReplaceRequest(_OrderMessage, frozen=True, kw_only=True, tag="replace", omit_defaults=True):
    """OrderCancelReplaceRequest (35=G): another quantity, in lots and with what is filled, or another price."""

    quantity: int
    price: Decimal | None = None
    decision: Receipt | None = None


class CancelRequest(_OrderMessage, frozen=True, kw_only=True, tag="cancel", omit_defaults=True):
    """OrderCancelRequest (35=F)."""

    by: str = ""  # the person, where one asked for it


class MassCancelRequest(_Event, frozen=True, kw_only=True, tag="mass_cancel", omit_defaults=True):
    """OrderMassCancelRequest (35=q): every open order of the scope. Empty fields reach everything.

    `order` reaches one order, or the children of one parent. `request` names what asked for it, so that it counts once.
    """

    by: str = ""
    why: str = ""
    instrument: str = ""
    venue: str = ""
    client: str = ""
    trader: str = ""
    desk: str = ""
    algo: str = ""
    order: str = ""
    request: str = ""


class OrderAcknowledged(_OrderMessage, frozen=True, kw_only=True, tag="ack", omit_defaults=True):
    """ExecutionReport (35=8) with ExecType (150) New."""


class OrderRejected(_OrderMessage, frozen=True, kw_only=True, tag="reject", omit_defaults=True):
    """ExecutionReport with ExecType Rejected."""

    by: RejectedBy = RejectedBy.VENUE
    reason: str = ""  # Text (58)


class OrderReplaced(_OrderMessage, frozen=True, kw_only=True, tag="replaced", omit_defaults=True):
    """ExecutionReport with ExecType Replaced: what now stands."""

    quantity: int
    price: Decimal | None = None


class OrderCanceled(_OrderMessage, frozen=True, kw_only=True, tag="canceled", omit_defaults=True):
    """ExecutionReport with ExecType Canceled, asked for or not."""

    reason: str = ""


class CancelRejected(_OrderMessage, frozen=True, kw_only=True, tag="cancel_reject", omit_defaults=True):
    """OrderCancelReject (35=9): of a cancel or of a replace; the order stands as before."""

    reason: str = ""


class OrderFilled(_OrderMessage, frozen=True, kw_only=True, tag="fill", omit_defaults=True):
    """ExecutionReport with ExecType Trade. Both sides of one trade have the same `match_id`."""

    exec_id: str  # ExecID (17)
    quantity: int  # LastQty (32), lots
    price: Decimal  # LastPx (31)
    liquidity: Liquidity | None = None
    match_id: str = ""  # TrdMatchID (880)
    fee: Decimal | None = None  # Commission (12) in the instrument's currency; negative: a rebate
    corrects: str = ""  # ExecRefID (19): the fill, busted just before, in whose place this stands


class FillBusted(_OrderMessage, frozen=True, kw_only=True, tag="bust", omit_defaults=True):
    """ExecutionReport with ExecType Trade Cancel: the fill `exec_id` (ExecRefID, 19) did not happen."""

    exec_id: str
    quantity: int


class OrderExpired(_OrderMessage, frozen=True, kw_only=True, tag="expire", omit_defaults=True):
    """ExecutionReport with ExecType Expired, or Done For Day."""


class MarketSnapshot(_Event, frozen=True, kw_only=True, tag="market", omit_defaults=True):
    """The market as the sender saw it (35=W): best prices and the newest trade of all participants, in lots.

    `last_quantity` is of a trade at this instant, 0 where there was none. A side that is not stated is as it was; at a
    price of 0 nothing is displayed.
    """

    instrument: str
    venue: str
    bid: Decimal | None = None
    bid_quantity: int = 0
    ask: Decimal | None = None
    ask_quantity: int = 0
    last: Decimal | None = None
    last_quantity: int = 0
    phase: SessionPhase | None = None


class InstrumentTerms(_Event, frozen=True, kw_only=True, tag="instrument", omit_defaults=True):
    """SecurityDefinition (35=d): what a lot is. Without it one lot is one unit of the instrument."""

    instrument: str
    venue: str = ""
    currency: str = ""
    tick: Decimal | None = None  # MinPriceIncrement (969)
    lot_size: int = 1  # RoundLot (561), units
    multiplier: Decimal = Decimal(1)  # ContractMultiplier (231)


class LimitsInForce(_Event, frozen=True, kw_only=True, tag="limits", omit_defaults=True):
    """The pre-trade limits of a scope, from now on: each one given replaces all earlier ones of the same scope.

    `scope` is firm, or client:NAME, trader:NAME, desk:NAME, algo:NAME, instrument:NAME. Amounts are in the
    instruments' currency. `price_collar` is the largest distance of an order's price from the reference, as a share of
    it; `window_collar` the same from the oldest reference within `collar_window_ns`, so that prices that run away
    block too. `max_book_distance` is how far beyond the opposite best price an order may reach, as a share of it.
    `max_market_age_ns` is the largest age of the market data that an order is judged by, `max_decision_age_ns` that of
    the decision that it acts on; for a child order that of its parent's, which an algorithm may work for
    `max_parent_ns` at most. At most `max_identical_orders` alike may be open that were sent within a second.
    `permitted` and `restricted` are instruments; '*' is any.
    """

    scope: str
    by: str = ""
    price_collar: float | None = None
    max_order_value: Decimal | None = None
    max_order_quantity: int | None = None
    max_messages_per_s: int | None = None
    max_repeated_executions: int | None = None
    repeated_window_ns: int = 1_000_000_000
    max_open_value: Decimal | None = None  # of open orders together: credit
    max_position_value: Decimal | None = None  # of open orders and what was filled in the day: market risk
    permitted: tuple[str, ...] = ()
    restricted: tuple[str, ...] = ()
    window_collar: float | None = None
    collar_window_ns: int = 300_000_000_000
    max_book_distance: float | None = None
    max_market_age_ns: int | None = None
    max_decision_age_ns: int | None = None
    max_identical_orders: int | None = None
    max_parent_ns: int | None = None


class TradingDisabled(_Event, frozen=True, kw_only=True, tag="disabled", omit_defaults=True):
    """No order of the scope may be sent from now on: a stop, a breaker, a throttle or a person."""

    scope: str
    cause: str
    by: str = ""  # empty where a rule did it


class TradingEnabled(_Event, frozen=True, kw_only=True, tag="enabled", omit_defaults=True):
    """Orders of the scope may be sent again: by a named person, with the reason."""

    scope: str
    by: str
    why: str = ""


class LimitOverride(_Event, frozen=True, kw_only=True, tag="override", omit_defaults=True):
    """One order may pass a limit that blocks it (RTS 6 art. 15(6)): who asked, who authorised, until when."""

    order_id: str
    limit: str
    asked_by: str
    authorised_by: str
    expires_at_ns: int
    why: str = ""


class AlertRaised(_Event, frozen=True, kw_only=True, tag="alert", omit_defaults=True):
    """The real-time alert on an event (RTS 6 art. 16(5)): `event_at_ns` is when that happened."""

    event_at_ns: int
    what: str
    order_id: str = ""
    venue: str = ""  # that it is about, where the run trades at several by FIX


class DecisionNoted(_Event, frozen=True, kw_only=True, tag="decision", omit_defaults=True):
    """A decision stands in the ledger: orders may act on it if it was released. An amendment names the one before."""

    receipt: Receipt
    instrument: str
    is_released: bool
    as_of_ns: int = 0  # the instant that it was made for
    amends: int | None = None  # the index of the decision whose place it takes


class PaceBound(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Until an instant, the lots of a parent order that may be open or filled at most."""

    until_ns: int
    max_lots: int


class ParentOrder(_Event, frozen=True, kw_only=True, tag="parent", omit_defaults=True):
    """An order that an algorithm works by child orders until `end_ns`; it is not sent itself.

    Children name it as their parent and keep to what it states: instrument, side, quantity, decision, limit, the pace
    until each instant, and an urgency within its bounds.
    """

    order_id: str
    instrument: str
    side: OrderSide
    quantity: int  # lots
    algo: str
    end_ns: int
    limit_price: Decimal | None = None
    decision: Receipt | None = None
    min_urgency: float = 0.0
    max_urgency: float = 0.0
    pace: tuple[PaceBound, ...] = ()  # in order of time; after the last one the whole quantity
    trader: str = ""
    desk: str = ""
    client: str = ""
    account: str = ""


class UrgencyChanged(_Event, frozen=True, kw_only=True, tag="urgency", omit_defaults=True):
    """An algorithm works a parent order sooner or later than it did, and why: a forecast, or news."""

    order_id: str  # of the parent
    urgency: float
    why: str = ""


class Reconciled(_Event, frozen=True, kw_only=True, tag="reconciled", omit_defaults=True):
    """The own orders and fills compared with those of a venue, broker or clearing member (RTS 6 art. 17(3))."""

    with_whom: str
    num_orders: int
    num_fills: int
    num_differences: int


OrderMessage = (
    NewOrder | ReplaceRequest | CancelRequest | OrderAcknowledged | OrderRejected | OrderReplaced | OrderCanceled
    | CancelRejected | OrderFilled | FillBusted | OrderExpired
)  # fmt: skip
OrderEvent = (
    OrderMessage | MassCancelRequest | MarketSnapshot | InstrumentTerms | LimitsInForce | TradingDisabled
    | TradingEnabled | LimitOverride | AlertRaised | DecisionNoted | ParentOrder | UrgencyChanged | Reconciled
)  # fmt: skip

_ENCODER = msgspec.json.Encoder()
_DECODER: msgspec.json.Decoder[OrderEvent] = msgspec.json.Decoder(cast("type[OrderEvent]", OrderEvent))


def encode_order_event(event: OrderEvent) -> bytes:
    """Canonical bytes: JSON with fields in declared order, defaults left out."""
    return _ENCODER.encode(event)


def decode_order_event(line: bytes | str) -> OrderEvent:
    """Raises: msgspec.ValidationError, msgspec.DecodeError."""
    return _DECODER.decode(line)


def order_event_of(fields: Mapping[str, object]) -> OrderEvent:
    """An event of a table's cells by name: texts for numbers are read as numbers. Raises: msgspec.ValidationError."""
    return msgspec.convert(fields, cast("type[OrderEvent]", OrderEvent), strict=False)
