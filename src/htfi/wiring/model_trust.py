"""How far a model's confidence has proved right: kept in its folder's config.json, read when it is opened."""

from pathlib import Path
from typing import Any

import msgspec

from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.narrative.answer import AS_STATED, Trust

KEY = "htfi_trust"


def read_trust(folder: Path) -> Trust:
    """What was measured of the model in `folder`; its word where nothing was. Raises: InvalidInput."""
    found = _config(folder).get(KEY)
    if found is None:
        return AS_STATED
    try:
        return msgspec.convert(found, Trust)
    except (msgspec.ValidationError, InvalidInput) as error:
        raise InvalidInput(f"{folder / 'config.json'}: {KEY}: {error}") from error


def write_trust(folder: Path, trust: Trust) -> None:
    """Keep it in the folder, whose digest changes with it. Raises: InvalidInput, DependencyUnavailable."""
    config = {**_config(folder), KEY: msgspec.to_builtins(trust)}
    file, new = folder / "config.json", folder / "config.json.new"
    try:
        new.write_bytes(msgspec.json.format(msgspec.json.encode(config), indent=2) + b"\n")
        new.replace(file)
    except OSError as error:
        raise DependencyUnavailable(f"{file} cannot be written: {error.strerror}") from error


def _config(folder: Path) -> dict[str, Any]:
    file = folder / "config.json"
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
    except OSError as error:
        raise InvalidInput(f"{file}: {error.strerror}: name a model folder") from error
    except msgspec.DecodeError as error:
        raise InvalidInput(f"{file} is not readable as JSON: {error}") from error
