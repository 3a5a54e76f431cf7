"""Creates a private certificate authority and nodes' certificates, and lists them; `htfi certs` calls it.

Certificate and key files are read whole or refused, written whole or not at all.
ECDSA P-256, X.509 v3 (RFC 5280). A node's name is its subject and its only DNS name. An edge's certificate is good
for a client alone, so that a stolen one cannot answer for a cloud.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.files import atomic_writer, make_private


def load_certificate(path: Path) -> x509.Certificate:
    """Raises: InvalidInput, DependencyUnavailable."""
    try:
        return x509.load_pem_x509_certificate(_read_file(path))
    except ValueError as error:
        raise InvalidInput(f"{path} is not a PEM certificate") from error


def load_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Raises: InvalidInput, DependencyUnavailable."""
    try:
        key = load_pem_private_key(_read_file(path), password=None)
    except (ValueError, TypeError) as error:
        raise InvalidInput(f"{path} is not an unencrypted PEM private key") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise InvalidInput(f"{path} is not an elliptic-curve key")
    return key


def new_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """A P-256 key in a file that only its owner may read. Raises: DependencyUnavailable."""
    key = ec.generate_private_key(ec.SECP256R1())
    content = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    write_file(path, content, over=False, private=True)
    return key


def make_folder(folder: Path) -> None:
    """Raises: DependencyUnavailable."""
    try:
        make_private(folder)
    except OSError as error:
        raise DependencyUnavailable(f"cannot make folder {folder}: {error.strerror}") from error


def write_file(path: Path, content: bytes, over: bool, private: bool = False) -> None:
    """A file that appears whole or not at all, durable when this returns; `over` an existing one or never.

    Raises: InvalidInput where it exists and may not be replaced, DependencyUnavailable.
    """
    try:
        with atomic_writer(path, private=private, over=over) as file:
            file.write(content)
    except FileExistsError:
        raise InvalidInput(f"{path} was created by another process just now: try again") from None
    except OSError as error:
        raise DependencyUnavailable(f"cannot write {path}: {error.strerror}") from error


def _read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InvalidInput(f"there is no {path}: make certificates with `htfi certs`") from None
    except OSError as error:
        raise DependencyUnavailable(f"cannot read {path}: {error.strerror}") from error


AUTHORITY = "ca"
DEFAULT_DAYS = 365
MAX_DAYS = 3650
_CLOCK_SLACK = timedelta(hours=1)  # machines whose clocks are behind ours can use a new certificate at once
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")


class CertificateRole(Enum):
    """Who a certificate is for: a cloud serves and dials, an edge only dials."""

    CLOUD = "cloud"
    EDGE = "edge"


_ROLE_NAMES = {CertificateRole.CLOUD: "a cloud", CertificateRole.EDGE: "an edge"}


class CertificateAction(Enum):
    """What came of a node's certificate."""

    MADE = "made"
    KEPT = "kept"
    RENEWED = "renewed"


@dataclass(frozen=True, slots=True)
class NodeCertificate:
    """A certificate as it is in a folder. `fault` says why no peer would accept it; '' where nothing is wrong."""

    name: str
    role: CertificateRole
    until: datetime
    fault: str


@dataclass(frozen=True, slots=True)
class IssuedCertificate:
    action: CertificateAction
    certificate: NodeCertificate


def make_certificates(
    folder: Path,
    nodes: Sequence[tuple[str, CertificateRole]],
    num_days: int = DEFAULT_DAYS,
    renew: bool = False,
    now: datetime | None = None,
) -> list[IssuedCertificate]:
    """Make what is not there yet: the authority, then a key and a certificate for each node.

    A renewed certificate keeps its key: to get a new key, remove the old one first.
    Raises: InvalidInput for names or days that cannot be, another role than the one there, or files that are not what
    they should be; DependencyUnavailable where the folder cannot be written.
    """
    now = now or datetime.now(UTC)
    _check(nodes, num_days)
    make_folder(folder)
    issuer, issuer_key = _authority(folder, now)
    made: list[IssuedCertificate] = []
    for name, role in nodes:
        path = folder / f"{name}.pem"
        there = path.exists()
        if there and not renew:
            kept = _read_node_certificate(path, issuer, now)
            if kept.role is not role:
                raise InvalidInput(
                    f"{path} is for {_ROLE_NAMES[kept.role]}: give --renew to make it {_ROLE_NAMES[role]}'s"
                )
            made.append(IssuedCertificate(CertificateAction.KEPT, kept))
            continue
        key = _key(folder / f"{name}.key")
        certificate = _issue(name, role, key, issuer, issuer_key, num_days, now)
        write_file(path, certificate.public_bytes(Encoding.PEM), over=there)
        made.append(
            IssuedCertificate(
                CertificateAction.RENEWED if there else CertificateAction.MADE,
                _read_node_certificate(path, issuer, now),
            )
        )
    return made


