"""A control group for one confined process: its memory and the number of its threads. Versions 1 and 2."""

import contextlib
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_REMOVE_S = 2.0  # that killed processes may take to leave


class ControlGroup:
    """The folders that were made for one process; `bounded` says what they bound ('memory', 'pids')."""

    def __init__(self, memory_bytes: int, max_threads: int) -> None:
        name = f"htfi-sandbox-{os.getpid()}-{secrets.token_hex(4)}"
        self._folders: dict[str, Path] = {}
        for controller, parent, is_unified in _parents():
            folder = parent / name
            limits = _limits(controller, is_unified, memory_bytes, max_threads)
            try:
                folder.mkdir(exist_ok=True)
                for file, value in limits.items():
                    (folder / file).write_text(f"{value}\n")
            except OSError:
                with contextlib.suppress(OSError):
                    folder.rmdir()
                continue
            self._folders[controller] = folder

    @property
    def bounded(self) -> frozenset[str]:
        return frozenset(self._folders)

    @property
    def entry_files(self) -> list[str]:
        """Where a process writes its id to enter."""
        return sorted({str(folder / "cgroup.procs") for folder in self._folders.values()})

    def ran_out(self) -> bool:
        """Whether its memory reached the bound and a process was killed for it."""
        folder = self._folders.get("memory")
        if folder is None:
            return False
        for file in ("memory.events", "memory.oom_control"):
            with contextlib.suppress(OSError):
                lines = (folder / file).read_text().splitlines()
                return any(line.startswith("oom_kill ") and line != "oom_kill 0" for line in lines)
        return False

    def remove(self) -> None:
        """Remove the folders, once the last process has left them."""
        until_s = time.monotonic() + _REMOVE_S
        for folder in set(self._folders.values()):
            while folder.exists() and time.monotonic() < until_s:
                try:
                    folder.rmdir()
                except OSError:
                    time.sleep(0.005)


def _limits(controller: str, is_unified: bool, memory_bytes: int, max_threads: int) -> dict[str, int]:
    if controller == "pids":
        return {"pids.max": max_threads}
    return {"memory.max": memory_bytes} if is_unified else {"memory.limit_in_bytes": memory_bytes}


def _parents() -> Iterator[tuple[str, Path, bool]]:
    """The group of this process for each controller that it has, and whether it is of version 2."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            folder = _ROOT / path.lstrip("/")
            with contextlib.suppress(OSError):
                held = (folder / "cgroup.subtree_control").read_text().split()
                for controller in ("memory", "pids"):
                    if controller in held:
                        yield controller, folder, True
        for controller in ("memory", "pids"):
            if controller in controllers.split(","):
                yield controller, _ROOT / controller / path.lstrip("/"), False
