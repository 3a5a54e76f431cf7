"""The run that a service carries: `htfi run` in a process of its own, so that neither waits for the other."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

_STOP_S = 30.0
_NUM_LINES = 20  # of what it says, kept for the end


@dataclass(frozen=True, slots=True)
class RunPlace:
    """Where a run's record is, and the governance folder that the run goes by, if there is one."""

    folder: Path
    governance: Path | None = None


class RunProcess:
    """Starts `htfi run`; `report` gets one line when it ends, called in another thread."""

    def __init__(self, arguments: Sequence[str], folder: Path, report: Callable[[str], None]) -> None:
        command = [sys.executable, "-m", "htfi", "run", *arguments, "--out", str(folder), "--plain"]
        self._report = report
        self._is_stopping = False
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
        self._thread = threading.Thread(target=self._watch, name="run", daemon=True)
        self._thread.start()

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def stop(self) -> None:
        """Have it save its state and end."""
        self._is_stopping = True
        if not self.has_ended:
            self._process.terminate()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._thread.join()

    def _watch(self) -> None:
        assert self._process.stdout is not None
        lines: list[str] = []
        for raw in self._process.stdout:
            lines = [*lines, raw.decode(errors="replace").rstrip()][-_NUM_LINES:]
        code = self._process.wait()
        if self._is_stopping:
            return
        said = next((line for line in reversed(lines) if line.strip()), "")
        self._report("the run has ended" if code == 0 else f"the run has failed (exit {code}): {said}")
