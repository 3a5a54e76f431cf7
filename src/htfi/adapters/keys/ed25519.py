"""Ed25519 keys in files, over `cryptography`, and a witness's memory in one file. Wiring gives them to the ledger.

A key file is one line in the form of golang.org/x/mod/sumdb/note: PRIVATE+KEY+name+hash+base64(0x01 ‖ seed). A witness
remembers the key and the newest checkpoint of every log it vouched for, and their digest.
"""

import base64
import fcntl
import os
import secrets
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from htfi.domain.errors import DependencyUnavailable, IntegrityError, InvalidInput, LedgerUnavailable
from htfi.domain.files import atomic_writer, make_private, open_private, write_atomically
from htfi.governance.ledger.note import ED25519, VerifierKey, check_key_name, decode_base64
from htfi.governance.ports import WitnessedLog

if TYPE_CHECKING:  # loading it takes a tenth of a second, and a forecast in memory signs nothing
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SEED_BYTES = 32
_PREFIX = "PRIVATE+KEY+"


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key under a name. Implements governance's Signer."""

    name: str
    public_key: bytes
    _private: "Ed25519PrivateKey" = field(repr=False)

    @property
    def verifier_key(self) -> VerifierKey:
        return VerifierKey(self.name, ED25519, self.public_key)

    def sign(self, message: bytes) -> bytes:
        return self._private.sign(message)


def signing_key(name: str, seed: bytes) -> SigningKey:
    """The key that grows from 32 secret bytes."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    private = Ed25519PrivateKey.from_private_bytes(seed)
    public = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return SigningKey(name, public, private)


def create_key(path: Path, name: str) -> SigningKey:
    """Make a key and keep it in a new file that only its owner may read; durable when this returns.

    Raises: InvalidInput where the file exists or the name cannot be used, DependencyUnavailable.
    """
    check_key_name(name)
    seed = secrets.token_bytes(SEED_BYTES)
    key = signing_key(name, seed)
    try:
        with atomic_writer(path, over=False) as file:
            file.write(key_line(key.verifier_key, seed).encode())
    except FileExistsError:
        raise InvalidInput(
            f"{path} exists already: keys are never overwritten: choose another file"
        ) from None
    except OSError as error:
        raise DependencyUnavailable(
            f"cannot write key {path}: {error.strerror}; free some disk space and run the same command again"
        ) from error
    return key


def load_key(path: Path) -> SigningKey:
    """Read a key file. Raises: InvalidInput where it is missing or malformed, DependencyUnavailable."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidInput(
            f"there is no key at {path}: make one with `htfi ledger keygen NAME {path}`"
        ) from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not a signing key: it is not text") from None
    except OSError as error:
        raise DependencyUnavailable(f"cannot read key {path}: {error.strerror}") from error
    return parse_key(text, str(path))


def parse_key(text: str, where: str) -> SigningKey:
    """The key in PRIVATE+KEY+name+hash+base64. Raises: InvalidInput, without repeating the secret."""
    line = text.removesuffix("\n")
    name, _, rest = line.removeprefix(_PREFIX).partition("+")
    key_hash, _, material = rest.partition("+")
    try:
        raw = decode_base64(material)
    except IntegrityError:
        raw = b""
    if not line.startswith(_PREFIX) or len(raw) != 1 + SEED_BYTES or raw[0] != ED25519:
        raise InvalidInput(f"{where} is not a signing key: expected one line {_PREFIX}name+hash+base64")
    key = signing_key(check_key_name(name), raw[1:])
    if key.verifier_key.key_id.hex() != key_hash:
        raise InvalidInput(f"{where} is not a signing key: its hash does not match, the file was altered")
    return key


def key_line(key: VerifierKey, seed: bytes) -> str:
    """The file's one line."""
    material = base64.b64encode(bytes([ED25519]) + seed).decode()
    return f"{_PREFIX}{key.name}+{key.key_id.hex()}+{material}\n"


def verify_signature(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether the signature holds. Implements governance's VerifySignature."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


_DIGEST_PREFIX = b"sha256 "
_DECODER = msgspec.json.Decoder(dict[str, WitnessedLog])


class WitnessMemoryFile:
    """The memory in `path`, held by this process until `close`; waits where another one holds it."""

    def __init__(self, path: Path) -> None:
        """Raises: LedgerUnavailable, IntegrityError."""
        self._path = path
        try:
            make_private(path.parent)
            self._lock = open_private(path.with_name(path.name + ".lock"), os.O_RDWR)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            content = path.read_bytes() if path.exists() else b"{}"
        except OSError as error:
            raise LedgerUnavailable(f"cannot use the witness's memory {path}: {error.strerror}") from error
        try:
            self._seen = _DECODER.decode(_verified_content(content))
        except (msgspec.DecodeError, ValueError) as error:
            self.close()
            raise IntegrityError(f"the witness's memory {path} is damaged ({error}): restore it") from error

    def recall(self, origin: str) -> WitnessedLog | None:
        return self._seen.get(origin)

    def remember(self, origin: str, seen: WitnessedLog) -> None:
        self._seen[origin] = seen
        content = msgspec.json.format(msgspec.json.encode(self._seen)) + b"\n"
        try:
            write_atomically(
                self._path, content + _DIGEST_PREFIX + sha256(content).hexdigest().encode() + b"\n"
            )
        except OSError as error:
            raise LedgerUnavailable(
                f"cannot write the witness's memory {self._path}: {error.strerror}"
            ) from error

    def close(self) -> None:
        os.close(self._lock)


def _verified_content(content: bytes) -> bytes:
    """What stands before the digest. A memory from before there was one has none. Raises: ValueError."""
    body, found, digest = content.rpartition(_DIGEST_PREFIX)
    if not found:
        return content
    if digest.strip() != sha256(body).hexdigest().encode():
        raise ValueError("its digest does not match")
    return body
