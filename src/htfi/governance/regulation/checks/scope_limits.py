"""Limits of what a scope does in all: messages a second, open orders and positions."""

from collections import OrderedDict, deque
from decimal import Decimal

from htfi.domain.order_scopes import LimitsBook, scopes_of
from htfi.domain.orders import (
    CancelRequest,
    LimitsInForce,
    NewOrder,
    OrderFilled,
    OrderRejected,
    RejectedBy,
    ReplaceRequest,
)
from htfi.domain.time import NS_PER_S
from htfi.governance.regulation.check import Check
from htfi.governance.regulation.checks.order_limits import NO_LIMITS
from htfi.governance.regulation.findings import FindingLog, Severity, Where
from htfi.governance.regulation.record import Observation, RecordReader, TrackedOrder

MAX_COUNTED_MESSAGES = 100_000  # of a scope within a second
MAX_COUNTED_ORDERS = 50_000  # open orders whose worth is counted
MAX_SCOPES_COUNTED = 10_000


class MessageRateCheck(Check):
    """Messages sent within any second: new, replace and cancel; what the own gate refused was not sent."""

    def __init__(self, log: FindingLog, reader: RecordReader) -> None:
        super().__init__(log, reader)
        self._limits = LimitsBook()
        self._times: dict[str, deque[int]] = {}
        self._above: dict[str, tuple[int, int, int]] = {}  # scope → first, last, most in a second
        self._newest: tuple[str, dict[str, tuple[int, int, int]]] = (
            "",
            {},
        )  # the order, and what stood before it

    def order(self, seen: Observation) -> None:
        event, order = seen.event, seen.order
        self._limits.take(event)
        if order is None:
            return
        if isinstance(event, OrderRejected) and event.by is RejectedBy.GATE:
            self._uncount(order)
            return
        if not isinstance(event, NewOrder | ReplaceRequest | CancelRequest):
            return
        limits = [one for one in self._limits.of(order.new) if one.max_messages_per_s is not None]
        if not limits:
            self.log.cannot_judge("no limit on messages was in force" if self._limits.by_scope else NO_LIMITS)
            return
        self.log.judged()
        self._newest = event.order_id, dict(self._above)
        for one in limits:
            self._count(one, seen.at_ns)

    def finish(self, end_ns: int) -> None:
        del end_ns
        for scope in list(self._above):
            self._report(scope)

    def _uncount(self, order: TrackedOrder) -> None:
        """The gate refuses at once: what the message changed is undone."""
        for scope in scopes_of(order.new):
            times = self._times.get(scope)
            if times and order.entered_ns in times:
                times.remove(order.entered_ns)
        order_id, before = self._newest
        if order_id == order.new.order_id:
            self._above = before

    def _count(self, limits: LimitsInForce, at_ns: int) -> None:
        scope, limit = limits.scope, limits.max_messages_per_s or 0
        if scope not in self._times and len(self._times) >= MAX_SCOPES_COUNTED:
            self.log.cannot_judge("more scopes than can be counted at once")
            return
        times = self._times.setdefault(scope, deque(maxlen=MAX_COUNTED_MESSAGES))
        times.append(at_ns)
        while times and times[0] <= at_ns - NS_PER_S:
            times.popleft()
        open_burst = self._above.get(scope)
        if len(times) > limit:
            first, _, most = open_burst or (at_ns, at_ns, 0)
            self._above[scope] = (first, at_ns, max(most, len(times)))
        elif open_burst is not None:
            self._report(scope)

    def _report(self, scope: str) -> None:
        first, last, most = self._above.pop(scope)
        limit = self._limits.by_scope[scope].max_messages_per_s or 0
        self.log.found(
            Severity.BREACH,
            f"{most:,} messages within a second, above the limit of {limit:,} for {scope}",
            Where(first, last, scope=scope),
            {"messages_per_s": most, "limit": limit},
        )


class ExposureCheck(Check):
    """Credit and market risk: the value of open orders, alone or with what was filled in the span, by scope."""

    def __init__(self, log: FindingLog, reader: RecordReader) -> None:
        super().__init__(log, reader)
        self._limits = LimitsBook()
        self._open: dict[str, float] = {}  # scope → value
        self._filled: dict[str, dict[str, float]] = {}  # scope → instrument → signed value
        self._counted: OrderedDict[str, float] = OrderedDict()  # order → its open value as counted
        self._above: dict[tuple[str, str], bool] = {}

    def order(self, seen: Observation) -> None:
        event, order = seen.event, seen.order
        self._limits.take(event)
        if order is None:
            return
        order_id, scopes = order.new.order_id, scopes_of(order.new)
        price = order.price if order.price is not None else (seen.market.mid if seen.market else None)
        leaves = order.state.leaves
        value = 0.0 if price is None else self.reader.value(order.new.instrument, leaves, abs(price))
        change = value - self._counted.get(order_id, 0.0)
        self._counted[order_id] = value
        if not order.state.is_open:
            del self._counted[order_id]
        if len(self._counted) > MAX_COUNTED_ORDERS:
            self._counted.popitem(last=False)
        for scope in scopes:
            self._open[scope] = self._open.get(scope, 0.0) + change
            if isinstance(event, OrderFilled) and not seen.illegal:
                by_name = self._filled.setdefault(scope, {})
                filled = self.reader.value(order.new.instrument, event.quantity, float(event.price))
                by_name[order.new.instrument] = (
                    by_name.get(order.new.instrument, 0.0) + order.new.side.sign * filled
                )
        if not isinstance(event, NewOrder):
            if isinstance(event, OrderFilled):
                self._judge(seen, order)
            return
        if not self._limits.by_scope:
            self.log.cannot_judge(NO_LIMITS)
        elif price is None:
            self.log.cannot_judge("a market order without market data has no value")
        else:
            self._judge(seen, order)

    def _judge(self, seen: Observation, order: TrackedOrder) -> None:
        for limits in self._limits.of(order.new):
            is_open = self._open.get(limits.scope, 0.0)
            filled = sum(map(abs, self._filled.get(limits.scope, {}).values()))
            for name, limit, value in (
                ("max_open_value", limits.max_open_value, is_open),
                ("max_position_value", limits.max_position_value, is_open + filled),
            ):
                if limit is not None:
                    self._compare(limits.scope, name, limit, value, seen, order)

    def _compare(
        self, scope: str, name: str, limit: Decimal, value: float, seen: Observation, order: TrackedOrder
    ) -> None:
        self.log.judged()
        above = value > float(limit) * (1 + 1e-12)
        if above and not self._above.get((scope, name), False):
            self.log.found(
                Severity.BREACH,
                f"a value of {value:,.6g} is above the limit {name} of {float(limit):,.6g} for {scope}",
                Where(
                    seen.at_ns,
                    seen.at_ns,
                    (order.new.order_id,),
                    order.new.instrument,
                    party=order.party,
                    scope=scope,
                ),
                {"value": value, "limit": float(limit)},
            )
        self._above[scope, name] = above
