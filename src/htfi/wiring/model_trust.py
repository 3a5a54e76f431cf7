"""What a model's words have proved to be worth: kept in its folder's config.json, read when it is opened."""

from pathlib import Path
from typing import Any, TypeVar

import msgspec

from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.files import write_whole
from htfi.narrative.answer import AS_STATED, Trust
from htfi.narrative.meaning import Meaning

KEY, MEANING_KEY = "htfi_trust", "htfi_meaning"
_Kept = TypeVar("_Kept", Trust, Meaning)


def read_trust(folder: Path) -> Trust:
    """How far the model in `folder` proved right; its word where nothing was measured. Raises: InvalidInput."""
    return _read(folder, KEY, Trust) or AS_STATED


def read_meaning(folder: Path) -> Meaning | None:
    """What its views proved to mean, None where nothing was measured. Raises: InvalidInput."""
    return _read(folder, MEANING_KEY, Meaning)


def write_trust(folder: Path, trust: Trust, meaning: Meaning | None = None) -> None:
    """Keep both in the folder, whose digest changes with them. Raises: InvalidInput, DependencyUnavailable."""
    config = {**_config(folder), KEY: msgspec.to_builtins(trust)}
    if meaning is not None:
        config[MEANING_KEY] = msgspec.to_builtins(meaning)
    file = folder / "config.json"
    try:
        write_whole(file, msgspec.json.format(msgspec.json.encode(config), indent=2) + b"\n", private=False)
    except OSError as error:
        raise DependencyUnavailable(f"{file} cannot be written: {error.strerror}") from error


def _read(folder: Path, key: str, kind: type[_Kept]) -> _Kept | None:
    found = _config(folder).get(key)
    if found is None:
        return None
    try:
        return msgspec.convert(found, kind)
    except (msgspec.ValidationError, InvalidInput) as error:
        raise InvalidInput(f"{folder / 'config.json'}: {key}: {error}") from error


def _config(folder: Path) -> dict[str, Any]:
    file = folder / "config.json"
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
    except OSError as error:
        raise InvalidInput(f"{file}: {error.strerror}: name a model folder") from error
    except msgspec.DecodeError as error:
        raise InvalidInput(f"{file} is not readable as JSON: {error}") from error
