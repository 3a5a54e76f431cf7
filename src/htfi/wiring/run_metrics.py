"""What a run has counted already, as metrics: read when somebody asks, in the thread that asks."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from htfi.domain.time import NS_PER_S
from htfi.pipeline.point_telemetry import MeasuredPoints, PointTelemetry
from htfi.telemetry import catalogue
from htfi.telemetry.metrics import Reading
from htfi.wiring.ledger import DATABASE

if TYPE_CHECKING:  # a run without telemetry loads none of this
    from htfi.wiring.run import OpenRun


def run_readings(run: "OpenRun", folder: Path, points: PointTelemetry) -> Iterator[Reading]:
    """The figures of an open run in its folder."""
    loop = run.loop
    recorder, components = loop.recorder, loop.components
    yield catalogue.EVENTS, (), float(loop.num_events)
    yield catalogue.FEED_TIME, (), loop.now_ns / NS_PER_S
    yield catalogue.AMENDMENTS, (), float(recorder.num_amended)
    yield catalogue.WAITING_DECISIONS, (), float(components.governance.waiting.num_waiting)
    yield catalogue.LEDGER_ENTRIES, (), float(run.ledger.size)
    yield catalogue.LEDGER_BYTES, (), float(_ledger_bytes(folder))
    for reason, num in run.quarantine.counts().items():
        yield catalogue.QUARANTINED_ROWS, (reason,), float(num)
    yield from _governance_readings(run)
    for rung, stats in components.views.speculation_stats.items():
        label = (rung.value,)
        yield catalogue.ANSWERS, label, float(stats.num_answers)
        yield catalogue.TOKENS, label, float(stats.num_tokens)
        yield catalogue.PASSES, label, float(stats.num_passes)
        yield catalogue.DRAFTED, label, float(stats.num_drafted)
        yield catalogue.ACCEPTED, label, float(stats.num_accepted)
    if isinstance(points, MeasuredPoints):
        yield catalogue.COVERED, (), float(points.num_outcomes)
        if points.num_outcomes:
            yield catalogue.COVERAGE, (), points.num_covered / points.num_outcomes
    if run.orders is not None:
        yield catalogue.GATE_REFUSALS, (), float(run.orders.trader.num_refused)
        accounts = run.orders.accounts()
        yield catalogue.ORDERS, (), float(len(accounts.orders))
        yield catalogue.ORDER_REJECTIONS, (), float(accounts.num_refused)
        yield catalogue.FILLS, (), float(accounts.num_fills)


def _governance_readings(run: "OpenRun") -> Iterator[Reading]:
    state = run.loop.components.governance.state_now
    num_half_open = len(state.half_open)
    yield catalogue.BREAKERS, ("open",), float(len(state.breakers) - num_half_open)
    yield catalogue.BREAKERS, ("half_open",), float(num_half_open)
    yield catalogue.STOPS, (), float(len(state.stops))


def _ledger_bytes(folder: Path) -> int:
    """The database with its write-ahead log."""
    total = 0
    for file in (folder / DATABASE, folder / f"{DATABASE}-wal"):
        try:
            total += file.stat().st_size
        except OSError:  # the log is not there
            continue
    return total
