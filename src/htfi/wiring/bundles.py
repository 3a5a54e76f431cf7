"""Policy bundles of a governance folder: from draft to activation and revocation."""

import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

from htfi.adapters.keys.ed25519 import load_key, verify_signature
from htfi.adapters.stores.adoption_folder import (
    read_hold,
    read_nodes,
    read_refusal,
    write_activation,
    write_nodes,
)
from htfi.adapters.stores.bundle_folder import OFFICERS_FILE, bundle_path, read_text, write_text
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.time import NS_PER_S, Clock, SystemClock
from htfi.governance.breakers.config import unusable_scopes
from htfi.governance.bundles.bundle import (
    BundleHead,
    BundleKind,
    OfficerRoll,
    PolicyBundle,
    check_bundle,
    check_bundle_keys,
    check_emergency,
    parse_bundle,
    parse_officers,
    read_note,
    signers_of,
    write_bundle,
    write_officers,
)
from htfi.governance.bundles.changes import MAX_LEAD_NS, REVOCATION_HEADING, ChangeChecker
from htfi.governance.bundles.in_force import (
    BundleActivated,
    BundleEntry,
    BundleInForce,
    BundleProposed,
    BundleRevoked,
    bundle_entries,
    bundle_in_force,
    newest_quorum,
)
from htfi.governance.bundles.tables import BundleTables, ValueChange, changes, read_tables
from htfi.governance.ledger.note import NoteSignature, SignedNote, VerifierKey, parse_verifier_key
from htfi.wiring.governance_log import GOVERNANCE_DATABASE, open_governance_log, read_governance_log

AGREE_S = 10.0  # how long a command waits for a majority of the nodes


class BundleStatus(NamedTuple):
    """A proposed bundle or draft: who has signed it, how many must, and what it changes."""

    bundle: PolicyBundle
    signers: list[str]
    needed: int
    changes: list[ValueChange]


def init_folder(
    folder: Path, quorum: int, officers: Sequence[tuple[str, str]], nodes: Sequence[str] = ()
) -> OfficerRoll:
    """Make a governance folder with its officers, by name and verifier key, and the nodes that agree on its bundles.

    Each node has a folder of its own, made with the same officers and nodes.

    Raises: InvalidInput, also where it has a roll already; DependencyUnavailable, IntegrityError.
    """
    path = folder / OFFICERS_FILE
    if path.exists():
        raise InvalidInput(
            f"{path} exists already: officers change by a new governance folder, not over the old one"
        )
    keys: dict[str, VerifierKey] = {}
    for name, text in officers:
        if name in keys or not name.isprintable() or '"' in name or "\\" in name or not name.strip():
            raise InvalidInput(f"officer '{name[:60]}' is named twice, or its name holds quotes")
        keys[name] = parse_verifier_key(text)
    roll = parse_officers(write_officers(OfficerRoll(quorum, keys)), "the officers")
    if nodes and (len(set(nodes)) < max(2, len(nodes)) or not all(0 < len(one) <= 64 for one in nodes)):
        raise InvalidInput("nodes are two or more different names, as in their certificates")
    open_governance_log(folder).close()
    if nodes:
        write_nodes(folder, nodes)
    write_text(path, write_officers(roll))
    return roll


def read_roll(folder: Path) -> OfficerRoll:
    """The officers of a governance folder. Raises: InvalidInput, DependencyUnavailable."""
    path = folder / OFFICERS_FILE
    if not path.exists():
        raise InvalidInput(f"{folder} is not a governance folder: make one with `htfi policy init {folder}`")
    return parse_officers(read_text(path, "roll of officers"), str(path))


def require_governance_folder(folder: Path) -> None:
    """Raises: InvalidInput unless officers, verdicts or promotions are recorded there; DependencyUnavailable."""
    if (folder / OFFICERS_FILE).exists() or not (folder / GOVERNANCE_DATABASE).exists():
        read_roll(folder)


def read_entries(folder: Path) -> list[BundleEntry]:
    """What is recorded of bundles. Raises: IntegrityError, LedgerUnavailable."""
    log = read_governance_log(folder)
    if log is None:
        return []
    try:
        return bundle_entries(log.entries())
    finally:
        log.close()


