"""What a monitor knows of a log that it follows from outside: the newest tree that it has checked, and its right edge.

A monitor reads every entry, so it needs no consistency proof: it hashes what is new onto what it knew and compares the
root with the one that the log signed. A rollback, a fork and an altered entry all end there. Pure; `wiring` fetches.
"""

from collections.abc import Callable, Sequence

import msgspec

from htfi.domain.errors import IntegrityError
from htfi.governance.ledger.checkpoint import Checkpoint, open_checkpoint
from htfi.governance.ledger.merkle import HASH_BYTES, Frontier, leaf_hashes
from htfi.governance.ledger.note import VerifierKey
from htfi.governance.ledger.tiles import TILE_WIDTH, entries_of_bundle, tile_path
from htfi.governance.ports import VerifySignature

Fetch = Callable[
    [str], bytes | None
]  # a path below the log's address → its content; None where there is none


class MonitoredLog(msgspec.Struct, frozen=True):
    """A log as a monitor has checked it: its key, the signed checkpoint, and the peaks of its tree by height."""

    key: str
    size: int = 0
    checkpoint: str = ""
    peaks: tuple[bytes, ...] = ()


class Advance(msgspec.Struct, frozen=True):
    """What one look found: the log as it is known now, what is new, and how much of it could not be read."""

    known: MonitoredLog
    checkpoint: Checkpoint
    num_new: int
    num_deleted: int  # entries whose bundle the log no longer gives: their hashes alone were checked


def advance(
    known: MonitoredLog,
    key: VerifierKey,
    content: str,
    fetch: Fetch,
    verify: VerifySignature,
    take: Callable[[int, Sequence[bytes]], None],
) -> Advance:
    """Check a signed checkpoint and all entries since the last one.

    `take` gets each group of new entries with the index of its first, as it is read and before the whole has been
    compared with the root. Raises: IntegrityError on a false signature, a rollback, a fork, or a tile that is not
    what the log signed; as `fetch`.
    """
    checkpoint, _ = open_checkpoint(content, key, verify)
    log = f"log '{checkpoint.origin}'"
    if checkpoint.size < known.size:
        raise IntegrityError(
            f"rollback: {log} shows {checkpoint.size:,} entries after {known.size:,} were seen"
        )
    frontier = Frontier(known.size, known.peaks)
    num_deleted = 0
    while frontier.size < checkpoint.size:
        index, skipped = divmod(frontier.size, TILE_WIDTH)
        width = min(TILE_WIDTH, checkpoint.size - index * TILE_WIDTH)
        entries = _entries(fetch, index, width)
        if entries is None:
            hashes = _hashes(fetch, index, width, log)
            num_deleted += width - skipped
        else:
            hashes = leaf_hashes(entries)
            take(frontier.size, entries[skipped:])
        frontier.extend(hashes[skipped:])
    if frontier.root() != checkpoint.root:
        raise IntegrityError(
            f"fork: the {checkpoint.size:,} entries that {log} gives do not make the tree that it signed, or do not "
            f"extend the {known.size:,} that were seen"
        )
    now = MonitoredLog(str(key), checkpoint.size, content, tuple(frontier.peaks))
    return Advance(now, checkpoint, checkpoint.size - known.size, num_deleted)


def _entries(fetch: Fetch, index: int, width: int) -> list[bytes] | None:
    """The first `width` entries of a bundle; None where the log no longer gives them."""
    content = _tile(fetch, "entries", index, width)
    if content is None:
        return None
    entries = entries_of_bundle(content)
    if len(entries) < width:
        raise IntegrityError(f"{tile_path('entries', index, width)} holds {len(entries)} of {width} entries")
    return entries[:width]


def _hashes(fetch: Fetch, index: int, width: int, log: str) -> list[bytes]:
    content = _tile(fetch, 0, index, width)
    path = tile_path(0, index, width)
    if content is None:
        raise IntegrityError(f"{log} gives neither {tile_path('entries', index, width)} nor {path}")
    if len(content) < width * HASH_BYTES:
        raise IntegrityError(f"{path} holds {len(content)} bytes, not {width * HASH_BYTES}")
    return [content[place : place + HASH_BYTES] for place in range(0, width * HASH_BYTES, HASH_BYTES)]


def _tile(fetch: Fetch, level: int | str, index: int, width: int) -> bytes | None:
    """A partial tile, or the full one once the log has dropped the part (tlog-tiles, Partial Tiles)."""
    content = fetch(tile_path(level, index, width))
    if content is None and width < TILE_WIDTH:
        return fetch(tile_path(level, index))
    return content
