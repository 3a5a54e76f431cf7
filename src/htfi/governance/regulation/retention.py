"""How long what is kept, and what of a run's record is due for deletion. Pure: wiring lists, reads and deletes.

The proof that something was recorded is kept for good: leaf hashes, tiles, checkpoints, the governance log. What is
deleted is the content: bytes of entries, and files of the run's folder.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_DAY
from htfi.governance.control.entries import DeletedSpan, RetentionEnded
from htfi.governance.ledger.tombstones import leaves_digest
from htfi.governance.ports import Tombstone

DECISION = "decision"
NEWS_BODY = "news-body"
PERSONAL_DATA = "personal-data"
WORKING_DATA = "working-data"
MAX_SPANS = 400  # of an order of deletion: an entry of a log holds 64 kB


@dataclass(frozen=True, slots=True)
class RetentionClass:
    """What is kept for how long, and why. `files` lie in the run's folder; a name that ends in '/' is a folder."""

    name: str
    what: str
    days: int
    basis: str
    files: tuple[str, ...] = ()
    has_entries: bool = False


RETENTION_CLASSES: tuple[RetentionClass, ...] = (
    RetentionClass(
        DECISION,
        "decisions in the ledger, and the files derived from them",
        5 * 366,
        "MiFID II art. 16(6), 25(1); RTS 6 art. 28: five years",
        ("report.html",),
        has_entries=True,
    ),
    RetentionClass(
        NEWS_BODY,
        "texts of news: held back, in quarantine, compared statements, spooled rows",
        365,
        "licences of news; GDPR art. 5(1)(e), as texts name people",
        ("held_news.jsonl", "quarantine.jsonl", "statements.jsonl", "posted_news.jsonl", "inbox/"),
    ),
    RetentionClass(
        PERSONAL_DATA,
        "what named people asked for, and texts that they were shown",
        5 * 366,
        "GDPR art. 5(1)(e), 6(1)(c); RTS 6 art. 28",
        ("releases.jsonl", "released.jsonl", "control/"),
    ),
    RetentionClass(
        WORKING_DATA,
        "the saved state and cached contexts, which hold parts of all else",
        90,
        "needed only while a run may resume",
        ("state.bin", "context/", "peers.jsonl"),
    ),
)


@dataclass(frozen=True, slots=True)
class DatedEntry:
    """An entry that is there: its place, the instant that its decision is as of, its leaf hash."""

    index: int
    as_of_ns: int
    leaf_hash: bytes


class DatedFile(NamedTuple):
    """A file of the run's folder and its length."""

    name: str
    num_bytes: int


class DueDeletion(NamedTuple):
    """What of a class is due: entries in order, and files."""

    retention: RetentionClass
    cutoff_ns: int
    entries: tuple[DatedEntry, ...]
    files: tuple[DatedFile, ...]


def retention_class(name: str) -> RetentionClass:
    """Raises: InvalidInput."""
    for one in RETENTION_CLASSES:
        if one.name == name:
            return one
    raise InvalidInput(
        f"there is no retention class '{name[:40]}': choose from {', '.join(one.name for one in RETENTION_CLASSES)}"
    )


def due_deletions(
    entries: Sequence[DatedEntry],
    files: Sequence[DatedFile],
    newest_ns: int,
    now_ns: int,
    days: Mapping[str, int],
    chosen: Iterable[RetentionClass] = RETENTION_CLASSES,
) -> list[DueDeletion]:
    """What is due at `now_ns`, by class. `days` are other periods by class; shorter ones for the people who set them.

    An entry is due by the instant of its decision, a file once the run's newest decision, at `newest_ns`, is as old:
    a file is deleted whole.
    """
    found: list[DueDeletion] = []
    for one in chosen:
        cutoff_ns = now_ns - days.get(one.name, one.days) * NS_PER_DAY
        old = tuple(entry for entry in entries if entry.as_of_ns < cutoff_ns) if one.has_entries else ()
        gone = tuple(file for file in files if is_in_class(file.name, one)) if newest_ns < cutoff_ns else ()
        found.append(DueDeletion(one, cutoff_ns, old, gone))
    return found


def is_in_class(name: str, retention: RetentionClass) -> bool:
    """Whether a file, named from the run's folder, is of a class."""
    return any(
        name.startswith(pattern) if pattern.endswith("/") else name == pattern for pattern in retention.files
    )


def deletion_spans(entries: Sequence[DatedEntry]) -> list[DeletedSpan]:
    """Entries as spans of neighbours, each with the digest of its leaf hashes."""
    spans: list[DeletedSpan] = []
    group: list[DatedEntry] = []
    for entry in entries:
        if group and entry.index != group[-1].index + 1:
            spans.append(_span(group))
            group = []
        group.append(entry)
    return [*spans, _span(group)] if group else spans


def split_orders(order: RetentionEnded) -> list[RetentionEnded]:
    """The same order as several, each small enough for an entry of a log; files go with the first."""
    spans = iter(order.spans)
    parts: list[RetentionEnded] = []
    while (part := tuple(islice(spans, MAX_SPANS))) or not parts:
        parts.append(
            RetentionEnded(
                order.at_ns, order.before, order.retention_class, order.by, order.why, part,
                () if parts else order.files,
            )
        )  # fmt: skip
        if len(part) < MAX_SPANS:
            break
    return parts


def unordered_deletions(tombstones: Sequence[Tombstone], orders: Mapping[int, RetentionEnded]) -> list[str]:
    """What of a ledger's tombstones no order of the governance log covers, a line each; empty where all are.

    `orders` are those of the governance log by their index there. A span is covered as a whole: by its places, its
    class, and the digest of the leaf hashes that the tombstones state.
    """
    by_order: dict[int, dict[int, Tombstone]] = {}
    for one in tombstones:
        by_order.setdefault(one.authorisation, {})[one.index] = one
    wrong: list[str] = []
    for authorisation, stones in by_order.items():
        order = orders.get(authorisation)
        if order is None:
            wrong.append(
                f"{_entries(stones)} deleted, and entry {authorisation} of the governance log orders no deletion"
            )
            continue
        covered: set[int] = set()
        for span in order.spans:
            inside = [stones[index] for index in range(span.start, span.stop) if index in stones]
            leaves = [one.leaf_hash for one in inside]
            is_whole = len(inside) == span.stop - span.start and leaves_digest(leaves) == span.leaves
            if is_whole and all(one.retention_class == order.retention_class for one in inside):
                covered |= {one.index for one in inside}
        if left := {index: stone for index, stone in stones.items() if index not in covered}:
            wrong.append(
                f"{_entries(left)} deleted, but the order that entry {authorisation} of the governance log holds does "
                "not cover them"
            )
    return wrong


def _entries(stones: Mapping[int, Tombstone]) -> str:
    first = min(stones)
    return f"entry {first} is" if len(stones) == 1 else f"{len(stones):,} entries, the first {first}, are"


def _span(group: Sequence[DatedEntry]) -> DeletedSpan:
    digest = leaves_digest([entry.leaf_hash for entry in group])
    return DeletedSpan(group[0].index, group[-1].index + 1, digest)
