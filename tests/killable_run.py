"""Runs `htfi` commands in children of one process that has imported everything; a child fails where it is asked to.

Reads one order as JSON from each line of standard input and answers with the child's status, negative for a signal, and
what it said on standard error. `after_s` kills it so long after it began. `point` and `count` name the count-th time
that the child comes to a place (`POINTS`); there it is killed, or, with `act` "full", may write to no file any more.
`share` is the share of a group's lines that is in decisions.jsonl when it fails there. `since` names a place that the
child must have come to before its calls of `point` count. A child that `learns` says at its end what it has imported.
"""

import gc
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from htfi.adapters.feeds.spool import SpoolReader
from htfi.adapters.fix.journal import MessageJournal
from htfi.adapters.fix.session_thread import SessionThread
from htfi.adapters.fix.stepped_link import SteppedVenueLink
from htfi.adapters.stores import decision_table
from htfi.adapters.stores.decisions import DecisionJournal
from htfi.adapters.stores.held_news import HeldNewsFile, QuarantineFile
from htfi.adapters.stores.order_log import OrderLog
from htfi.adapters.stores.snapshot import SnapshotFile
from htfi.adapters.stores.sqlite_log import SqliteLog
from htfi.apps.cli import run as run_command
from htfi.apps.cli.main import main as htfi
from htfi.pipeline.governed import RunGovernance
from htfi.pipeline.recorder import DecisionRecorder
from htfi.simulation.venue.simulated import SimulatedVenue
from htfi.wiring import ledger, outputs
from htfi.wiring import run as run_wiring
from htfi.wiring.ledger import open_ledger_readonly
from htfi.wiring.outputs import check_outputs

OFTEN = {"HTFI_PIPELINE__SNAPSHOT_S": "0.05", "HTFI_PIPELINE__GROUP_MS": "1"}


FILES = ("decisions.jsonl", "decisions.parquet", "quarantine.jsonl", "settings.json")


class RunOutcome(NamedTuple):
    """What a run has recorded, and the bytes of `FILES` beside it."""

    size: int
    root: bytes
    files: list[bytes]


def outcome(folder: Path) -> RunOutcome:
    """What a run left, after a look that the ledger and all files beside it hold."""
    log = open_ledger_readonly(folder)
    try:
        audit = log.verify()
        assert check_outputs(folder, log)[1] == []
    finally:
        log.close()
    return RunOutcome(audit.size, audit.root, [(folder / name).read_bytes() for name in FILES])


class KillableRuns(AbstractContextManager["KillableRuns"]):
    """The process that starts the children."""

    def __init__(self) -> None:
        self.said = ""
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **OFTEN},
        )

    def run(self, *words: object, **order: object) -> int:
        """The status of `htfi WORDS`, negative for the signal that ended it; `said` is what it said of errors."""
        order["words"] = [str(word) for word in words]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()
        status, self.said = json.loads(self._process.stdout.readline())
        return status

    def import_what_is_needed(self, *words: object) -> None:
        """Run `htfi WORDS`, and import all that it imports."""
        assert self.run(*words, learns=True) == 0, self.said

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)


def _before(owner: Any, name: str, count: int, act: Callable[..., None]) -> None:
    """Have `act` called, with the same arguments, before the count-th call of a function, of those of a writer that has
    something to write.
    """
    replaced, calls = getattr(owner, name), iter(range(1, sys.maxsize))

    def counting(*arguments: Any, **more: Any) -> Any:
        if getattr((*arguments, None)[0], "_pending", True) and next(calls) == count:
            act(*arguments)
        return replaced(*arguments, **more)

    setattr(owner, name, counting)


# Places of a run, by what happens next there.
POINTS: dict[str, tuple[Any, str]] = {
    "ledger is made": (ledger, "create_store"),
    "ledger": (SqliteLog, "append"),
    "lines": (DecisionJournal, "flush"),
    "quarantine": (QuarantineFile, "_flush"),
    "state": (SnapshotFile, "save"),
    "outputs": (run_command, "write_outputs"),
    "table": (decision_table, "_batch"),
    "report": (import_module("htfi.apps.cli.report.command"), "write_atomically"),
    "checkpoint": (SqliteLog, "publish"),
    "signing key": (ledger, "create_key"),
    "settings": (run_wiring, "write_whole"),
    "content marking": (outputs, "write_atomically"),
    "held news": (HeldNewsFile, "hold"),
    "sorted rows": (SpoolReader, "_sort"),
    "orders": (OrderLog, "append"),
    "order is sent": (SimulatedVenue, "send"),
    "order is sent by FIX": (SteppedVenueLink, "send"),
    "trip": (RunGovernance, "log_changes"),  # a breaker has changed, and nothing says so yet
    "message is sent": (SessionThread, "post"),
    "message is written": (MessageJournal, "flush"),
}


def arm(point: str, count: int, share: float, act: str, since: str = "") -> None:
    """Have the child fail at a point, before what happens next there; at "receipt" once a group is released."""
    if since:
        _before(*POINTS[since], 1, lambda *_: arm(point, count, share, act))
        return

    def fail(*arguments: Any) -> None:
        if act == "full":
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
            return
        if arguments and isinstance(arguments[0], DecisionJournal):
            lines = b"".join(arguments[0]._pending)
            os.write(arguments[0]._file, lines[: round(share * len(lines))])
        os.kill(os.getpid(), signal.SIGKILL)

    if point in POINTS:
        _before(*POINTS[point], count, fail)
        return
    assert point == "receipt"
    made = DecisionRecorder.__init__

    def with_failing_subscriber(recorder: DecisionRecorder, *arguments: Any, **more: Any) -> None:
        made(recorder, *arguments, **more)
        _before(recorder, "subscriber", count, fail)

    DecisionRecorder.__init__ = with_failing_subscriber


def run_child(
    words: list[str],
    errors: int,
    point: str = "",
    count: int = 1,
    share: float = 0.0,
    act: str = "die",
    since: str = "",
    learns: bool = False,
) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor, taken in ((0, nothing), (1, nothing), (2, errors)):
        os.dup2(taken, descriptor)
    if point:
        arm(point, count, share, act, since)
    status = 1
    try:
        sys.argv = ["htfi", *words]
        htfi()
    except SystemExit as ending:
        status = ending.code if isinstance(ending.code, int) else 1
    finally:
        if learns:
            os.write(errors, b"\n" + json.dumps([*sys.modules]).encode())
        os._exit(status)


def import_all(names: list[str]) -> None:
    """So that no child has to: half of a short run's time is its imports."""
    for name in names:
        with suppress(Exception):
            import_module(name)
    gc.freeze()


def answer(status: int, said: str = "") -> None:
    sys.stdout.write(json.dumps([status, said]) + "\n")
    sys.stdout.flush()


def main() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        after_s = order.pop("after_s", None)
        reads, writes = os.pipe()
        child = os.fork()
        if child == 0:
            run_child(errors=writes, **order)
        os.close(writes)
        if after_s is not None:
            time.sleep(after_s)
            os.kill(child, signal.SIGKILL)  # a child that has ended is still there to be waited for
        with os.fdopen(reads) as errors:
            said = errors.read()
        if order.get("learns"):
            said, _, names = said.rpartition("\n")
            import_all(json.loads(names))
        _, status = os.waitpid(child, 0)
        answer(os.waitstatus_to_exitcode(status), said)


if __name__ == "__main__":
    main()
