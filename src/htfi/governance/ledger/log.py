"""The transparency log: append in groups, prove, and give signed checkpoints. Pipeline records into it.

`LogReader` reads a stored log, beside a running writer if need be; `TransparencyLog` also appends. Entries are opaque
bytes; the root depends on them and their order alone.
"""

from collections.abc import Iterator, Sequence

from htfi.domain.decision import Receipt
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.governance.ledger.audit import LogAudit, Progress, audit_log
from htfi.governance.ledger.checkpoint import (
    Checkpoint,
    cosignature_time_s,
    log_key,
    open_checkpoint,
    sign_checkpoint,
)
from htfi.governance.ledger.merkle import (
    HASH_BYTES,
    Frontier,
    consistency_proof,
    frontier_at,
    inclusion_proof,
    leaf_hash,
    leaf_hashes,
    range_hash,
)
from htfi.governance.ledger.note import (
    NoteSignature,
    SignedNote,
    VerifierKey,
    parse_signature_line,
    parse_verifier_key,
)
from htfi.governance.ledger.tiles import MAX_ENTRY_BYTES, TILE_WIDTH, TileEdge, edge_at, subtrees
from htfi.governance.ledger.tombstones import tombstone_entry, tombstones_by_index
from htfi.governance.ports import CheckpointSigner, EntryGroup, LeafStore, Tombstone, VerifySignature


