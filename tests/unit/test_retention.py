"""Retention: what is due by class, and that deletions count only where an order covers them."""

import pytest

from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_DAY
from htfi.governance.control.entries import RetentionEnded
from htfi.governance.ledger.merkle import leaf_hash
from htfi.governance.ledger.tombstones import is_tombstone, parse_tombstone, tombstone_entry
from htfi.governance.ports import Tombstone
from htfi.governance.regulation.retention import (
    DECISION,
    MAX_SPANS,
    NEWS_BODY,
    RETENTION_CLASSES,
    DatedEntry,
    DatedFile,
    deletion_spans,
    due_deletions,
    retention_class,
    split_orders,
    unordered_deletions,
)

LEAVES = [leaf_hash(str(k).encode()) for k in range(2_000)]
ENTRIES = [DatedEntry(k, k * NS_PER_DAY, LEAVES[k]) for k in range(100)]


def order(entries, name: str = DECISION) -> RetentionEnded:
    return RetentionEnded(1, 100, name, "Ann Lee", "over", tuple(deletion_spans(entries)))


def stones(entries, authorisation: int = 0, name: str = DECISION) -> list[Tombstone]:
    return [Tombstone(one.index, one.leaf_hash, name, 1, authorisation) for one in entries]


def test_entries_are_due_by_their_age_and_files_once_the_run_is_as_old() -> None:
    files = [DatedFile("held_news.jsonl", 3), DatedFile("inbox/a", 1), DatedFile("ledger.db", 9)]
    found = {
        one.retention.name: one
        for one in due_deletions(
            ENTRIES, files, 99 * NS_PER_DAY, 110 * NS_PER_DAY, {DECISION: 60, NEWS_BODY: 10}
        )
    }
    assert [one.index for one in found[DECISION].entries] == list(range(50))
    assert [one.name for one in found[NEWS_BODY].files] == ["held_news.jsonl", "inbox/a"]
    assert found[NEWS_BODY].entries == ()
    later = due_deletions(ENTRIES, files, 99 * NS_PER_DAY, 109 * NS_PER_DAY, {NEWS_BODY: 10})
    assert not any(one.files for one in later)


def test_five_years_are_kept_by_default() -> None:
    assert retention_class(DECISION).days >= 5 * 365 + 2
    with pytest.raises(InvalidInput, match="choose from decision"):
        retention_class("other")
    assert len({one.name for one in RETENTION_CLASSES}) == len(RETENTION_CLASSES)


def test_neighbours_are_one_span() -> None:
    spans = deletion_spans([ENTRIES[k] for k in (2, 3, 4, 9)])
    assert [(one.start, one.stop) for one in spans] == [(2, 5), (9, 10)]


def test_an_order_covers_its_deletions() -> None:
    chosen = [ENTRIES[k] for k in (2, 3, 4, 9)]
    assert unordered_deletions(stones(chosen), {0: order(chosen)}) == []


@pytest.mark.parametrize(
    ("deleted", "ordered"),
    [
        ([2, 3, 4], [2, 3]),  # one more than ordered
        ([2, 3], [2, 3, 4]),  # a part of a span: its digest is of all
        ([5], [6]),
    ],
)
def test_deletions_that_no_order_covers_are_named(deleted, ordered) -> None:
    orders = {0: order([ENTRIES[k] for k in ordered])}
    assert unordered_deletions(stones([ENTRIES[k] for k in deleted]), orders)


def test_another_class_another_leaf_or_no_order_is_found() -> None:
    chosen = ENTRIES[:3]
    assert unordered_deletions(stones(chosen, name=NEWS_BODY), {0: order(chosen)})
    forged = [Tombstone(one.index, LEAVES[50], DECISION, 1, 0) for one in chosen]
    assert unordered_deletions(forged, {0: order(chosen)})
    (line,) = unordered_deletions(stones(chosen, authorisation=7), {0: order(chosen)})
    assert line == "3 entries, the first 0, are deleted, and entry 7 of the governance log orders no deletion"


def test_a_long_order_is_split_into_entries_of_a_log() -> None:
    every_other = [DatedEntry(2 * k, 0, LEAVES[k]) for k in range(2 * MAX_SPANS + 1)]
    parts = split_orders(order(every_other))
    assert [len(part.spans) for part in parts] == [MAX_SPANS, MAX_SPANS, 1]
    assert len(split_orders(order([]))) == 1


def test_a_tombstone_is_read_as_it_was_written() -> None:
    (stone,) = stones(ENTRIES[4:5])
    line = tombstone_entry(stone)
    assert is_tombstone(line)
    assert parse_tombstone(line) == stone
    assert parse_tombstone(b'{"id":"SPX"}') is None
    assert parse_tombstone(b'{"deleted":{"index":1}}') is None
