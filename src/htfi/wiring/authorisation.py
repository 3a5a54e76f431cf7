"""Who may act, from a governance folder: its directory of people and its rules. Commands and runs call it."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec

from htfi.adapters.keys.ed25519 import SigningKey, load_key, verify_signature
from htfi.adapters.stores.adoption_folder import read_nodes
from htfi.adapters.stores.bundle_folder import OFFICERS_FILE, read_text
from htfi.adapters.stores.snapshot import read_whole
from htfi.domain.errors import AccessDenied, DependencyUnavailable, IntegrityError, InvalidInput
from htfi.domain.time import NS_PER_S, Clock, SystemClock
from htfi.governance.authorisation import (
    AccessAction,
    AccessRequest,
    AccessResource,
    Authoriser,
    require_access,
)
from htfi.governance.bundles.bundle import parse_officers
from htfi.governance.checkpoints.answers import AnswerRights, local_rights
from htfi.governance.config import RecordConfig
from htfi.governance.ledger.note import parse_note
from htfi.governance.people import (
    MAX_NOTE_BYTES,
    PEOPLE_FILE,
    PeopleDirectory,
    RequestStatement,
    identify,
    parse_people,
    sign_statement,
    statement_in,
)
from htfi.wiring.governance_log import read_governance_log
from htfi.wiring.ledger import open_ledger_readonly
from htfi.wiring.settings import SETTINGS_FILE, decode_settings

NS_PER_MINUTE = 60 * NS_PER_S
MAX_NOTE_AGE_NS = 5 * NS_PER_MINUTE  # of what was signed on another machine, whose clock may differ


class GovernanceAccess(NamedTuple):
    """The people of a governance folder and the rules that decide what they may do."""

    directory: PeopleDirectory
    authoriser: Authoriser


class Requester(NamedTuple):
    """Who asks: a name, a key that a governance folder knows, or a statement that was signed with one elsewhere."""

    by: str
    governance: Path | None = None
    key: Path | None = None
    note: str = ""


class AllowedRequest(NamedTuple):
    """A request that was allowed: who made it, and the signed note; empty where there is no governance folder."""

    by: str
    note: str = ""


def open_access(governance: Path) -> GovernanceAccess:
    """Raises: InvalidInput, MissingExtra, DependencyUnavailable."""
    from htfi.adapters.cedar.authoriser import load_authoriser

    path = governance / PEOPLE_FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidInput(
            f"there is no {path}: it names the people and what they may do (docs/authorisation.md)"
        ) from None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path}: is not UTF-8 text") from error
    except OSError as error:
        raise DependencyUnavailable(f"cannot read {path}: {error.strerror}") from error
    return GovernanceAccess(parse_people(text, str(path)), load_authoriser(governance))


def authorise(
    requester: Requester,
    run: Path,
    action: AccessAction,
    resource: AccessResource,
    why: str = "",
    clock: Clock | None = None,
) -> AllowedRequest:
    """Require that this person may act on a resource of the run in a folder; without a governance folder as named.

    Raises: AccessDenied, InvalidInput, MissingExtra, IntegrityError, DependencyUnavailable.
    """
    if requester.governance is None:
        check_named(requester)
        return AllowedRequest(requester.by)
    at_ns = (clock or SystemClock()).now_ns()
    resource = msgspec.structs.replace(resource, tenant=record_owner(run).tenant)
    statement = RequestStatement(action, f"{resource.kind.value}:{resource.id}", run_key(run), at_ns, why)
    return sign_allowed(open_access(requester.governance), requester, statement, resource)


def authorise_in_folder(
    governance: Path, key: Path | None, by: str, statement: RequestStatement, resource: AccessResource
) -> AllowedRequest:
    """Require that this person may act on what belongs to a governance folder; as named where it has no people.

    Raises: AccessDenied, InvalidInput, MissingExtra, IntegrityError, DependencyUnavailable.
    """
    if key is None and not has_people(governance):
        check_named(Requester(by))
        return AllowedRequest(by)
    return sign_allowed(open_access(governance), Requester(by, governance, key), statement, resource)


def sign_allowed(
    access: GovernanceAccess, requester: Requester, statement: RequestStatement, resource: AccessResource
) -> AllowedRequest:
    """Sign a statement with a person's key, and require that this person may do what it says.

    Raises: AccessDenied, InvalidInput, DependencyUnavailable.
    """
    if requester.note:
        note, signed = requester.note, read_statement(requester.note)
        if signed != msgspec.structs.replace(statement, at_ns=signed.at_ns):
            raise AccessDenied(
                f"what was signed is not what is asked: sign {msgspec.json.encode(statement).decode()}"
            )
    else:
        key = key_of(requester, access.directory)
        note = sign_statement(statement, key.verifier_key, key)
    principal, _ = identify(note, access.directory, verify_signature)
    require_access(
        access.authoriser, AccessRequest(principal, statement.action, resource, statement.at_ns)
    )  # fmt: skip
    return AllowedRequest(principal.id, note)


def read_statement(note: str, clock: Clock | None = None) -> RequestStatement:
    """What a person has signed elsewhere, not long ago. Raises: InvalidInput, AccessDenied where it is too old."""
    try:
        if len(note) > MAX_NOTE_BYTES:
            raise IntegrityError(f"larger than {MAX_NOTE_BYTES >> 10} kB")
        statement = statement_in(parse_note(note).text)
    except (IntegrityError, InvalidInput) as error:
        raise InvalidInput(f"signed: is no signed note of a request: {error}") from error
    if abs((clock or SystemClock()).now_ns() - statement.at_ns) > MAX_NOTE_AGE_NS:
        raise AccessDenied(
            f"signed: the request is dated more than {MAX_NOTE_AGE_NS // NS_PER_MINUTE} minutes from this machine's "
            "time: sign it again"
        )
    return statement


def has_people(governance: Path) -> bool:
    """Whether a governance folder says who may do what."""
    return (governance / PEOPLE_FILE).exists()


def proposer_of(requester: Requester) -> str:
    """Who proposes what the governance folder records: by key where it has people, else as named, empty for nobody.

    Raises: InvalidInput, AccessDenied, MissingExtra, DependencyUnavailable.
    """
    governance = requester.governance
    if governance is None or not has_people(governance):
        if requester.key is not None:
            raise InvalidInput("--key: name the governance folder that has people too: --governance DIR")
        return requester.by.strip()
    directory = open_access(governance).directory
    return directory.by_key[key_of(requester, directory).verifier_key].id


def check_named(requester: Requester) -> None:
    """Raises: InvalidInput where a person without a governance folder gives a key, or no name."""
    if requester.key is not None:
        raise InvalidInput("--key: give the governance folder that knows it too: --governance DIR")
    if not requester.by.strip():
        raise InvalidInput("--by: a name is required, or --governance DIR with --key FILE")


def key_of(requester: Requester, directory: PeopleDirectory) -> SigningKey:
    """The key that a person signs with, once the directory knows it.

    Raises: InvalidInput, AccessDenied where it is of no person there, or another person's, DependencyUnavailable.
    """
    if requester.key is None:
        raise InvalidInput("--key: with --governance a request is signed: name the file of your signing key")
    key = load_key(requester.key)
    principal = directory.by_key.get(key.verifier_key)
    if principal is None:
        raise AccessDenied(
            f"{requester.key} is the key of no person in {PEOPLE_FILE}: add its verifier key there"
        )
    if requester.by and requester.by != principal.id:
        raise AccessDenied(
            f"{requester.key} is the key of {principal.id}, not of {requester.by}: leave --by out"
        )
    return key


def run_rights(run: Path, governance: Path | None) -> Callable[[], AnswerRights]:
    """By what a run judges what people ask of it, read again each time: a right that is withdrawn ends at once.

    A governance folder that has no people when the run starts leaves it to whoever may write to the run's folder.
    Raises: as `open_access`, where the folder's people or rules cannot be read.
    """
    if governance is None or not has_people(governance):
        return lambda: local_rights(run_key(run), verify_signature)
    open_access(governance)
    return lambda: answer_rights(run, governance)


def answer_rights(run: Path, governance: Path) -> AnswerRights:
    """By what the people and rules of a governance folder judge answers now. Raises: as `open_access`, `run_key`."""
    access = open_access(governance)
    return AnswerRights(
        run_key(run),
        access.directory,
        access.authoriser,
        verify_signature,
        shared_key(governance),
        record_owner(run).tenant,
    )


def record_owner(run: Path) -> RecordConfig:
    """Whose record a run's is, by its settings; the installation's own where it has none yet. Raises: InvalidInput."""
    path = run / SETTINGS_FILE
    data = read_whole(path)
    if data is None:
        return RecordConfig()
    try:
        return decode_settings(data, to_verify=True).record
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from error


def run_key(run: Path) -> str:
    """The verifier key of a run's ledger, which requests name. Raises: InvalidInput, LedgerUnavailable."""
    log = open_ledger_readonly(run)
    try:
        return str(log.key)
    finally:
        log.close()


def folder_key(governance: Path) -> str:
    """The verifier key of a governance folder's log; empty where it has none. Raises: as `run_key`."""
    log = read_governance_log(governance)
    if log is None:
        return ""
    try:
        return str(log.key)
    finally:
        log.close()


def shared_key(governance: Path) -> str:
    """What requests to all runs of a governance folder name: the folder's log, or the nodes that share such requests.

    Each node has a folder and a log of its own; what they have in common are their names and their officers. A request
    of one such group does not count in another. Raises: as `run_key`, DependencyUnavailable.
    """
    nodes = read_nodes(governance)
    if not nodes:
        return folder_key(governance)
    path = governance / OFFICERS_FILE
    roll = parse_officers(read_text(path, "roll of officers"), str(path))
    officers = sorted((name, str(key)) for name, key in roll.keys.items())
    text = msgspec.json.encode((sorted(nodes), roll.quorum, officers))
    return f"nodes:{sha256(text).hexdigest()}"