class LogReader:
    """A stored log, read only."""

    def __init__(self, store: LeafStore, verify: VerifySignature) -> None:
        self._store = store
        self._verify_signature = verify
        try:
            self.key = parse_verifier_key(store.verifier_key)
        except InvalidInput as error:
            raise IntegrityError(f"{store.name} is damaged: {error}") from error

    @property
    def origin(self) -> str:
        return self.key.name

    @property
    def size(self) -> int:
        return self._store.extent()[1]

    def entry(self, index: int) -> bytes:
        """The entry's bytes; of one that was deleted its tombstone (`governance.ledger.tombstones`).

        Raises: InvalidInput where there is no such entry, IntegrityError where it is lost or was altered.
        """
        if not 0 <= index < self.size:
            raise InvalidInput(
                f"{self._store.name} has no entry {index}: it holds {self.size:,} entries, counted from 0"
            )
        return next(self.entries(index, index + 1))

    def entries(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Entries of [start, stop) in order, each with the leaf hash that is kept for it.

        Raises: IntegrityError at the first that is missing or was altered.
        """
        for entry, _ in self._entries_with_leaves(start, self.size if stop is None else min(stop, self.size)):
            yield entry

    def signed_entries(self, size: int | None = None) -> Iterator[tuple[bytes, bytes]]:
        """The first `size` entries from the first on, with their leaf hashes, checked against the root signed then.

        Raises: IntegrityError at the first that is missing or was altered, or at the end where the root is another.
        """
        checkpoint, _ = self.checkpoint(size)
        frontier = Frontier()
        for entry, leaf in self._entries_with_leaves(0, checkpoint.size):
            frontier.extend((leaf,))
            yield entry, leaf
        if frontier.root() != checkpoint.root:
            raise IntegrityError(
                f"{self._store.name}: the entries do not have the root signed at size {checkpoint.size}: "
                "`htfi ledger verify` names the first that was altered"
            )

    def _entries_with_leaves(self, start: int, stop: int) -> Iterator[tuple[bytes, bytes]]:
        tile, hashes = -1, b""
        deleted: dict[int, Tombstone] = {}
        for index, body in enumerate(self._store.entries(start, stop), start):
            entry = body
            if index // TILE_WIDTH != tile:
                tile = index // TILE_WIDTH
                hashes = self._store.tile(0, tile)
                deleted = tombstones_by_index(self._store, tile * TILE_WIDTH, (tile + 1) * TILE_WIDTH)
            leaf, at = leaf_hash(entry), index % TILE_WIDTH * HASH_BYTES
            if not body and index in deleted:
                leaf, entry = deleted[index].leaf_hash, tombstone_entry(deleted[index])
            if hashes[at : at + HASH_BYTES] != leaf:
                raise IntegrityError(
                    f"{self._store.name}: entry {index} or the hash kept for it was altered: restore it from a copy"
                )
            yield entry, leaf
            start = index + 1
        if start < stop:
            raise IntegrityError(f"{self._store.name}: entry {start} is missing")

    def tombstones(self, start: int = 0, stop: int | None = None) -> Sequence[Tombstone]:
        """What is left of the deleted entries of [start, stop), by index."""
        return self._store.tombstones(start, self.size if stop is None else stop)

    def tile(self, level: int, index: int) -> bytes:
        """The hash tile's content so far (c2sp.org/tlog-tiles)."""
        return self._store.tile(level, index)

    def root(self, size: int | None = None) -> bytes:
        """The Merkle root of the first `size` entries."""
        return range_hash(0, self._tree_size(size), subtrees(self._store.tile))

    def inclusion_proof(self, index: int, size: int | None = None) -> list[bytes]:
        """That entry `index` is in the tree of `size` entries: hashes from the leaf's sibling up."""
        size = self._tree_size(size)
        if not 0 <= index < size:
            raise InvalidInput(
                f"entry {index} is not among the first {size}: choose an index from 0 to {size - 1}"
            )
        return inclusion_proof(index, size, subtrees(self._store.tile))

    def consistency_proof(self, old_size: int, size: int | None = None) -> list[bytes]:
        """That the tree of `size` entries extends that of `old_size`."""
        size = self._tree_size(size)
        if not 0 <= old_size <= size:
            raise InvalidInput(f"a tree of {size} entries cannot extend one of {old_size}")
        return consistency_proof(old_size, size, subtrees(self._store.tile))

    def checkpoint(self, size: int | None = None) -> tuple[Checkpoint, SignedNote]:
        """The newest signed checkpoint, or that of exactly `size`, its signature checked; with cosignatures.

        Raises: InvalidInput where none was signed at that size, IntegrityError where it does not hold.
        """
        _, newest = self._store.extent()
        size = newest if size is None else size
        content = self._store.checkpoint(size) if 0 <= size <= newest else None
        if content is None:
            sizes = [known for known, _ in self._store.checkpoints()]
            nearest = sorted(sorted(sizes, key=lambda known: abs(known - size))[:2])
            raise InvalidInput(
                f"{self._store.name} has no checkpoint of size {size}: the nearest are of "
                f"{' and '.join(map(str, nearest))}"
            )
        checkpoint, note = open_checkpoint(content, self.key, self._verify_signature)
        if checkpoint.size != size:
            raise IntegrityError(
                f"{self._store.name}: the checkpoint kept for size {size} is of size {checkpoint.size}"
            )
        lines = tuple(parse_signature_line(line) for _, line in self._store.cosignatures(size))
        return checkpoint, SignedNote(note.text, note.signatures + lines)

    def verify(self, progress: Progress | None = None) -> LogAudit:
        """Recompute the log from its entries' bytes. Raises: IntegrityError, naming what is wrong first."""
        return audit_log(self._store, self.key, self._verify_signature, progress)

    def add_cosignature(self, size: int, witness: VerifierKey, signature: NoteSignature) -> None:
        """Keep a witness's cosignature of the checkpoint at `size`, and publish the checkpoint with it.

        Raises: IntegrityError where it does not hold, InvalidInput, LedgerUnavailable.
        """
        _, note = self.checkpoint(size)
        if cosignature_time_s(note.text, signature, witness, self._verify_signature) is None:
            raise IntegrityError(
                f"the cosignature of {witness.name} is not valid for the checkpoint of size {size}"
            )
        self._store.add_cosignature(size, str(witness), str(signature))
        self._store.publish(str(self.checkpoint()[1]))

    def close(self) -> None:
        self._store.close()

    def _tree_size(self, size: int | None) -> int:
        newest = self.size
        if size is not None and not 0 <= size <= newest:
            raise InvalidInput(f"{self._store.name} has no tree of {size:,} entries: it holds {newest:,}")
        return newest if size is None else size


class TransparencyLog(LogReader):
    """A log that its one owner appends to. Implements pipeline's Ledger."""

    def __init__(self, store: LeafStore, signer: CheckpointSigner, verify: VerifySignature) -> None:
        """Take up the log where it stands.

        Raises: InvalidInput where `signer` is not the log's key, IntegrityError where the store does not
        agree with its newest checkpoint.
        """
        super().__init__(store, verify)
        if log_key(self.origin, signer) != self.key:
            raise InvalidInput(
                f"{store.name} is signed by {self.key}: this is another signing key, restore the right one"
            )
        self._signer = signer
        num_entries, size = store.extent()
        if num_entries != size:
            raise IntegrityError(
                f"{store.name} holds {num_entries:,} entries, but its checkpoint is of size {size:,}"
            )
        checkpoint, _ = super().checkpoint(size)
        self._frontier: Frontier = frontier_at(size, subtrees(store.tile))
        if self._frontier.root() != checkpoint.root:
            raise IntegrityError(
                f"{store.name}: the stored hashes do not give the signed root of size {size:,}"
            )
        self._edge: TileEdge = edge_at(size, store.tile)
        self._writable = True

    @property
    def size(self) -> int:
        return self._frontier.size

    def append(self, entries: Sequence[bytes]) -> list[Receipt]:
        """Record the entries together, durably; none is recorded where this raises.

        Raises: InvalidInput, LedgerUnavailable.
        """
        if not entries:
            return []
        start = self._frontier.size
        if max(map(len, entries)) > MAX_ENTRY_BYTES:
            offset = next(at for at, entry in enumerate(entries) if len(entry) > MAX_ENTRY_BYTES)
            raise InvalidInput(
                f"entry {start + offset} is {len(entries[offset])} bytes: an entry holds at most {MAX_ENTRY_BYTES}"
            )
        leaves = leaf_hashes(entries)
        frontier, edge = self._frontier.copy(), self._edge.copy()
        tiles = edge.extend(leaves, frontier.extend(leaves))
        checkpoint = Checkpoint(self.origin, frontier.size, frontier.root())
        note = sign_checkpoint(checkpoint, self._signer)
        self._writable = False
        self._store.append(EntryGroup(start, entries, tiles, str(note)))
        self._writable = True
        self._frontier, self._edge = frontier, edge
        return [Receipt(start + offset, leaf.hex()) for offset, leaf in enumerate(leaves)]

    def tidy(self) -> None:
        """Let the store do its housekeeping. Raises: LedgerUnavailable."""
        self._store.tidy()

    def close(self) -> None:
        """Publish the newest checkpoint and let go of the store; after a failed append, only the latter.

        Raises: LedgerUnavailable where the checkpoint cannot be published.
        """
        try:
            if self._writable:
                self._writable = False
                self._store.publish(str(self.checkpoint()[1]))
        finally:
            super().close()
