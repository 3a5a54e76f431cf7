"""What the parsers of web sources find: entries, and what they had to leave out. The web pump turns them into rows."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from email.utils import parsedate_to_datetime
from hashlib import blake2b

from htfi.pipeline.intake.quarantine_reasons import QuarantineReason

MAX_ID_CHARS = 120  # the wire keeps 128 characters
MAX_ENTRIES = 10_000  # of one document
_SPACE = re.compile(r"\s+")
_ISO = re.compile(r"\d{4}-?\d\d-?\d\d([T ]|$)")


class BadDocument(Exception):
    """The whole answer cannot be read: the message says why."""


@dataclass(slots=True)
class WebEntry:
    """One entry of a feed or a list. `key` names it for its source.

    `published` is an ISO instant, a date, or what stood there where it is neither.
    `withdraws` says that the entry of this key was taken back. `refused` is why the entry cannot be used.
    """

    key: str = ""
    headline: str = ""
    body: str = ""
    url: str = ""
    published: str = ""
    publisher: str = ""
    symbols: list[str] = field(default_factory=list[str])
    withdraws: bool = False
    amends: str = ""  # key of another entry that this one amends
    retracts: bool = False  # that other entry, rather than amends it
    facts: dict[str, str] = field(default_factory=dict[str, str])  # what later entries need to know of it
    refused: tuple[QuarantineReason, str, str] | None = None  # reason, words on it, what it said
    hidden: list[str] = field(default_factory=list[str])  # what its page kept from readers

    def with_key(self) -> "WebEntry":
        """Give it a key where the source gave none."""
        if not self.key:
            self.key = self.url or f"{self.headline}\n{self.published}"
        self.key = short_id(self.key)
        return self

    def digest(self) -> bytes:
        """Of what it says: its text without regard to spaces, and whether it stands."""
        content = f"{one_line(self.headline)}\n{one_line(self.body)}\n{self.withdraws}"
        return blake2b(content.encode("utf-8", "surrogatepass"), digest_size=12).digest()


@dataclass(slots=True)
class ParsedDocument:
    """`entries` come oldest first. `error` is set, once they are read, where the document breaks off.

    `unchanged_keys` are keys of entries that are still there and were not read again. `needs_retry` requests the same
    document the next time, even if it has not changed.
    """

    entries: Iterable[WebEntry]
    error: str = ""
    unchanged_keys: list[str] = field(default_factory=list[str])
    needs_retry: bool = False


def short_id(text: str) -> str:
    """An id as it is, or its digest where it is long or holds what an id should not."""
    text = text.strip()
    if 0 < len(text) <= MAX_ID_CHARS and text.isprintable():
        return text
    return "blake2b:" + blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def one_line(text: str) -> str:
    return _SPACE.sub(" ", text).strip()


def oldest_first(entries: Sequence[WebEntry]) -> list[WebEntry]:
    """By their times where all are instants of one form; else in turned order, as lists begin with the newest."""
    turned = list(reversed(entries))
    times = [parse_instant(entry.published) for entry in turned]
    if None in times:
        return turned
    order = sorted(range(len(turned)), key=lambda place: times[place] or datetime.min.replace(tzinfo=UTC))
    return [turned[place] for place in order]


def parse_instant(published: str) -> datetime | None:
    """An ISO instant with its zone; None for anything else."""
    try:
        found = datetime.fromisoformat(published)
        return found.astimezone(UTC) if found.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def latest_instant(published: str) -> datetime | None:
    """An ISO instant, or the end of a day wherever it ends last."""
    if (instant := parse_instant(published)) is not None:
        return instant
    try:
        day = date.fromisoformat(published)
        return datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(hours=36)
    except (ValueError, OverflowError):
        return None


def normalise_time(text: str) -> str:
    """A feed's time as an ISO text where it is a known form, else as it came, for the row parser to judge."""
    text = one_line(text)[:64]
    if not text or _ISO.match(text):
        return text
    try:
        found = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError, IndexError):
        return text
    if found.tzinfo is None and text.endswith("-0000"):
        found = found.replace(tzinfo=UTC)
    offset = found.utcoffset() or timedelta()
    return text if abs(offset) > timedelta(hours=15) else found.isoformat()
