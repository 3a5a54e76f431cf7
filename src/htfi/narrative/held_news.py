"""The news that may still matter, with what was read of it: by reader and by symbol, in bounded memory."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from htfi.domain.errors import IntegrityError
from htfi.domain.events import News
from htfi.domain.news import Route
from htfi.narrative.config import NarrativeConfig
from htfi.narrative.recent_news import NewsRecord, RecentNews

MAX_RECORDS = 8_192
_NUM_LIFETIMES_KEPT = 2  # lifetimes: the oldest view that counts is one lifetime old, and so were its items


class HeldNews:
    """A record of each item, and its item in the list of what a model should read, of what the encoder alone reads, or
    of what was set aside. No list holds an item without a record.
    """

    def __init__(self, config: NarrativeConfig, removed: Callable[[str], None]) -> None:
        """`removed` is told the id of each item that is no longer held."""
        self._removed = removed
        self.readable, self.encoder_only, self.set_aside = (
            RecentNews(config),
            RecentNews(config),
            RecentNews(config),
        )
        self._records: OrderedDict[str, NewsRecord] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._records)

    @property
    def records(self) -> Mapping[str, NewsRecord]:
        """By the items' ids, those that arrived last at the end."""
        return self._records

    def add(self, note: NewsRecord) -> None:
        """Hold an item from now on, in order of `available_at_ns`."""
        item = note.screened.item
        self._records[item.id] = note
        self._records.move_to_end(item.id)
        if len(self._records) > MAX_RECORDS:
            self.remove(next(iter(self._records)))
        if note.most is Route.TEMPLATE:
            self.set_aside.add(item)
        elif note.most is Route.ENCODER:
            self.encoder_only.add(item)
        else:
            self.readable.add(item)

    def renew(self, note: NewsRecord) -> None:
        """Put a record in the place of its item's present one."""
        self._records[note.screened.item.id] = note

    def remove(self, name: str) -> None:
        """Remove an item that is held by its id."""
        note = self._records.pop(name)
        self._removed(name)
        for items in self._lists:
            items.forget(name, note.screened.item.symbols)

    def remove_expired(self, now_ns: int) -> None:
        """Remove items so old that no view which rests on them counts any longer."""
        oldest_ns = now_ns - _NUM_LIFETIMES_KEPT * self.readable.lifetime_ns
        while self._records:
            name, note = next(iter(self._records.items()))
            if note.screened.item.available_at_ns >= oldest_ns:
                return
            self.remove(name)

    def records_of(self, items: Sequence[News]) -> tuple[NewsRecord, ...]:
        """The records of items; those that are no longer held are left out."""
        return tuple(note for item in items if (note := self._records.get(item.id)) is not None)

    def items(self, names: Sequence[str]) -> list[News]:
        """Items by their ids, newest first; items that are no longer held are left out."""
        found = [note.screened.item for name in names if (note := self._records.get(name)) is not None]
        return sorted(found, key=lambda item: (-item.available_at_ns, item.source, -item.row))

    def mean_trust(self, names: Sequence[str]) -> float:
        """The mean trust, 0–1, in items that a view rests on; 1 where none is known."""
        trusts = [note.screened.trust for name in names if (note := self._records.get(name)) is not None]
        return round(sum(trusts) / len(trusts), 3) if trusts else 1.0

    def concerned(self, symbols: Sequence[str]) -> Iterable[int]:
        """The places of those symbols on which there may be news."""
        if not self._records:
            return ()
        if any(items.has_market_items for items in self._lists):
            return range(len(symbols))
        named = {symbol for items in self._lists for symbol in items.symbols}
        return [place for place, symbol in enumerate(symbols) if symbol in named]

    @property
    def _lists(self) -> tuple[RecentNews, RecentNews, RecentNews]:
        return self.readable, self.encoder_only, self.set_aside

    def state(self) -> dict[str, Any]:
        return {
            "wire": self.readable.state(),
            "noted": self.encoder_only.state(),
            "aside": self.set_aside.state(),
            "notes": msgspec.msgpack.encode(list(self._records.values())),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state`. Raises: IntegrityError, for records that no version of these facts wrote."""
        self.readable.restore(state["wire"])
        self.encoder_only.restore(state["noted"])
        self.set_aside.restore(state["aside"])
        notes = _decode_records(state["notes"])
        self._records = OrderedDict((note.screened.item.id, note) for note in notes)


def _decode_records(saved: bytes) -> list[NewsRecord]:
    try:
        return msgspec.msgpack.decode(saved, type=list[NewsRecord])
    except msgspec.DecodeError as error:
        raise IntegrityError(
            f"the saved news was written by another version of htfi ({error}): repeat the run in a new folder"
        ) from error
