"""Verification of a whole stored log from its entries' bytes; `LogReader.verify` calls it.

Nothing stored is believed: leaf hashes, tiles and roots are recomputed and then compared, and every signature
is checked. Where two stored things disagree, the signed root decides which of them was altered.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from htfi.domain.errors import HtfiError, IntegrityError
from htfi.governance.ledger.checkpoint import cosignature_time_s, open_checkpoint
from htfi.governance.ledger.merkle import HASH_BYTES, Frontier, leaf_hashes
from htfi.governance.ledger.note import VerifierKey, parse_signature_line, parse_verifier_key
from htfi.governance.ledger.tiles import TILE_WIDTH, TileEdge
from htfi.governance.ledger.tombstones import tombstones_by_index
from htfi.governance.ports import LeafStore, VerifySignature

Progress = Callable[[int, int], None]  # (entries done, entries in all)


@dataclass(frozen=True, slots=True)
class LogAudit:
    """What held: so many entries under this root, so many signed checkpoints and cosignatures."""

    size: int
    root: bytes
    num_checkpoints: int
    num_cosignatures: int
    num_deleted: int = 0  # of the entries: their leaf hashes stand in the tree, their bytes are gone


def audit_log(
    store: LeafStore, key: VerifierKey, verify: VerifySignature, progress: Progress | None
) -> LogAudit:
    """Recompute and compare everything; time is linear in bytes and checkpoints, memory constant.

    Entries that a running writer adds meanwhile are left to the next audit.
    Raises: IntegrityError, naming the first entry, hash or signature that does not hold.
    """
    num_entries, size = store.extent()
    if num_entries != size:
        raise IntegrityError(
            f"{store.name} holds {num_entries:,} entries, but its newest checkpoint is of size {size:,}"
        )
    walk = _LogWalk(store, key, verify)
    num_deleted = 0
    for start in range(0, size, TILE_WIDTH):
        stop = min(start + TILE_WIDTH, size)
        bodies = list(store.entries(start, stop))
        leaves = list(leaf_hashes(bodies))
        for index, tombstone in tombstones_by_index(store, start, start + len(leaves)).items():
            if bodies[index - start]:
                walk.fail(f"entry {index} has a tombstone and is still there")
            leaves[index - start] = tombstone.leaf_hash
            num_deleted += 1
        walk.add_leaves(leaves)
        if start + len(leaves) < stop:
            walk.fail(f"entry {start + len(leaves)} is missing")
        if progress is not None:
            progress(stop, size)
    walk.finish(size)
    num_cosignatures = _audit_cosignatures(store, size, verify)
    return LogAudit(size, walk.frontier.root(), walk.num_checkpoints, num_cosignatures, num_deleted)


@dataclass(frozen=True, slots=True)
class _Discrepancy:
    """Two stored things disagree: what to report once a signed root over `entry` shows which of them is true."""

    entry: int
    if_entries_hold: str
    if_not: str


class _LogWalk:
    """One pass over the leaves, first to last, with the stored tiles and checkpoints beside it."""

    def __init__(self, store: LeafStore, key: VerifierKey, verify: VerifySignature) -> None:
        self.frontier = Frontier()
        self.num_checkpoints = 0
        self._store, self._key, self._verify = store, key, verify
        self._edge = TileEdge()
        self._checkpoints = store.checkpoints()
        self._next = next(self._checkpoints, None)
        self._last_good_size = 0
        self._discrepancy: _Discrepancy | None = None

    def add_leaves(self, leaves: Sequence[bytes]) -> None:
        """The leaf hashes of the next tile, recomputed from its entries."""
        start, taken = self.frontier.size, 0
        self._compare_leaves(start, leaves)
        finished: list[tuple[int, bytes]] = []
        while self._next is not None and self._next[0] <= start + len(leaves):
            cut = self._next[0] - start
            finished += self.frontier.extend(leaves[taken:cut])
            taken = cut
            self._check_checkpoint(*self._next)
        finished += self.frontier.extend(leaves[taken:])
        for level, index, hashes in self._edge.extend(leaves, finished):
            if level > 0:
                self._compare_tile(level, index, hashes)

    def finish(self, size: int) -> None:
        """Every entry is taken: no checkpoint up to `size` and no discrepancy may be open."""
        while self._next is not None and self._next[0] <= size:
            self._check_checkpoint(*self._next)
        if self._last_good_size != size:
            self.fail(f"the newest checkpoint, of size {size}, is missing")
        if self._discrepancy is not None:
            self.fail(self._discrepancy.if_entries_hold)

    def fail(self, message: str) -> NoReturn:
        raise IntegrityError(f"{self._store.name}: {message}")

    def _compare_leaves(self, start: int, leaves: Sequence[bytes]) -> None:
        at = self._first_difference(0, start // TILE_WIDTH, b"".join(leaves))
        if at is not None:
            index = start + at
            self._discrepancy = _Discrepancy(
                index,
                f"the hash kept for entry {index} was altered; the entry itself is intact",
                f"entry {index} was altered: it no longer has the hash under which it was recorded",
            )

    def _compare_tile(self, level: int, index: int, hashes: bytes) -> None:
        at = self._first_difference(level, index, hashes)
        if at is not None:
            span = TILE_WIDTH**level
            first = (index * TILE_WIDTH + at) * span
            self._discrepancy = _Discrepancy(
                first,
                f"hash tile {level}/{index} was altered; the entries themselves are intact",
                f"one of entries {first} to {first + span - 1} was altered together with its hash",
            )

    def _first_difference(self, level: int, index: int, hashes: bytes) -> int | None:
        """Which hash of a stored tile is not the recomputed one; None once a discrepancy is open."""
        stored = self._store.tile(level, index)
        if self._discrepancy is not None or stored[: len(hashes)] == hashes:
            return None
        starts = range(0, len(hashes), HASH_BYTES)
        return next(
            at for at, i in enumerate(starts) if stored[i : i + HASH_BYTES] != hashes[i : i + HASH_BYTES]
        )

    def _check_checkpoint(self, size: int, content: str) -> None:
        try:
            checkpoint, _ = open_checkpoint(content, self._key, self._verify)
        except IntegrityError as error:
            self.fail(f"checkpoint at size {size}: {error}")
        if checkpoint.size != size:
            self.fail(f"the checkpoint kept for size {size} is of size {checkpoint.size}")
        holds = checkpoint.root == self.frontier.root()
        if self._discrepancy is not None and self._discrepancy.entry < size:
            self.fail(self._discrepancy.if_entries_hold if holds else self._discrepancy.if_not)
        if not holds:
            self.fail(
                f"the entries up to {size - 1} do not have the root signed at size {size}: one of entries "
                f"{self._last_good_size} to {size - 1} was altered together with its hash"
            )
        self.num_checkpoints += 1
        self._last_good_size = size
        self._next = next(self._checkpoints, None)


def _audit_cosignatures(store: LeafStore, size: int, verify: VerifySignature) -> int:
    num_cosignatures = 0
    for cosigned in store.cosigned_sizes():
        if cosigned > size:
            break
        content = store.checkpoint(cosigned)
        for witness, line in store.cosignatures(cosigned):
            try:
                key, signature = parse_verifier_key(witness), parse_signature_line(line)
            except HtfiError as error:
                raise IntegrityError(f"{store.name}: cosignature at size {cosigned}: {error}") from error
            own = (signature.name, signature.key_id) == (key.name, key.key_id)
            text = "" if content is None else content.rpartition("\n\n")[0] + "\n"
            if not own or cosignature_time_s(text, signature, key, verify) is None:
                raise IntegrityError(
                    f"{store.name}: the cosignature of {key.name} at size {cosigned} is not valid"
                )
            num_cosignatures += 1
    return num_cosignatures
