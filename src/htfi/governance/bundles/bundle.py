"""A policy bundle: its text, its signatures, and whether a quorum of officers stands behind it.

A bundle is a signed note (c2sp.org/signed-note) whose text is TOML: `[bundle]` with its number and the digest of the
one before, then the tables. What is signed are the bytes of the text; the digest is their SHA-256.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from hashlib import sha256
from typing import Any, cast

from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.governance import check_person_name
from htfi.domain.settings import check_value
from htfi.domain.time import format_ns, parse_timestamp, to_ns
from htfi.governance.bundles.tables import (
    TABLES,
    BundleTables,
    ChangeDirection,
    changes,
    read_tables,
    write_toml,
)
from htfi.governance.ledger.note import SignedNote, VerifierKey, parse_note, parse_verifier_key
from htfi.governance.ports import VerifySignature

MAX_NUMBER = 999_999
MAX_OFFICERS = 100
_HEAD_KEYS = ("number", "previous", "kind", "author", "valid_from", "expires")


class BundleKind(StrEnum):
    """Signed by the quorum; or by one officer, to tighten at once and for a while."""

    QUORUM = "quorum"
    EMERGENCY = "emergency"


@dataclass(frozen=True, slots=True)
class BundleHead:
    """What a bundle says of itself. `previous` is the digest of the quorum bundle before it, empty for the first.

    Times are UTC ns; without `expires_ns` it holds until another does.
    """

    number: int
    previous: str
    kind: BundleKind
    author: str
    valid_from_ns: int
    expires_ns: int | None = None


@dataclass(frozen=True, slots=True)
class PolicyBundle:
    """A bundle as its text states it, not yet verified."""

    head: BundleHead
    tables: BundleTables
    text: str

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the text."""
        return sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class OfficerRoll:
    """The officers by name with their keys, and how many of them make a quorum."""

    quorum: int
    keys: Mapping[str, VerifierKey]


def parse_officers(text: str, where: str) -> OfficerRoll:
    """The roll in an officers.toml: `quorum = 2` and `[officers]` with a verifier key each. Raises: InvalidInput."""
    found = _parse_toml(text, where)
    quorum, named = found.get("quorum"), found.get("officers")
    if not isinstance(named, dict) or set(found) != {"quorum", "officers"}:
        raise InvalidInput(
            f"{where}: expected quorum = K and a table [officers] with a verifier key for each name"
        )
    keys: dict[str, VerifierKey] = {}
    for name, key in cast("dict[str, Any]", named).items():
        if not isinstance(key, str):
            raise InvalidInput(f"{where}: the key of '{name[:60]}' must be text")
        check_person_name(name, where)
        keys[name] = parse_verifier_key(key)
    if len({key.public_key for key in keys.values()}) < len(keys):
        raise InvalidInput(f"{where}: two officers have the same key")
    if type(quorum) is not int or not 1 <= quorum <= len(keys) <= MAX_OFFICERS:
        raise InvalidInput(f"{where}: quorum must be from 1 to the number of officers, {len(keys)}")
    return OfficerRoll(quorum, keys)


def write_officers(roll: OfficerRoll) -> str:
    """The text that `parse_officers` reads."""
    lines = [f'"{name}" = "{key}"' for name, key in roll.keys.items()]
    return "\n".join([f"quorum = {roll.quorum}", "", "[officers]", *lines, ""])


def write_bundle(head: BundleHead, tables: BundleTables) -> str:
    """The text of a bundle, every value spelled out."""
    expires = "" if head.expires_ns is None else f"expires = {format_ns(head.expires_ns)}\n"
    author = head.author.replace("\\", "").replace('"', "")
    return (
        f'[bundle]\nnumber = {head.number}\nprevious = "{head.previous}"\nkind = "{head.kind.value}"\n'
        f'author = "{author}"\nvalid_from = {format_ns(head.valid_from_ns)}\n{expires}\n{write_toml(tables)}'
    )


def check_bundle_keys(text: str) -> None:
    """Of a bundle that is new: what `parse_bundle` takes of earlier ones may name unknown keys in a table of tables.

    Raises: InvalidInput, with the path of the key.
    """
    found = _parse_toml(text, "the bundle")
    for name, kind in TABLES.items():
        check_value(name, found.get(name, {}), kind)


@lru_cache(maxsize=16)
def parse_bundle(text: str) -> PolicyBundle:
    """The bundle that a text states. Raises: InvalidInput, naming the table and the key."""
    found = _parse_toml(text, "the bundle")
    head = found.pop("bundle", None)
    if not isinstance(head, dict):
        raise InvalidInput("the bundle: has no table [bundle]")
    try:
        return PolicyBundle(_read_head(cast("dict[str, Any]", head)), read_tables(found), text)
    except InvalidInput as error:
        raise InvalidInput(f"the bundle: {error}") from error