def list_certificates(folder: Path, now: datetime | None = None) -> tuple[datetime, list[NodeCertificate]]:
    """Until when the authority is good, and the nodes' certificates by name.

    Raises: InvalidInput, DependencyUnavailable.
    """
    now = now or datetime.now(UTC)
    issuer = load_certificate(folder / f"{AUTHORITY}.pem")
    paths = sorted(path for path in folder.glob("*.pem") if path.stem != AUTHORITY)
    return issuer.not_valid_after_utc, [_read_node_certificate(path, issuer, now) for path in paths]


def _check(nodes: Sequence[tuple[str, CertificateRole]], num_days: int) -> None:
    if not 1 <= num_days <= MAX_DAYS:
        raise InvalidInput(f"a certificate for {num_days} days: give 1 to {MAX_DAYS}")
    names = [name for name, _ in nodes]
    for name in names:
        if not _NAME.fullmatch(name) or ".." in name:
            raise InvalidInput(f"'{name}' is not a node's name: use a–z, 0–9, '-' and '.', at most 63")
        if name == AUTHORITY:
            raise InvalidInput(f"a node cannot be called '{AUTHORITY}': that is the authority's file")
        if names.count(name) > 1:
            raise InvalidInput(f"'{name}' is named twice")


def _authority(folder: Path, now: datetime) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    path, key_path = folder / f"{AUTHORITY}.pem", folder / f"{AUTHORITY}.key"
    if path.exists() and not key_path.exists():
        raise InvalidInput(f"{key_path} is missing: without it no certificate can be made under {path}")
    key = _key(key_path)
    if not path.exists():
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "HTFI private authority")])
        draft = _certificate_builder(subject, subject, key, key, now, now + timedelta(days=MAX_DAYS))
        usage = _usage(digital_signature=False, key_cert_sign=True)
        draft = draft.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        certificate = draft.add_extension(usage, critical=True).sign(key, SHA256())
        write_file(path, certificate.public_bytes(Encoding.PEM), over=False)
    certificate = load_certificate(path)
    if certificate.public_key() != key.public_key():
        raise InvalidInput(f"{key_path} is not the key of {path}")
    if now > certificate.not_valid_after_utc:
        raise InvalidInput(
            f"{path} expired on {certificate.not_valid_after_utc:%Y-%m-%d}: begin a new folder"
        )
    return certificate, key


def _issue(
    name: str,
    role: CertificateRole,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate,
    issuer_key: ec.EllipticCurvePrivateKey,
    num_days: int,
    now: datetime,
) -> x509.Certificate:
    until = min(now + timedelta(days=num_days), issuer.not_valid_after_utc)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    purposes = [ExtendedKeyUsageOID.CLIENT_AUTH]
    if role is CertificateRole.CLOUD:
        purposes.insert(0, ExtendedKeyUsageOID.SERVER_AUTH)
    draft = _certificate_builder(subject, issuer.subject, key, issuer_key, now, until)
    draft = draft.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    draft = draft.add_extension(_usage(digital_signature=True, key_cert_sign=False), critical=True)
    draft = draft.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
    draft = draft.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    return draft.sign(issuer_key, SHA256())


def _certificate_builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer_key: ec.EllipticCurvePrivateKey,
    now: datetime,
    until: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SLACK)
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False
        )
    )


def _usage(digital_signature: bool, key_cert_sign: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=key_cert_sign,
        encipher_only=False,
        decipher_only=False,
    )


def _key(path: Path) -> ec.EllipticCurvePrivateKey:
    return load_key(path) if path.exists() else new_key(path)


def _read_node_certificate(path: Path, issuer: x509.Certificate, now: datetime) -> NodeCertificate:
    certificate = load_certificate(path)
    try:
        purposes = list(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
    except x509.ExtensionNotFound:
        purposes = [ExtendedKeyUsageOID.SERVER_AUTH]
    role = CertificateRole.CLOUD if ExtendedKeyUsageOID.SERVER_AUTH in purposes else CertificateRole.EDGE
    return NodeCertificate(
        path.stem, role, certificate.not_valid_after_utc, _fault(path, certificate, issuer, now)
    )


def _fault(path: Path, certificate: x509.Certificate, issuer: x509.Certificate, now: datetime) -> str:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (InvalidSignature, ValueError, TypeError):
        return "signed by another authority"
    key_path = path.with_suffix(".key")
    if not key_path.exists():
        return "its key is not here"
    if load_key(key_path).public_key() != certificate.public_key():
        return "the key here is another's"
    return "expired" if now > certificate.not_valid_after_utc else ""
