"""A node's certificate files, checked before anything is opened; server, dialler and diagnosis use them."""

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from htfi.domain.errors import DependencyUnavailable, HtfiError, InvalidInput

_PUBLIC = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files: whom we trust, who we are, and our key. `htfi certs` makes such."""

    authority: Path
    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Identity:
    """The files' contents after they were checked."""

    files: TlsFiles
    authority: bytes
    chain: bytes
    key: bytes = field(repr=False)
    certificate: x509.Certificate


class ReloadingCredentials:
    """A node's identity, read again where its files have changed, so that a node that dials needs no restart.

    A server does: gRPC 1.85 may use its old credentials after they are freed when new ones come while others shake
    hands (grpc/grpc issue 36693), and garbage from unknown peers is enough for that.

    Files that are not in order are passed over until they are: what was read last stands.
    Raises: as read_identity, for the first reading.
    """

    def __init__(self, files: TlsFiles, node: str, listens: bool) -> None:
        self._files, self._node, self._listens = files, node, listens
        self._lock = threading.Lock()
        self._seen = self._file_times()
        self._identity = read_identity(files, node, listens)

    def current(self) -> Identity:
        with self._lock:
            stamp = self._file_times()
            if stamp != self._seen:
                with suppress(HtfiError):
                    self._identity = read_identity(self._files, self._node, self._listens)
                    self._seen = stamp
            return self._identity

    def _file_times(self) -> tuple[tuple[int, int], ...]:
        stamps: list[tuple[int, int]] = []
        for path in (self._files.authority, self._files.certificate, self._files.key):
            with suppress(OSError):
                stat = path.stat()
                stamps.append((stat.st_mtime_ns, stat.st_ino))
        return tuple(stamps)


def read_identity(files: TlsFiles, node: str, listens: bool) -> Identity:
    """Read and check them all, for a node of that name. Raises: InvalidInput in one line, DependencyUnavailable."""
    authority, chain, key = (_read(path) for path in (files.authority, files.certificate, files.key))
    for issuer in _certificates(authority, files.authority):
        _check_dates(issuer, files.authority)
    certificate = _certificates(chain, files.certificate)[0]
    _check_dates(certificate, files.certificate)
    try:
        private = load_pem_private_key(key, password=None)
    except (ValueError, TypeError) as error:
        raise InvalidInput(f"{files.key} is not an unencrypted PEM private key") from error
    if private.public_key().public_bytes(*_PUBLIC) != certificate.public_key().public_bytes(*_PUBLIC):
        raise InvalidInput(f"{files.key} is not the key of {files.certificate}")
    if not is_issued_by(certificate, authority):
        raise InvalidInput(f"{files.certificate} is not signed by {files.authority}")
    names = dns_names(certificate)
    if node not in names:
        raise InvalidInput(f"{files.certificate} names {' and '.join(names) or 'no node'}, not {node}")
    if listens and not is_server_certificate(certificate):
        raise InvalidInput(
            f"{files.certificate} is an edge's: it may not be a server's; make one for a cloud"
        )
    return Identity(files, authority, chain, key, certificate)


def dns_names(certificate: x509.Certificate) -> list[str]:
    """Its DNS names; the one that is also the subject's comes first."""
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (x509.ExtensionNotFound, ValueError):
        return []
    common = [str(part.value) for part in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    return sorted(extension.value.get_values_for_type(x509.DNSName), key=lambda name: name not in common)


def is_server_certificate(certificate: x509.Certificate) -> bool:
    """Whether clients will take it for a server's."""
    try:
        usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True
    return ExtendedKeyUsageOID.SERVER_AUTH in usage


def is_issued_by(certificate: x509.Certificate, authority: bytes) -> bool:
    """Whether one of the authorities in a PEM file signed it."""
    for issuer in x509.load_pem_x509_certificates(authority):
        try:
            certificate.verify_directly_issued_by(issuer)
        except (InvalidSignature, ValueError, TypeError):
            continue
        return True
    return False


def peer_name(auth: Mapping[str, Sequence[bytes]]) -> str | None:
    """Whose certificate gRPC has verified: its subject, where that is among its DNS names, or its only DNS name."""
    names = [value.decode("utf-8", "replace") for value in auth.get("x509_subject_alternative_name", ())]
    common = [value.decode("utf-8", "replace") for value in auth.get("x509_common_name", ())]
    if len(common) == 1 and common[0] in names:
        return common[0]
    return names[0] if len(names) == 1 else None


def format_day(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%d")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InvalidInput(f"there is no {path}: make certificates with `htfi certs`") from None
    except OSError as error:
        raise DependencyUnavailable(f"cannot read {path}: {error.strerror}") from error


def _certificates(content: bytes, path: Path) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(content)
    except ValueError as error:
        raise InvalidInput(f"{path} is not a PEM certificate") from error


def _check_dates(certificate: x509.Certificate, path: Path) -> None:
    now = datetime.now(UTC)
    if now > certificate.not_valid_after_utc:
        raise InvalidInput(f"{path} expired on {format_day(certificate.not_valid_after_utc)}: renew it")
    if now < certificate.not_valid_before_utc:
        raise InvalidInput(
            f"{path} is not valid before {format_day(certificate.not_valid_before_utc)}: check this machine's clock"
        )
