"""Forks servers that may be killed: `htfi venue serve FILE`, or a live venue that goes on from its journal.

Reads lines of JSON from standard input: words of `htfi`, or `["counterparty", FOLDER, PORT]`, start a server; an empty
list kills the one that is there. Each is answered with a line.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path

from fix_counterparty import Counterparty, fill_all
from htfi.adapters.fix.connections import Acceptor
from htfi.adapters.fix.journal import MessageJournal
from htfi.adapters.fix.runner import SessionRunner
from htfi.apps.cli.main import main as htfi
from htfi.execution.fix.config import FixSession
from htfi.execution.fix.dictionary import load_dictionary
from htfi.execution.fix.messages import FixMessage, decode
from htfi.execution.fix.order_codes import Composed
from htfi.wiring import venue_server as venue_server  # so that no child has to import it

Answered = tuple[str, str, str]  # what an answer is to: type, ClOrdID, ExecID
FIX44 = load_dictionary("FIX44")


class KillableServer(AbstractContextManager["KillableServer"]):
    """One server at a time, in a child of a process that has imported everything."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def start(self, *words: object) -> None:
        self._order([str(one) for one in words])

    def kill(self) -> None:
        """By SIGKILL; it has ended then."""
        self._order([])

    def _order(self, words: list[str]) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(words).encode() + b"\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == b"done\n"

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)


class JournalCounterparty(Counterparty):
    """Answers each request once over kills: what its journal has received, without what it has sent."""

    def on_logon(self, runner: SessionRunner) -> None:
        sent = {_answered(one.msg_type, one.get(11), one.get(17)) for one in sent_messages(runner.journal)}
        self.orders.clear()
        self.unsent.clear()
        for _, frame in list(runner.journal.received()):
            message = _read(frame)
            self.unsent += [
                one
                for one in self.answer(self, message)
                if _answered(one[0], str(dict(one[1]).get(11)), str(dict(one[1]).get(17, ""))) not in sent
            ]
            if message.msg_type == "D":
                self.orders[message.get(11)] = message
        super().on_logon(runner)


def sent_messages(journal: MessageJournal) -> list[FixMessage]:
    """Application messages that a journal has as sent."""
    frames = [journal.sent(number) for number in range(1, journal.next_out)]
    return [_read(frame) for frame in frames if frame is not None]


def received_messages(journal: MessageJournal) -> list[FixMessage]:
    """Application messages that a journal has as received."""
    return [_read(frame) for _, frame in journal.received()]


def _answered(msg_type: str, cl_ord_id: str, exec_id: str) -> Answered:
    return msg_type, cl_ord_id, exec_id


def _read(frame: bytes) -> FixMessage:
    message = decode(frame, FIX44)
    assert isinstance(message, FixMessage)
    return message


def _answer(venue: Counterparty, message: FixMessage) -> list[Composed]:
    return [] if message.msg_type in ("3", "j") else fill_all(venue, message)


async def _serve_counterparty(folder: Path, port: int) -> None:
    settings = FixSession("XSIM", "HTFI", initiator=False)
    runner = SessionRunner(settings, MessageJournal(folder, sync=False), JournalCounterparty(_answer))
    await Acceptor([runner]).listen("127.0.0.1", port)
    await asyncio.Event().wait()


def _serve(words: list[str]) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    if words[0] == "counterparty":
        asyncio.run(_serve_counterparty(Path(words[1]), int(words[2])))
    else:
        sys.argv = ["htfi", *words]
        htfi()


def main() -> None:
    child = 0
    for line in sys.stdin:
        words: list[str] = json.loads(line)
        if words:
            child = os.fork()
            if child == 0:
                try:
                    _serve(words)
                finally:
                    os._exit(3)
        else:
            os.kill(child, signal.SIGKILL)
            status = os.waitpid(child, 0)[1]
            assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, "it had ended by itself"
        sys.stdout.write("done\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
