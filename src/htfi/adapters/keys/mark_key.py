"""Marking keys in files: one line, MARK+KEY+id+base64 of 32 secret bytes, which only the owner may read."""

import base64
import secrets
from pathlib import Path

from htfi.decoding.marking import MARK_KEY_BYTES, MarkKey
from htfi.domain.errors import DependencyUnavailable, IntegrityError, InvalidInput
from htfi.domain.files import atomic_writer, make_private
from htfi.governance.ledger.note import decode_base64

MARK_KEY_FILE = "mark.key"  # in a run's folder: the key that the noise of its readings follows from
_PREFIX = "MARK+KEY+"


def create_mark_key(path: Path) -> MarkKey:
    """Make a key and keep it in a new file; durable when this returns. A folder that is missing is made, its owner's.

    Raises: InvalidInput where the file exists, DependencyUnavailable.
    """
    key = MarkKey(secrets.token_bytes(MARK_KEY_BYTES))
    try:
        if not path.parent.exists():
            make_private(path.parent)
        with atomic_writer(path, over=False) as file:
            file.write(f"{_PREFIX}{key.id}+{base64.b64encode(key.secret).decode()}\n".encode())
    except FileExistsError:
        raise InvalidInput(
            f"{path} exists already: keys are never overwritten: choose another file"
        ) from None
    except OSError as error:
        raise DependencyUnavailable(f"cannot write key {path}: {error.strerror}") from error
    return key


def load_mark_key(path: Path) -> MarkKey:
    """Read a key file. Raises: InvalidInput where it is missing or malformed, DependencyUnavailable."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidInput(
            f"there is no marking key at {path}: make one with `htfi mark key {path}`"
        ) from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not a marking key: it is not text") from None
    except OSError as error:
        raise DependencyUnavailable(f"cannot read key {path}: {error.strerror}") from error
    line = text.removesuffix("\n")
    key_id, _, material = line.removeprefix(_PREFIX).partition("+")
    try:
        secret = decode_base64(material)
    except IntegrityError:
        secret = b""
    if not line.startswith(_PREFIX) or len(secret) != MARK_KEY_BYTES:
        raise InvalidInput(f"{path} is not a marking key: expected one line {_PREFIX}id+base64")
    key = MarkKey(secret)
    if key.id != key_id:
        raise InvalidInput(f"{path} is not a marking key: its id does not match, the file was altered")
    return key


def mark_key_of(folder: Path) -> MarkKey | None:
    """The marking key in a run's folder, None where there is none. Raises: InvalidInput, DependencyUnavailable."""
    path = folder / MARK_KEY_FILE
    return load_mark_key(path) if path.exists() else None
