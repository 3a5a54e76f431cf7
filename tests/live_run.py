"""`htfi run -` as a process of its own, for tests: a run that goes on, to which rows are given by standard input."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

import forked

_WAIT_S = 60.0
DAY_S = 86_400


class LiveRun:
    """A run of daily bars of ACME in a folder until the end of the `with` block."""

    def __init__(self, folder: Path, num_days: int = 60, *arguments: str) -> None:
        self.folder = folder
        mapping = folder.parent / "live.toml"
        mapping.write_text(
            '[[source]]\nname = "bars"\nstdin = true\nkind = "bar"\ninterval = "1d"\nstamp = "row"\n'
        )
        command = [
            sys.executable,
            "-m",
            "htfi",
            "run",
            "--map",
            str(mapping),
            "--out",
            str(folder),
            "--plain",
        ]
        self.process = forked.Popen(
            [*command, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.num_days = 0
        self.give(num_days)
        self.wait_for(num_days // 2)

    def give(self, num_days: int) -> None:
        """So many bars more."""
        assert self.process.stdin is not None
        for day in range(self.num_days, self.num_days + num_days):
            at = time.strftime("%Y-%m-%dT00:00:00Z", time.gmtime(1_704_067_200 + DAY_S * day))
            row = {"ts": at, "symbol": "ACME", "close": 100.0 + (day * 7) % 11, "interval": "1d"}
            self.process.stdin.write(json.dumps(row) + "\n")
        self.process.stdin.flush()
        self.num_days += num_days

    def advance(self, num_days: int) -> None:
        """The same, until the run has decided on all of them but the last, which waits for a later row."""
        num_before = len(self.lines())
        self.give(num_days)
        self.wait_for(num_before + num_days - 1)

    def lines(self) -> list[str]:
        """Of decisions.jsonl."""
        path = self.folder / "decisions.jsonl"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def wait_for(self, num_decisions: int) -> None:
        """Until so many decisions are recorded."""
        end = time.monotonic() + _WAIT_S
        while len(self.lines()) < num_decisions:
            if self.process.poll() is not None or time.monotonic() > end:
                self.process.kill()
                said, _ = self.process.communicate()
                raise AssertionError(f"the run did not come to decision {num_decisions}: {said}")
            time.sleep(0.02)

    def end(self) -> None:
        """Have it save its state and end."""
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=30.0)

    def __enter__(self) -> "LiveRun":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