def draft_bundle(
    folder: Path,
    author: str,
    assigned: Sequence[str],
    *,
    valid_from_ns: int | None = None,
    expires_ns: int | None = None,
    is_emergency: bool = False,
    clock: Clock | None = None,
) -> PolicyBundle:
    """A draft that follows the newest bundle, with values changed as `assigned`: 'policy.max_band_width=0.4'.

    Raises: InvalidInput, DependencyUnavailable, IntegrityError.
    """
    read_roll(folder)
    entries = read_entries(folder)
    newest = newest_quorum(entries)
    tables = newest.tables if newest is not None else BundleTables()
    found: dict[str, Any] = msgspec.to_builtins(tables)
    for text in assigned:
        _assign(found, text)
    number = max((one.number for one in entries if isinstance(one, BundleActivated)), default=0) + 1
    kind = BundleKind.EMERGENCY if is_emergency else BundleKind.QUORUM
    now_ns = (clock or SystemClock()).now_ns() // NS_PER_S * NS_PER_S
    start_ns = now_ns if valid_from_ns is None else valid_from_ns
    head = BundleHead(number, newest.digest if newest is not None else "", kind, author, start_ns, expires_ns)
    drafted = parse_bundle(write_bundle(head, read_tables(_without_none(found))))
    check_emergency(drafted, newest)
    _check_breakers(drafted)
    return drafted


def _check_breakers(bundle: PolicyBundle) -> None:
    """Raises: InvalidInput where a breaker would never trip, because it cannot act at the scope that is named.

    A bundle that is in force already is not judged by it: what was signed stays readable.
    """
    if wrong := unusable_scopes(bundle.tables.breakers):
        raise InvalidInput(f"bundle {bundle.head.number}: {wrong[0]}")


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _without_none(value) if isinstance(value, dict) else value  # pyright: ignore[reportUnknownArgumentType]
        for name, value in values.items()
        if value is not None
    }


def _assign(tables: dict[str, Any], text: str) -> None:
    """Put one 'table.key=value' into the tables; the value is TOML. Raises: InvalidInput."""
    import tomllib

    path, equals, value = text.partition("=")
    names = path.strip().split(".")
    if not equals or len(names) < 2:
        raise InvalidInput(
            f"'{text[:60]}' is no value: write table.key=value, such as policy.max_band_width=0.4"
        )
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        raise InvalidInput(
            f"'{text[:80]}': the value is not TOML: text stands in quotes, lists in brackets"
        ) from None
    place = tables
    for name in names[:-1]:
        inner = place.setdefault(name, {})
        if not isinstance(inner, dict):
            raise InvalidInput(f"'{text[:60]}': '{name}' is a value, not a table")
        place = cast("dict[str, Any]", inner)
    place[names[-1]] = parsed


def write_draft(file: Path, bundle: PolicyBundle) -> None:
    """Write a draft where nothing is yet. Raises: InvalidInput, DependencyUnavailable."""
    if file.exists():
        raise InvalidInput(f"{file} exists already: choose another file for the draft")
    write_text(file, bundle.text)


def sign_bundle(file: Path, key_file: Path) -> tuple[PolicyBundle, str]:
    """Add a signature to the file of a bundle; the bundle and the key's name. Raises: InvalidInput, …"""
    note = read_note(read_text(file, "bundle"), str(file))
    bundle, key = parse_bundle(note.text), load_key(key_file)
    check_bundle_keys(note.text)
    if not note.signatures_of(key.verifier_key):
        signature = NoteSignature(key.name, key.verifier_key.key_id, key.sign(note.text.encode()))
        note = SignedNote(note.text, (*note.signatures, signature))
        write_text(file, str(note))
    return bundle, key.name


def status_of(folder: Path, file: Path) -> BundleStatus:
    """Who has signed the bundle in a file, and what it changes. Raises: InvalidInput, IntegrityError, …"""
    roll, note = read_roll(folder), read_note(read_text(file, "bundle"), str(file))
    bundle = parse_bundle(note.text)
    newest = newest_quorum(read_entries(folder))
    before = newest.tables if newest is not None else BundleTables()
    needed = roll.quorum if bundle.head.kind is BundleKind.QUORUM else 1
    signers = signers_of(note, roll, verify_signature)
    return BundleStatus(bundle, signers, needed, list(changes(before, bundle.tables)))


def propose_bundle(folder: Path, file: Path, clock: Clock | None = None) -> BundleStatus:
    """Put a bundle before the officers: it lies in the folder from now on, and the log says so.

    Raises: InvalidInput where no officer has signed it, or it does not follow the newest one; IntegrityError, …
    """
    found, content = status_of(folder, file), read_text(file, "bundle")
    if not found.signers:
        raise InvalidInput(
            f"{file}: no officer has signed it: sign it with `htfi policy sign {file} --key FILE`"
        )
    _check_follows(folder, found.bundle)
    check_emergency(found.bundle, newest_quorum(read_entries(folder)))
    _check_breakers(found.bundle)
    write_text(bundle_path(folder, found.bundle.head.number), content)
    head = found.bundle.head
    _record(
        folder,
        lambda at_ns: BundleProposed(
            at_ns, head.number, found.bundle.digest, head.author, tuple(found.signers)
        ),
        clock,
    )
    return found


