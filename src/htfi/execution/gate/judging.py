"""The gate: whether an order may be sent. A pure function of the gate's state and an intent; unknown means no.

`CHECKS` is the whole of it, in the order in which they are made; each states the article that asks for it. All
objections are given, not only the first. A cancel is never held back by a limit or a stop: it is judged by form alone.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

import msgspec

from htfi.domain.order_states import TERMINAL, OrderStatus
from htfi.domain.orders import OrderType, SessionPhase, TimeInForce
from htfi.domain.time import NS_PER_S
from htfi.execution.gate.limits import SHARE
from htfi.execution.gate.records import (
    MAX_CLOCK_STEP_NS,
    KnownDecision,
    KnownMarket,
    KnownParent,
    LiveOrder,
    OrderParty,
)
from htfi.execution.gate.state import GateState, Identity
from htfi.execution.instruments import NANOS, Instrument
from htfi.execution.intents import CancelIntent, Intent, OrderIntent, ReplaceIntent

MAX_LOTS = 10**12
MAX_TICKS = 10**15
MAX_ID_CHARS = 64
_OPEN_PHASES = frozenset(
    {SessionPhase.CONTINUOUS, SessionPhase.OPENING_AUCTION, SessionPhase.CLOSING_AUCTION}
)
_WITH_PRICE = frozenset({OrderType.LIMIT, OrderType.STOP_LIMIT})
_WITH_STOP = frozenset({OrderType.STOP, OrderType.STOP_LIMIT})


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


class _Asked(NamedTuple):
    """An intent with all that it is judged by."""

    order_id: str
    at_ns: int
    symbol: str
    venue: str
    sign: int
    lots: int  # of the whole order
    filled: int
    price: int | None  # nanos; None at market
    instrument: Instrument | None
    market: KnownMarket | None
    party: OrderParty
    new: OrderIntent | None
    order: LiveOrder | None  # that a replace changes


def judge(state: GateState, intent: Intent) -> tuple[Objection, ...]:
    """All objections to an intent; none where it may be sent. Reads the state and changes nothing."""
    if isinstance(intent, CancelIntent):
        return _judge_cancel(state, intent)
    asked = _asked(state, intent)
    if isinstance(asked, Objection):
        return (asked,)
    found = [one for check in CHECKS if (one := check(state, asked)) is not None]
    if found and state.overrides:
        found = [one for one in found if not _is_overridden(state, one, asked)]
    return tuple(found)


def _judge_cancel(state: GateState, intent: CancelIntent) -> tuple[Objection, ...]:
    order = state.orders.get(intent.order_id)
    if order is None:
        return (Objection(GateCheck.ORDER_STATE, f"no order {intent.order_id} is known"),)
    if not order.state.is_open:
        return (Objection(GateCheck.ORDER_STATE, f"order {intent.order_id} is {order.state.status.value}"),)
    if not _is_free(state, order, intent.cl_ord_id):
        return (Objection(GateCheck.ORDER_ID, f"the request's id {intent.cl_ord_id!r} is in use"),)
    return ()


def _asked(state: GateState, intent: OrderIntent | ReplaceIntent) -> _Asked | Objection:
    if isinstance(intent, OrderIntent):
        instrument = state.instruments.get(intent.instrument)
        price = None
        if intent.price_ticks is not None and instrument is not None:
            price = intent.price_ticks * instrument.tick_nanos
        return _Asked(
            intent.order_id,
            intent.at_ns,
            intent.instrument,
            intent.venue,
            intent.side.sign,
            intent.lots,
            0,
            price,
            instrument,
            state.markets.get((intent.instrument, intent.venue)),
            state.party(intent.client, intent.trader, intent.desk, intent.algo, intent.instrument),
            intent,
            None,
        )
    order = state.orders.get(intent.order_id)
    if order is None:
        return Objection(GateCheck.ORDER_STATE, f"no order {intent.order_id} is known")
    if order.state.status in TERMINAL or order.state.status is OrderStatus.PENDING_NEW:
        return Objection(
            GateCheck.ORDER_STATE,
            f"order {intent.order_id} is {order.state.status.value}: it cannot be replaced",
        )
    if order.pending:
        return Objection(
            GateCheck.ORDER_STATE, f"order {intent.order_id} awaits an answer to {min(order.pending)}"
        )
    if not _is_free(state, order, intent.cl_ord_id):
        return Objection(GateCheck.ORDER_ID, f"the request's id {intent.cl_ord_id!r} is in use")
    instrument = state.instruments.get(order.new.instrument)
    price = order.price if order.new.price is not None else None
    if intent.price_ticks is not None:
        if price is None or instrument is None:
            return Objection(GateCheck.FORM, "an order at market has no price to replace")
        price = intent.price_ticks * instrument.tick_nanos
    return _Asked(
        intent.order_id,
        intent.at_ns,
        order.new.instrument,
        order.new.venue,
        order.new.side.sign,
        intent.lots,
        order.state.filled,
        price,
        instrument,
        state.markets.get((order.new.instrument, order.new.venue)),
        order.party,
        None,
        order,
    )


def _is_free(state: GateState, order: LiveOrder, cl_ord_id: str) -> bool:
    return (
        0 < len(cl_ord_id) <= MAX_ID_CHARS
        and cl_ord_id not in order.pending
        and cl_ord_id not in state.orders
    )


def _is_overridden(state: GateState, objection: Objection, asked: _Asked) -> bool:
    """One order, one limit, until a time, by two people (RTS 6 art. 15(6))."""
    if objection.check not in OVERRIDABLE:
        return False
    override = state.overrides.get((asked.order_id, objection.check.value))
    if override is None or asked.at_ns > override.expires_at_ns or asked.at_ns < override.at_ns:
        return False
    return bool(override.authorised_by and override.asked_by) and override.authorised_by != override.asked_by


def _form(state: GateState, asked: _Asked) -> Objection | None:
    del state
    words = ""
    if not 0 < asked.lots <= MAX_LOTS:
        words = f"a quantity of {asked.lots} lots"
    elif asked.price is not None and not 0 < asked.price <= MAX_TICKS * NANOS:
        words = "a price that is not above 0"
    elif asked.order is not None:
        if asked.lots <= asked.filled:
            words = f"a quantity of {asked.lots} lots, of which {asked.filled} are filled"
    elif asked.new is not None:
        new = asked.new
        if (new.price_ticks is not None) != (new.order_type in _WITH_PRICE):
            words = f"an order of type {new.order_type.value} with{'out' if new.price_ticks is None else ''} a price"
        elif (new.stop_ticks is not None) != (new.order_type in _WITH_STOP):
            words = f"an order of type {new.order_type.value} with{'out' if new.stop_ticks is None else ''} a stop"
        elif new.stop_ticks is not None and not 0 < new.stop_ticks <= MAX_TICKS:
            words = "a stop price that is not above 0"
        elif new.display_lots is not None and not 0 <= new.display_lots <= new.lots:
            words = f"{new.display_lots} lots shown of {new.lots}"
        elif new.parent_lots < 0 or bool(new.parent_id) != bool(new.parent_lots):
            words = "a parent order without its quantity, or the other way round"
        elif not new.client and not new.trader and not new.desk and not new.algo:
            words = "no client, trader, desk or algorithm is named"
    return Objection(GateCheck.FORM, words) if words else None


def _instrument(state: GateState, asked: _Asked) -> Objection | None:
    del state
    if asked.instrument is None:
        return Objection(GateCheck.INSTRUMENT, f"no terms of {asked.symbol} are known")
    return None


def _order_id(state: GateState, asked: _Asked) -> Objection | None:
    if asked.new is None:
        return None
    if not 0 < len(asked.order_id) <= MAX_ID_CHARS or not asked.order_id.isprintable():
        return Objection(GateCheck.ORDER_ID, f"an order's id has 1 to {MAX_ID_CHARS} printable characters")
    if asked.order_id in state.orders:
        return Objection(GateCheck.ORDER_ID, f"the id {asked.order_id} was used before")
    return None


def _clock(state: GateState, asked: _Asked) -> Objection | None:
    if asked.at_ns < state.newest_ns - MAX_CLOCK_STEP_NS:
        behind_s = (state.newest_ns - asked.at_ns) / NS_PER_S
        return Objection(GateCheck.CLOCK, f"its time lies {behind_s:.3f} s before what the gate has seen")
    return None


def _decision(state: GateState, asked: _Asked) -> Objection | None:
    """The decision that an order acts on: in the ledger, unaltered, released, the newest, fresh, unused."""
    receipt = (
        asked.new.receipt if asked.new is not None else asked.order.new.decision if asked.order else None
    )
    if receipt is None:
        return Objection(GateCheck.DECISION_MISSING, "the order names no decision")
    decision = state.decisions.get(receipt.index)
    if decision is None:
        return Objection(GateCheck.DECISION_UNKNOWN, f"no decision {receipt.index} is known from the ledger")
    if decision.leaf_hash != receipt.leaf_hash:
        return Objection(GateCheck.DECISION_ALTERED, f"the hash of decision {receipt.index} is another")
    if not decision.is_released:
        return Objection(GateCheck.DECISION_WITHHELD, f"decision {receipt.index} was withheld")
    if decision.instrument != asked.symbol:
        return Objection(
            GateCheck.DECISION_SYMBOL,
            f"decision {receipt.index} is on {decision.instrument}, not {asked.symbol}",
        )
    if asked.new is not None and decision.is_superseded:
        return Objection(
            GateCheck.DECISION_AMENDED, f"decision {receipt.index} was amended: act on the newer one"
        )
    oldest = asked.party.tightest.max_decision_age_ns
    parent = _parent_of(state, asked)
    acted_ns = asked.at_ns if parent is None else parent.order.at_ns
    if asked.new is not None and oldest is not None and acted_ns - decision.noted_ns > oldest:
        age_s = (acted_ns - decision.noted_ns) / NS_PER_S
        return Objection(
            GateCheck.DECISION_AGE,
            f"decision {receipt.index} is {age_s:.3f} s old, {oldest / NS_PER_S:g} s are allowed",
        )
    return _use(decision, receipt.index, asked)


def _use(decision: KnownDecision, index: int, asked: _Asked) -> Objection | None:
    use = decision.use
    if asked.new is not None:
        parent_id = asked.new.parent_id or asked.new.order_id
        parent_lots = asked.new.parent_lots or asked.new.lots
        more = asked.lots
    else:
        parent_id, parent_lots = use.parent_id, use.parent_lots
        more = asked.lots - (asked.order.used_lots if asked.order is not None else 0)
    if use.parent_id and (use.parent_id != parent_id or use.parent_lots != parent_lots):
        return Objection(GateCheck.DECISION_USED, f"order {use.parent_id} acts on decision {index} already")
    if use.lots + more > parent_lots:
        return Objection(
            GateCheck.DECISION_USED,
            f"{use.lots + more} lots in all, where {parent_lots} of its parent act on decision {index}",
        )
    return None


def _parent_of(state: GateState, asked: _Asked) -> KnownParent | None:
    """The order that an algorithm works by this one; None where there is none, or none that is known."""
    parent_id = (
        asked.new.parent_id if asked.new is not None else asked.order.new.parent_id if asked.order else ""
    )
    return state.parents.get(parent_id) if parent_id else None


def _parent(state: GateState, asked: _Asked) -> Objection | None:
    """A child keeps to what its parent states: who, what, until when, at which price, and how fast."""
    parent = _parent_of(state, asked)
    if parent is None:
        return None
    order, words = parent.order, ""
    longest = asked.party.tightest.max_parent_ns
    if longest is None:
        return Objection(GateCheck.PARENT, "no limit max_parent_ns is in force for the order")
    differs = _differs(asked.new, parent) if asked.new is not None else ""
    if differs:
        words = f"its {differs} is not that of its parent {order.order_id}"
    elif order.end_ns - order.at_ns > longest:
        words = f"its parent lasts {(order.end_ns - order.at_ns) / NS_PER_S:g} s, {longest / NS_PER_S:g} s are allowed"
    elif not order.at_ns <= asked.at_ns <= order.end_ns:
        words = f"its parent {order.order_id} is not worked at that time"
    elif parent.limit is not None and (asked.price is None or asked.sign * (asked.price - parent.limit) > 0):
        words = f"its price lies beyond the limit {order.limit_price} of its parent"
    elif not parent.is_urgency_in_bounds:
        words = f"an urgency of {parent.urgency:g}, from {order.min_urgency:g} to {order.max_urgency:g} are allowed"
    else:
        decision = None if order.decision is None else state.decisions.get(order.decision.index)
        used = 0 if decision is None else decision.use.lots
        lots = used + asked.lots - (asked.order.used_lots if asked.order is not None else 0)
        most = parent.max_lots(asked.at_ns)
        if lots > most:
            words = f"{lots} lots of its parent would be open or filled, {most} are allowed by then"
    return Objection(GateCheck.PARENT, words) if words else None


def _differs(new: OrderIntent, parent: KnownParent) -> str:
    """What a child states otherwise than its parent; empty where nothing."""
    order = parent.order
    pairs = {
        "instrument": (new.instrument, order.instrument),
        "side": (new.side, order.side),
        "parent's quantity": (new.parent_lots, order.quantity),
        "algorithm": (new.algo, order.algo),
        "decision": (new.receipt, order.decision),
        "trader": (new.trader, order.trader),
        "desk": (new.desk, order.desk),
        "client": (new.client, order.client),
        "account": (new.account, order.account),
    }
    return next((name for name, (own, stated) in pairs.items() if own != stated), "")


def _disabled(state: GateState, asked: _Asked) -> Objection | None:
    del state
    for scope in asked.party.scopes:
        if scope.disabled:
            return Objection(GateCheck.DISABLED, f"{scope.name} is disabled: {scope.disabled}")
    return None


def _permission(state: GateState, asked: _Asked) -> Objection | None:
    del state
    return Objection(GateCheck.PERMISSION, asked.party.ban) if asked.party.ban else None


def _no_limits(state: GateState, asked: _Asked) -> Objection | None:
    """An order for which a collar, value, quantity, rate or exposure has no limit is not let through."""
    del state
    missing = asked.party.missing
    return (
        Objection(GateCheck.NO_LIMITS, f"no limit {missing} is in force for the order") if missing else None
    )


TOO_COARSE = ", or none that reaches its tick of"


def _market(state: GateState, asked: _Asked) -> Objection | None:
    market = asked.market
    if market is None or not market.doubled_reference:
        what = f"no price of {asked.symbol} at {asked.venue or 'its venue'} is known"
        instrument = state.instruments.get(asked.symbol)
        if market is not None and instrument is not None:
            what += f"{TOO_COARSE} {instrument.tick.normalize():f}"
        return Objection(GateCheck.MARKET_MISSING, what)
    oldest = asked.party.tightest.max_market_age_ns
    if oldest is not None and asked.at_ns - market.at_ns > oldest:
        age_s = (asked.at_ns - market.at_ns) / NS_PER_S
        return Objection(
            GateCheck.MARKET_AGE, f"the market data is {age_s:.3f} s old, {oldest / NS_PER_S:g} s are allowed"
        )
    if market.bid and market.ask and market.bid >= market.ask:
        return Objection(GateCheck.MARKET_CROSSED, "its bid is not below its ask")
    if market.phase is not None and market.phase not in _OPEN_PHASES:
        stated = asked.new if asked.new is not None else asked.order.new if asked.order else None
        is_waiting = stated is not None and stated.time_in_force in _FOR_AUCTIONS
        if not (is_waiting and market.phase is SessionPhase.PRE_OPEN):
            return Objection(GateCheck.MARKET_PHASE, f"the venue is {market.phase.value}")
    return None


_FOR_AUCTIONS = frozenset({TimeInForce.AT_THE_OPENING, TimeInForce.AT_THE_CLOSE})


def _collar(state: GateState, asked: _Asked) -> Objection | None:
    del state
    if asked.price is None:
        return Objection(GateCheck.UNPRICED, "an order at market has no price for a collar: state a limit")
    if asked.market is None or not (reference := asked.market.doubled_reference):
        return None  # said by `_market`
    collar = asked.party.tightest.price_collar
    if collar is not None and abs(2 * asked.price - reference) * SHARE > collar * reference:
        return Objection(
            GateCheck.PRICE_COLLAR,
            f"its price lies {_share_text(abs(2 * asked.price - reference), reference)} from the market, "
            f"{collar / SHARE:.3%} are allowed",
        )
    return None


def _window_collar(state: GateState, asked: _Asked) -> Objection | None:
    del state
    if asked.price is None or asked.market is None or not asked.market.references:
        return None
    for _, limits in asked.party.limited:
        collar = limits.window_collar
        if collar is None:
            continue
        since_ns = asked.at_ns - limits.collar_window_ns
        reference = next((one for at_ns, one in asked.market.references if at_ns >= since_ns), 0)
        if reference and abs(2 * asked.price - reference) * SHARE > collar * reference:
            return Objection(
                GateCheck.WINDOW_COLLAR,
                f"its price lies {_share_text(abs(2 * asked.price - reference), reference)} from that of "
                f"{limits.collar_window_ns / NS_PER_S:g} s ago, {collar / SHARE:.3%} are allowed",
            )
    return None


def _book_distance(state: GateState, asked: _Asked) -> Objection | None:
    del state
    if asked.price is None or asked.market is None:
        return None
    opposite = asked.market.ask if asked.sign > 0 else asked.market.bid
    beyond = asked.sign * (asked.price - opposite)
    limit = asked.party.tightest.max_book_distance
    if limit is not None and opposite and beyond * SHARE > limit * opposite:
        return Objection(
            GateCheck.BOOK_DISTANCE,
            f"its price reaches {_share_text(beyond, opposite)} beyond the opposite best price, "
            f"{limit / SHARE:.3%} are allowed",
        )
    return None


def _order_size(state: GateState, asked: _Asked) -> Objection | None:
    del state
    limit = asked.party.tightest.max_order_lots
    if limit is not None and asked.lots > limit:
        return Objection(GateCheck.ORDER_QUANTITY, f"{asked.lots} lots, {limit} are allowed")
    return None


def _order_value(state: GateState, asked: _Asked) -> Objection | None:
    del state
    limit = asked.party.tightest.max_order_value
    value = _value(asked, asked.lots)
    if limit is not None and value is not None and value > limit:
        return Objection(
            GateCheck.ORDER_VALUE, f"a value of {value / NANOS:,.2f}, {limit / NANOS:,.2f} is allowed"
        )
    return None


def _messages(state: GateState, asked: _Asked) -> Objection | None:
    del state
    for scope, limits in asked.party.limited:
        limit, times = limits.max_messages_per_s, scope.message_times
        if limit is None:
            continue
        if not limit or (len(times) >= limit and times[-limit] > asked.at_ns - NS_PER_S):
            return Objection(
                GateCheck.MESSAGES, f"{scope.name} has sent {limit} messages within a second already"
            )
    return None


def _exposure(state: GateState, asked: _Asked) -> Objection | None:
    """Credit (open orders) and market risk (with what was filled), as if the order stood."""
    del state
    more = _added_value(asked)
    if more is None:
        return None
    for scope, limits in asked.party.limited:
        limit = limits.max_open_value
        is_open = scope.open_value + more
        if limit is not None and is_open > limit:
            return Objection(
                GateCheck.OPEN_VALUE,
                f"open orders of {scope.name} would be worth {is_open / NANOS:,.2f}, {limit / NANOS:,.2f} is allowed",
            )
    return None


def _position(state: GateState, asked: _Asked) -> Objection | None:
    del state
    more = _added_value(asked)
    if more is None:
        return None
    for scope, limits in asked.party.limited:
        limit = limits.max_position_value
        total = scope.open_value + more + scope.filled_value
        if limit is not None and total > limit:
            return Objection(
                GateCheck.POSITION_VALUE,
                f"positions and open orders of {scope.name} would be worth {total / NANOS:,.2f}, "
                f"{limit / NANOS:,.2f} is allowed",
            )
    return None


def _identical(state: GateState, asked: _Asked) -> Objection | None:
    limit = asked.party.tightest.max_identical_orders
    if asked.new is None or limit is None:
        return None
    recent = state.recent.get(_identity(asked.new, asked.instrument))
    if recent is None:
        return None
    since_ns = asked.at_ns - NS_PER_S
    num = sum(1 for at_ns, order_id in recent if at_ns >= since_ns and _is_open(state, order_id))
    if num >= limit:
        return Objection(GateCheck.IDENTICAL, f"{num} orders alike that were sent within a second are open")
    return None


def _self_trade(state: GateState, asked: _Asked) -> Objection | None:
    resting = state.resting.get((asked.symbol, asked.venue))
    if resting is None:
        return None
    if asked.sign > 0:
        crosses = bool(resting.sells) and (asked.price is None or asked.price >= resting.sells[0])
    else:
        crosses = bool(resting.buys) and (asked.price is None or asked.price <= resting.buys[-1])
    if crosses:
        return Objection(GateCheck.SELF_TRADE, "it would trade with an open order of our own")
    return None


Check = Callable[[GateState, _Asked], Objection | None]

CHECKS: tuple[Check, ...] = (
    _form,
    _instrument,
    _order_id,
    _clock,
    _decision,
    _parent,
    _disabled,  # RTS 6 art. 12, 15(5); SEC 15c3-5(c)(2)(ii)
    _permission,  # RTS 6 art. 15(5); SEC 15c3-5(c)(2)(ii)
    _no_limits,
    _market,
    _collar,  # RTS 6 art. 15(1)(a)
    _window_collar,  # RTS 6 art. 15(1)(a), over a period
    _book_distance,  # SEC 15c3-5(c)(1)(ii)
    _order_value,  # RTS 6 art. 15(1)(b)
    _order_size,  # RTS 6 art. 15(1)(c)
    _messages,  # RTS 6 art. 15(1)(d)
    _exposure,  # SEC 15c3-5(c)(1)(i)
    _position,  # RTS 6 art. 15(4)
    _identical,  # SEC 15c3-5(c)(1)(ii)
    _self_trade,
)


def _value(asked: _Asked, lots: int) -> int | None:
    """What so many lots of the order are worth, in nanos; None where that is not known."""
    if asked.instrument is None:
        return None
    price = asked.price
    if price is None:
        if asked.market is None or not asked.market.doubled_reference:
            return None
        price = asked.market.doubled_reference // 2
    return lots * price * asked.instrument.value_nanos // asked.instrument.tick_nanos


def _added_value(asked: _Asked) -> int | None:
    """By how much the worth of open orders would grow if the order stood, in nanos; None where that is not known."""
    value = _value(asked, asked.lots - asked.filled)
    if value is None:
        return None
    return value - (asked.order.value if asked.order is not None else 0)


def _identity(new: OrderIntent, instrument: Instrument | None) -> Identity:
    price = None if new.price_ticks is None or instrument is None else instrument.price(new.price_ticks)
    return (
        new.client, new.trader, new.desk, new.algo, new.account, new.instrument, new.venue, new.side, new.lots,
        price, new.order_type,
    )  # fmt: skip


def _is_open(state: GateState, order_id: str) -> bool:
    order = state.orders.get(order_id)
    return order is not None and order.state.is_open


def _share_text(part: int, whole: int) -> str:
    return f"{part / whole:.3%}"
