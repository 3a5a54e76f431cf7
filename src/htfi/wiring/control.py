"""Opens the governance of a run: its log, and the folders through which people control it."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path
from time import monotonic, sleep, time_ns

from msgspec import UNSET
from msgspec.structs import replace

from htfi.adapters.stores.adoption_folder import read_nodes
from htfi.adapters.stores.control_folder import (
    CONTROL_FOLDER,
    ControlWatcher,
    DeadMansSwitch,
    leave_stop_file,
    no_bundle,
    read_requests,
    remove_stop_file,
    user_control_folder,
    write_request,
)
from htfi.domain.counts import counted
from htfi.domain.decision import Receipt
from htfi.domain.errors import AccessDenied, DependencyUnavailable, HtfiError, InvalidInput
from htfi.domain.governance import FIRM, MAX_CAUSE_CHARS, parse_scope
from htfi.governance.config import PolicyConfig
from htfi.governance.control.entries import (
    GovernanceEntry,
    Reenabled,
    ReenablingRefused,
    StopCause,
    Stopped,
    decode_governance,
)
from htfi.governance.control.reenabling import reenable_statement, scope_resource, why_not_reenabled
from htfi.governance.control.requests import FolderRequest, ReenableRequest, StopRequest
from htfi.governance.ledger.log import LogReader, TransparencyLog
from htfi.governance.ledger.merkle import leaf_hash
from htfi.pipeline.checkpoints import OpenRights
from htfi.pipeline.governed import RunGovernance
from htfi.pipeline.record.entry import try_decode_entry
from htfi.wiring.authorisation import (
    Requester,
    has_people,
    open_access,
    read_statement,
    record_owner,
    run_key,
    run_rights,
    shared_key,
    sign_allowed,
)
from htfi.wiring.bundle_watch import BundleWatch
from htfi.wiring.bundles import require_governance_folder
from htfi.wiring.governance_log import GOVERNANCE_ORIGIN
from htfi.wiring.ledger import DATABASE, is_running, open_ledger, open_ledger_readonly
from htfi.wiring.request_token import RequestToken, new_token

GOVERNANCE_FOLDER = "governance"  # of a run; it is there once something changed
_WAIT_S = 2.0  # for a run to log a request


class GovernanceLogFile:
    """The governance log of a run's folder, made with its first entry. Implements the port `GovernanceLog`."""

    def __init__(self, run: Path) -> None:
        """Raises: InvalidInput, IntegrityError, LedgerUnavailable."""
        self._folder = run / GOVERNANCE_FOLDER
        self._log: TransparencyLog | None = None
        if has_governance_log(run):
            self._log = open_ledger(self._folder, origin=GOVERNANCE_ORIGIN)

    def recorded(self) -> Sequence[tuple[bytes, str]]:
        entries = self._log.entries() if self._log is not None else ()
        return [(entry, leaf_hash(entry).hex()) for entry in entries]

    def append(self, entry: bytes) -> Receipt:
        return self.append_all([entry])[0]

    def append_all(self, entries: Sequence[bytes]) -> Sequence[Receipt]:
        if self._log is None:
            self._log = open_ledger(self._folder, origin=GOVERNANCE_ORIGIN)
        return self._log.append(entries)

    def close(self) -> None:
        if self._log is not None:
            self._log.close()


def has_governance_log(run: Path) -> bool:
    """Whether anything changed in a run's governance."""
    return (run / GOVERNANCE_FOLDER / DATABASE).exists()


@contextmanager
def open_governance_log(run: Path) -> Generator[LogReader]:
    """The governance log of a run, to read. Raises: InvalidInput, IntegrityError, LedgerUnavailable."""
    log = open_ledger_readonly(run / GOVERNANCE_FOLDER)
    try:
        yield log
    finally:
        log.close()


def governance_leaves(run: Path) -> list[tuple[bytes, str]]:
    """The entries of a run's governance log with their leaf hashes (hex). Raises: as `open_governance_log`."""
    if not has_governance_log(run):
        return []
    with open_governance_log(run) as log:
        return [(entry, leaf_hash(entry).hex()) for entry in log.entries()]


def governance_entries(run: Path) -> Iterator[GovernanceEntry]:
    """What changed in a run's governance, oldest first. Raises: as `open_governance_log`."""
    for entry, _ in governance_leaves(run):
        yield decode_governance(entry)


