"""FIX: our share of an order's round trip, in processor time, beside simplefix; the round trip with jspurefix."""

import asyncio
import shutil
import socket
import time
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from htfi.domain.errors import DependencyUnavailable, is_installed
from htfi.domain.order_states import OrderState, OrderStatus
from htfi.domain.orders import NewOrder, OrderAcknowledged, OrderSide
from htfi.execution.fix.config import FixSession
from htfi.execution.fix.execution_reports import execution_report, read_report
from htfi.execution.fix.messages import FixMessage
from htfi.execution.fix.order_codes import OrderContext
from htfi.execution.fix.order_requests import order_request
from htfi.wiring.fix import SessionRunner, fix_initiator, open_fix_session
from htfi_eval.results import PartFigures

NUM_ORDERS, NUM_QUICK = 20_000, 700
NUM_TRIPS, NUM_TRIPS_QUICK = 2_000, 200
NUM_WARM = 200
VERSIONS = ("FIX.4.4", "FIX.5.0SP2")
COUNTERPARTY = Path("tests/jspurefix/counterparty.mjs")
ENGINE = Path("build/jspurefix")  # where `make test-all` installs jspurefix
CLIENT, VENUE = FixSession("HTFI", "VENUE"), FixSession("VENUE", "HTFI", initiator=False)


