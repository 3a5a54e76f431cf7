"""Limits of each order: price collar, value, quantity, permission; refused by the gate above them, or overridden.

An order above a limit that the own gate refused shows that the control works: it is judged and not found. What an
order may do is judged when it is sent, by the market as it stood then.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from htfi.domain.order_scopes import LimitsBook
from htfi.domain.orders import (
    LimitOverride,
    LimitsInForce,
    NewOrder,
    OrderRejected,
    RejectedBy,
    ReplaceRequest,
)
from htfi.governance.regulation.check import Check
from htfi.governance.regulation.findings import FindingLog, Severity, Where
from htfi.governance.regulation.record import Observation, RecordReader, SeenMarket, TrackedOrder

MAX_WAITING = 50_000  # orders above a limit whose answer has not come, and overrides
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


def measured_collar(asked: Asked, limits: LimitsInForce, reader: RecordReader) -> Measured:
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


def measured_value(asked: Asked, limits: LimitsInForce, reader: RecordReader) -> Measured:
    if limits.max_order_value is None:
        return None
    price = asked.reference if asked.price is None else asked.price
    if price is None:
        raise NotMeasurable("a market order without market data has no value")
    value = reader.value(asked.order.instrument, asked.quantity, abs(price))
    return value, float(limits.max_order_value), "a value"


def measured_quantity(asked: Asked, limits: LimitsInForce, reader: RecordReader) -> Measured:
    del reader
    if limits.max_order_quantity is None:
        return None
    return asked.quantity, limits.max_order_quantity, "a quantity in lots"


def measured_permission(asked: Asked, limits: LimitsInForce, reader: RecordReader) -> Measured:
    del reader
    if not limits.permitted and not limits.restricted:
        return None
    name = asked.order.instrument
    is_open = not limits.permitted or "*" in limits.permitted or name in limits.permitted
    return (0.0 if is_open and name not in limits.restricted else 1.0), 0.0, f"a ban on {name}: a mark"


def limit_check(
    name: str, measure: Measure, *, is_required: bool = True
) -> Callable[[FindingLog, RecordReader], Check]:
    """A check of one limit, by what measures an order."""
    return partial(LimitCheck, name=name, measure=measure, is_required=is_required)
