"""Whether an order may act on its decision, and keeps to the order that an algorithm works by it."""

from htfi.domain.time import NS_PER_S
from htfi.execution.gate.asked import AskedOrder
from htfi.execution.gate.objections import GateCheck, Objection
from htfi.execution.gate.records import KnownDecision, KnownParent
from htfi.execution.gate.state import GateState
from htfi.execution.intents import OrderIntent


def check_decision(state: GateState, asked: AskedOrder) -> Objection | None:
    """The decision that an order acts on: in the ledger, unaltered, released, the newest, fresh, unused."""
    receipt = asked.receipt
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
    oldest = asked.tightest.max_decision_age_ns
    parent = asked.parent
    acted_ns = asked.at_ns if parent is None else parent.order.at_ns
    if asked.new is not None and oldest is not None and acted_ns - decision.noted_ns > oldest:
        age_s = (acted_ns - decision.noted_ns) / NS_PER_S
        return Objection(
            GateCheck.DECISION_AGE,
            f"decision {receipt.index} is {age_s:.3f} s old, {oldest / NS_PER_S:g} s are allowed",
        )
    return _use(decision, receipt.index, asked)


def _use(decision: KnownDecision, index: int, asked: AskedOrder) -> Objection | None:
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


def check_parent(state: GateState, asked: AskedOrder) -> Objection | None:
    """A child keeps to what its parent states: who, what, until when, at which price, and how fast."""
    parent = asked.parent
    if parent is None:
        return None
    order, words = parent.order, ""
    longest = asked.tightest.max_parent_ns
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
