"""People and nodes that may be given rights, and how each is recognised: by a signed note or by a certificate.

The directory is G/people.toml. A person's request is a statement in a C2SP signed note, made with the person's Ed25519
key; it names the run, so that it cannot be used on another one.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import msgspec

from htfi.domain.errors import AccessDenied, IntegrityError, InvalidInput
from htfi.domain.governance import check_person_name
from htfi.domain.time import to_ns
from htfi.governance.authorisation import AccessAction, Principal, PrincipalKind
from htfi.governance.ledger.note import (
    ED25519,
    NoteSignature,
    SignedNote,
    VerifierKey,
    parse_note,
    parse_verifier_key,
)
from htfi.governance.ports import CheckpointSigner, VerifySignature

PEOPLE_FILE = "people.toml"  # of a governance folder
MAX_NOTE_BYTES = 16 << 10
_HEADING = "htfi.request/1\n"
_ENDLESS_YEAR = 2262  # in which nanoseconds no longer fit 64 bits


class DirectoryEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One person or node in the file. One of `key` and `certificate`, the subject's common name, is given."""

    name: str
    key: str = ""
    certificate: str = ""
    roles: tuple[str, ...] = ()
    desks: tuple[str, ...] = ()
    tenant: str = ""
    until: Any = None  # the last day, or instant, of the mandate as TOML has it; without zone: UTC


class _DirectoryFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    people: tuple[DirectoryEntry, ...] = ()
    nodes: tuple[DirectoryEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class PeopleDirectory:
    """Principals by the key that they sign with and by their certificate's subject."""

    by_key: Mapping[VerifierKey, Principal]
    by_certificate: Mapping[str, Principal]

    def find(self, name: str) -> Principal | None:
        """The person of that name."""
        return next(
            (
                one
                for one in (*self.by_key.values(), *self.by_certificate.values())
                if one.id == name and one.kind is PrincipalKind.PERSON
            ),
            None,
        )


class RequestStatement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a person signs: the action on a resource of a run, whose log has this verifier key; `at_ns` is UTC.

    Of answers to a checkpoint `seen` is the SHA-256 (hex) of the text that was seen, `to` whom it is delegated to.
    """

    action: AccessAction
    resource: str
    run: str
    at_ns: int
    why: str = ""
    seen: str = ""
    to: str = ""


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(RequestStatement)


def parse_people(text: str, where: str) -> PeopleDirectory:
    """The directory in a people.toml. Raises: InvalidInput, naming what is wrong."""
    try:
        file = msgspec.convert(tomllib.loads(text), _DirectoryFile)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise InvalidInput(f"{where}: is no directory of people: {error}") from error
    by_key: dict[VerifierKey, Principal] = {}
    by_certificate: dict[str, Principal] = {}
    names: set[tuple[PrincipalKind, str]] = set()
    entries = [(PrincipalKind.PERSON, one) for one in file.people]
    entries += [(PrincipalKind.NODE, one) for one in file.nodes]
    for kind, entry in entries:
        principal = _principal_of(kind, entry, where)
        if (kind, entry.name) in names:
            raise InvalidInput(f"{where}: {entry.name} is there twice: keep one")
        names.add((kind, entry.name))
        if entry.key:
            key = _key_of(entry, where)
            if any(other.public_key == key.public_key for other in by_key):
                raise InvalidInput(f"{where}: {entry.name} has the key of another person: give each a key")
            by_key[key] = principal
        elif entry.certificate in by_certificate:
            raise InvalidInput(f"{where}: {entry.name} has the certificate of another person: give each one")
        else:
            by_certificate[entry.certificate] = principal
    return PeopleDirectory(by_key, by_certificate)


def sign_statement(statement: RequestStatement, key: VerifierKey, signer: CheckpointSigner) -> str:
    """The signed note of a statement."""
    text = f"{_HEADING}{_ENCODER.encode(statement).decode()}\n"
    signature = NoteSignature(key.name, key.key_id, signer.sign(text.encode()))
    return str(SignedNote(text, (signature,)))


def identify(
    note: str, directory: PeopleDirectory, verify: VerifySignature
) -> tuple[Principal, RequestStatement]:
    """Who signed a statement, and what it says.

    Raises: AccessDenied where nobody did, nobody in the directory or more than one; IntegrityError where it is
    malformed.
    """
    if not note:
        raise AccessDenied(
            "the request is not signed, and the governance folder names people: give --governance G --key FILE"
        )
    if len(note) > MAX_NOTE_BYTES:
        raise IntegrityError(f"malformed request: larger than {MAX_NOTE_BYTES >> 10} kB")
    signed = parse_note(note)
    statement = statement_in(signed.text)
    signers = [
        principal
        for key, principal in directory.by_key.items()
        if any(verify(key.public_key, signed.text.encode(), one.payload) for one in signed.signatures_of(key))
    ]
    if not signers:
        names = ", ".join(signature.name for signature in signed.signatures)
        raise AccessDenied(f"the request is signed by {names[:80]}: no key in {PEOPLE_FILE} verifies it")
    if len(signers) > 1:
        raise AccessDenied("the request is signed by several people: each makes one of their own")
    return signers[0], statement


def find_node(subject: str, directory: PeopleDirectory) -> Principal:
    """The principal of a verified certificate's common name. Raises: AccessDenied for an unknown one."""
    principal = directory.by_certificate.get(subject)
    if principal is None:
        raise AccessDenied(f"no certificate of {PEOPLE_FILE} has the subject '{subject[:80]}'")
    return principal


def statement_in(text: str) -> RequestStatement:
    """The statement in the text of a signed note. Raises: IntegrityError where it is malformed."""
    body = text.removeprefix(_HEADING)
    try:
        statement = _DECODER.decode(body.encode())
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise IntegrityError(f"malformed request: {error}") from error
    if text != f"{_HEADING}{_ENCODER.encode(statement).decode()}\n":
        raise IntegrityError("malformed request: not in canonical form")
    return statement


def _principal_of(kind: PrincipalKind, entry: DirectoryEntry, where: str) -> Principal:
    if not entry.name.strip() or not entry.name.isprintable():
        raise InvalidInput(f"{where}: an entry has no name that can be printed")
    check_person_name(entry.name, where)
    if bool(entry.key) is bool(entry.certificate):
        raise InvalidInput(f"{where}: {entry.name} needs a key or a certificate, one of the two")
    return Principal(
        kind, entry.name, entry.roles, entry.desks, entry.tenant, _end_ns(entry, where)
    )  # fmt: skip


def _key_of(entry: DirectoryEntry, where: str) -> VerifierKey:
    try:
        key = parse_verifier_key(entry.key)
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {entry.name}: {error}") from error
    if key.algorithm != ED25519:
        raise InvalidInput(f"{where}: {entry.name}: a witness's key cannot sign requests")
    return key


def _end_ns(entry: DirectoryEntry, where: str) -> int | None:
    """The instant, UTC; of a day its last nanosecond."""
    until = entry.until
    if until is None or (isinstance(until, date) and until.year >= _ENDLESS_YEAR):
        return None
    if isinstance(until, datetime):
        return to_ns(until if until.tzinfo else until.replace(tzinfo=UTC))
    if isinstance(until, date):
        return to_ns(datetime.combine(until, time(), UTC) + timedelta(days=1)) - 1
    raise InvalidInput(f"{where}: {entry.name}: until must be a date such as 2027-12-31, without quotes")
