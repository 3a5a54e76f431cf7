"""Interfaces that the ledger needs: a store of leaves, a key that signs. Adapters implement them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class EntryGroup:
    """Entries to make durable together, with all that follows from them; kept whole or not at all."""

    start: int  # index of the first entry
    entries: Sequence[bytes]
    tiles: Sequence[
        tuple[int, int, bytes]
    ]  # (level, index, hashes), complete or so far; each replaces its forerunner
    checkpoint: str  # the signed note at size start + len(entries)


@dataclass(frozen=True, slots=True)
class Tombstone:
    """What is left of an entry that was deleted when its retention ended.

    `authorisation` is the index of the entry of the governance log that orders the deletion.
    """

    index: int
    leaf_hash: bytes
    retention_class: str
    at_ns: int
    authorisation: int


class LeafStore(Protocol):
    """Entries, hash tiles, checkpoints and cosignatures, kept for good.

    Every method raises IntegrityError where the store is damaged, and LedgerUnavailable where it cannot be
    read or written now.
    """

    @property
    def name(self) -> str:
        """What to call this store in a message, such as its path."""
        ...

    @property
    def verifier_key(self) -> str:
        """The key that the log was created with, as text."""
        ...

    def extent(self) -> tuple[int, int]:
        """The number of entries, and the size of the newest checkpoint, as of one instant."""
        ...

    def entries(self, start: int, stop: int) -> Iterator[bytes]:
        """Entries of [start, stop) in order; fewer where some are missing, at the first gap. A deleted one is empty."""
        ...

    def tombstones(self, start: int, stop: int) -> Sequence[Tombstone]:
        """Those of [start, stop), by index."""
        ...

    def tile(self, level: int, index: int) -> bytes:
        """The tile's hashes so far, 32 bytes each, at most 256; empty where there is none."""
        ...

    def checkpoint(self, size: int) -> str | None:
        """The signed note stored at exactly this size."""
        ...

    def checkpoints(self) -> Iterator[tuple[int, str]]:
        """(size, signed note) of every checkpoint, by size."""
        ...

    def cosignatures(self, size: int) -> list[tuple[str, str]]:
        """(witness's verifier key, signature line) of the checkpoint at this size, in order of arrival."""
        ...

    def cosigned_sizes(self) -> list[int]:
        """The sizes whose checkpoints have a cosignature, ascending."""
        ...

    def append(self, group: EntryGroup) -> None:
        """Make the group durable, whole or not at all."""
        ...

    def tidy(self) -> None:
        """Housekeeping that no decision waits for; what was appended is durable without it."""
        ...

    def add_cosignature(self, size: int, verifier_key: str, line: str) -> None:
        """Make a witness's signature line durable; a newer one of the same witness replaces it."""
        ...

    def publish(self, checkpoint: str) -> None:
        """Put the newest signed checkpoint where others find it without opening the store."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class WitnessedLog:
    """What a witness knows of a log: its key, and the newest checkpoint that it vouched for, both as text."""

    log_key: str
    checkpoint: str


class WitnessMemory(Protocol):
    """What a witness has seen of each log, by origin. Held by one process at a time.

    Both methods raise IntegrityError where the memory is damaged, LedgerUnavailable where it cannot be used.
    """

    def recall(self, origin: str) -> WitnessedLog | None: ...

    def remember(self, origin: str, seen: WitnessedLog) -> None:
        """Durable when this returns."""
        ...


class CheckpointSigner(Protocol):
    """An Ed25519 private key."""

    @property
    def public_key(self) -> bytes:
        """32 bytes."""
        ...

    def sign(self, message: bytes) -> bytes:
        """64 bytes, by RFC 8032."""
        ...


class VerifySignature(Protocol):
    """Whether a 64-byte Ed25519 signature of `message` holds under the 32-byte public key; never raises."""

    def __call__(self, public_key: bytes, message: bytes, signature: bytes) -> bool: ...
