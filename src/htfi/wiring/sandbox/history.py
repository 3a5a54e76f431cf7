"""The history that candidates are tried on: bars of files, and how busy their feeds were."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from htfi import sample
from htfi.domain.errors import InvalidInput
from htfi.domain.events import Bar, FeedItem, News, Quote, Trade
from htfi.domain.time import NS_PER_DAY, NS_PER_S, SystemClock
from htfi.wiring.feeds import open_feed, resolve
from htfi.wiring.in_memory_run import MemoryQuarantine
from htfi.wiring.spool_folder import spool_folder

_SIX_MONTHS_NS = 183 * NS_PER_DAY
_MIN_BARS = 60


@dataclass(frozen=True, slots=True)
class TrialHistory:
    """Bars in order, the busiest second of their last six months, and a digest of it all."""

    bars: tuple[Bar, ...]
    peak_events_per_s: float
    digest: str


def read_history(paths: Sequence[str] = (), mapping: Path | None = None) -> TrialHistory:
    """The bars of these files, of the embedded sample where there are none, and how busy their feeds were.

    Raises: InvalidInput, also where there are too few bars.
    """
    specs = resolve([*paths], mapping) if paths or mapping else resolve([], sample.MAPPING)
    bars: list[Bar] = []
    per_second: dict[int, int] = {}
    total = hashlib.sha256()
    quarantine = MemoryQuarantine()
    with spool_folder() as inbox:
        feed = open_feed(specs, inbox=inbox, quarantine=quarantine, clock=SystemClock())
        try:
            for event in feed:
                _count(event, bars, per_second)
        finally:
            feed.close()
    for bar in bars:
        total.update(msgspec.msgpack.encode(bar))
    if len({bar.end_ns for bar in bars}) < _MIN_BARS:
        raise InvalidInput(
            f"the history has {len(bars)} bars: trials need {_MIN_BARS} at least: name more with --history"
        )
    newest = max(per_second) if per_second else 0
    peak = max(
        (num for at, num in per_second.items() if at * NS_PER_S > newest * NS_PER_S - _SIX_MONTHS_NS),
        default=0,
    )
    return TrialHistory(tuple(bars), float(peak), total.hexdigest())


def _count(event: FeedItem, bars: list[Bar], per_second: dict[int, int]) -> None:
    if isinstance(event, Bar):
        bars.append(event)
    if isinstance(event, Trade | Quote | Bar | News):
        second = event.available_at_ns // NS_PER_S
        per_second[second] = per_second.get(second, 0) + 1
