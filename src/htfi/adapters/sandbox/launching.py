"""How a confined process is started: its command line, its environment, and where its baited home lies."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from htfi.adapters.sandbox import bubblewrap
from htfi.adapters.sandbox.bait import SECRET_VARIABLE, BaitedHome
from htfi.adapters.sandbox.landlock import landlock_version

_ENTER_GROUPS = 'while [ "$1" != -- ]; do echo $$ > "$1"; shift; done; shift; exec "$@"'
_CACHE = Path("/sandbox-cache")  # inside its own mounts


@dataclass(frozen=True, slots=True)
class Launch:
    """What is started: Python with `program`, which may read what is beneath `readable` but the `masked` files.

    `folder` is empty and its own on this machine; `entry_files` are those of its control groups.
    """

    program: str
    readable: Sequence[Path]
    masked: Sequence[Path]
    folder: Path
    bait: BaitedHome
    entry_files: Sequence[str]

    @property
    def python(self) -> list[str]:
        """Python's own words."""
        return [sys.executable, "-I", "-S", "-u", "-c", self.program]

    @property
    def before(self) -> list[str]:
        """The words that enter the control groups before anything else."""
        files = self.entry_files
        return ["/bin/sh", "-c", _ENTER_GROUPS, "sandbox", *files, "--"] if files else []


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """The whole command line, the environment, where the home folder lies for it, and descriptors that it takes."""

    command: list[str]
    environment: dict[str, str]
    home: Path
    descriptors: tuple[int, ...] = ()


def launch_wrapped(launch: Launch, info: int) -> LaunchPlan:
    """In bubblewrap's namespaces, which writes the process's id to the descriptor `info`."""
    home, empty = Path.home(), launch.folder / "empty"
    empty.touch()
    bait = {name: _in_memory(content) for name, content in launch.bait.files.items()}
    wrapped = bubblewrap.command(
        launch.readable, dict.fromkeys(launch.masked, empty), bait, home=home, cache_folder=_CACHE
    )
    wrapped[1:1] = ["--info-fd", str(info)]
    command = [*launch.before, *wrapped, *launch.python]
    return LaunchPlan(command, _environment(launch, home, _CACHE, ""), home, tuple(bait.values()))


def launch_alone(launch: Launch) -> LaunchPlan:
    """Without namespaces: the process sets its own file rules (LOCKS_FILES) where this kernel has them."""
    home, cache = launch.folder / "home", launch.folder / "cache"
    for place in (home, cache):
        place.mkdir()
    launch.bait.write(home)
    locks_files = str(home) if landlock_version() else ""
    return LaunchPlan([*launch.before, *launch.python], _environment(launch, home, cache, locks_files), home)


def _environment(launch: Launch, home: Path, cache: Path, locks_files: str) -> dict[str, str]:
    return {
        "HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1", "XDG_CACHE_HOME": str(cache), SECRET_VARIABLE: launch.bait.mark,
        "LOCKS_FILES": locks_files,
    }  # fmt: skip


def _in_memory(content: bytes) -> int:
    """A descriptor from which this is read."""
    descriptor = os.memfd_create("bait")
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
