"""Certificate and key files: read whole or refused, written whole or not at all. The authority calls it."""

from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.files import make_private, replacing


def load_certificate(path: Path) -> x509.Certificate:
    """Raises: InvalidInput, DependencyUnavailable."""
    try:
        return x509.load_pem_x509_certificate(_read(path))
    except ValueError as error:
        raise InvalidInput(f"{path} is no certificate in PEM") from error


def load_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Raises: InvalidInput, DependencyUnavailable."""
    try:
        key = load_pem_private_key(_read(path), password=None)
    except (ValueError, TypeError) as error:
        raise InvalidInput(f"{path} is no private key in PEM without a password") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise InvalidInput(f"{path} is not an elliptic-curve key")
    return key


def new_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """A P-256 key in a file that only its owner may read. Raises: DependencyUnavailable."""
    key = ec.generate_private_key(ec.SECP256R1())
    content = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    write_whole(path, content, over=False, private=True)
    return key


def make_folder(folder: Path) -> None:
    """Raises: DependencyUnavailable."""
    try:
        make_private(folder)
    except OSError as error:
        raise DependencyUnavailable(f"cannot make folder {folder}: {error.strerror}") from error


def write_whole(path: Path, content: bytes, over: bool, private: bool = False) -> None:
    """A file that appears whole or not at all, durable when this returns; `over` an existing one or never.

    Raises: InvalidInput where it exists and may not be replaced, DependencyUnavailable.
    """
    try:
        with replacing(path, private=private, over=over) as file:
            file.write(content)
    except FileExistsError:
        raise InvalidInput(f"{path} was made by somebody else just now: try again") from None
    except OSError as error:
        raise DependencyUnavailable(f"cannot write {path}: {error.strerror}") from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InvalidInput(f"there is no {path}: make certificates with `htfi certs`") from None
    except OSError as error:
        raise DependencyUnavailable(f"cannot read {path}: {error.strerror}") from error
