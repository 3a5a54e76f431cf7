"""The words of `bearings.toml`, by what they tell at a glance. The item checks read it once."""

import tomllib
from importlib.resources import files
from typing import Any

_told: dict[str, Any] = tomllib.loads(
    files("htfi.narrative.sanitising").joinpath("bearings.toml").read_text(encoding="utf-8")
)


def _words(name: str) -> frozenset[str]:
    return frozenset(_told[name].split())


def _topics(name: str) -> dict[str, str]:
    return {word: topic for topic, words in _told[name].items() for word in words.split()}


UP, DOWN, DENYING, FRESH = _words("up"), _words("down"), _words("denies"), _words("fresh")
EVENTS, MEASURES = _topics("events"), _topics("measures")
TOPICS = frozenset(EVENTS) | frozenset(MEASURES)
