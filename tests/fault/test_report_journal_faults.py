"""The journal on a full disk, and its mirror when the reader leaves."""

import errno
import os
import resource
import signal
import subprocess
import sys

import pytest

from htfi.adapters.stores.decisions import DecisionJournal
from htfi.domain.decision import Receipt, encode_decision
from htfi.domain.errors import DependencyUnavailable


def release(journal, decisions, start=0):
    for index in range(start, len(decisions)):
        journal.release(Receipt(index, f"{index:064x}"), encode_decision(decisions[index]))


def test_a_full_disk_stops_releasing_with_one_line(tmp_path, make_decisions, monkeypatch):
    def full(_file, _data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    journal = DecisionJournal(tmp_path)
    release(journal, make_decisions(2))
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(
        DependencyUnavailable, match="No space left on device; what is recorded is safe"
    ) as caught:
        journal.flush()
    assert "\n" not in str(caught.value)
    journal.close()


def test_a_line_cut_by_a_full_disk_is_written_whole_by_the_next_run(tmp_path, make_decisions, read_journal):
    decisions = make_decisions(5)
    size = len(encode_decision(decisions[0]))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    journal = DecisionJournal(tmp_path)
    release(journal, decisions)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2 * size + size // 2, before[1]))
        with pytest.raises(DependencyUnavailable, match="File too large"):
            journal.flush()
        journal.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert not (tmp_path / "decisions.jsonl").read_bytes().endswith(b"\n")

    journal = DecisionJournal(tmp_path)
    assert journal.num_released == 2
    release(journal, decisions, start=2)
    journal.close()
    assert [line.decision for line in read_journal(tmp_path)] == decisions


def test_a_reader_who_leaves_ends_the_run_after_the_file_has_the_line(tmp_path, make_decisions, read_journal):
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "wb", buffering=0) as mirror:
        journal = DecisionJournal(tmp_path, mirror=mirror)
        release(journal, make_decisions(3))
        journal.flush()
        assert journal.mirror is not None
        with pytest.raises(BrokenPipeError):
            journal.mirror.finish(10.0)
        release(journal, make_decisions(4), start=3)
        with pytest.raises(BrokenPipeError):
            journal.flush()
        journal.close()
    assert len(read_journal(tmp_path)) == 4


SCRIPT = """
import sys, click
from pathlib import Path
from htfi.adapters.stores.decisions import DecisionJournal
from htfi.domain.decision import Receipt
@click.command()
def command():
    journal = DecisionJournal(Path(sys.argv[1]), mirror=open(1, "wb", buffering=0, closefd=False))
    entry = b'{"verdict":{"outcome":"release","reasons":[]}}'
    for index in range(100000):
        journal.release(Receipt(index, "00" * 32), entry)
        journal.flush()
    journal.mirror.finish(30.0)
command(args=[])
"""


def test_head_takes_its_lines_and_no_traceback_follows(tmp_path):
    """As `htfi run … | head -3` does it; click ends a command quietly on a broken pipe."""
    writer = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    head = subprocess.run(["head", "-3"], stdin=writer.stdout, capture_output=True, timeout=60, check=True)
    assert writer.stdout is not None
    writer.stdout.close()
    _, complaint = writer.communicate(timeout=60)
    assert head.stdout.count(b"\n") == 3
    assert complaint == b""
    assert writer.returncode == 1
