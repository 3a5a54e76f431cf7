"""Stops, overrides and alerts: what was disabled stays so, open orders are cancelled, named persons act in time."""

from collections import OrderedDict

from htfi.domain.order_scopes import BanBook, covers, scopes_of
from htfi.domain.orders import (
    AlertRaised,
    CancelRequest,
    LimitOverride,
    MassCancelRequest,
    NewOrder,
    OrderRejected,
    RejectedBy,
    TradingDisabled,
    TradingEnabled,
)
from htfi.domain.time import NS_PER_S
from htfi.governance.regulation.check import Check, CheckDefinition
from htfi.governance.regulation.findings import FindingLog, RuleRegime, Severity, Where
from htfi.governance.regulation.record import Observation, RecordReader

CANCEL_WITHIN_NS = NS_PER_S
ALERT_WITHIN_NS = 5 * NS_PER_S
MAX_OVERRIDE_NS = 24 * 3600 * NS_PER_S
MAX_WAITING = 50_000


class KillCheck(Check):
    """After a stop or a mass cancel every open order of the scope is asked to be cancelled, within a second."""

    def __init__(self, log: FindingLog, reader: RecordReader) -> None:
        super().__init__(log, reader)
        self._due: OrderedDict[str, tuple[int, str]] = OrderedDict()  # order → asked at, why

    def order(self, seen: Observation) -> None:
        event = seen.event
        while self._due:
            order_id, (asked_ns, why) = next(iter(self._due.items()))
            if seen.at_ns <= asked_ns + CANCEL_WITHIN_NS:
                break
            del self._due[order_id]
            self._late(order_id, asked_ns, why)
        if isinstance(event, TradingDisabled):
            self._ask(seen.at_ns, f"trading of {event.scope} was disabled", scope=event.scope)
        elif isinstance(event, MassCancelRequest):
            self._ask(seen.at_ns, "a mass cancel was asked", request=event)
        elif seen.order is not None and (isinstance(event, CancelRequest) or not seen.order.state.is_open):
            self._due.pop(seen.order.new.order_id, None)

    def finish(self, end_ns: int) -> None:
        for order_id, (asked_ns, why) in self._due.items():
            if end_ns > asked_ns + CANCEL_WITHIN_NS:
                self._late(order_id, asked_ns, why)
            else:
                self.log.cannot_judge("the record ends within a second of a stop")

    def _ask(
        self, at_ns: int, why: str, *, scope: str = "", request: MassCancelRequest | None = None
    ) -> None:
        self.log.judged()
        for order in self.reader.open_orders():
            reached = scope in scopes_of(order.new) if request is None else covers(request, order.new)
            if not reached or order.state.num_pending or len(self._due) >= MAX_WAITING:
                continue
            self._due.setdefault(order.new.order_id, (at_ns, why))

    def _late(self, order_id: str, asked_ns: int, why: str) -> None:
        order = self.reader.orders.get(order_id)
        if order is None:
            return
        self.log.found(
            Severity.BREACH,
            f"{why}, and the order was neither cancelled nor asked to be within {CANCEL_WITHIN_NS / NS_PER_S:g} s",
            Where(asked_ns, asked_ns, (order_id,), order.new.instrument, order.new.venue, order.party),
            {"open_lots": order.state.leaves},
        )


class DisabledCheck(Check):
    """No order is sent in a scope that is disabled, and only a named person enables it again."""

    def __init__(self, log: FindingLog, reader: RecordReader) -> None:
        super().__init__(log, reader)
        self._bans = BanBook()
        self._waiting: OrderedDict[str, str] = OrderedDict()

    def order(self, seen: Observation) -> None:
        event = seen.event
        if isinstance(event, TradingEnabled):
            self.log.judged()
            if not event.by.strip():
                self.log.found(
                    Severity.BREACH,
                    f"trading of {event.scope} was enabled again without naming the person",
                    Where(seen.at_ns, seen.at_ns, scope=event.scope),
                )
        self._bans.take(event)
        if seen.order is None:
            return
        order_id = seen.order.new.order_id
        if isinstance(event, NewOrder):
            scope = self._bans.of(event)
            self.log.judged()
            if scope and len(self._waiting) < MAX_WAITING:
                self._waiting[order_id] = scope
        elif isinstance(event, OrderRejected) and event.by is RejectedBy.GATE:
            self._waiting.pop(order_id, None)
        elif order_id in self._waiting:
            self._flush(order_id)

    def finish(self, end_ns: int) -> None:
        del end_ns
        for order_id in list(self._waiting):
            self._flush(order_id)

    def _flush(self, order_id: str) -> None:
        scope = self._waiting.pop(order_id)
        order = self.reader.orders.get(order_id)
        if order is not None:
            new = order.new
            self.log.found(
                Severity.BREACH,
                f"an order was sent while trading of {scope} was disabled",
                Where(new.at_ns, new.at_ns, (order_id,), new.instrument, new.venue, order.party, scope=scope),
            )


