"""Pre-trade limits: every order within the limits in force when it was sent, or refused by the gate, or overridden.

An order above a limit that the own gate refused shows that the control works: it is judged and not found. What an
order may do is judged when it is sent, by the market as it stood then.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

from htfi.domain.order_scopes import LimitsBook, scopes_of
from htfi.domain.orders import (
    CancelRequest,
    LimitOverride,
    LimitsInForce,
    NewOrder,
    OrderFilled,
    OrderRejected,
    RejectedBy,
    ReplaceRequest,
    TradingEnabled,
)
from htfi.domain.time import NS_PER_S
from htfi.governance.regulation.check import Check, CheckDefinition
from htfi.governance.regulation.findings import FindingLog, RuleRegime, Severity, Where
from htfi.governance.regulation.record import Observation, RecordReader, SeenMarket, TrackedOrder

MAX_WAITING = 50_000  # orders above a limit whose answer has not come, and overrides
MAX_COUNTED_MESSAGES = 100_000  # of a scope within a second
MAX_SCOPES_COUNTED = 10_000
NO_LIMITS = "the record states no limits: events of the kind limits are missing"

Evidence = dict[str, float | int | str]


@dataclass(frozen=True, slots=True)
class Asked:
    """What an order would do if it were sent: of a replace, what it would become."""

    order: NewOrder
    quantity: int
    price: float | None  # None at market
    market: SeenMarket | None
    at_ns: int

    @property
    def reference(self) -> float | None:
        return None if self.market is None else self.market.mid


class NotMeasurable(Exception):
    """Raised by a measure where the record lacks what it needs; the text says what."""


# The figure of an order, the limit on it, and words; None where the scope has no such limit.
Measured = tuple[float, float, str] | None
Measure = Callable[[Asked, LimitsInForce, RecordReader], Measured]


class LimitCheck(Check):
    """One limit on each order. `measure` gives figure and limit; above it is found unless refused or overridden."""

    def __init__(
        self, log: FindingLog, reader: RecordReader, *, name: str, measure: Measure, is_required: bool
    ) -> None:
        super().__init__(log, reader)
        self._name, self._measure, self._is_required = name, measure, is_required
        self._limits = LimitsBook()
        self._waiting: OrderedDict[str, tuple[str, Where, Evidence]] = OrderedDict()
        self._overrides: OrderedDict[str, LimitOverride] = OrderedDict()

    def order(self, seen: Observation) -> None:
        event = seen.event
        self._limits.take(event)
        if isinstance(event, LimitOverride) and event.limit == self._name:
            self._overrides[event.order_id] = event
            if len(self._overrides) > MAX_WAITING:
                self._overrides.popitem(last=False)
        if seen.order is None:
            return
        if isinstance(event, NewOrder | ReplaceRequest):
            self._flush(seen.order.new.order_id)
            if not seen.illegal:
                self._judge(seen, seen.order)
        elif isinstance(event, OrderRejected) and event.by is RejectedBy.GATE:
            self._waiting.pop(event.order_id, None)
        elif event.order_id in self._waiting:  # type: ignore[union-attr] - of an order
            self._flush(seen.order.new.order_id)

    def finish(self, end_ns: int) -> None:
        del end_ns
        for order_id in list(self._waiting):
            self._flush(order_id)

    def _judge(self, seen: Observation, order: TrackedOrder) -> None:
        asked = _asked(seen, order)
        limits = self._limits.of(order.new)
        if not self._limits.by_scope:
            self.log.cannot_judge(NO_LIMITS)
            return
        where = Where(
            seen.at_ns, seen.at_ns, (order.new.order_id,), order.new.instrument, order.new.venue, order.party
        )
        is_limited = False
        for one in limits:
            try:
                measured = self._measure(asked, one, self.reader)
            except NotMeasurable as missing:
                self.log.cannot_judge(str(missing))
                return
            if measured is None:
                continue
            is_limited = True
            figure, limit, words = measured
            if figure <= limit or self._is_overridden(asked):
                continue
            what = f"{words} of {figure:,.6g} is above the limit of {limit:,.6g} for {one.scope}"
            self._waiting[order.new.order_id] = (what, where, {self._name: figure, "limit": limit})
            if len(self._waiting) > MAX_WAITING:
                self._flush(next(iter(self._waiting)))
            break
        if is_limited:
            self.log.judged()
        elif self._is_required:
            self.log.judged()
            self.log.found(Severity.REVIEW, f"no limit {self._name} was in force for the order", where)

    def _is_overridden(self, asked: Asked) -> bool:
        override = self._overrides.get(asked.order.order_id)
        return override is not None and asked.at_ns <= override.expires_at_ns

    def _flush(self, order_id: str) -> None:
        waiting = self._waiting.pop(order_id, None)
        if waiting is not None:
            what, where, evidence = waiting
            self.log.found(Severity.BREACH, f"{what}, and the order was sent", where, evidence)


def _asked(seen: Observation, order: TrackedOrder) -> Asked:
    event = seen.event
    if isinstance(event, ReplaceRequest):
        price = order.price if event.price is None else float(event.price)
        return Asked(order.new, event.quantity, price, seen.market, seen.at_ns)
    return Asked(order.new, order.state.quantity, order.price, seen.market, seen.at_ns)


def _collar(asked: Asked, limits: LimitsInForce, reader: RecordReader) -> Measured:
    del reader
    if limits.price_collar is None:
        return None
    if asked.price is None:
        raise NotMeasurable("a market order states no price")
    if not asked.reference:
        raise NotMeasurable("no market data of the instrument before the order")
    return (
        abs(asked.price - asked.reference) / asked.reference,
        limits.price_collar,
        "a distance from the market",
    )


def _value(asked: Asked, limits: LimitsInForce, reader: RecordReader) -> Measured:
    if limits.max_order_value is None:
        return None
    price = asked.reference if asked.price is None else asked.price
    if price is None:
        raise NotMeasurable("a market order without market data has no value")
    value = reader.value(asked.order.instrument, asked.quantity, abs(price))
    return value, float(limits.max_order_value), "a value"


def _quantity(asked: Asked, limits: LimitsInForce, reader: RecordReader) -> Measured:
    del reader
    if limits.max_order_quantity is None:
        return None
    return asked.quantity, limits.max_order_quantity, "a quantity in lots"


def _permission(asked: Asked, limits: LimitsInForce, reader: RecordReader) -> Measured:
    del reader
    if not limits.permitted and not limits.restricted:
        return None
    name = asked.order.instrument
    is_open = not limits.permitted or "*" in limits.permitted or name in limits.permitted
    return (0.0 if is_open and name not in limits.restricted else 1.0), 0.0, f"a ban on {name}: a mark"


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
        if len(self._counted) > MAX_WAITING:
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


class RepeatedExecutionCheck(Check):
    """The throttle of repeated executions: at its limit an algorithm stops until a named person enables it again."""

    def __init__(self, log: FindingLog, reader: RecordReader) -> None:
        super().__init__(log, reader)
        self._limits = LimitsBook()
        self._fills: OrderedDict[tuple[str, str, str], deque[int]] = OrderedDict()
        self._tripped: dict[tuple[str, str, str], tuple[int, int, int]] = {}  # key → when, count, limit

    def order(self, seen: Observation) -> None:
        event, order = seen.event, seen.order
        self._limits.take(event)
        if isinstance(event, TradingEnabled) and event.by:
            reached = event.scope
            self._tripped = {
                key: value
                for key, value in self._tripped.items()
                if reached not in ("firm", f"algo:{key[0]}", f"instrument:{key[1]}")
            }
            return
        if order is None or not isinstance(event, OrderFilled | NewOrder):
            return
        key = (order.new.algo, order.new.instrument, order.new.side.value)
        if isinstance(event, NewOrder):
            self._judge(key, seen, order)
            return
        limits = [one for one in self._limits.of(order.new) if one.max_repeated_executions is not None]
        if not limits or not order.new.algo:
            reason = (
                "an order names no algorithm" if limits else "no limit on repeated executions was in force"
            )
            self.log.cannot_judge(reason if self._limits.by_scope else NO_LIMITS)
            return
        self.log.judged()
        tightest = min(limits, key=lambda one: one.max_repeated_executions or 0)
        limit = tightest.max_repeated_executions or 0
        times = self._fills.setdefault(key, deque(maxlen=limit + 1))
        if times.maxlen != limit + 1:
            times = self._fills[key] = deque(times, maxlen=limit + 1)
        self._fills.move_to_end(key)
        if len(self._fills) > MAX_SCOPES_COUNTED:
            self._fills.popitem(last=False)
        times.append(seen.at_ns)
        while times[0] < seen.at_ns - tightest.repeated_window_ns:
            times.popleft()
        if len(times) > limit:
            self._tripped.setdefault(key, (seen.at_ns, len(times), limit))

    def _judge(self, key: tuple[str, str, str], seen: Observation, order: TrackedOrder) -> None:
        tripped = self._tripped.pop(key, None)
        if tripped is None:
            return
        at_ns, num, limit = tripped
        self.log.found(
            Severity.BREACH,
            f"algorithm {key[0]} sent another order after {num} executions on one side, above the throttle of {limit}, "
            "without a named person having enabled it",
            Where(at_ns, seen.at_ns, (order.new.order_id,), order.new.instrument, party=order.party),
            {"executions": num, "limit": limit},
        )


class DuplicateOrderCheck(Check):
    """Identical orders of one party within a second while the earlier ones stand: a loop, or an order sent twice."""

    MIN_IDENTICAL = 3
    WINDOW_NS = NS_PER_S

    def __init__(self, log: FindingLog, reader: RecordReader) -> None:
        super().__init__(log, reader)
        self._recent: OrderedDict[tuple[object, ...], deque[tuple[int, str]]] = OrderedDict()

    def order(self, seen: Observation) -> None:
        event, order = seen.event, seen.order
        if not isinstance(event, NewOrder) or order is None or seen.illegal:
            return
        self.log.judged()
        key = (
            order.party,
            event.instrument,
            event.venue,
            event.side,
            event.quantity,
            event.price,
            event.order_type,
        )
        recent = self._recent.setdefault(key, deque(maxlen=16))
        self._recent.move_to_end(key)
        if len(self._recent) > MAX_SCOPES_COUNTED:
            self._recent.popitem(last=False)
        recent.append((seen.at_ns, event.order_id))
        while recent[0][0] < seen.at_ns - self.WINDOW_NS:
            recent.popleft()
        still = [
            order_id
            for _, order_id in recent
            if (found := self.reader.orders.get(order_id)) is not None and found.state.is_open
        ]
        if len(still) >= self.MIN_IDENTICAL:
            self.log.found(
                Severity.REVIEW,
                f"{len(still)} identical orders within a second, all of them open",
                Where(recent[0][0], seen.at_ns, tuple(still), event.instrument, event.venue, order.party),
                {"identical_orders": len(still), "window_s": self.WINDOW_NS / NS_PER_S},
            )
            recent.clear()


def _limit(
    name: str, measure: Measure, *, is_required: bool = True
) -> Callable[[FindingLog, RecordReader], Check]:
    return partial(LimitCheck, name=name, measure=measure, is_required=is_required)


LIMIT_CHECKS = (
    CheckDefinition(
        "price-collar",
        "Orders within the price collar",
        {RuleRegime.EU: "RTS 6 art. 15(1)(a)", RuleRegime.US: "SEC 15c3-5(c)(1)(ii)"},
        "new and replace, limits, market",
        "without limits; market orders; before the instrument's first market data",
        _limit("price_collar", _collar),
    ),
    CheckDefinition(
        "order-value",
        "Orders within the maximum value",
        {RuleRegime.EU: "RTS 6 art. 15(1)(b)", RuleRegime.US: "SEC 15c3-5(c)(1)(ii)"},
        "new and replace, limits, instrument, market",
        "without limits; market orders without market data",
        _limit("max_order_value", _value),
    ),
    CheckDefinition(
        "order-volume",
        "Orders within the maximum volume",
        {RuleRegime.EU: "RTS 6 art. 15(1)(c)", RuleRegime.US: "SEC 15c3-5(c)(1)(ii)"},
        "new and replace, limits",
        "without limits",
        _limit("max_order_quantity", _quantity),
    ),
    CheckDefinition(
        "permission",
        "Only instruments that are permitted and not restricted",
        {RuleRegime.EU: "RTS 6 art. 15(5)", RuleRegime.US: "SEC 15c3-5(c)(2)(ii)"},
        "new and replace, limits",
        "without limits that name instruments",
        _limit("permission", _permission, is_required=False),
    ),
    CheckDefinition(
        "message-rate",
        "Messages within the limit a second",
        {RuleRegime.EU: "RTS 6 art. 15(1)(d)"},
        "new, replace, cancel, limits",
        "without a limit on messages",
        MessageRateCheck,
    ),
    CheckDefinition(
        "exposure",
        "Credit and market risk within the limits",
        {RuleRegime.EU: "RTS 6 art. 15(4), 17(2)", RuleRegime.US: "SEC 15c3-5(c)(1)(i)"},
        "new, fill and what ends an order, limits, instrument, market",
        "without limits on value; market orders without market data; positions from before the span",
        ExposureCheck,
    ),
    CheckDefinition(
        "repeated-execution",
        "Repeated executions disable until a person enables",
        {RuleRegime.EU: "RTS 6 art. 15(3)"},
        "fill, new, limits, enabled",
        "without a limit on repeated executions; orders that name no algorithm",
        RepeatedExecutionCheck,
    ),
    CheckDefinition(
        "duplicate-orders",
        "No order sent several times by mistake",
        {RuleRegime.US: "SEC 15c3-5(c)(1)(ii)", RuleRegime.EU: "RTS 6 art. 15(1)"},
        "new",
        "without orders",
        DuplicateOrderCheck,
    ),
)
