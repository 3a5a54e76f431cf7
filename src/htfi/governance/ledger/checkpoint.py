"""C2SP checkpoints and cosignatures: what a log signs, what a witness adds, and how both are checked.

A witness cosigns a checkpoint only where that extends all it vouched for. Log signs, audit and witness check. Sources:
c2sp.org/tlog-checkpoint, c2sp.org/tlog-cosignature, c2sp.org/tlog-witness.
"""

import base64
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.governance.ledger.merkle import EMPTY_ROOT, HASH_BYTES, verify_consistency
from htfi.governance.ledger.note import (
    COSIGNATURE_V1,
    ED25519,
    NoteSignature,
    SignedNote,
    VerifierKey,
    decode_base64,
    parse_note,
)
from htfi.governance.ports import CheckpointSigner, VerifySignature, WitnessedLog, WitnessMemory

SIGNATURE_BYTES = 64
MAX_INT64 = 2**63 - 1

_SIZE = re.compile(r"0|[1-9][0-9]{0,18}")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A tree head: whose log, how many entries, which root. Extension lines are opaque."""

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()

    def text(self) -> str:
        """The note text, each line ended by a newline."""
        lines = (self.origin, str(self.size), base64.b64encode(self.root).decode(), *self.extensions)
        return "".join(f"{line}\n" for line in lines)


def parse_checkpoint(text: str) -> Checkpoint:
    """The tree head in a note's text, strictly. Raises: IntegrityError."""
    lines = text.split("\n")
    if len(lines) < 4 or lines.pop() != "" or "" in lines:
        raise IntegrityError(
            "malformed checkpoint: expected origin, size and root, each on a line of its own"
        )
    origin, size, root, *extensions = lines
    if _SIZE.fullmatch(size) is None or int(size) > MAX_INT64:
        raise IntegrityError(f"malformed checkpoint: '{size[:40]}' is not a tree size")
    raw = decode_base64(root)
    if len(raw) != HASH_BYTES:
        raise IntegrityError(f"malformed checkpoint: the root is {len(raw)} bytes, not {HASH_BYTES}")
    return Checkpoint(origin, int(size), raw, tuple(extensions))


def sign_checkpoint(checkpoint: Checkpoint, signer: CheckpointSigner) -> SignedNote:
    """The checkpoint as a note, signed under the log's origin."""
    text = checkpoint.text()
    key = log_key(checkpoint.origin, signer)
    return SignedNote(text, (NoteSignature(key.name, key.key_id, signer.sign(text.encode())),))


def log_key(origin: str, signer: CheckpointSigner) -> VerifierKey:
    """The key under which a log of this origin signs (the key's name should be the origin)."""
    return VerifierKey(origin, ED25519, signer.public_key)


def open_checkpoint(content: str, key: VerifierKey, verify: VerifySignature) -> tuple[Checkpoint, SignedNote]:
    """Parse a signed checkpoint and check that `key` signed it. Raises: IntegrityError."""
    note = parse_note(content)
    checkpoint = parse_checkpoint(note.text)
    if checkpoint.origin != key.name:
        raise IntegrityError(f"the checkpoint is of log '{checkpoint.origin}', not of '{key.name}'")
    signatures = note.signatures_of(key)
    if not signatures:
        raise IntegrityError(f"the checkpoint of size {checkpoint.size} is not signed by {key}")
    text = note.text.encode()
    if not all(verify(key.public_key, text, signature.payload) for signature in signatures):
        raise IntegrityError(f"the checkpoint of size {checkpoint.size} has an invalid signature of {key}")
    return checkpoint, note


def cosign(note_text: str, name: str, time_s: int, signer: CheckpointSigner) -> NoteSignature:
    """A witness's `cosignature/v1` over a checkpoint's text, made at `time_s` (POSIX seconds)."""
    key = VerifierKey(name, COSIGNATURE_V1, signer.public_key)
    payload = time_s.to_bytes(8, "big") + signer.sign(_cosigned_message(note_text, time_s))
    return NoteSignature(name, key.key_id, payload)


def cosignature_time_s(
    note_text: str, signature: NoteSignature, key: VerifierKey, verify: VerifySignature
) -> int | None:
    """When `key` cosigned this text, in POSIX seconds; None where the cosignature does not hold."""
    if len(signature.payload) != 8 + SIGNATURE_BYTES or key.algorithm != COSIGNATURE_V1:
        return None
    time_s = int.from_bytes(signature.payload[:8], "big")
    if time_s > MAX_INT64:
        return None
    message = _cosigned_message(note_text, time_s)
    return time_s if verify(key.public_key, message, signature.payload[8:]) else None


def require_witnesses(
    note: SignedNote, witnesses: Sequence[VerifierKey], need: int, verify: VerifySignature
) -> list[VerifierKey]:
    """The witnesses that cosigned the note, at least `need` of those named.

    A cosignature that claims a named witness and does not hold condemns the note (signed-note, Signatures).
    Raises: InvalidInput where the policy cannot be met, IntegrityError where it is not.
    """
    keys = list(dict.fromkeys(key.as_witness() for key in witnesses))
    # Two names over one key would be one witness counted twice: the message does not hold the name.
    if len({key.public_key for key in keys}) != len(keys):
        raise InvalidInput("two of the witnesses share one public key: name each witness once")
    if not 0 <= need <= len(keys):
        raise InvalidInput(
            f"{need} witnesses are required, but only {len(keys)} named: add --witness or lower --need"
        )
    found: list[VerifierKey] = []
    for key in keys:
        signatures = note.signatures_of(key)
        if any(cosignature_time_s(note.text, signature, key, verify) is None for signature in signatures):
            raise IntegrityError(f"the cosignature of witness {key.name} is not valid")
        if signatures:
            found.append(key)
    if len(found) < need:
        raise IntegrityError(f"the checkpoint has {len(found)} of the {need} required cosignatures")
    return found


def _cosigned_message(note_text: str, time_s: int) -> bytes:
    return f"cosignature/v1\ntime {time_s}\n{note_text}".encode()


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

        A log seen for the first time is trusted on first use; its key and its tree are enforced afterwards.
        Raises: IntegrityError on a false signature, another key, a rollback or a fork.
        """
        checkpoint, note = open_checkpoint(content, log_key, self.verify)
        seen = self.memory.recall(checkpoint.origin)
        if seen is not None and seen.log_key != str(log_key):
            raise IntegrityError(
                f"log '{checkpoint.origin}' now signs by {log_key}; this witness has seen it signed by {seen.log_key}"
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
            f"rollback: {log} shows {checkpoint.size:,} entries after {known.size:,} were witnessed; {evidence}"
        )
    proof = proof_from(known.size)
    if not verify_consistency(known.size, checkpoint.size, proof, known.root, checkpoint.root):
        raise IntegrityError(
            f"fork: the tree of {checkpoint.size:,} entries that {log} shows does not extend the "
            f"witnessed tree of {known.size:,}; {evidence}"
        )