class OverrideCheck(Check):
    """An override is of one order, for a time, asked by one person and authorised by another."""

    def order(self, seen: Observation) -> None:
        event = seen.event
        if not isinstance(event, LimitOverride):
            return
        self.log.judged()
        wrong = [
            words
            for is_wrong, words in (
                (not event.asked_by.strip() or not event.authorised_by.strip(), "a person is not named"),
                (event.asked_by == event.authorised_by, "who asked for it authorised it"),
                (not event.why.strip(), "no reason is given"),
                (
                    not 0 < event.expires_at_ns - seen.at_ns <= MAX_OVERRIDE_NS,
                    "it does not expire within a day",
                ),
            )
            if is_wrong
        ]
        if wrong:
            self.log.found(
                Severity.BREACH,
                f"the limit {event.limit} was overridden: {'; '.join(wrong)}",
                Where(seen.at_ns, event.expires_at_ns, (event.order_id,)),
                {"asked_by": event.asked_by, "authorised_by": event.authorised_by},
            )


class AlertCheck(Check):
    """Alerts come within five seconds of the event; what the gate refuses and what is disabled raises one."""

    def __init__(self, log: FindingLog, reader: RecordReader) -> None:
        super().__init__(log, reader)
        self._due: OrderedDict[int, str] = OrderedDict()  # when → what
        self._has_alerts = False

    def order(self, seen: Observation) -> None:
        event = seen.event
        if isinstance(event, AlertRaised):
            self._has_alerts = True
            self.log.judged()
            lag_ns = seen.at_ns - event.event_at_ns
            self._due.pop(event.event_at_ns, None)
            if not 0 <= lag_ns <= ALERT_WITHIN_NS:
                self.log.found(
                    Severity.BREACH,
                    f"an alert came {lag_ns / NS_PER_S:.3f} s after its event, later than 5 s: {event.what[:80]}",
                    Where(event.event_at_ns, seen.at_ns, (event.order_id,) if event.order_id else ()),
                    {"lag_s": lag_ns / NS_PER_S},
                )
        elif isinstance(event, TradingDisabled):
            self._expect(seen.at_ns, f"trading of {event.scope} was disabled: {event.cause[:60]}")
        elif isinstance(event, OrderRejected) and event.by is RejectedBy.GATE:
            self._expect(seen.at_ns, f"the gate refused order {event.order_id}")

    def finish(self, end_ns: int) -> None:
        if not self._has_alerts:
            self.log.cannot_judge("the record has no alerts", max(1, len(self._due)))
            return
        for at_ns, what in self._due.items():
            if end_ns > at_ns + ALERT_WITHIN_NS:
                self.log.judged()
                self.log.found(Severity.BREACH, f"no alert was raised although {what}", Where(at_ns, at_ns))

    def _expect(self, at_ns: int, what: str) -> None:
        if len(self._due) < MAX_WAITING:
            self._due.setdefault(at_ns, what)


CONTROL_CHECKS = (
    CheckDefinition(
        "kill", "A stop cancels every open order",
        {RuleRegime.EU: "RTS 6 art. 12(1)", RuleRegime.US: "SEC 15c3-5(d)"},
        "disabled, mass_cancel, cancel, canceled", "without a stop or a mass cancel in the span", KillCheck,
    ),
    CheckDefinition(
        "disabled", "No order where trading is disabled",
        {RuleRegime.EU: "RTS 6 art. 12, 15(3), 15(5)", RuleRegime.US: "SEC 15c3-5(c)(2)(iii)"},
        "disabled, enabled, new, reject", "without orders", DisabledCheck,
    ),
    CheckDefinition(
        "override", "Overrides are exceptional and authorised by another person",
        {RuleRegime.EU: "RTS 6 art. 15(6)", RuleRegime.US: "SEC 15c3-5(d)"},
        "override", "without overrides in the span", OverrideCheck,
    ),
    CheckDefinition(
        "alerts", "Alerts within five seconds",
        {RuleRegime.EU: "RTS 6 art. 16(5)", RuleRegime.US: "SEC 15c3-5(c)(2)(iv)"},
        "alert, disabled, reject", "without alerts in the record", AlertCheck,
    ),
)  # fmt: skip