def check_governance(run: Path, log: LogReader, size: int) -> tuple[list[str], list[str]]:
    """What holds of a run's governance log, and what does not, a line each. `log` holds its `size` decisions."""
    newest = try_decode_entry(log.entry(size - 1)) if size else None
    facts = UNSET if newest is None else newest.governance
    if not has_governance_log(run):
        if facts is UNSET:
            return [], []
        return [], [
            f"{run / GOVERNANCE_FOLDER}: is missing, though decisions name it: restore it from a copy"
        ]
    try:
        with open_governance_log(run) as governance:
            audit = governance.verify()
            leaves = [leaf_hash(entry).hex() for entry in governance.entries()]
    except HtfiError as error:
        return [], [str(error)]
    if facts is not UNSET and leaves[: facts.num_entries][-1:] != [facts.newest]:
        return [], [
            f"{run / GOVERNANCE_FOLDER}: does not hold the {counted(facts.num_entries, 'change')} that the newest "
            "decision names: restore it from a copy"
        ]
    return [f"governance log: {counted(audit.size, 'change')}, each as it was recorded"], []


@contextmanager
def open_governance(
    run: Path, policy: PolicyConfig, switch: DeadMansSwitch | None = None, shared: Path | None = None
) -> Generator[tuple[RunGovernance, ControlWatcher]]:
    """The governance of a run, which its folder and that of this user control, until the end of the block.

    `shared` is a governance folder, whose bundle it goes by and whose `control` folder it watches too. Its people and
    rules, where it has them, decide whose answers count; else whoever may write to the run's folder may answer.
    Raises: InvalidInput, IntegrityError, LedgerUnavailable, MissingExtra.
    """
    bundles = BundleWatch(shared) if shared is not None else None
    rights = run_rights(run, shared)
    log = GovernanceLogFile(run)
    try:
        recorded = log.recorded()
        folders = [shared / CONTROL_FOLDER] if shared is not None else []
        with suppress(RuntimeError):  # where nobody has a home
            folders.append(user_control_folder())
        watcher = ControlWatcher(
            run / CONTROL_FOLDER,
            folders,
            switch,
            poll_bundle=bundles.poll if bundles is not None else no_bundle,
            is_new=not recorded,
            counts=lambda request: _counts(request, rights),
            told=shared / CONTROL_FOLDER if shared is not None and read_nodes(shared) else None,
        )
        try:
            yield RunGovernance(policy, log, watcher, rights, time_ns), watcher
        finally:
            watcher.close()
    finally:
        log.close()


def _counts(request: ReenableRequest, rights: OpenRights) -> bool:
    """Whether a request to re-enable is of who has the right to now; what cannot be judged does not count."""
    try:
        return not why_not_reenabled(request, rights(), (), time_ns())
    except HtfiError:
        return False


class ControlOutcome(Enum):
    """What became of a request: the run has logged it, will, will when it starts; or all runs of a user take it.

    BY_FILE: it could not be written, an empty STOP file stands for it.
    """

    LOGGED = "logged"
    WAITS = "waits"
    LATER = "later"
    SHARED = "shared"
    BY_FILE = "by_file"


def request_stop(
    run: Path | None,
    scope: str,
    by: str,
    why: str,
    cause: StopCause = StopCause.COMMAND,
    shared: Path | None = None,
    token: RequestToken | None = None,
) -> ControlOutcome:
    """Ask the run in a folder, all of the governance folder `shared`, or all of this user, to release nothing in scope.

    Where the disk has no room for the request, a firm-wide stop is an empty STOP file, which needs none and names
    nobody. Raises: InvalidInput, DependencyUnavailable.
    """
    _check(scope, by, why)
    token = token or new_token()
    request = StopRequest(token.named("stop"), token.at_ns, scope, by, why, cause)
    try:
        return _send(run, shared, request)
    except DependencyUnavailable as error:
        folder = _control_folder(run, shared)
        if parse_scope(scope) != FIRM:
            raise DependencyUnavailable(f"{error}; without --scope an empty file stops everything") from error
        leave_stop_file(folder)
        return ControlOutcome.BY_FILE


