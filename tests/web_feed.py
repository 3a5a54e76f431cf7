"""Runs the feed of web sources against a test's server: opens it, takes news out of it, reads its quarantine."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from htfi.adapters.stores.held_news import QuarantineFile
from htfi.domain.events import FeedItem, News
from htfi.domain.time import SystemClock
from htfi.pipeline.intake.merged_feed import MergedFeed
from htfi.wiring.feeds import open_feed, resolve


@dataclass
class Listening:
    """One pass over the merged sources; a second one would lose what the first had in hand."""

    merged: MergedFeed
    quarantine: QuarantineFile
    items: Iterator[FeedItem]

    def position(self) -> dict[str, Any]:
        return {"feed": self.merged.position(), "quarantine": self.quarantine.position()}


@contextmanager
def web_feed(
    folder: Path, *paths: str, mapping: str = "", position: Any = None, told: list[str] | None = None
) -> Iterator[Listening]:
    """`position` is what `Listening.position` gave."""
    quarantine = QuarantineFile(folder / "q.jsonl", position["quarantine"] if position else None)
    file = folder / "m.toml"
    file.write_text(mapping, encoding="utf-8")
    lines: list[str] = [] if told is None else told
    merged = open_feed(
        resolve(list(paths), file if mapping else None),
        inbox=folder / "inbox",
        quarantine=quarantine,
        clock=SystemClock(),
        position=position["feed"] if position else None,
        report=lines.append,
    )
    try:
        yield Listening(merged, quarantine, iter(merged))
    finally:
        merged.close()
        quarantine.close()


def take(feed: Listening, count: int, seconds: float = 15.0) -> list[News]:
    """The next news. Raises: AssertionError, where they do not come in time."""
    found: list[News] = []
    until_s = time.monotonic() + seconds
    for item in feed.items:
        if isinstance(item, News):
            found.append(item)
        if len(found) >= count:
            break
        assert time.monotonic() < until_s, f"{len(found)} news of {count} in {seconds} s: {found}"
    return found


def listen(feed: Listening, seconds: float) -> list[News]:
    """All news of the next seconds."""
    found: list[News] = []
    until_s = time.monotonic() + seconds
    for item in feed.items:
        if isinstance(item, News):
            found.append(item)
        if time.monotonic() >= until_s:
            break
    return found


def listen_until_told(feed: Listening, told: list[str], seconds: float = 15.0) -> None:
    """Until a source has told of a fault. Raises: AssertionError, where news come or nothing is told in time."""
    until_s = time.monotonic() + seconds
    while not told:
        assert time.monotonic() < until_s, f"no fault was told in {seconds} s"
        assert listen(feed, 0.02) == []


def set_aside(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "q.jsonl").read_text(encoding="utf-8") if (folder / "q.jsonl").exists() else ""
    return [json.loads(line) for line in text.splitlines()]
