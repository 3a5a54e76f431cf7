"""SIGKILL of either side of a FIX session at random instants: no order or report is lost, doubled or out of order."""

import asyncio
import os
import random
import signal
import socket
import time
from pathlib import Path

import pytest

from fix_peer import CLIENT, VENUE, Recorder, order_fields, report_fields, until
from htfi.adapters.fix.connections import Acceptor, Initiator
from htfi.adapters.fix.journal import MessageJournal
from htfi.adapters.fix.runner import SessionRunner
from htfi.adapters.fix.settings import FixEndpoint
from htfi.domain.errors import DependencyUnavailable, IntegrityError
from htfi.execution.fix.dictionary import load_dictionary
from htfi.execution.fix.messages import FixMessage, decode

FIX44 = load_dictionary("FIX44")


def sent_ids(journal: MessageJournal) -> list[str]:
    """ClOrdID of what a side has written down as sent, in order."""
    frames = [journal.sent(number) for number in range(1, journal.next_out)]
    return [id_of(frame) for frame in frames if frame is not None]


def received_ids(journal: MessageJournal) -> list[str]:
    return [id_of(frame) for _, frame in journal.received()]


def id_of(frame: bytes) -> str:
    message = decode(frame, FIX44)
    assert isinstance(message, FixMessage)
    return message.get(11)


class Venue(Recorder):
    """Answers each order once: after a crash those that its journal has without an answer."""

    def on_logon(self, runner: SessionRunner) -> None:
        answered = set(sent_ids(runner.journal))
        for number, frame in list(runner.journal.received()):
            if id_of(frame) not in answered:
                self.answer(runner, decode(frame, FIX44), number)

    def on_message(self, runner: SessionRunner, message: FixMessage) -> None:
        if runner.is_logged_on:
            self.answer(runner, message, message.sequence or 0)

    def answer(self, runner: SessionRunner, order: object, number: int) -> None:
        assert isinstance(order, FixMessage)
        runner.send("8", report_fields(order, number))


async def run_venue(folder: Path, port: int) -> None:
    runner = SessionRunner(VENUE, MessageJournal(folder), Venue())
    acceptor = Acceptor([runner])
    await acceptor.listen("127.0.0.1", port)
    await asyncio.Event().wait()


async def run_client(folder: Path, port: int) -> None:
    """Sends order after order, from the number that its journal has come to."""
    runner = SessionRunner(CLIENT, MessageJournal(folder), Recorder())
    endpoint = FixEndpoint(CLIENT, "127.0.0.1", port, reconnect_s=0.005, max_reconnect_s=0.01)
    running = asyncio.ensure_future(Initiator(endpoint, runner).run())
    number = len(sent_ids(runner.journal))
    while not running.done():
        if runner.is_logged_on:
            runner.send("D", order_fields(f"O{number}"))
            number += 1
        await asyncio.sleep(0.0005)


def start(side: str, folder: Path, port: int) -> int:
    """A process of one side; its number."""
    process = os.fork()
    if process == 0:  # the child never returns into the test
        try:
            asyncio.run((run_venue if side == "venue" else run_client)(folder / side, port))
        finally:
            os._exit(3)
    return process


def kill(process: int) -> None:
    os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL


async def finish(folder: Path, port: int) -> None:
    """The client sends no more, and waits until each order has its report."""
    client = Recorder()
    runner = SessionRunner(CLIENT, MessageJournal(folder / "client"), client)
    endpoint = FixEndpoint(CLIENT, "127.0.0.1", port, reconnect_s=0.005, max_reconnect_s=0.01)
    initiator = Initiator(endpoint, runner)
    running = asyncio.ensure_future(initiator.run())
    num_orders = len(sent_ids(runner.journal))
    await until(lambda: len(list(runner.journal.received())) >= num_orders, "a report for each order", 60.0)
    initiator.close()
    await running
    runner.journal.close()


