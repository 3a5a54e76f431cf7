"""Writes and checks what leaves a ledger: proof files, and the whole log as static files.

A proof file has all that someone without the ledger needs to check one entry, or that a log only grew. An inclusion
proof is written as JSON or as a C2SP tlog-proof (c2sp.org/tlog-proof), a consistency proof as JSON. `htfi ledger
export` writes the log by the layout of c2sp.org/tlog-tiles.
"""

import base64
import re
from collections.abc import Iterator
from typing import Annotated

import msgspec

from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.governance.ledger.audit import Progress
from htfi.governance.ledger.checkpoint import Checkpoint, open_checkpoint
from htfi.governance.ledger.log import LogReader
from htfi.governance.ledger.merkle import HASH_BYTES, leaf_hash, verify_consistency, verify_inclusion
from htfi.governance.ledger.note import SignedNote, VerifierKey, decode_base64
from htfi.governance.ledger.tiles import TILE_WIDTH, entry_bundle, tile_path, tile_shapes
from htfi.governance.ledger.tombstones import is_tombstone, parse_tombstone
from htfi.governance.ports import VerifySignature

Count = Annotated[int, msgspec.Meta(ge=0)]
Hash = Annotated[bytes, msgspec.Meta(min_length=HASH_BYTES, max_length=HASH_BYTES)]

_HEADER = "c2sp.org/tlog-proof@v1"
_INDEX = re.compile(r"index (0|[1-9][0-9]{0,18})")


class InclusionProof(
    msgspec.Struct, frozen=True, tag="inclusion", tag_field="type", forbid_unknown_fields=True
):
    """That the entry stands at `index` of the tree in `checkpoint`. Bytes are base64 in JSON."""

    index: Count
    entry: bytes
    path: list[Hash]
    checkpoint: str  # the signed note
    log_key: str | None = None  # absent in a tlog-proof


class ConsistencyProof(
    msgspec.Struct, frozen=True, tag="consistency", tag_field="type", forbid_unknown_fields=True
):
    """That the tree in `checkpoint` extends the tree of `old_size` entries with root `old_root`."""

    old_size: Count
    old_root: Hash
    path: list[Hash]
    checkpoint: str
    log_key: str


Proof = InclusionProof | ConsistencyProof

_DECODER = msgspec.json.Decoder(Proof)


def prove_inclusion(log: LogReader, index: int, size: int | None = None) -> InclusionProof:
    """For the newest checkpoint, or that of `size`. Raises: as LogReader.checkpoint and .inclusion_proof."""
    checkpoint, note = log.checkpoint(size)
    path = log.inclusion_proof(index, checkpoint.size)
    entry = log.entry(index)
    if (gone := parse_tombstone(entry)) is not None:
        raise InvalidInput(
            f"entry {index} was deleted under the retention class {gone.retention_class}: its leaf hash "
            f"{gone.leaf_hash.hex()} stands in the tree, and a holder of its bytes can prove it"
        )
    return InclusionProof(index, entry, path, str(note), str(log.key))


def prove_consistency(log: LogReader, old_size: int, size: int) -> ConsistencyProof:
    """From any tree that the log has been, to one that it signed. Raises: likewise."""
    checkpoint, note = log.checkpoint(size)
    path = log.consistency_proof(old_size, checkpoint.size)
    return ConsistencyProof(old_size, log.root(old_size), path, str(note), str(log.key))