def _parse_toml(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{where}: is not TOML: {error}") from error


def _read_head(found: dict[str, Any]) -> BundleHead:
    unknown = [key for key in found if key not in _HEAD_KEYS]
    if unknown:
        raise InvalidInput(f"[bundle] has no '{unknown[0][:60]}': it has {', '.join(_HEAD_KEYS)}")
    number, previous, author = found.get("number"), found.get("previous", ""), found.get("author", "")
    if type(number) is not int or not 1 <= number <= MAX_NUMBER:
        raise InvalidInput(f"bundle.number must be a whole number from 1 to {MAX_NUMBER:,}")
    if not isinstance(previous, str) or (previous and not _is_digest(previous)):
        raise InvalidInput(
            "bundle.previous must be the digest of the bundle before it: 64 hexadecimal digits"
        )
    if not isinstance(author, str) or not author.isprintable() or not author.strip():
        raise InvalidInput("bundle.author must be a name")
    kinds = [kind.value for kind in BundleKind]
    if found.get("kind") not in kinds:
        raise InvalidInput(f"bundle.kind must be one of {', '.join(kinds)}")
    if "valid_from" not in found:
        raise InvalidInput("bundle.valid_from is missing: write a time such as 2026-01-05T08:00:00Z")
    valid_from_ns = _instant("valid_from", found["valid_from"])
    expires_ns = _instant("expires", found["expires"]) if "expires" in found else None
    if expires_ns is not None and expires_ns <= valid_from_ns:
        raise InvalidInput("bundle.expires must be after bundle.valid_from")
    return BundleHead(number, previous, BundleKind(found["kind"]), author, valid_from_ns, expires_ns)


def _is_digest(text: str) -> bool:
    return len(text) == 64 and all(sign in "0123456789abcdef" for sign in text)


def _instant(name: str, value: Any) -> int:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return to_ns(value)
    if isinstance(value, str):
        return parse_timestamp(value)
    raise InvalidInput(f"bundle.{name} must be a time with its zone, such as 2026-01-05T08:00:00Z")


def read_note(content: str, where: str) -> SignedNote:
    """A bundle's text and signatures; one that nobody has signed yet is text alone. Raises: InvalidInput."""
    if "\n\n— " not in content:
        return SignedNote(content if content.endswith("\n") else f"{content}\n", ())
    try:
        return parse_note(content)
    except IntegrityError as error:
        raise InvalidInput(f"{where}: {error}") from error


def signers_of(note: SignedNote, roll: OfficerRoll, verify: VerifySignature) -> list[str]:
    """The officers whose signatures hold, each once. Raises: IntegrityError for one of theirs that does not."""
    message = note.text.encode()
    found: list[str] = []
    for name, key in roll.keys.items():
        signatures = note.signatures_of(key)
        if not signatures:
            continue
        if not all(verify(key.public_key, message, one.payload) for one in signatures):
            raise IntegrityError(f"the signature of {name} does not hold: the bundle was altered after it")
        found.append(name)
    return found


def check_bundle(
    note: SignedNote,
    roll: OfficerRoll,
    verify: VerifySignature,
    newest: PolicyBundle | None,
    now_ns: int,
    max_lead_ns: int,
) -> tuple[PolicyBundle, list[str]]:
    """The bundle of a note and its signers, once it may follow `newest`, the newest quorum bundle activated so far.

    One that becomes valid more than `max_lead_ns` from now is of a clock that is wrong, or of this node's.
    Raises: InvalidInput, IntegrityError: what is wrong with it, and what to do.
    """
    bundle = parse_bundle(note.text)
    head, signers = bundle.head, signers_of(note, roll, verify)
    unknown = sorted({one.name for one in note.signatures} - {key.name for key in roll.keys.values()})
    needed = roll.quorum if head.kind is BundleKind.QUORUM else 1
    if len(signers) < needed:
        of_others = f"; {', '.join(unknown)} is no officer" if unknown else ""
        raise InvalidInput(
            f"bundle {head.number} has {len(signers)} of {needed} signatures that are needed{of_others}: "
            "let another officer sign it"
        )
    digest, number = (newest.digest, newest.head.number) if newest is not None else ("", 0)
    if head.number <= number:
        raise InvalidInput(
            f"bundle {head.number} is older than bundle {number}, which is in force: draft a new one"
        )
    if head.previous != digest:
        raise InvalidInput(
            f"bundle {head.number} does not follow bundle {number}: its `previous` is another digest; draft it again"
        )
    if head.valid_from_ns > now_ns + max_lead_ns:
        raise InvalidInput(
            f"bundle {head.number} is valid from {format_ns(head.valid_from_ns)}, but this machine's clock says "
            f"{format_ns(now_ns)}: check both clocks"
        )
    if head.expires_ns is not None and head.expires_ns <= now_ns:
        raise InvalidInput(f"bundle {head.number} expired at {format_ns(head.expires_ns)}: draft a new one")
    check_emergency(bundle, newest)
    return bundle, signers


def check_emergency(bundle: PolicyBundle, newest: PolicyBundle | None) -> None:
    """Raises: InvalidInput where it is an emergency bundle and does not only tighten, or does not end."""
    if bundle.head.kind is not BundleKind.EMERGENCY:
        return
    if bundle.head.expires_ns is None:
        raise InvalidInput("an emergency bundle must expire: draft it with --expires")
    before = newest.tables if newest is not None else BundleTables()
    loose = [one.name for one in changes(before, bundle.tables) if one.kind is not ChangeDirection.TIGHTER]
    if loose:
        raise InvalidInput(
            f"an emergency bundle may only tighten, and {', '.join(loose)} is not surely tighter: leave it as it "
            "is, or let the quorum sign"
        )