def wait_for_growth(path: Path, num_bytes: int) -> None:
    """Until a journal has grown by so much, so that each kill comes among orders, however slow the machine."""
    start = path.stat().st_size if path.exists() else 0
    for _ in range(60_000):
        if path.exists() and path.stat().st_size >= start + num_bytes:
            return
        time.sleep(0.0005)
    raise AssertionError(f"{path} has not grown by {num_bytes} bytes")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def kill_at_random(folder: Path, seed: int, num_kills: int) -> int:
    """How many orders were sent while sides were killed; fails where one was lost or doubled."""
    rng = random.Random(seed)
    port = free_port()
    processes = {side: start(side, folder, port) for side in ("venue", "client")}
    try:
        for _ in range(num_kills):
            wait_for_growth(folder / "venue" / "messages.bin", rng.randrange(200, 2_500))
            time.sleep(rng.uniform(0.0, 0.004))
            side = rng.choice(("venue", "client"))
            kill(processes.pop(side))
            processes[side] = start(side, folder, port)
        kill(processes.pop("client"))
        asyncio.run(finish(folder, port))
    finally:
        for process in processes.values():
            kill(process)
    client, venue = MessageJournal(folder / "client"), MessageJournal(folder / "venue")
    orders = [f"O{number}" for number in range(len(sent_ids(client)))]
    assert sent_ids(client) == orders
    assert received_ids(venue) == orders
    assert sorted(sent_ids(venue)) == sorted(orders)
    assert received_ids(client) == sent_ids(venue)
    client.close()
    venue.close()
    return len(orders)


def test_killed_sides_lose_and_double_no_order(tmp_path: Path) -> None:
    assert kill_at_random(tmp_path, 1, 8) > 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_a_hundred_kills_lose_and_double_no_order(tmp_path: Path, seed: int) -> None:
    assert kill_at_random(tmp_path, 100 + seed, 100) > 100


@pytest.mark.parametrize("cut", range(1, 60))
def test_record_that_was_cut_off_counts_as_not_written(tmp_path: Path, cut: int) -> None:
    journal = MessageJournal(tmp_path, sync=False)
    journal.add_sent(1, b"")
    journal.add_sent(2, b"first" * 5)
    journal.add_received(7, b"second" * 8)
    journal.flush()
    journal.close()
    path = tmp_path / "messages.bin"
    path.write_bytes(path.read_bytes()[:-cut])
    again = MessageJournal(tmp_path, sync=False)
    assert (again.next_out, again.next_in) == (3, 1)
    assert [again.sent(1), again.sent(2), list(again.received())] == [None, b"first" * 5, []]
    again.add_received(7, b"second")
    again.flush()
    assert list(again.received()) == [(7, b"second")]
    again.close()


def test_altered_journal_is_refused(tmp_path: Path) -> None:
    journal = MessageJournal(tmp_path, sync=False)
    for number in range(1, 5):
        journal.add_sent(number, b"message %d" % number)
    journal.flush()
    journal.close()
    path = tmp_path / "messages.bin"
    data = bytearray(path.read_bytes())
    data[40] ^= 1
    path.write_bytes(data)
    with pytest.raises(IntegrityError, match="the record at byte 26 was altered"):
        MessageJournal(tmp_path)


def test_reset_keeps_what_was_before_it_in_another_file(tmp_path: Path) -> None:
    journal = MessageJournal(tmp_path, sync=False)
    for _ in range(2):
        journal.add_sent(1, b"order")
        journal.reset()
        assert (journal.next_out, journal.next_in, journal.sent(1)) == (1, 1, None)
    journal.close()
    assert sorted(path.name for path in tmp_path.glob("*.bin")) == [
        "messages-000001.bin", "messages-000002.bin", "messages.bin",
    ]  # fmt: skip


def test_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DependencyUnavailable, match="cannot open the FIX journal: Not a directory"):
        MessageJournal(tmp_path / "file" / "folder")
