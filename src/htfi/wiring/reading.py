"""Reading a run's record under a governance folder: its rules decide who may, and its log says who did."""

from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from htfi.adapters.keys.ed25519 import load_key, verify_signature
from htfi.adapters.stores.snapshot import read_whole
from htfi.domain.errors import AccessDenied, IntegrityError, InvalidInput
from htfi.domain.time import Clock, SystemClock
from htfi.governance.authorisation import AccessAction, AccessRequest, Principal, PrincipalKind, action_words
from htfi.governance.config import RecordConfig
from htfi.governance.people import identify, sign_statement
from htfi.governance.reading import (
    RecordRead,
    encode_reading,
    reading_statement,
    readings_in,
    record_resource,
)
from htfi.pipeline.record.unread import newest_decision
from htfi.wiring.authorisation import open_access, record_owner
from htfi.wiring.governance_log import open_governance_log, read_governance_log
from htfi.wiring.ledger import open_ledger_readonly
from htfi.wiring.settings import SETTINGS_FILE


class Reader(NamedTuple):
    """Who reads at the command line: the governance folder whose rules decide, a signing key, and the reason."""

    governance: Path
    key: Path
    why: str


class AllowedReader(NamedTuple):
    """A person or node of a directory, and whether it may read a record now, with the reason."""

    principal: Principal
    is_allowed: bool
    reason: str


class RecordReaders(NamedTuple):
    """Who may read a run's record by the rules as they are now, and who did or tried to, oldest first."""

    record: str
    owner: RecordConfig
    may: list[AllowedReader]
    did: list[RecordRead]


def record_reading(run: Path, reader: Reader, what: str, clock: Clock | None = None) -> None:
    """Log that this person reads the record of the run in a folder, before anything of it is shown.

    Raises: AccessDenied where the rules deny it, which is logged too; InvalidInput, MissingExtra, IntegrityError,
    LedgerUnavailable, DependencyUnavailable.
    """
    record, owner = record_of_run(run)
    access = open_access(reader.governance)
    key = load_key(reader.key)
    at_ns = (clock or SystemClock()).now_ns()
    note = sign_statement(reading_statement(record, what, reader.why, at_ns), key.verifier_key, key)
    by, refusal = key.name, ""
    try:
        principal, _ = identify(note, access.directory, verify_signature)
        by = principal.id
        request = AccessRequest(principal, AccessAction.READ_RECORD, record_resource(record, owner), at_ns)
        decision = access.authoriser.decide(request)
        refusal = "" if decision.is_allowed else decision.reason
    except AccessDenied as error:
        refusal, note = str(error), ""
    entry = RecordRead(
        at_ns=at_ns, record=record, tenant=owner.tenant, by=by, what=what, why=reader.why, signed=note, refusal=refusal,
    )  # fmt: skip
    log = open_governance_log(reader.governance)
    try:
        log.append([encode_reading(entry)])
    finally:
        log.close()
    if refusal:
        whose = f" of tenant {owner.tenant}" if owner.tenant else ""
        raise AccessDenied(f"{by} may not {action_words(AccessAction.READ_RECORD)}{whose} ({run}): {refusal}")


def record_readers(run: Path, governance: Path, clock: Clock | None = None) -> RecordReaders:
    """Who may read the record of the run in a folder, and who did. Raises: as `record_reading`, but AccessDenied."""
    record, owner = record_of_run(run)
    access = open_access(governance)
    at_ns = (clock or SystemClock()).now_ns()
    resource = record_resource(record, owner)
    principals = [*access.directory.by_key.values(), *access.directory.by_certificate.values()]
    may: list[AllowedReader] = []
    for principal in principals:
        decision = access.authoriser.decide(
            AccessRequest(principal, AccessAction.READ_RECORD, resource, at_ns)
        )
        may.append(AllowedReader(principal, decision.is_allowed, decision.reason))
    may.sort(key=lambda one: (one.principal.kind is PrincipalKind.NODE, one.principal.id))
    log = read_governance_log(governance)
    if log is None:
        return RecordReaders(record, owner, may, [])
    try:
        return RecordReaders(record, owner, may, readings_in(log.entries(), record))
    finally:
        log.close()


def record_of_run(run: Path) -> tuple[str, RecordConfig]:
    """The verifier key of a run's ledger, and whose record it is by the settings that its decisions were made under.

    Raises: IntegrityError where the settings are not those, InvalidInput, LedgerUnavailable.
    """
    log = open_ledger_readonly(run)
    try:
        record = str(log.key)
        newest = newest_decision(log, log.size)
    finally:
        log.close()
    data = read_whole(run / SETTINGS_FILE)
    if data is None:
        raise InvalidInput(f"{run / SETTINGS_FILE} is missing: whose record it is is unknown")
    if newest is not None and newest.settings_digest != sha256(data).hexdigest():
        raise IntegrityError(
            f"{run / SETTINGS_FILE} is not what the newest decision was made under: whose record it is is unknown"
        )
    return record, record_owner(run)
