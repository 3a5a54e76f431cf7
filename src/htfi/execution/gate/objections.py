"""What the gate objects to: the checks by name, which of them people may override, and an objection in words."""

from enum import StrEnum

import msgspec


class GateCheck(StrEnum):
    """What an objection is about. Those that are limits have the limit's name, by which an override names them."""

    FORM = "form"
    INSTRUMENT = "instrument"
    ORDER_ID = "order_id"
    CLOCK = "clock"
    ORDER_STATE = "order_state"
    DECISION_MISSING = "decision_missing"
    DECISION_UNKNOWN = "decision_unknown"
    DECISION_ALTERED = "decision_altered"
    DECISION_WITHHELD = "decision_withheld"
    DECISION_AMENDED = "decision_amended"
    DECISION_AGE = "decision_age"
    DECISION_SYMBOL = "decision_symbol"
    DECISION_USED = "decision_used"
    PARENT = "parent"
    DISABLED = "disabled"
    PERMISSION = "permission"
    NO_LIMITS = "no_limits"
    MARKET_MISSING = "market_missing"
    MARKET_AGE = "market_age"
    MARKET_CROSSED = "market_crossed"
    MARKET_PHASE = "market_phase"
    UNPRICED = "unpriced"
    PRICE_COLLAR = "price_collar"
    WINDOW_COLLAR = "window_collar"
    BOOK_DISTANCE = "max_book_distance"
    ORDER_VALUE = "max_order_value"
    ORDER_QUANTITY = "max_order_quantity"
    MESSAGES = "max_messages_per_s"
    OPEN_VALUE = "max_open_value"
    POSITION_VALUE = "max_position_value"
    IDENTICAL = "max_identical_orders"
    SELF_TRADE = "self_trade"


OVERRIDABLE = frozenset(
    {
        GateCheck.PRICE_COLLAR, GateCheck.WINDOW_COLLAR, GateCheck.BOOK_DISTANCE, GateCheck.ORDER_VALUE,
        GateCheck.ORDER_QUANTITY, GateCheck.MESSAGES, GateCheck.OPEN_VALUE, GateCheck.POSITION_VALUE,
        GateCheck.IDENTICAL,
    }
)  # fmt: skip


class Objection(msgspec.Struct, frozen=True, gc=False):
    """Why an intent is refused."""

    check: GateCheck
    words: str
