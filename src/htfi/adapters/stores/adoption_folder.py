"""Files of a governance folder by which a node agrees with others on bundles: nodes, what it must not forget, requests.

A change that is to be activated lies in `activate/` until the node has saved it, or has refused it and says why.
"""

import os
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from htfi.adapters.stores.snapshot import read_whole, write_whole
from htfi.domain.errors import DependencyUnavailable, IntegrityError, InvalidInput
from htfi.domain.files import make_private, temporary_path

NODES_FILE = "nodes.toml"
STATE_FILE = "adoption.state"
HOLD_FILE = "adoption.hold"
MAX_HOLD_AGE_NS = 2_000_000_000  # a node renews its word four times a second
REQUEST_FOLDER = "activate"
_REQUEST, _REFUSAL = ".note", ".refused"
_MAX_REQUEST_BYTES = 1 << 18


def read_nodes(folder: Path) -> tuple[str, ...]:
    """The named nodes of a governance folder; none where it belongs to one machine alone. Raises: InvalidInput, …"""
    path = folder / NODES_FILE
    data = read_whole(path)
    if data is None:
        return ()
    try:
        found: Any = tomllib.loads(data.decode()).get("nodes")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: is not TOML: {error}") from error
    names = cast("list[Any]", found) if isinstance(found, list) else []
    if len(names) < 2 or not all(isinstance(name, str) and 0 < len(name) <= 64 for name in names):
        raise InvalidInput(
            f'{path}: expected nodes = ["…", "…"], the names in the certificates of two or more'
        )
    if len(set(names)) < len(names):
        raise InvalidInput(f"{path}: a node is named twice")
    return tuple(names)


def write_nodes(folder: Path, nodes: Sequence[str]) -> None:
    """Raises: DependencyUnavailable."""
    quoted = ", ".join('"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"' for name in nodes)
    write_whole(folder / NODES_FILE, f"nodes = [{quoted}]\n".encode())


def read_adoption(folder: Path) -> bytes | None:
    """What the node saved; None at its first start. Raises: IntegrityError, DependencyUnavailable."""
    path = folder / STATE_FILE
    content = read_whole(path)
    if content is None:
        return None
    data, digest = content[:-32], content[-32:]
    if sha256(data).digest() != digest:
        raise IntegrityError(
            f"{path} is damaged: a node that forgot what it acknowledged may not agree on bundles; restore it"
        )
    return data


def write_adoption(folder: Path, data: bytes) -> None:
    """Durable when this returns. Raises: DependencyUnavailable."""
    write_whole(folder / STATE_FILE, data + sha256(data).digest())


def write_activation(folder: Path, name: str, note: str) -> None:
    """Ask the node of this folder to have a change activated. Raises: DependencyUnavailable."""
    try:
        make_private(folder / REQUEST_FOLDER)
        (folder / REQUEST_FOLDER / f"{name}{_REFUSAL}").unlink(missing_ok=True)
    except OSError as error:
        raise DependencyUnavailable(f"cannot write to {folder}: {error.strerror}") from error
    write_whole(folder / REQUEST_FOLDER / f"{name}{_REQUEST}", note.encode())


def read_activations(folder: Path) -> list[tuple[str, str]]:
    """The changes that are to be activated, by name. Raises: DependencyUnavailable."""
    found: list[tuple[str, str]] = []
    try:
        found.extend(
            (path.name.removesuffix(_REQUEST), path.read_bytes().decode(errors="replace"))
            for path in sorted((folder / REQUEST_FOLDER).glob(f"*{_REQUEST}"))
            if path.stat().st_size <= _MAX_REQUEST_BYTES
        )
    except OSError as error:
        raise DependencyUnavailable(f"{folder / REQUEST_FOLDER}: cannot be read: {error.strerror}") from error
    return found


def end_activation(folder: Path, name: str, refusal: str = "") -> None:
    """The request is saved, or refused for a reason. Raises: DependencyUnavailable."""
    if refusal:
        write_whole(folder / REQUEST_FOLDER / f"{name}{_REFUSAL}", refusal.encode())
    try:
        (folder / REQUEST_FOLDER / f"{name}{_REQUEST}").unlink(missing_ok=True)
    except OSError as error:
        raise DependencyUnavailable(f"cannot write to {folder}: {error.strerror}") from error


def read_refusal(folder: Path, name: str) -> str:
    """Why a change was not activated; empty where it was not refused. Raises: DependencyUnavailable."""
    return (read_whole(folder / REQUEST_FOLDER / f"{name}{_REFUSAL}") or b"").decode(errors="replace")


def write_hold(folder: Path, why: str) -> None:
    """Leave word for the runs of this folder why nothing may be released; empty where it may. Raises: OSError."""
    path = folder / HOLD_FILE
    data = why.encode()
    if path.exists() and path.read_bytes() == data:
        os.utime(path)
        return
    draft = temporary_path(path)
    try:
        draft.write_bytes(data)
        draft.replace(path)
    except OSError:
        with suppress(OSError):
            path.unlink(missing_ok=True)  # no word holds back, and at once; an old one would let go on
        raise
    finally:
        draft.unlink(missing_ok=True)


def read_hold(folder: Path, now_ns: int) -> str:
    """Why runs of this folder must release nothing: what its node says, or that no node of it is running."""
    path = folder / HOLD_FILE
    try:
        age_ns = now_ns - path.stat().st_mtime_ns
        why = path.read_bytes().decode(errors="replace")
    except OSError:
        age_ns, why = MAX_HOLD_AGE_NS + 1, ""
    if abs(age_ns) > MAX_HOLD_AGE_NS:
        return (
            f"{folder} belongs to several nodes and none of them runs here: "
            "start htfi edge or htfi cloud with --governance"
        )
    return why