def _check_follows(folder: Path, bundle: PolicyBundle) -> None:
    newest = newest_quorum(read_entries(folder))
    digest, number = (newest.digest, newest.head.number) if newest is not None else ("", 0)
    if bundle.head.number <= number or bundle.head.previous != digest:
        raise InvalidInput(f"bundle {bundle.head.number} does not follow bundle {number}: draft it again")


def activate_bundle(
    folder: Path, which: Path | int, clock: Clock | None = None
) -> tuple[PolicyBundle, list[str]]:
    """Put a bundle in force, by its number or file, once enough officers have signed it; nodes adopt it.

    A bundle that is activated already stays so: after a crash the same command may be given again. Where the folder
    names several nodes, a majority of them must take it: it is asked of the node that runs on this folder.
    Raises: InvalidInput, IntegrityError, LedgerUnavailable, DependencyUnavailable.
    """
    path = bundle_path(folder, which) if isinstance(which, int) else which
    roll, note = read_roll(folder), read_note(read_text(path, "bundle"), str(path))
    entries = read_entries(folder)
    bundle = parse_bundle(note.text)
    for one in entries:
        if isinstance(one, BundleActivated) and one.digest == bundle.digest:
            newest = newest_quorum(entries)
            if newest is not None and newest.head.number > bundle.head.number:
                raise InvalidInput(
                    f"bundle {bundle.head.number} is older than bundle {newest.head.number}: draft a new one"
                )
            return bundle, list(one.signers)
    now_ns = (clock or SystemClock()).now_ns()
    _check_breakers(bundle)
    bundle, signers = check_bundle(note, roll, verify_signature, newest_quorum(entries), now_ns, MAX_LEAD_NS)
    # Also what it must not loosen: an emergency bundle that still holds.
    activated = [one.note for one in entries if isinstance(one, BundleActivated)]
    objection = ChangeChecker(roll, verify_signature)(activated, str(note), now_ns)
    if objection:
        raise InvalidInput(objection)
    if read_nodes(folder):
        _agree(folder, str(note), bundle.digest)
        return bundle, signers
    _record(
        folder,
        lambda at_ns: BundleActivated(at_ns, bundle.head.number, bundle.digest, tuple(signers), str(note)),
        clock,
    )
    return bundle, signers


def revoke_bundle(folder: Path, key_file: Path, why: str, clock: Clock | None = None) -> BundleInForce:
    """An officer takes back the bundle in force: until another is activated nothing is released.

    Raises: InvalidInput, IntegrityError, LedgerUnavailable, DependencyUnavailable.
    """
    roll, key = read_roll(folder), load_key(key_file)
    by = next((name for name, known in roll.keys.items() if known == key.verifier_key), None)
    if by is None:
        raise InvalidInput(f"{key_file}: {key.name} is no officer of {folder}: only officers revoke")
    if not why.strip() or not why.isprintable():
        raise InvalidInput("--why must be one line of text")
    found = bundle_in_force(read_entries(folder), (clock or SystemClock()).now_ns())
    if found.bundle is None:
        raise InvalidInput(f"{folder}: no bundle is in force, so none can be revoked")
    bundle = found.bundle
    text = f"{REVOCATION_HEADING}{bundle.head.number}\n{bundle.digest}\n{why}\n"
    signature = NoteSignature(key.name, key.verifier_key.key_id, key.sign(text.encode()))
    note = str(SignedNote(text, (signature,)))
    if read_nodes(folder):
        _agree(folder, note, bundle.digest)
        return found
    _record(
        folder,
        lambda at_ns: BundleRevoked(at_ns, bundle.head.number, bundle.digest, by, why, note),
        clock,
    )
    return found


def _agree(folder: Path, note: str, digest: str) -> None:
    """Have the nodes of a folder agree on a change. Raises: InvalidInput where they refuse, DependencyUnavailable."""
    name = sha256(note.encode()).hexdigest()[:16]
    write_activation(folder, name, note)
    until_s = time.monotonic() + AGREE_S
    while time.monotonic() < until_s:
        refusal = read_refusal(folder, name)
        if refusal:
            raise InvalidInput(f"the nodes refuse it: {refusal}")
        if any(
            isinstance(one, BundleActivated | BundleRevoked) and one.note == note
            for one in read_entries(folder)
        ):
            return
        time.sleep(0.02)
    why = read_hold(folder, time.time_ns())
    raise DependencyUnavailable(
        f"a majority of the nodes of {folder} has not taken bundle {digest[:8]} within {AGREE_S:g} s: it was asked and "
        f"is decided when they are linked{f'; here: {why}' if why else ''}"
    )


def _record(folder: Path, make: Callable[[int], BundleEntry], clock: Clock | None) -> None:
    log = open_governance_log(folder)
    try:
        log.append([msgspec.json.encode(make((clock or SystemClock()).now_ns()))])
    finally:
        log.close()
