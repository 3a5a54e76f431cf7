"""A witness vouches for growth alone: rollbacks, forks and strangers' keys are refused."""

from collections.abc import Sequence

import pytest

from htfi.adapters.keys.ed25519 import SigningKey, signing_key, verify_signature
from htfi.domain.errors import IntegrityError
from htfi.governance.ledger.checkpoint import (
    Checkpoint,
    LogWitness,
    cosignature_time_s,
    log_key,
    sign_checkpoint,
)
from htfi.governance.ledger.merkle import consistency_proof, leaf_hash, perfect_root, range_hash
from htfi.governance.ledger.note import NoteSignature
from htfi.governance.ports import WitnessedLog

ORIGIN = "log.example/desk"
LOG_KEY = signing_key(ORIGIN, b"\x01" * 32)
TIME_S = 1_700_000_000


class Memory:
    """A hand-written memory; `broken` stands for a disk that fails."""

    def __init__(self) -> None:
        self.seen: dict[str, WitnessedLog] = {}
        self.broken = False

    def recall(self, origin: str) -> WitnessedLog | None:
        return self.seen.get(origin)

    def remember(self, origin: str, seen: WitnessedLog) -> None:
        if self.broken:
            raise OSError
        self.seen[origin] = seen


class Tree:
    """A log of given entries that signs and proves what it is told to."""

    def __init__(self, entries: Sequence[bytes], signer: SigningKey = LOG_KEY) -> None:
        self.leaves = [leaf_hash(entry) for entry in entries]
        self.signer = signer

    def subtree(self, height: int, index: int) -> bytes:
        return perfect_root(self.leaves[index << height : (index + 1) << height])

    def submit(self, witness: LogWitness) -> NoteSignature:
        size = len(self.leaves)
        checkpoint = Checkpoint(ORIGIN, size, range_hash(0, size, self.subtree))
        return witness.add_checkpoint(
            str(sign_checkpoint(checkpoint, self.signer)),
            log_key(ORIGIN, self.signer),
            lambda old_size: consistency_proof(old_size, size, self.subtree),
            TIME_S,
        )


ENTRIES = [b"%d" % index for index in range(20)]


@pytest.fixture
def witness() -> LogWitness:
    return LogWitness("w.example/1", signing_key("w.example/1", b"\x02" * 32), Memory(), verify_signature)


def test_growth_is_cosigned_step_by_step(witness: LogWitness) -> None:
    for size in (0, 1, 7, 7, 20):
        tree = Tree(ENTRIES[:size])
        signature = tree.submit(witness)
        text = Checkpoint(ORIGIN, size, range_hash(0, size, tree.subtree)).text()
        assert cosignature_time_s(text, signature, witness.key, verify_signature) == TIME_S


def test_rollback_is_refused(witness: LogWitness) -> None:
    Tree(ENTRIES).submit(witness)
    with pytest.raises(IntegrityError, match=r"rollback: .* shows 19 entries after 20 were witnessed"):
        Tree(ENTRIES[:19]).submit(witness)


@pytest.mark.parametrize("size", [10, 20])
def test_fork_is_refused(witness: LogWitness, size: int) -> None:
    Tree(ENTRIES[:10]).submit(witness)
    forked = Tree([b"another", *ENTRIES[1:size]])
    with pytest.raises(IntegrityError, match="fork: "):
        forked.submit(witness)


def test_refusal_leaves_what_was_seen_untouched(witness: LogWitness) -> None:
    Tree(ENTRIES[:10]).submit(witness)
    with pytest.raises(IntegrityError):
        Tree([b"another"] * 12).submit(witness)
    Tree(ENTRIES[:11]).submit(witness)


def test_log_that_changes_its_key_is_refused(witness: LogWitness) -> None:
    Tree(ENTRIES[:3]).submit(witness)
    with pytest.raises(IntegrityError, match="now signs by"):
        Tree(ENTRIES[:4], signing_key(ORIGIN, b"\x03" * 32)).submit(witness)


def test_false_signature_is_not_cosigned(witness: LogWitness) -> None:
    tree = Tree(ENTRIES[:3])
    checkpoint = sign_checkpoint(Checkpoint(ORIGIN, 3, range_hash(0, 3, tree.subtree)), LOG_KEY)
    other = Tree(ENTRIES[:2])
    forged = str(checkpoint).replace("\n3\n", "\n2\n")
    with pytest.raises(IntegrityError, match="invalid signature"):
        witness.add_checkpoint(forged, log_key(ORIGIN, LOG_KEY), lambda _: [], TIME_S)
    assert len(other.leaves) == 2
    assert witness.memory.recall(ORIGIN) is None


def test_no_cosignature_leaves_before_the_memory_is_kept(witness: LogWitness) -> None:
    assert isinstance(witness.memory, Memory)
    witness.memory.broken = True
    with pytest.raises(OSError):  # noqa: PT011 - the fake's own
        Tree(ENTRIES[:3]).submit(witness)
