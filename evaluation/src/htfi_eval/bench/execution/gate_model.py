"""The rules of the gate once more, written plainly and slowly, to hold the gate against.

`refusals(events, intent)` reads the whole stream again for each intent and keeps nothing between calls. It shares no
code with the gate: `gate_world` follows orders by a reading of FIX's state matrix of its own, and shares are fractions.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from htfi.domain.orders import (
    LimitOverride,
    NewOrder,
    OrderEvent,
)
from htfi.execution.intents import CancelIntent, Intent, OrderIntent, ReplaceIntent
from htfi_eval.bench.execution.gate_world import (
    SECOND,
    GateWorld,
    SeenOrder,
    happen,
    middle_of,
    parent_of,
    taken_of,
)

REQUIRED = (
    "price_collar", "max_order_value", "max_order_quantity", "max_messages_per_s", "max_open_value",
    "max_position_value", "max_market_age_ns", "max_decision_age_ns", "max_repeated_executions",
)  # fmt: skip
MAY_BE_OVERRIDDEN = (
    "price_collar", "window_collar", "max_book_distance", "max_order_value", "max_order_quantity",
    "max_messages_per_s", "max_open_value", "max_position_value", "max_identical_orders",
)  # fmt: skip


def refusals(events: Sequence[OrderEvent], intent: Intent) -> set[str]:
    """The names of all checks that refuse an intent after these events."""
    world = GateWorld()
    for event in events:
        happen(world, event)
    if isinstance(intent, CancelIntent):
        return cancel_refusals(world, intent)
    is_replace = isinstance(intent, ReplaceIntent)
    found = replace_refusals(world, intent) if is_replace else order_refusals(world, intent)
    for override in world.overrides:
        if (
            override.order_id == intent.order_id
            and override.limit in MAY_BE_OVERRIDDEN
            and override.at_ns <= intent.at_ns <= override.expires_at_ns
            and override.asked_by
            and override.authorised_by
            and override.asked_by != override.authorised_by
            and override is newest_override(world, override)
        ):
            found.discard(override.limit)
    return found


def newest_override(world: GateWorld, like: LimitOverride) -> LimitOverride:
    same = [one for one in world.overrides if (one.order_id, one.limit) == (like.order_id, like.limit)]
    return same[-1]


def cancel_refusals(world: GateWorld, intent: CancelIntent) -> set[str]:
    order = world.orders.get(intent.order_id)
    if order is None or not order.is_open:
        return {"order_state"}
    return set() if is_free(world, order, intent.cl_ord_id) else {"order_id"}


def is_free(world: GateWorld, order: SeenOrder, cl_ord_id: str) -> bool:
    return 1 <= len(cl_ord_id) <= 64 and cl_ord_id not in order.asked and cl_ord_id not in world.orders


def replace_refusals(world: GateWorld, intent: ReplaceIntent) -> set[str]:
    order = world.orders.get(intent.order_id)
    if order is None or not order.is_open or order.status == "pending_new" or order.asked:
        return {"order_state"}
    if not is_free(world, order, intent.cl_ord_id):
        return {"order_id"}
    terms = world.terms.get(order.new.instrument)
    price = order.price
    if intent.price_ticks is not None:
        if price is None or terms is None or terms.tick is None:
            return {"form"}
        price = intent.price_ticks * Fraction(terms.tick)
    found: set[str] = set()
    if not 0 < intent.lots <= 10**12 or intent.lots <= order.filled or (price is not None and price <= 0):
        found.add("form")
    found |= decision_refusals(world, order, intent)
    found |= common_refusals(world, order.new, intent.at_ns, intent.lots, order.filled, price, order)
    return found


def order_refusals(world: GateWorld, intent: OrderIntent) -> set[str]:
    terms = world.terms.get(intent.instrument)
    tick = None if terms is None or terms.tick is None else Fraction(terms.tick)
    price = None if intent.price_ticks is None or tick is None else intent.price_ticks * tick
    found: set[str] = set()
    needs_price = intent.order_type.value in ("limit", "stop_limit")
    needs_stop = intent.order_type.value in ("stop", "stop_limit")
    if (
        not 0 < intent.lots <= 10**12
        or (price is not None and not 0 < price <= 10**15)
        or (intent.price_ticks is not None) != needs_price
        or (intent.stop_ticks is not None) != needs_stop
        or (intent.stop_ticks is not None and not 0 < intent.stop_ticks <= 10**15)
        or (intent.display_lots is not None and not 0 <= intent.display_lots <= intent.lots)
        or intent.parent_lots < 0
        or bool(intent.parent_id) != bool(intent.parent_lots)
        or not (intent.client or intent.trader or intent.desk or intent.algo)
    ):
        found.add("form")
    if (
        not 1 <= len(intent.order_id) <= 64
        or not intent.order_id.isprintable()
        or intent.order_id in world.orders
    ):
        found.add("order_id")
    found |= decision_refusals(world, None, intent)
    as_sent = intent.message(None)
    found |= common_refusals(world, as_sent, intent.at_ns, intent.lots, 0, price, None)
    found |= identical_refusals(world, intent, price)
    return found


def decision_refusals(
    world: GateWorld, order: SeenOrder | None, intent: OrderIntent | ReplaceIntent
) -> set[str]:
    new = order.new if order is not None else None
    if isinstance(intent, OrderIntent):
        receipt, symbol = intent.receipt, intent.instrument
    else:
        assert new is not None
        receipt, symbol = new.decision, new.instrument
    if receipt is None:
        return {"decision_missing"}
    decision = world.decisions.get(receipt.index)
    if decision is None:
        return {"decision_unknown"}
    if decision.receipt.leaf_hash != receipt.leaf_hash:
        return {"decision_altered"}
    if not decision.is_released:
        return {"decision_withheld"}
    if decision.instrument != symbol:
        return {"decision_symbol"}
    taken, acting = taken_of(world, receipt.index), parent_of(world, receipt.index)
    if isinstance(intent, OrderIntent):
        if receipt.index in world.amended:
            return {"decision_amended"}
        ages = stated(world, intent.message(None), "max_decision_age_ns")
        parent = world.parents.get(intent.parent_id)
        acted = intent.at_ns if parent is None else parent.at_ns
        if ages and acted - decision.at_ns > min(ages):
            return {"decision_age"}
        mine = (intent.parent_id or intent.order_id, intent.parent_lots or intent.lots)
        if acting is not None and acting != mine:
            return {"decision_used"}
        return {"decision_used"} if taken + intent.lots > mine[1] else set()
    assert order is not None
    allowed = acting[1] if acting is not None else 0
    return {"decision_used"} if taken - order.taken + intent.lots > allowed else set()


def parent_refusals(
    world: GateWorld, new: NewOrder, at: int, lots: int, price: Fraction | None, order: SeenOrder | None
) -> set[str]:
    """What a child of an order that an algorithm works may not do."""
    parent = world.parents.get(new.parent_id)
    if parent is None:
        return set()
    longest = stated(world, new, "max_parent_ns")
    if not longest or parent.end_ns - parent.at_ns > min(longest) or at < parent.at_ns or at > parent.end_ns:
        return {"parent"}
    child_says = (new.instrument, new.side, new.parent_quantity, new.algo, new.decision, new.trader, new.desk)
    parent_says = (
        parent.instrument, parent.side, parent.quantity, parent.algo, parent.decision, parent.trader, parent.desk
    )  # fmt: skip
    if order is None and (
        child_says != parent_says or (new.client, new.account) != (parent.client, parent.account)
    ):
        return {"parent"}
    if parent.limit_price is not None:
        limit = Fraction(parent.limit_price)
        if price is None or (price > limit if new.side.sign > 0 else price < limit):
            return {"parent"}
    if not parent.min_urgency <= world.urgencies[parent.order_id] <= parent.max_urgency:
        return {"parent"}
    index = -1 if parent.decision is None else parent.decision.index
    taken = taken_of(world, index) if index in world.decisions else 0
    bounds = [one.max_lots for one in parent.pace if one.until_ns >= at]
    most = bounds[0] if bounds else parent.quantity
    return {"parent"} if taken - (order.taken if order is not None else 0) + lots > most else set()


def stated(world: GateWorld, new: NewOrder, name: str) -> list[Any]:
    """Every limit of a name that reaches an order."""
    found = [getattr(world.limits[scope], name) for scope in scopes(new) if scope in world.limits]
    return [one for one in found if one is not None]


def scopes(new: NewOrder) -> list[str]:
    names = [("client", new.client), ("trader", new.trader), ("desk", new.desk), ("algo", new.algo)]
    return ["firm", *(f"{kind}:{name}" for kind, name in names if name), f"instrument:{new.instrument}"]


def common_refusals(
    world: GateWorld,
    new: NewOrder,
    at: int,
    lots: int,
    filled: int,
    price: Fraction | None,
    order: SeenOrder | None,
) -> set[str]:
    """What holds for new orders and for replaces alike."""
    found = parent_refusals(world, new, at, lots, price, order)
    market = world.markets.get((new.instrument, new.venue))
    middle = middle_of(market)
    if new.instrument not in world.terms:
        found.add("instrument")
    if at < world.newest - SECOND:
        found.add("clock")
    if any(scope in world.disabled for scope in scopes(new)):
        found.add("disabled")
    if any(new.instrument in one for one in stated(world, new, "restricted")) or any(
        one and "*" not in one and new.instrument not in one for one in stated(world, new, "permitted")
    ):
        found.add("permission")
    if any(not stated(world, new, name) for name in REQUIRED):
        found.add("no_limits")
    found |= market_refusals(world, new, at, market, middle)
    found |= price_refusals(world, new, at, price, market, middle)
    if any(lots > limit for limit in stated(world, new, "max_order_quantity")):
        found.add("max_order_quantity")
    if new.instrument in world.terms:
        found |= value_refusals(world, new, lots, filled, price if price is not None else middle, order)
    for scope in scopes(new):
        limit = world.limits[scope].max_messages_per_s if scope in world.limits else None
        recent = [one for one in world.sent if one[0] > at - SECOND and scope in scopes(one[2])]
        if limit is not None and len(recent) + 1 > limit:
            found.add("max_messages_per_s")
    for other in world.orders.values():
        if (
            other.is_open
            and other.price is not None
            and (other.new.instrument, other.new.venue) == (new.instrument, new.venue)
            and other.new.side.sign != new.side.sign
            and (price is None or new.side.sign * (price - other.price) >= 0)
        ):
            found.add("self_trade")
    return found


def market_refusals(
    world: GateWorld, new: NewOrder, at: int, market: dict[str, Any] | None, middle: Fraction | None
) -> set[str]:
    if market is None or not middle:
        return {"market_missing"}
    ages = stated(world, new, "max_market_age_ns")
    if ages and at - market["at"] > min(ages):
        return {"market_age"}
    if market["bid"] and market["ask"] and market["bid"] >= market["ask"]:
        return {"market_crossed"}
    if market["phase"] not in (None, "continuous", "opening_auction", "closing_auction"):
        waits = new.time_in_force.value in ("at_the_opening", "at_the_close")
        if not (waits and market["phase"] == "pre_open"):
            return {"market_phase"}
    return set()


def price_refusals(
    world: GateWorld,
    new: NewOrder,
    at: int,
    price: Fraction | None,
    market: dict[str, Any] | None,
    middle: Fraction | None,
) -> set[str]:
    if price is None:
        return {"unpriced"}
    if market is None or not middle:
        return set()
    found: set[str] = set()
    if any(abs(price - middle) > share(one) * middle for one in stated(world, new, "price_collar")):
        found.add("price_collar")
    for scope in scopes(new):
        limits = world.limits.get(scope)
        if limits is None or limits.window_collar is None:
            continue
        kept = world.kept.get((new.instrument, new.venue), [])
        inside = [one for when, one in kept if when >= at - limits.collar_window_ns]
        if inside and abs(price - inside[0]) > share(limits.window_collar) * inside[0]:
            found.add("window_collar")
    opposite = market["ask"] if new.side.sign > 0 else market["bid"]
    if opposite:
        beyond = new.side.sign * (price - opposite)
        if any(beyond > share(one) * opposite for one in stated(world, new, "max_book_distance")):
            found.add("max_book_distance")
    return found


def share(value: float) -> Fraction:
    """A share as the gate counts it: billionths, rounded down."""
    return Fraction(int(Fraction(value) * 10**9), 10**9)


def value_refusals(
    world: GateWorld, new: NewOrder, lots: int, filled: int, price: Fraction | None, order: SeenOrder | None
) -> set[str]:
    if price is None:
        return set()
    found: set[str] = set()
    per_lot = lot_worth(world, new.instrument)
    if any(lots * price * per_lot > Fraction(one) for one in stated(world, new, "max_order_value")):
        found.add("max_order_value")
    for scope in scopes(new):
        limits = world.limits.get(scope)
        if limits is None:
            continue
        inside = [one for one in world.orders.values() if scope in scopes(one.new)]
        is_open = (
            sum(
                (one.quantity - one.filled)
                * (one.price if one.price is not None else one.market_price)
                * lot_worth(world, one.new.instrument)
                for one in inside
                if one.is_open and one is not order
            )
            + (lots - filled) * price * per_lot
        )
        held: dict[str, Fraction] = {}
        for one in inside:
            for num, at_price in one.fills.values():
                worth = one.new.side.sign * num * at_price * lot_worth(world, one.new.instrument)
                held[one.new.instrument] = held.get(one.new.instrument, Fraction(0)) + worth
        if limits.max_open_value is not None and is_open > Fraction(limits.max_open_value):
            found.add("max_open_value")
        total = is_open + sum(map(abs, held.values()))
        if limits.max_position_value is not None and total > Fraction(limits.max_position_value):
            found.add("max_position_value")
    return found


def lot_worth(world: GateWorld, instrument: str) -> Fraction:
    """What a lot is worth at a price of 1."""
    terms = world.terms.get(instrument)
    return Fraction(1) if terms is None else terms.lot_size * Fraction(terms.multiplier)


def identical_refusals(world: GateWorld, intent: OrderIntent, price: Fraction | None) -> set[str]:
    num = 0
    for other in world.orders.values():
        new = other.new
        same = (
            new.client == intent.client
            and new.trader == intent.trader
            and new.desk == intent.desk
            and new.algo == intent.algo
            and new.account == intent.account
            and new.instrument == intent.instrument
            and new.venue == intent.venue
            and new.side == intent.side
            and new.quantity == intent.lots
            and (None if new.price is None else Fraction(new.price)) == price
            and new.order_type == intent.order_type
        )
        num += same and other.is_open and new.at_ns >= intent.at_ns - SECOND
    limits = stated(world, intent.message(None), "max_identical_orders")
    return {"max_identical_orders"} if limits and num >= min(limits) else set()
