"""A reader of decisions.jsonl that is slow, leaves and comes back: the run does not wait, the reader misses nothing."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

Process = subprocess.Popen[bytes]


def read_on(journal: Path, num_bytes: int, at_most: int) -> Iterator[bytes]:
    """Whole lines behind the first bytes, as one who opens the file for each look at it."""
    with journal.open("rb") as file:
        file.seek(num_bytes)
        for _ in range(at_most):
            line = file.readline()
            if not line.endswith(b"\n"):
                return
            yield line


def test_a_reader_that_is_slow_and_goes_away_gets_every_line_once_and_holds_nobody(
    prices: Path,
    start: Callable[..., Process],
    wait_for_lines: Callable[[Path, Process, int], None],
    same_outcome: Callable[[Path], None],
    tmp_path: Path,
) -> None:
    journal = tmp_path / "decisions.jsonl"
    run = start([prices], tmp_path)
    got: list[bytes] = []
    for target in (20, 60):  # a line now and then, while hundreds are written
        wait_for_lines(journal, run, target)
        got += read_on(journal, sum(map(len, got)), 5)
    assert len(got) == 10
    _, errors = run.communicate(timeout=120)  # nobody reads
    assert run.returncode == 0, errors.decode()
    got += read_on(journal, sum(map(len, got)), 100_000)
    assert [json.loads(line)["index"] for line in got] == list(range(len(got)))
    assert len(got) > 500
    assert b"".join(got) == journal.read_bytes()
    same_outcome(tmp_path)
