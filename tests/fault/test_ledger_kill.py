"""SIGKILL at any moment: every receipted entry is there again, the tree is whole, the lock is free."""

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from htfi.wiring.ledger import open_ledger

ORIGIN = "htfi.example/kill"

# Appends groups of 1–40 entries for ever; says how many are receipted, after each receipt.
WRITER = """
import sys
from pathlib import Path
from htfi.wiring.ledger import open_ledger
print("ready", flush=True)
log = open_ledger(Path(sys.argv[1]), origin="htfi.example/kill")
group = 0
while True:
    group = group % 40 + 1
    entries = [b"%d:" % index + b"x" * 500 for index in range(log.size, log.size + group)]
    receipts = log.append(entries)
    print(receipts[-1].index + 1, flush=True)
"""


def kill_writer_after(folder: Path, delay_s: float) -> int:
    """How many entries were receipted before the writer was killed, so long after it had loaded."""
    child = subprocess.Popen([sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    try:
        child.wait(delay_s)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGKILL)
    lines = child.stdout.read().split("\n")[:-1]  # a line cut short was not said
    child.stdout.close()
    assert child.wait() == -signal.SIGKILL
    return int(lines[-1]) if lines else 0


def test_killed_writer_loses_nothing_that_was_receipted(tmp_path: Path) -> None:
    noise = random.Random(3)
    size = 0
    for _ in range(6):
        num_receipted = kill_writer_after(tmp_path, noise.uniform(0.02, 0.4))
        log = open_ledger(tmp_path, origin=ORIGIN)  # the lock is free at once
        assert log.size >= max(num_receipted, size)
        assert list(log.entries()) == [b"%d:" % index + b"x" * 500 for index in range(log.size)]
        assert log.verify().size == log.size
        log.append([b"%d:" % log.size + b"x" * 500])
        size = log.size
        log.close()
    assert size > 100


@pytest.mark.parametrize("delay_ms", [0, 1, 2, 4, 6, 8, 12, 20])
def test_ledger_killed_while_it_is_made_is_made_by_the_next_start(tmp_path: Path, delay_ms: int) -> None:
    num_receipted = kill_writer_after(tmp_path, delay_ms / 1000)
    log = open_ledger(tmp_path, origin=ORIGIN)
    assert log.size >= num_receipted
    log.append([b"next"])
    assert log.verify().size == log.size
    log.close()
