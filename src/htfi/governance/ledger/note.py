"""C2SP signed notes (c2sp.org/signed-note): text, verifier keys, signatures. Checkpoints are such notes."""

import base64
import binascii
import re
from dataclasses import dataclass, replace
from hashlib import sha256

from htfi.domain.errors import IntegrityError, InvalidInput

ED25519 = 0x01  # signs the note's text
COSIGNATURE_V1 = 0x04  # signs the text with a timestamp: a witness's key (c2sp.org/tlog-cosignature)
PUBLIC_KEY_BYTES = 32
MAX_SIGNATURES = 100  # the Go reference implementation's limit

_SIGNATURE_PREFIX = "— "
_KEY_NAME = re.compile(r"[^\s+]+")
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f]")  # all below U+0020 but the newline
_HEX_ID = re.compile(r"[0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """A public key under a name, written `name+hash+base64(type ‖ key)`."""

    name: str
    algorithm: int
    public_key: bytes

    @property
    def key_id(self) -> bytes:
        """SHA-256(name ‖ 0x0A ‖ type ‖ public key)[:4]."""
        content = self.name.encode() + b"\n" + bytes([self.algorithm]) + self.public_key
        return sha256(content).digest()[:4]

    def as_witness(self) -> "VerifierKey":
        """The same name and key for timestamped cosignatures."""
        return replace(self, algorithm=COSIGNATURE_V1)

    def __str__(self) -> str:
        material = base64.b64encode(bytes([self.algorithm]) + self.public_key).decode()
        return f"{self.name}+{self.key_id.hex()}+{material}"


@dataclass(frozen=True, slots=True)
class NoteSignature:
    """One signature line: who claims to have signed, and the bytes after the key id."""

    name: str
    key_id: bytes
    payload: bytes

    def __str__(self) -> str:
        return f"{_SIGNATURE_PREFIX}{self.name} {base64.b64encode(self.key_id + self.payload).decode()}"


@dataclass(frozen=True, slots=True)
class SignedNote:
    """Text that ends in a newline, and its signatures, not yet verified."""

    text: str
    signatures: tuple[NoteSignature, ...]

    def signatures_of(self, key: VerifierKey) -> tuple[NoteSignature, ...]:
        """The signatures that claim this key; the others must be ignored (signed-note, Signatures)."""
        key_id = key.key_id
        return tuple(s for s in self.signatures if s.name == key.name and s.key_id == key_id)

    def __str__(self) -> str:
        return self.text + "\n" + "".join(f"{signature}\n" for signature in self.signatures)


def check_key_name(name: str) -> str:
    """The name itself. Raises: InvalidInput where it is empty or holds a space, a control sign or a plus."""
    if _KEY_NAME.fullmatch(name) is None or not name.isprintable():
        raise InvalidInput(
            f"'{name}' cannot name a key: use a form such as example.com/log, without spaces or '+'"
        )
    return name


def parse_verifier_key(text: str) -> VerifierKey:
    """The key in `name+hash+base64(type ‖ key)`. Raises: InvalidInput."""
    name, _, rest = text.strip().partition("+")
    key_hash, _, material = rest.partition("+")
    try:
        raw = decode_base64(material)
    except IntegrityError:
        raw = b""
    if _HEX_ID.fullmatch(key_hash) is None or len(raw) != 1 + PUBLIC_KEY_BYTES:
        raise InvalidInput(
            f"'{text}' is not a verifier key: expected name+hash+base64, such as `htfi ledger keygen` prints"
        )
    if raw[0] not in (ED25519, COSIGNATURE_V1):
        raise InvalidInput(
            f"verifier key '{text}' is of type {raw[0]:#04x}: only Ed25519 (0x01, 0x04) is known here"
        )
    key = VerifierKey(check_key_name(name), raw[0], raw[1:])
    if key.key_id.hex() != key_hash:
        raise InvalidInput(
            f"verifier key '{text}' does not match its own hash, {key.key_id.hex()}: it was mistyped"
        )
    return key


def parse_note(content: str) -> SignedNote:
    """Split text and signatures, strictly. Raises: IntegrityError, naming what is malformed."""
    if _CONTROL.search(content) is not None:
        raise IntegrityError("malformed note: it holds a control character")
    text, blank, lines = content.rpartition("\n\n")
    if not blank or not text or not lines.endswith("\n"):
        raise IntegrityError(
            "malformed note: expected text, an empty line, and signature lines ending in a newline"
        )
    signatures = tuple(_parse_signature(line) for line in lines[:-1].split("\n"))
    if len(signatures) > MAX_SIGNATURES:
        raise IntegrityError(f"malformed note: {len(signatures)} signatures, more than {MAX_SIGNATURES}")
    return SignedNote(text + "\n", signatures)


def parse_signature_line(line: str) -> NoteSignature:
    """One line as a witness returns it. Raises: IntegrityError."""
    return _parse_signature(line.removesuffix("\n"))


def decode_base64(text: str) -> bytes:
    """Standard base64, padded and canonical. Raises: IntegrityError."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise IntegrityError(f"'{text[:80]}' is not base64") from None
    # Spare bits of the last sign would let two texts stand for one value.
    if base64.b64encode(raw).decode() != text:
        raise IntegrityError(f"'{text[:80]}' is not canonical base64")
    return raw


def _parse_signature(line: str) -> NoteSignature:
    name, space, encoded = line.removeprefix(_SIGNATURE_PREFIX).partition(" ")
    if not line.startswith(_SIGNATURE_PREFIX) or not space or _KEY_NAME.fullmatch(name) is None:
        raise IntegrityError(f"malformed note: '{line[:80]}' is not a signature line")
    raw = decode_base64(encoded)
    if len(raw) < 5:
        raise IntegrityError(f"malformed note: the signature of {name} is too short")
    return NoteSignature(name, raw[:4], raw[4:])