def check_proof(proof: Proof, key: VerifierKey, verify: VerifySignature) -> tuple[Checkpoint, SignedNote]:
    """Check a proof with nothing but the log's public key. Raises: IntegrityError."""
    # 1. The log signed the tree head (c2sp.org/tlog-checkpoint).
    checkpoint, note = open_checkpoint(proof.checkpoint, key, verify)
    # 2. The path leads from what is claimed to the signed root (RFC 9162 §2.1.3.2, §2.1.4.2).
    match proof:
        case InclusionProof():
            leaf = leaf_hash(proof.entry)
            if not verify_inclusion(leaf, proof.index, checkpoint.size, proof.path, checkpoint.root):
                raise IntegrityError(
                    f"the proof is not valid: this is not entry {proof.index} of the {checkpoint.size:,} "
                    f"that {checkpoint.origin} signed"
                )
        case ConsistencyProof():
            old = proof.old_size, checkpoint.size
            if not verify_consistency(*old, proof.path, proof.old_root, checkpoint.root):
                raise IntegrityError(
                    f"the proof is not valid: it does not show that the tree of {checkpoint.size:,} entries "
                    f"extends that of {proof.old_size:,}"
                )
    return checkpoint, note


def encode_proof(proof: Proof) -> bytes:
    """Indented JSON."""
    return msgspec.json.format(msgspec.json.encode(proof)) + b"\n"


def write_tlog_proof(proof: InclusionProof) -> str:
    """The C2SP text form; the entry travels as its `extra`, believed only once its hash leads to the root."""
    lines = [_HEADER, f"extra {base64.b64encode(proof.entry).decode()}", f"index {proof.index}"]
    lines += [base64.b64encode(step).decode() for step in proof.path]
    return "\n".join(lines) + "\n\n" + proof.checkpoint


def parse_proof(content: bytes) -> Proof:
    """A proof file in either form. Raises: InvalidInput."""
    try:
        if content.startswith(_HEADER.encode()):
            return _parse_tlog_proof(content.decode())
        return _DECODER.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, IntegrityError) as error:
        raise InvalidInput(f"this is not a proof file ({error}): make one with `htfi ledger prove`") from None


def _parse_tlog_proof(text: str) -> InclusionProof:
    head, blank, checkpoint = text.partition("\n\n")
    _, *lines = head.split("\n")
    if not blank or len(lines) < 2 or not lines[0].startswith("extra "):
        raise IntegrityError(
            "a tlog-proof of htfi has an extra line with the entry, an index and a checkpoint"
        )
    index = _INDEX.fullmatch(lines[1])
    path = [decode_base64(line) for line in lines[2:]]
    if index is None or any(len(step) != HASH_BYTES for step in path):
        raise IntegrityError("the index or a hash is malformed")
    return InclusionProof(int(index[1]), decode_base64(lines[0].removeprefix("extra ")), path, checkpoint)


def static_files(log: LogReader, size: int, progress: Progress) -> Iterator[tuple[str, bytes]]:
    """(path, content) of everything that a client of `size` entries may fetch; the checkpoint comes last.

    Raises: as LogReader.
    """
    _, note = log.checkpoint(size)
    for start in range(0, size, TILE_WIDTH):
        stop = min(start + TILE_WIDTH, size)
        entries = list(log.entries(start, stop))
        if not any(map(is_tombstone, entries)):  # a bundle cannot say that an entry was deleted
            yield tile_path("entries", start // TILE_WIDTH, stop - start), entry_bundle(entries)
        progress(stop, size)
    for level, index, width in tile_shapes(size):
        yield tile_path(level, index, width), log.tile(level, index)[: width * HASH_BYTES]
    yield "checkpoint", str(note).encode()


def json_line(index: int, entry: bytes) -> bytes:
    """One line for people and scripts: the entry with its index and leaf hash; base64 if not JSON."""
    if (gone := parse_tombstone(entry)) is not None:
        return entry[:-1] + b',"index":%d,"leaf_hash":"%s"}\n' % (index, gone.leaf_hash.hex().encode())
    head = msgspec.json.encode({"index": index, "leaf_hash": leaf_hash(entry).hex()})
    if _is_json_line(entry):
        return head[:-1] + b',"decision":' + entry + b"}\n"
    return head[:-1] + b',"entry":' + msgspec.json.encode(entry) + b"}\n"


def _is_json_line(entry: bytes) -> bool:
    try:
        msgspec.json.decode(entry)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return b"\n" not in entry
