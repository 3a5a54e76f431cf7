"""Cancelling a thousand open orders by FIX: at a counterparty on another thread, over loopback."""

import asyncio
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from htfi.domain.orders import MassCancelRequest
from htfi.execution.fix.config import FixSession
from htfi.execution.fix.messages import FixMessage
from htfi.execution.fix.order_codes import Composed
from htfi.execution.order_entry import OrderEntry
from htfi.wiring.fix import (
    Acceptor,
    FixEndpoint,
    SessionRunner,
    open_fix_session,
    open_live_venue,
)
from htfi.wiring.order_record import RecordedOrders
from htfi_eval.bench.execution.orders import NUM_CANCELS, SECOND, order, put_in_force, quote
from htfi_eval.results import PartFigures

NUM_ROUNDS, NUM_ROUNDS_QUICK = 7, 1
VENUE, CLIENT = FixSession("XSIM", "HTFI", initiator=False), FixSession("HTFI", "XSIM")


class AcknowledgingVenue:
    """Acknowledges each order; cancels by mass cancels and by single requests."""

    def __init__(self) -> None:
        self.orders: dict[str, FixMessage] = {}
        self.num_cancels = 0

    def on_logon(self, runner: SessionRunner) -> None: ...

    def on_disconnect(self, runner: SessionRunner, why: str) -> None: ...

    def on_message(self, runner: SessionRunner, message: FixMessage) -> None:
        """Answer a request."""
        name = message.get(11)
        if message.msg_type == "D":
            self.orders[name] = message
            runner.send(*_report(message, f"A{name}", "0"))
        elif message.msg_type == "F":
            runner.send(*_report(self.orders.pop(message.get(41)), f"C{name}", "4"))
        elif message.msg_type == "q":
            runner.send("r", [(11, name), (37, "V"), (530, "7"), (531, "7")])
            for each in self.orders.values():
                runner.send(*_report(each, f"C{each.get(11)}", "4"))
            self.orders.clear()


def _report(about: FixMessage, exec_id: str, kind: str) -> Composed:
    fields = {37: "V", 11: about.get(11), 17: exec_id, 150: kind, 39: kind, 55: about.get(55), 54: about.get(54),
              151: "0", 14: "0", 6: "0", 60: about.get(60)}  # fmt: skip
    return "8", list(fields.items())


@contextmanager
def _listening(folder: Path) -> Generator[int]:
    """The port of a venue on a thread."""
    loop = asyncio.new_event_loop()
    ready, over = threading.Event(), asyncio.Event()
    port = 0

    async def serve() -> None:
        nonlocal port
        runner = open_fix_session(VENUE, folder / "venue", AcknowledgingVenue(), sync=False)
        acceptor = Acceptor([runner])
        port = await acceptor.listen("127.0.0.1", 0)
        ready.set()
        await over.wait()
        await acceptor.close()
        runner.journal.close()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    ready.wait()
    try:
        yield port
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()


def cancel_ms(folder: Path, *, mass_cancel: bool) -> tuple[float, float]:
    """Milliseconds until the cancels of all open orders have left, and until all are reported and recorded."""
    folder.mkdir()
    with _listening(folder) as port:
        endpoint = FixEndpoint(CLIENT, port=port, journal=str(folder / "run"))
        endpoint = replace(endpoint, orders=replace(endpoint.orders, mass_cancel=mass_cancel))
        log = RecordedOrders(folder)
        with open_live_venue("XSIM", endpoint, "b-", log.log) as link:
            entry = OrderEntry(log, {"XSIM": link})
            try:
                return _cancelled_ms(entry)
            finally:
                log.close()


def _cancelled_ms(entry: OrderEntry) -> tuple[float, float]:
    put_in_force(entry, 1)
    now = SECOND
    entry.observe(quote(0, now))
    orders = [order(number, 0, now) for number in range(NUM_CANCELS)]
    entry.put_in_force([note for note, _ in orders])
    refused = [one for one in entry.submit([intent for _, intent in orders]) if one.objections]
    assert not refused, refused[0]
    while len(entry.receive(entry.next_reports(now, NUM_CANCELS))) > 0:
        pass
    assert len(entry.open_orders()) == NUM_CANCELS
    began = time.perf_counter()
    entry.cancel_all(MassCancelRequest(at_ns=now, by="bench", why="bench"))
    left = time.perf_counter()
    while entry.open_orders():
        assert entry.receive(entry.next_reports(now, NUM_CANCELS)), "the venue has not cancelled all"
    return (left - began) * 1e3, (time.perf_counter() - began) * 1e3


def figures(quick: bool) -> PartFigures:
    """fix_cancel_1000_ms."""
    rounds = NUM_ROUNDS_QUICK if quick else NUM_ROUNDS
    with TemporaryDirectory(prefix="htfi-cancels-") as scratch:
        found = {
            is_mass: np.array(
                [cancel_ms(Path(scratch, f"{is_mass}{n}"), mass_cancel=is_mass) for n in range(rounds)]
            )
            for is_mass in (True, False)
        }
    together, singly = (np.median(found[is_mass], axis=0) for is_mass in (True, False))
    rows: list[dict[str, Any]] = [
        {
            "what": f"{NUM_CANCELS:,} cancels by {how}",
            "left after ms": one[0],
            "all reported after ms": one[1],
        }
        for how, one in (("one mass cancel (q)", together), ("single requests (F)", singly))
    ]
    return PartFigures(
        title="Mass cancel by FIX",
        metrics={"fix_cancel_1000_ms": float(together[0])},
        rows=rows,
        notes=[
            "Recorded durably, in the synced journal, and written to the socket; the venue is a thread of the same "
            "process, which takes its part of the time until all is reported.",
        ],
    )