def request_reenabling(
    run: Path | None,
    scope: str,
    by: str,
    why: str,
    breaker: str = "",
    shared: Path | None = None,
    key: Path | None = None,
    note: str = "",
    token: RequestToken | None = None,
) -> ControlOutcome:
    """Ask for the end of the stops of a scope, and that its breakers close, or the one of a name.

    Where the governance folder `shared` has people, its rules decide, and the request is signed with `key`, or was
    elsewhere: `note`. Then `run` may be named too.

    Raises: InvalidInput, AccessDenied, MissingExtra, IntegrityError, DependencyUnavailable.
    """
    signed = ""
    is_signed = key is not None or bool(note)
    _check(scope, "signed" if is_signed else by, why)
    token = token or new_token()
    at_ns = read_statement(note).at_ns if note else token.at_ns
    request = ReenableRequest(token.named("reenable"), at_ns, scope, by, why, breaker)
    if is_signed or (shared is not None and has_people(shared)):
        if shared is None:
            raise InvalidInput("--key: give the governance folder that knows it too: --governance DIR")
        statement = reenable_statement(request, shared_key(shared) if run is None else run_key(run))
        requester = Requester(by, shared, key, note)
        tenant = "" if run is None else record_owner(run).tenant
        by, signed = sign_allowed(open_access(shared), requester, statement, scope_resource(scope, tenant))
        shared = shared if run is None else None
    folder = _control_folder(run, shared)
    is_first = all(one.id != request.id for one in read_requests(folder)[0])
    was_there = is_first and parse_scope(scope) == FIRM and not breaker and remove_stop_file(folder)
    try:
        return _send(run, shared, replace(request, by=by, signed=signed))
    except DependencyUnavailable:
        if was_there:  # nothing says that the stop has ended
            leave_stop_file(folder)
        raise


def _check(scope: str, by: str, why: str) -> None:
    """Raises: InvalidInput where the words of a request are not fit for the record."""
    parse_scope(scope)
    for name, text in (("--by", by), ("--why", why)):
        if not text.strip() or len(text) > MAX_CAUSE_CHARS or not text.isprintable():
            raise InvalidInput(f"{name} must be one line of 1 to {MAX_CAUSE_CHARS} characters")


def _control_folder(run: Path | None, shared: Path | None) -> Path:
    if run is not None and shared is not None:
        raise InvalidInput("name the folder of a run, or --governance for all of its runs, not both")
    if shared is not None:
        require_governance_folder(shared)
        return shared / CONTROL_FOLDER
    if run is None:
        try:
            return user_control_folder()
        except RuntimeError as error:
            raise InvalidInput("this user has no home folder: name the run's folder") from error
    if not (run / DATABASE).exists():
        raise InvalidInput(f"{run} is not the folder of a run: name one, or none for every run of this user")
    return run / CONTROL_FOLDER


def _send(run: Path | None, shared: Path | None, request: FolderRequest) -> ControlOutcome:
    folder = _control_folder(run, shared)
    asked, _ = read_requests(folder)
    if all(one.id != request.id for one in asked):
        write_request(folder, _after_all(asked, request))
    if run is None:
        return ControlOutcome.SHARED
    if not is_running(run):
        return ControlOutcome.LATER
    until_s = monotonic() + _WAIT_S
    while monotonic() < until_s:
        if _is_logged(run, request.id):
            return ControlOutcome.LOGGED
        sleep(0.02)
    return ControlOutcome.WAITS


def _after_all(asked: Sequence[FolderRequest], request: FolderRequest) -> FolderRequest:
    """The request as the newest of its folder: others may come from nodes whose clocks are ahead.

    What is signed states its time itself. Raises: InvalidInput where that is not later, AccessDenied where it was used.
    """
    newest_ns = max((one.at_ns for one in asked), default=0)
    if isinstance(request, StopRequest) or not request.signed:
        return replace(request, at_ns=newest_ns + 1) if request.at_ns <= newest_ns else request
    if any(not isinstance(one, StopRequest) and one.signed == request.signed for one in asked):
        raise AccessDenied("what was signed was asked for before: sign it again")
    if request.at_ns <= newest_ns:
        raise InvalidInput("what was signed is dated before what was asked for last: sign it again")
    return request


def _is_logged(run: Path, request: str) -> bool:
    try:
        found = list(governance_entries(run))
    except HtfiError:  # it is being made
        return False
    refused = next(
        (one for one in found if isinstance(one, ReenablingRefused) and one.request == request), None
    )
    if refused is not None:
        raise AccessDenied(f"refused: {refused.refusal}; the run has recorded that it was tried")
    return any(isinstance(one, Stopped | Reenabled) and one.request == request for one in found)
