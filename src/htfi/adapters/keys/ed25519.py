"""Ed25519 keys in files, over `cryptography`. Wiring gives them to the ledger and to witnesses.

A key file is one line in the form of golang.org/x/mod/sumdb/note: PRIVATE+KEY+name+hash+base64(0x01 ‖ seed).
"""

import base64
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from htfi.domain.errors import DependencyUnavailable, IntegrityError, InvalidInput
from htfi.domain.files import atomic_writer
from htfi.governance.ledger.note import ED25519, VerifierKey, check_key_name, decode_base64

SEED_BYTES = 32
_PREFIX = "PRIVATE+KEY+"


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key under a name. Implements governance's Signer."""

    name: str
    public_key: bytes
    _private: Ed25519PrivateKey = field(repr=False)

    @property
    def verifier_key(self) -> VerifierKey:
        return VerifierKey(self.name, ED25519, self.public_key)

    def sign(self, message: bytes) -> bytes:
        return self._private.sign(message)


def signing_key(name: str, seed: bytes) -> SigningKey:
    """The key that grows from 32 secret bytes."""
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
        raise DependencyUnavailable(f"cannot write key {path}: {error.strerror}") from error
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
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True
