"""Every setting that a person can change, with its default, unit and meaning, for those who read of them."""

from dataclasses import MISSING, Field, fields
from typing import Any, NamedTuple

from htfi.domain.settings import toml_value
from htfi.wiring.config import NodeConfig
from htfi.wiring.settings import Settings

_UNITS = {
    "_ms": "ms", "_ns": "ns", "_s": "s", "_bytes": "bytes", "_c": "°C", "_bars": "bars", "_tokens": "tokens",
    "_cents": "cents", "_sigmas": "standard deviations", "_lengths": "bar lengths", "_share": "0–1", "_fraction": "0–1",
}  # by the end of a setting's name  # fmt: skip


class SettingInfo(NamedTuple):
    """One setting as people read of it: its default as TOML."""

    table: str
    key: str
    default: str
    unit: str
    meaning: str


def list_settings() -> list[SettingInfo]:
    """Every setting that a person can change, in the order of the tables."""
    found: list[SettingInfo] = []
    for table in fields(Settings):
        for item in fields(getattr(Settings(), table.name)):
            found += _describe(table.name, "", item)
            if item.name == "nodes":
                found += [
                    one for each in fields(NodeConfig) for one in _describe(table.name, "nodes.NAME.", each)
                ]
    return found


def _describe(table: str, prefix: str, item: "Field[Any]") -> list[SettingInfo]:
    meaning, unit = item.metadata.get("meaning", ""), item.metadata.get("unit", "")
    if not meaning:
        return []
    default = item.default_factory() if item.default_factory is not MISSING else item.default
    default = None if default is MISSING else default
    unit = unit or next((text for end, text in _UNITS.items() if item.name.endswith(end)), "")
    return [SettingInfo(table, prefix + item.name, toml_value(default), unit, meaning)]
