"""What a web source has handed on already, and with what its server knows a fresh answer. The web pump owns one.

The inbox is the record of entries: what stands there was handed on. Beside it `NAME.web.json` keeps the
validators (ETag, Last-Modified) and the keys of the last document, written after the rows.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec

from htfi.adapters.feeds.web.entries import WebEntry
from htfi.domain.errors import DependencyUnavailable
from htfi.domain.files import add_checksum, checksum_holds, write_atomically

_MAX_KEYS = 65_536  # six times the entries of the longest document
_MAX_REVISIONS = 16
_MAX_PAST_ENTRIES = 8192
_MAX_STATE_BYTES = 8_000_000


@dataclass(slots=True)
class SeenEntry:
    """An entry as it was handed on last."""

    digest: bytes
    num_revisions: int
    last_id: str


class Validators(msgspec.Struct, omit_defaults=True):
    """`num_bytes` of the inbox when they were written: with a shorter inbox they say nothing."""

    url: str = ""
    etag: str = ""
    modified: str = ""
    num_bytes: int = 0
    keys: dict[str, tuple[str, int, str]] = {}


class EntryHistory:
    """Bounded: of the keys that no document shows any more the longest unseen goes first."""

    def __init__(self, path: Path, rows: Iterable[bytes], num_bytes: int, url: str) -> None:
        self._path = path
        self._entries: OrderedDict[str, SeenEntry] = OrderedDict()
        self.past: OrderedDict[str, WebEntry] = OrderedDict()  # entries with facts that later ones need
        self.validators = self._load(num_bytes, url)
        decode = msgspec.json.Decoder().decode
        for row in rows:
            try:
                self._remember(cast("dict[str, Any]", decode(row)))
            except (ValueError, AttributeError, RecursionError):  # not one of ours
                continue
        for key, (digest, num_revisions, last_id) in self.validators.keys.items():
            if key not in self._entries:
                self._entries[key] = SeenEntry(bytes.fromhex(digest), num_revisions, last_id)
        self.validators.keys = {}

    def conditions(self) -> dict[str, str]:
        """Headers that ask for news only."""
        found = {"If-None-Match": self.validators.etag, "If-Modified-Since": self.validators.modified}
        return {name: value for name, value in found.items() if value}

    def new_row(self, entry: WebEntry) -> dict[str, Any] | None:
        """The row that hands this entry on; None where it says nothing new."""
        known, digest = self._entries.get(entry.key), entry.digest()
        if known is not None:
            self._entries.move_to_end(entry.key)
            if known.digest == digest or known.num_revisions >= _MAX_REVISIONS:
                return None
        elif entry.withdraws:
            return None  # it was never reported
        num_revisions = 1 if known is None else known.num_revisions + 1
        row: dict[str, Any] = {"kind": "news", "id": entry.key, "digest": digest.hex()}
        if known is not None:
            row |= {
                "id": f"{entry.key}~{num_revisions}",
                "key": entry.key,
                "told": num_revisions,
                "corrects": known.last_id,
            }
            if entry.withdraws:
                row["retracts"] = True
        elif entry.amends and entry.amends in self._entries:
            row["corrects"] = self._entries[entry.amends].last_id
            if entry.retracts:
                row["retracts"] = True
        self._insert(entry.key, SeenEntry(digest, num_revisions, row["id"]))
        self.record_facts(entry)
        return row

    def record_facts(self, entry: WebEntry) -> None:
        """Keep an entry's facts, of so many as are handed on."""
        if entry.facts:
            kept = WebEntry(key=entry.key, published=entry.published, facts=entry.facts)
            self.past[entry.key] = kept
            self.past.move_to_end(entry.key)
            if len(self.past) > _MAX_PAST_ENTRIES:
                self.past.popitem(last=False)

    def contains(self, key: str) -> bool:
        """Whether an entry of this key was handed on; if so it is kept in mind a while longer."""
        if key not in self._entries:
            return False
        self._entries.move_to_end(key)
        return True

    def save(self, etag: str, modified: str, url: str, num_bytes: int, shown: Iterable[str]) -> None:
        """After a document whose new rows are in the inbox. Raises: DependencyUnavailable."""
        keys = {
            key: (known.digest.hex(), known.num_revisions, known.last_id)
            for key in shown
            if (known := self._entries.get(key)) is not None
        }
        self.validators = Validators(url, etag, modified, num_bytes)
        content = msgspec.json.encode(Validators(url, etag, modified, num_bytes, keys))
        try:
            write_atomically(self._path, add_checksum(content, 0))
        except OSError as error:
            why = error.strerror or str(error)
            raise DependencyUnavailable(
                f"{self._path}: {why}: free some disk space or choose another folder"
            ) from error

    def _remember(self, row: dict[str, Any]) -> None:
        known_as = row.get("id")
        key = row.get("key", known_as)
        if not isinstance(key, str) or not key or not isinstance(known_as, str):
            return
        digest, num_revisions = bytes.fromhex(str(row.get("digest", ""))), row.get("told", 1)
        self._insert(key, SeenEntry(digest, num_revisions if isinstance(num_revisions, int) else 1, known_as))
        if isinstance(facts := row.get("facts"), dict):
            known = {str(name): str(value) for name, value in cast("dict[str, Any]", facts).items()}
            self.record_facts(WebEntry(key=key, published=str(row.get("ts", "")), facts=known))

    def _insert(self, key: str, known: SeenEntry) -> None:
        self._entries[key] = known
        self._entries.move_to_end(key)
        if len(self._entries) > _MAX_KEYS:
            self._entries.popitem(last=False)

    def _load(self, num_bytes: int, url: str) -> Validators:
        try:
            content = self._path.read_bytes() if self._path.stat().st_size <= _MAX_STATE_BYTES else b""
            if not checksum_holds(content, 0):
                return Validators()
            found = msgspec.json.decode(content, type=Validators)
            [bytes.fromhex(digest) for digest, _, _ in found.keys.values()]
        except (OSError, ValueError):
            return Validators()
        if found.num_bytes > num_bytes:
            return Validators()  # rows that it knows of were lost: they are to come again
        return found if found.url == url else Validators(keys=found.keys)
