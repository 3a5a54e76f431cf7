"""Orders that repeat: executions on one side beyond the throttle, and identical orders within a second."""

from collections import OrderedDict, deque

from htfi.domain.order_scopes import LimitsBook
from htfi.domain.orders import (
    NewOrder,
    OrderFilled,
    TradingEnabled,
)
from htfi.domain.time import NS_PER_S
from htfi.governance.regulation.check import Check
from htfi.governance.regulation.checks.order_limits import NO_LIMITS
from htfi.governance.regulation.findings import FindingLog, Severity, Where
from htfi.governance.regulation.record import Observation, RecordReader, TrackedOrder

MAX_COUNTED = 10_000  # algorithms on a side, and kinds of orders


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
        if len(self._fills) > MAX_COUNTED:
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
        if len(self._recent) > MAX_COUNTED:
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
