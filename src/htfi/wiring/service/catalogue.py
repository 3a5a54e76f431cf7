"""What a catalogue of a run says of its settings."""

from pathlib import Path
from typing import Any

import msgspec

from htfi.adapters.stores.snapshot import read_whole
from htfi.wiring.settings import SETTINGS_FILE

_SHOWN = ("forecasting", "market", "policy", "sanitiser")  # tables that name no address, file or secret


def shown_settings(folder: Path) -> dict[str, Any]:
    """The recorded settings that shape forecasts, by table; none where the file is not there or cannot be read."""
    try:
        found: dict[str, Any] = msgspec.json.decode(
            read_whole(folder / SETTINGS_FILE) or b"{}", type=dict[str, Any]
        )
    except msgspec.DecodeError:
        return {}
    return {name: found[name] for name in _SHOWN if name in found}
