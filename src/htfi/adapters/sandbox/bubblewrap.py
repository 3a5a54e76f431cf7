"""The command line of bubblewrap (`bwrap`), which starts a program in namespaces of its own, if that works here."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

_SYSTEM = (
    "/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin", "/etc/ld.so.cache", "/etc/alternatives",
    "/sys/devices/system/cpu",
)  # fmt: skip
_PROBE_S = 10.0
_NOBODY = "65534"
_HOME_BYTES = 1 << 20


def _program() -> str | None:
    """Where bubblewrap lies, as a whole path: the process that starts it has another PATH."""
    found = shutil.which("bwrap")
    return found and str(Path(found).resolve())


@cache
def why_not() -> str:
    """Why bubblewrap cannot be used here; '' where it can."""
    if _program() is None:
        return "bubblewrap is not installed (package bubblewrap, command bwrap)"
    try:
        done = subprocess.run(
            [*command([], {}, {}, home=Path("/nowhere"), cache_folder=Path("/cache")), "true"],
            capture_output=True, timeout=_PROBE_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        return f"bubblewrap does not start: {error}"
    if done.returncode == 0:
        return ""
    words = done.stderr.decode(errors="replace").strip().splitlines()
    return f"bubblewrap cannot make namespaces here: {words[-1] if words else 'no reason given'}"


def command(
    readable: Sequence[Path],
    masked: Mapping[Path, Path],
    bait: Mapping[str, int],
    *,
    home: Path,
    cache_folder: Path,
    cache_bytes: int = 256 << 20,
) -> list[str]:
    """The words before the program's own: no network, no other process, and only `readable` files.

    `masked` puts a file in another's place; `bait`, by name, is read from descriptors and lies in `home`, which holds
    nothing else; `cache_folder` alone can be written, in memory.
    """
    words = [
        _program() or "bwrap", "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts",
        "--unshare-cgroup-try", "--uid", _NOBODY, "--gid", _NOBODY, "--cap-drop", "ALL", "--die-with-parent",
        "--new-session", "--hostname", "sandbox", "--proc", "/proc", "--dev", "/dev",
    ]  # fmt: skip
    for place in _SYSTEM:
        path = Path(place)
        if path.is_symlink():
            words += ["--symlink", str(path.readlink()), place]
        elif path.exists():
            words += ["--ro-bind", place, place]
    words += ["--size", str(_HOME_BYTES), "--tmpfs", str(home)]
    for name, descriptor in bait.items():
        words += ["--file", str(descriptor), str(home / name)]
    for path in readable:
        words += ["--ro-bind", str(path), str(path)]
    for path, instead in masked.items():
        words += ["--ro-bind", str(instead), str(path)]
    words += [
        "--size",
        str(cache_bytes),
        "--tmpfs",
        str(cache_folder),
        "--remount-ro",
        "/",
        "--chdir",
        "/",
        "--",
    ]
    return words
