"""Reads many items as `htfi news` does, and keeps of each what is judged: direction, confidence, size, event."""

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from htfi.narrative.facts.fact_reader import FactReader
from htfi.narrative.facts.record import EventKind, PartyRole
from htfi.narrative.understanding import NewsText, Understanding, understand
from htfi_eval.commands import ProgressCallback

_BATCH = 256


class ViewSign(IntEnum):
    """Where an item points, or what annotators said of it."""

    DOWN = -1
    NONE = 0
    UP = 1


class ReadItem(NamedTuple):
    """One item read for one asset. `direction` is NONE where it says nothing; `why` is then the reason.

    Units: `confidence` and `relevance` 0–1, `size_sigmas` daily standard deviations, `volatility` a multiple of the
    usual move.
    """

    direction: ViewSign
    confidence: float
    size_sigmas: float
    volatility: float
    relevance: float
    event: EventKind
    role: PartyRole | None
    why: str
    words: str

    @property
    def speaks(self) -> bool:
        return self.direction is not ViewSign.NONE


def read_items(reader: FactReader, items: Sequence[NewsText], progress: ProgressCallback) -> list[ReadItem]:
    """One per item, in order: exactly what a user of `htfi news` is shown. Raises: DependencyUnavailable."""
    found: list[ReadItem] = []
    for start in range(0, len(items), _BATCH):
        found += [_kept(one) for one in understand(items[start : start + _BATCH], reader)]
        progress(len(found), len(items))
    return found


def _kept(one: Understanding) -> ReadItem:
    reading, speaks = one.reading, one.speaks
    return ReadItem(
        direction=ViewSign(reading.direction) if speaks else ViewSign.NONE,
        confidence=reading.confidence,
        size_sigmas=reading.size_sigmas if speaks else 0.0,
        volatility=reading.volatility if speaks else 1.0,
        relevance=reading.relevance,
        event=one.facts.event,
        role=reading.role,
        why=one.why_silent,
        words=one.words,
    )
