"""Entries that were deleted when their retention ended: what readers get in their place, and what must stand for them.

The leaf hash of a deleted entry stays in the tree, so that every root, proof and checkpoint holds as before. Its bytes
are gone; in their place readers get a line of JSON that says so. A deletion counts only where an entry of the
governance log orders it, by index and leaf hash.
"""

from collections.abc import Sequence
from hashlib import sha256

import msgspec

from htfi.governance.ports import LeafStore, Tombstone

_HEAD = b'{"deleted":'


class _Deleted(msgspec.Struct, frozen=True, gc=False):
    index: int
    leaf_hash: str
    retention_class: str
    at_ns: int
    authorisation: int


class _Line(msgspec.Struct, frozen=True, gc=False):
    deleted: _Deleted


def tombstone_entry(tombstone: Tombstone) -> bytes:
    """What a reader gets in place of the entry. No decision begins so."""
    one = tombstone
    fields = _Deleted(one.index, one.leaf_hash.hex(), one.retention_class, one.at_ns, one.authorisation)
    return msgspec.json.encode(_Line(fields))


def is_tombstone(entry: bytes) -> bool:
    """Whether a reader got this in place of a deleted entry."""
    return entry.startswith(_HEAD)


def parse_tombstone(entry: bytes) -> Tombstone | None:
    """The inverse of `tombstone_entry`; None for anything else."""
    if not is_tombstone(entry):
        return None
    try:
        one = msgspec.json.decode(entry, type=_Line).deleted
        return Tombstone(
            one.index, bytes.fromhex(one.leaf_hash), one.retention_class, one.at_ns, one.authorisation
        )
    except (msgspec.DecodeError, ValueError):
        return None


def tombstones_by_index(store: LeafStore, start: int, stop: int) -> dict[int, Tombstone]:
    return {one.index: one for one in store.tombstones(start, stop)}


def leaves_digest(leaves: Sequence[bytes]) -> str:
    """What an order of deletion states of the leaf hashes that it covers: SHA-256 (hex) over them in order."""
    return sha256(b"".join(leaves)).hexdigest()
