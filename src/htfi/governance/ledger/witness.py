"""A witness: it cosigns a checkpoint only where that extends all it vouched for (c2sp.org/tlog-witness).

The command line calls it for a folder; a service over HTTP can call it the same way.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from htfi.domain.errors import IntegrityError
from htfi.governance.ledger.checkpoint import Checkpoint, cosign, open_checkpoint, parse_checkpoint
from htfi.governance.ledger.merkle import EMPTY_ROOT, verify_consistency
from htfi.governance.ledger.note import COSIGNATURE_V1, NoteSignature, VerifierKey, parse_note
from htfi.governance.ports import CheckpointSigner, VerifySignature, WitnessedLog, WitnessMemory

ProofFrom = Callable[[int], Sequence[bytes]]  # old size → consistency proof to the submitted checkpoint


@dataclass(frozen=True, slots=True)
class LogWitness:
    """One witness: its name, its key, and what it has seen."""

    name: str
    signer: CheckpointSigner
    memory: WitnessMemory
    verify: VerifySignature

    @property
    def key(self) -> VerifierKey:
        """The key by which others check its cosignatures."""
        return VerifierKey(self.name, COSIGNATURE_V1, self.signer.public_key)

    def add_checkpoint(
        self, content: str, log_key: VerifierKey, proof_from: ProofFrom, time_s: int
    ) -> NoteSignature:
        """Cosign a signed checkpoint, at `time_s` (POSIX seconds).

        A log seen for the first time is taken at its word, and held to its key and its tree from then on.
        Raises: IntegrityError on a false signature, another key, a rollback or a fork.
        """
        checkpoint, note = open_checkpoint(content, log_key, self.verify)
        seen = self.memory.recall(checkpoint.origin)
        if seen is not None and seen.log_key != str(log_key):
            raise IntegrityError(
                f"log '{checkpoint.origin}' now signs by {log_key}; this witness knows it by {seen.log_key}"
            )
        known = None if seen is None else parse_checkpoint(parse_note(seen.checkpoint).text)
        require_extension(known, checkpoint, proof_from)
        signature = cosign(note.text, self.name, time_s, self.signer)
        # Kept before the cosignature leaves: a crash between must not let an older tree be vouched for.
        self.memory.remember(checkpoint.origin, WitnessedLog(str(log_key), content))
        return signature


def require_extension(known: Checkpoint | None, checkpoint: Checkpoint, proof_from: ProofFrom) -> None:
    """Demand proof that `checkpoint` extends `known` (None: nothing so far). Raises: IntegrityError."""
    known = known or Checkpoint(checkpoint.origin, 0, EMPTY_ROOT)
    log = f"log '{checkpoint.origin}'"
    evidence = "not cosigned; keep both checkpoints as evidence"
    if checkpoint.size < known.size:
        raise IntegrityError(
            f"rollback: {log} shows {checkpoint.size} entries after {known.size} were witnessed; {evidence}"
        )
    proof = proof_from(known.size)
    if not verify_consistency(known.size, checkpoint.size, proof, known.root, checkpoint.root):
        raise IntegrityError(
            f"fork: the tree of {checkpoint.size} entries that {log} shows does not extend the tree of "
            f"{known.size} that was witnessed; {evidence}"
        )
