"""Worker processes of benchmarks, pinned to a core and asked in lines of JSON."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from htfi.domain.errors import DependencyUnavailable

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class WorkerProcess:
    """A process that runs `module`, one thread wide, and keeps its graphs in `cache`.

    `missing` is the reason why it could not start, else empty. Call `close` at the end.
    """

    def __init__(self, module: str, arguments: Sequence[str], cache: Path) -> None:
        self._what = " ".join([module, *arguments[:1]])
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115  # closed by close()
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=os.environ | ONE_THREAD | {"XDG_CACHE_HOME": str(cache)},
        )
        self.ready = self._read()
        self.missing: str = self.ready.get("missing", "")

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Raises DependencyUnavailable where the process has ended."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # its last output is read below
        return self._read()

    def close(self) -> None:
        if self._process.returncode is None:
            self._process.communicate()
        self._errors.close()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line:
            return json.loads(line)
        self._process.communicate()
        self._errors.seek(0)
        errors = self._errors.read().strip().splitlines() or ["no reason given"]
        self._errors.close()
        raise DependencyUnavailable(f"the process of {self._what} ended: {errors[-1]}")


def available_cores() -> list[int]:
    """Cores that this process may use, the one for measurement first: the last, since others tend to use the first."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0), reverse=True)
    return [0]


def pin_to_core(core: int) -> None:
    """Pin this process to one core where the system allows it."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})


@contextmanager
def on_one_core() -> Generator[None]:
    """Pins this process to the core for measurement, and gives it back its cores at the end."""
    cores = available_cores()
    pin_to_core(cores[0])
    try:
        yield
    finally:
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, cores)


def send_answer(answer: object) -> None:
    """Send the answer of a worker."""
    print(json.dumps(answer), flush=True)  # noqa: T201  # the protocol's own channel