class WrittenBytes:
    """A connection that keeps what is written."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data

    def close(self) -> None: ...

    def take(self) -> bytes:
        data, self.data = self.data, b""
        return data


class NewestMessage:
    """An application that keeps the newest message."""

    def __init__(self) -> None:
        self.newest: FixMessage | None = None
        self.arrived = asyncio.Event()
        self.is_ready = asyncio.Event()

    def on_logon(self, runner: SessionRunner) -> None:
        del runner
        self.is_ready.set()

    def on_message(self, runner: SessionRunner, message: FixMessage) -> None:
        del runner
        self.newest = message
        self.arrived.set()

    def on_disconnect(self, runner: SessionRunner, why: str) -> None: ...


def figures(quick: bool) -> PartFigures:
    """fix_share_p50_us, fix_share_p99_us (the worse of both versions), fix_roundtrip_p50_us, fix_share_vs_simplefix."""
    rows: list[dict[str, Any]] = []
    shares: list[tuple[float, float]] = []
    frame = b""
    for version in VERSIONS:
        out_us, in_us, frame = asyncio.run(_shares(version, NUM_QUICK if quick else NUM_ORDERS))
        both = [out + back for out, back in zip(out_us, in_us, strict=True)]
        rows += [
            _row(f"{version}: order to bytes, written down", out_us),
            _row(f"{version}: bytes to report, checked, written down", in_us),
            _row(f"{version}: our share of a round trip", both),
        ]
        shares.append((float(np.percentile(both, 50)), float(np.percentile(both, 99))))
    p50, p99 = max(share[0] for share in shares), max(share[1] for share in shares)
    peer = _simplefix_us(frame, NUM_QUICK)
    if peer is not None:
        rows.append(_row("simplefix: parse of the report alone, nothing checked", peer))
    trips = asyncio.run(_round_trips(NUM_TRIPS_QUICK if quick else NUM_TRIPS))
    notes = ["Processor time of one thread; the journal is written and not synced."]
    if trips is None:
        notes.append(
            f"No round trip: node, {ENGINE} or {COUNTERPARTY} is missing; `make test-all` installs them."
        )
    else:
        rows.append(_row("round trip over loopback with jspurefix", trips))
    return PartFigures(
        title="FIX",
        metrics={
            "fix_share_p50_us": p50,
            "fix_share_p99_us": p99,
            "fix_roundtrip_p50_us": None if trips is None else float(np.percentile(trips, 50)),
            "fix_share_vs_simplefix": None if peer is None else p50 / float(np.percentile(peer, 50)),
        },
        rows=rows,
        notes=notes,
    )


def _row(what: str, micros: Sequence[float]) -> dict[str, Any]:
    return {
        "what": what,
        "p50 µs": float(np.percentile(micros, 50)),
        "p99 µs": float(np.percentile(micros, 99)),
    }


def _order(number: int) -> NewOrder:
    return NewOrder(
        at_ns=time.time_ns(), order_id=f"O{number}", instrument="IBM", venue="XNYS", side=OrderSide.BUY, quantity=100,
        price=Decimal("101.25"), client="acme", trader="ann", account="A7",
    )  # fmt: skip


async def _shares(version: str, num_orders: int) -> tuple[list[float], list[float], bytes]:
    """Microseconds of each order out and of each report in, and a report."""
    with TemporaryDirectory(prefix="htfi-fix-") as scratch:
        pipes, inboxes = (WrittenBytes(), WrittenBytes()), (NewestMessage(), NewestMessage())
        client, venue = (
            open_fix_session(
                replace(settings, version=version), Path(scratch, settings.sender), inbox, sync=False
            )
            for settings, inbox in zip((CLIENT, VENUE), inboxes, strict=True)
        )
        venue.connect(pipes[1])
        client.connect(pipes[0])
        venue.receive(pipes[0].take())
        client.receive(pipes[1].take())
        dictionary = client.dictionary
        order_ids = {f"O{number}": f"O{number}" for number in range(num_orders)}
        out_us: list[float] = []
        in_us: list[float] = []
        report = b""
        for number in range(num_orders):
            order = _order(number)
            begin = time.thread_time_ns()
            client.send(*order_request(order, order.order_id, dictionary))
            sent = time.thread_time_ns()
            venue.receive(pipes[0].take())
            acknowledged = OrderAcknowledged(
                at_ns=order.at_ns, order_id=order.order_id, venue_order_id=f"V{number}"
            )
            context = OrderContext(
                order, order.order_id, OrderState(OrderStatus.NEW, order.quantity), order.price
            )
            venue.send(*execution_report(acknowledged, context, f"E{number}", dictionary))
            report = pipes[1].take()
            received = time.thread_time_ns()
            client.receive(report)
            message = inboxes[0].newest
            events = read_report(message, order_ids) if message is not None else ()
            end = time.thread_time_ns()
            if not isinstance(events, tuple) or len(events) != 1:
                raise AssertionError(f"the report of order {number} was not read: {events}")
            out_us.append((sent - begin) / 1e3)
            in_us.append((end - received) / 1e3)
        client.lose("the measurement ends")
        venue.lose("the measurement ends")
        client.journal.close()
        venue.journal.close()
    return out_us[NUM_WARM:], in_us[NUM_WARM:], report


def _simplefix_us(frame: bytes, num_parses: int) -> list[float] | None:
    if not is_installed("simplefix"):
        return None
    simplefix: Any = import_module("simplefix")
    micros: list[float] = []
    for _ in range(num_parses):
        begin = time.thread_time_ns()
        parser = simplefix.FixParser()
        parser.append_buffer(frame)
        parser.get_message()
        micros.append((time.thread_time_ns() - begin) / 1e3)
    return micros[NUM_WARM:]


async def _round_trips(num_trips: int) -> list[float] | None:
    """Microseconds by the clock of an order and its report, one after the other; None without the counterparty."""
    if (
        shutil.which("node") is None
        or not (ENGINE / "node_modules/jspurefix").is_dir()
        or not COUNTERPARTY.is_file()
    ):
        return None
    shutil.copy(COUNTERPARTY, ENGINE / COUNTERPARTY.name)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = int(server.getsockname()[1])
    settings = FixSession("HTFI", "PEER", reset_on_logon=True)  # as its program names both
    process = await asyncio.create_subprocess_exec(
        "node", COUNTERPARTY.name, "acceptor", str(port), "0", settings.version, cwd=ENGINE, stdout=PIPE
    )
    micros: list[float] = []
    try:
        with TemporaryDirectory(prefix="htfi-fix-") as scratch:
            inbox = NewestMessage()
            runner = open_fix_session(settings, Path(scratch), inbox, sync=False)
            initiator = fix_initiator(settings, runner, "127.0.0.1", port, reconnect_s=0.05)
            running = asyncio.ensure_future(initiator.run())
            await asyncio.wait_for(inbox.is_ready.wait(), 30.0)
            for number in range(num_trips + NUM_WARM):
                order = _order(number)
                inbox.arrived.clear()
                begin = time.perf_counter_ns()
                runner.send(*order_request(order, order.order_id, runner.dictionary))
                await asyncio.wait_for(inbox.arrived.wait(), 10.0)
                micros.append((time.perf_counter_ns() - begin) / 1e3)
            initiator.close()
            await running
            runner.journal.close()
    except TimeoutError as error:
        raise DependencyUnavailable(
            f"jspurefix in {ENGINE} does not answer: remove the folder, and install it with `make test-all`"
        ) from error
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
    return micros[NUM_WARM:]
