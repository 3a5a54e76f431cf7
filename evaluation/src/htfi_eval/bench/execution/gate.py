"""What the gate costs an order, and whether anything gets past it that a plain model of the rules would refuse."""

import gc
import random
import time
from collections import Counter
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from htfi.domain.decision import Receipt
from htfi.domain.orders import (
    DecisionNoted,
    InstrumentTerms,
    LimitsInForce,
    MarketSnapshot,
    OrderAcknowledged,
    OrderEvent,
    OrderFilled,
    OrderRejected,
    OrderSide,
    RejectedBy,
)
from htfi.execution.gate.judging import judge
from htfi.execution.gate.state import GateState
from htfi.execution.intents import Intent, OrderIntent
from htfi_eval.bench.execution.gate_model import refusals
from htfi_eval.bench.execution.random_flow import INTENTS_A_SESSION, RandomSession
from htfi_eval.results import PartFigures

NUM_TIMED, NUM_TIMED_QUICK = 50_000, 5_000
NUM_RANDOM, NUM_RANDOM_QUICK = 1_000_000, 4_000
SEED = 20
SECOND = 10**9


def figures(quick: bool) -> PartFigures:
    """gate_p99_us, gate_escapes."""
    times = time_gate(NUM_TIMED_QUICK if quick else NUM_TIMED)
    num = NUM_RANDOM_QUICK if quick else NUM_RANDOM
    found = compare(num, SEED)
    p50, p99 = (float(np.percentile(times, q)) for q in (50, 99))
    return PartFigures(
        title="The gate",
        metrics={
            "gate_p50_us": p50,
            "gate_p99_us": p99,
            "gate_escapes": float(found.num_escaped),
            "gate_over_refusals": float(found.num_refused_alone),
        },
        rows=[
            {
                "what": "an order that passes, receipt check included",
                "orders": len(times),
                "p50 µs": p50,
                "p99 µs": p99,
            },
            {
                "what": "random intents beside the plain model",
                "orders": num,
                "passed": found.num_passed,
                "escaped": found.num_escaped,
                "refused alone": found.num_refused_alone,
                "other reasons": found.num_other_reasons,
            },
        ],
        notes=[
            f"Each of {num:,} random intents is judged by the gate and by the model, which reads all events anew. "
            f"Refusals by check: {', '.join(f'{name} {count:,}' for name, count in found.by_check.most_common())}."
        ],
    )


def time_gate(num: int) -> list[float]:
    """Microseconds of judging orders that pass, each in a world that has grown by the one before."""
    state = GateState()
    state.apply(InstrumentTerms(at_ns=1, instrument="ACME", tick=Decimal("0.01")))
    for scope in ("firm", "desk:equities", "instrument:ACME"):
        state.apply(
            LimitsInForce(
                at_ns=1, scope=scope, price_collar=0.05, window_collar=0.1, max_book_distance=0.02,
                max_order_value=Decimal(10**7), max_order_quantity=10**6, max_messages_per_s=1_000,
                max_open_value=Decimal(10**9), max_position_value=Decimal(10**12), max_market_age_ns=SECOND,
                max_decision_age_ns=60 * SECOND, max_repeated_executions=90_000, max_identical_orders=3,
                restricted=("OTHER",),
            )
        )  # fmt: skip
    times: list[float] = []
    instrument, now = state.instruments["ACME"], SECOND
    gc.collect()
    gc.disable()
    try:
        for number in range(num):
            now += SECOND // 100
            state.apply(
                MarketSnapshot(
                    at_ns=now, instrument="ACME", venue="XSIM", bid=Decimal("99.99"), ask=Decimal("100.01")
                )
            )
            receipt = Receipt(number, "ab" * 32)
            state.apply(DecisionNoted(at_ns=now, receipt=receipt, instrument="ACME", is_released=True))
            is_buy = bool(number % 2)
            intent = OrderIntent(
                at_ns=now, order_id=f"o{number}", instrument="ACME", venue="XSIM",
                side=OrderSide.BUY if is_buy else OrderSide.SELL, lots=100, price_ticks=9_999 if is_buy else 10_001,
                receipt=receipt, algo="trend", desk="equities", trader="ann", client="fund",
            )  # fmt: skip
            began = time.perf_counter_ns()
            objections = judge(state, intent)
            times.append((time.perf_counter_ns() - began) / 1e3)
            assert not objections, objections
            state.apply(intent.message(instrument))
            state.apply(OrderAcknowledged(at_ns=now, order_id=intent.order_id))
            state.apply(
                OrderFilled(
                    at_ns=now, order_id=intent.order_id, exec_id="e", quantity=100, price=Decimal("100.00")
                )
            )
    finally:
        gc.enable()
    return times


class GateComparison(NamedTuple):
    """Random intents judged by the gate and by the model: how many pass both, what differs, with an example."""

    num_passed: int
    num_escaped: int
    num_refused_alone: int
    num_other_reasons: int
    by_check: Counter[str]
    example: str


def compare(num: int, seed: int) -> GateComparison:
    """Judge random intents by the gate and by the model."""
    counts: Counter[str] = Counter()
    by_check: Counter[str] = Counter()
    example = ""
    for session in range(max(1, num // INTENTS_A_SESSION)):
        for intent, gate, model in judged_session(seed * 1_000_003 + session):
            by_check.update(model)
            if gate == model:
                counts["passed"] += not gate
                continue
            kind = "other reasons" if gate and model else "escaped" if model else "refused alone"
            counts[kind] += 1
            example = example or f"session {session}: {intent}: gate {sorted(gate)}, model {sorted(model)}"
    return GateComparison(
        counts["passed"],
        counts["escaped"],
        counts["refused alone"],
        counts["other reasons"],
        by_check,
        example,
    )


def judged_session(seed: int) -> list[tuple[Intent, set[str], set[str]]]:
    """Each intent of a random session with the checks that the gate and the model name."""
    session = RandomSession(random.Random(seed))
    state = GateState()
    events: list[OrderEvent] = []

    def happen(event: OrderEvent) -> None:
        events.append(event)
        for follow in state.apply(event):
            happen(follow)

    for event in session.start():
        happen(event)
    judged: list[tuple[Intent, set[str], set[str]]] = []
    for _ in range(INTENTS_A_SESSION):
        for event in session.between():
            happen(event)
        intent = session.next_intent()
        gate = {one.check.value for one in judge(state, intent)}
        judged.append((intent, gate, refusals(events, intent)))
        request = intent.message(state.instruments.get(_symbol(state, intent)))
        if not gate:
            happen(request)
            session.sent(intent)
        elif isinstance(intent, OrderIntent) and intent.order_id and intent.order_id not in state.orders:
            happen(request)
            happen(OrderRejected(at_ns=intent.at_ns, order_id=intent.order_id, by=RejectedBy.GATE))
    return judged


def _symbol(state: GateState, intent: Intent) -> str:
    if isinstance(intent, OrderIntent):
        return intent.instrument
    order = state.orders.get(intent.order_id)
    return "" if order is None else order.new.instrument
