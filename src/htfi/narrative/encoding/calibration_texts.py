"""Texts of many kinds on which the int8 encoder calibrates the range of its activations."""

import tomllib
from importlib.resources import files

_TABLE = tomllib.loads(
    files("htfi.narrative.encoding").joinpath("calibration_texts.toml").read_text(encoding="utf-8")
)
CALIBRATION_TEXTS: tuple[str, ...] = tuple(_TABLE["texts"])
