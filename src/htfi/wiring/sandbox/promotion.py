"""Promotes candidates that the sandbox has passed, and takes promotions back: entries of the governance log.

The log alone says what serves. An entry is one transaction, so that a process killed at any moment leaves the old state
or the new one.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from htfi.domain.errors import HtfiError, IntegrityError, InvalidInput
from htfi.domain.files import make_private, write_atomically
from htfi.governance.authorisation import AccessAction, AccessResource, ResourceKind
from htfi.governance.ledger.log import LogReader
from htfi.governance.people import RequestStatement
from htfi.governance.sandbox.entries import (
    SHIPPED,
    CandidateLog,
    ModelPromoted,
    ModelRolledBack,
    candidate_entries,
    encode_entry,
)
from htfi.governance.sandbox.trials import CandidateKind
from htfi.wiring.authorisation import AllowedRequest, authorise_in_folder, folder_key
from htfi.wiring.governance_log import open_governance_log, read_governance_log
from htfi.wiring.sandbox.candidates import MODEL_LINEAGE, Candidate, open_candidate

PROMOTED = "promoted"  # folder beside the log that keeps promoted files as they were tried


@dataclass(frozen=True, slots=True)
class PromotedModels:
    """What serves in place of what ships: model folders by role ('target', 'draft'), and tables of settings.

    `digests` are those of the promotions that stand, by lineage, oldest first. Without promotions all is empty.
    """

    folders: Mapping[str, Path] = field(default_factory=dict[str, Path])
    tables: Mapping[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    digests: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    @property
    def digest(self) -> str:
        """Of all that serves together; 'shipped' where nothing is promoted."""
        return _serving_digest(self.digests)

    def all_tables(self) -> dict[str, dict[str, Any]]:
        """The tables with the model folders among them."""
        tables = {name: dict(values) for name, values in self.tables.items()}
        for role, folder in self.folders.items():
            tables.setdefault("models", {})[role] = str(folder)
        return tables


def promoted_models(folder: Path, *, with_models: bool = True) -> PromotedModels:
    """What the governance folder says must serve, its digests checked; `with_models` model folders too.

    Raises: IntegrityError where something promoted is missing or no longer what was tried, LedgerUnavailable.
    """
    log = read_governance_log(folder)
    if log is None:
        return PromotedModels()
    try:
        stacks = read_candidates(log).promoted()
    finally:
        log.close()
    if not with_models:
        stacks.pop(MODEL_LINEAGE, None)
    found = [_still(entry, folder) for stack in stacks.values() for entry in stack]
    digests = {lineage: tuple(entry.digest for entry in stack) for lineage, stack in stacks.items() if stack}
    return replace(_together(found), digests=digests)


def _together(candidates: Sequence[Candidate]) -> PromotedModels:
    """Later ones take the place of earlier ones, setting by setting."""
    tables: dict[str, dict[str, Any]] = {}
    for candidate in candidates:
        for name, values in candidate.tables.items():
            tables.setdefault(name, {}).update(values)
    named = tables.pop("models", {})
    folders = {role: Path(named.pop(role)) for role in ("target", "draft") if role in named}
    return PromotedModels(folders, {**tables, "models": named} if named else tables)


def _serving_digest(digests: Mapping[str, tuple[str, ...]]) -> str:
    standing = sorted((lineage, list(stack)) for lineage, stack in digests.items() if stack)
    return hashlib.sha256(msgspec.json.encode(standing)).hexdigest() if standing else SHIPPED


def serving(candidate: Candidate) -> PromotedModels:
    """What would serve were this candidate promoted alone: a champion that a person names. Raises: InvalidInput."""
    if candidate.kind is CandidateKind.EXPERT:
        raise InvalidInput(
            f"{candidate.place} is code, which cannot serve: name a model folder or settings as champion"
        )
    return replace(_together([candidate]), digests={candidate.lineage: (candidate.digest,)})


def promote(
    place: Path, folder: Path, *, by: str, why: str, now_ns: int, key: Path | None = None
) -> ModelPromoted:
    """Let a candidate serve whose newest verdict, on exactly this digest, is that it passed.

    Where the folder has people its rules decide who may, and `key` signs it.
    Raises: InvalidInput where there is no such verdict or nothing to promote, AccessDenied, LedgerUnavailable.
    """
    _require_name_and_reason(by, key, why)
    candidate = open_candidate(place)
    if candidate.kind is CandidateKind.EXPERT:
        raise InvalidInput(
            f"{place} is code, which runs in the sandbox alone: add the expert to the package, then name it in settings"
        )
    if candidate.kind is CandidateKind.BUNDLE:
        raise InvalidInput(f"{place} is a policy bundle: `htfi policy propose` puts it to the quorum")
    allowed = _allowed(folder, key, by, AccessAction.PROMOTE_MODEL, candidate.digest, why, now_ns)
    log = open_governance_log(folder)
    try:
        known = read_candidates(log)
        verdict = known.newest_verdict(candidate.digest)
        if verdict is None:
            raise InvalidInput(
                f"{place} was never tried as it is now (digest {candidate.digest[:12]}): `htfi sandbox {place} "
                f"--governance {folder}`"
            )
        at, found = verdict
        if not found.passed:
            raise InvalidInput(
                f"{place} did not pass the sandbox (entry {at}): {found.failed[0].check.value}: {found.failed[0].why}"
            )
        stacks = {name: tuple(one.digest for one in stack) for name, stack in known.promoted().items()}
        if candidate.digest in stacks.get(candidate.lineage, ()):
            raise InvalidInput(f"{place} serves already")
        if found.champion_digest != (now := _serving_digest(stacks)):
            raise InvalidInput(
                f"{place} was tried against {found.champion_digest[:12]}, but {now[:12]} serves now: try it again"
            )
        entry = ModelPromoted(
            at_ns=now_ns, lineage=candidate.lineage, digest=candidate.digest,
            place=str(_kept(candidate, folder)), verdict=at, by=allowed.by, why=why,
            signed=allowed.note,
        )  # fmt: skip
        log.append([encode_entry(entry)])
        return entry
    finally:
        log.close()


def roll_back(
    lineage: str, folder: Path, *, by: str, why: str, now_ns: int, key: Path | None = None
) -> ModelRolledBack:
    """Take the newest promotion of a lineage back; the one before serves again. Who may, as with `promote`.

    Raises: InvalidInput, AccessDenied, LedgerUnavailable.
    """
    _require_name_and_reason(by, key, why)
    allowed = _allowed(folder, key, by, AccessAction.ROLLBACK_MODEL, lineage, why, now_ns)
    log = open_governance_log(folder)
    try:
        stacks = {name: stack for name, stack in read_candidates(log).promoted().items() if stack}
        if lineage not in stacks:
            known = ", ".join(sorted(stacks)) or "none"
            raise InvalidInput(f"nothing of '{lineage}' is promoted: promoted are {known}")
        stack = stacks[lineage]
        for entry in stack[:-1]:
            _still(entry, folder)
        entry = ModelRolledBack(
            at_ns=now_ns, lineage=lineage, digest=stack[-1].digest, to=stack[-2].digest if len(stack) > 1 else SHIPPED,
            by=allowed.by, why=why, signed=allowed.note,
        )  # fmt: skip
        log.append([encode_entry(entry)])
        return entry
    finally:
        log.close()


def read_candidates(log: LogReader) -> CandidateLog:
    """What a governance log says of candidates. Raises: IntegrityError."""
    try:
        return CandidateLog(tuple(candidate_entries(log.entries())))
    except msgspec.MsgspecError as error:
        raise IntegrityError(f"the governance log has an entry that cannot be read: {error}") from error


def _still(entry: ModelPromoted, folder: Path) -> Candidate:
    """What was promoted, which must be as it was. Raises: IntegrityError."""
    place = Path(entry.place)
    remedy = (
        f"restore it, or take it back: `htfi models rollback {entry.lineage} --governance {folder} "
        "--by NAME --why TEXT`"
    )
    try:
        found = open_candidate(place)
    except HtfiError as error:
        raise IntegrityError(f"{place} was promoted and cannot be opened ({error}): {remedy}") from error
    if found.digest != entry.digest:
        raise IntegrityError(
            f"{place} is not what was promoted: its digest is {found.digest[:12]}, not {entry.digest[:12]}: {remedy}"
        )
    return found


def _kept(candidate: Candidate, folder: Path) -> Path:
    """Where the promoted lies for good: a file is copied beside the log, a model folder stays where it is."""
    if candidate.kind is CandidateKind.MODEL:
        return candidate.place
    content = candidate.place.read_bytes()
    if hashlib.sha256(content).hexdigest() != candidate.digest:
        raise InvalidInput(f"{candidate.place} changed while it was promoted: try it again")
    kept = folder / PROMOTED / f"{candidate.digest}.toml"
    make_private(kept.parent)
    write_atomically(kept, content)
    return kept.resolve()


def _allowed(
    folder: Path, key: Path | None, by: str, action: AccessAction, name: str, why: str, now_ns: int
) -> AllowedRequest:
    proposer = _proposer(folder, name) if action is AccessAction.PROMOTE_MODEL else ""
    resource = AccessResource(ResourceKind.MODEL, name, proposed_by=proposer)
    statement = RequestStatement(action, f"{resource.kind.value}:{name}", folder_key(folder), now_ns, why)
    return authorise_in_folder(folder, key, by, statement, resource)


def _proposer(folder: Path, digest: str) -> str:
    log = read_governance_log(folder)
    if log is None:
        return ""
    try:
        return read_candidates(log).proposer(digest)
    finally:
        log.close()


def _require_name_and_reason(by: str, key: Path | None, why: str) -> None:
    if not (by.strip() or key is not None) or not why.strip():
        raise InvalidInput("a promotion names who decided it and why: --by NAME --why TEXT")
