"""The news in quarantine of a run's folder, for people: what is held back and why, and the word that lets it out."""

from pathlib import Path
from typing import NamedTuple

from msgspec import UNSET

from htfi.adapters.stores.admissions import read_admissions, request_admission
from htfi.adapters.stores.held_news import HELD_NEWS, read_held
from htfi.domain.errors import InvalidInput
from htfi.governance.authorisation import AccessAction, AccessResource, ResourceKind
from htfi.narrative.text import clean
from htfi.pipeline.operator_actions import MAX_REASON_CHARS, AppliedAction, HeldItem, NewsAdmission
from htfi.wiring.authorisation import Requester, authorise
from htfi.wiring.ledger import DATABASE, is_running


class UnknownItem(InvalidInput):
    """There is no such item in quarantine."""


class QuarantinedItem(NamedTuple):
    """An item in quarantine with what became of it: who asked to release it, and where that took effect."""

    held: HeldItem
    release: NewsAdmission | None
    entered: AppliedAction | None

    @property
    def status(self) -> str:
        if self.release is None:
            return "held"
        return "released" if self.entered else "asked"


def list_quarantined(
    folder: Path, source: str | None = None, rule: str | None = None
) -> list[QuarantinedItem]:
    """Items held back in a run, in order, those of a source or with a finding of a rule only where one is named.

    Raises: InvalidInput where the folder is not a run's, IntegrityError, DependencyUnavailable.
    """
    require_run_folder(folder)
    requested, admitted = read_admissions(folder)
    requests = [*requested, *(action.release for action in admitted)]
    by_number = {action.number: action for action in requests if isinstance(action, NewsAdmission)}
    places = {one.release.number: one for one in admitted if isinstance(one.release, NewsAdmission)}
    return [
        QuarantinedItem(held, by_number.get(held.number), places.get(held.number))
        for held in read_held(folder / HELD_NEWS)
        if (source is None or held.item.source == source)
        and (rule is None or any(finding.rule == rule for finding in held.screened.findings))
    ]


def find_quarantined(folder: Path, which: str) -> QuarantinedItem:
    """The item of that id or number. Raises: InvalidInput where there is none or more than one, and as
    `list_quarantined`.
    """
    kept = list_quarantined(folder)
    found = [one for one in kept if which in (one.held.item.id, one.held.screened.item.id)]
    if not found and which.isdecimal():
        found = [one for one in kept if one.held.number == int(which[:18])]
    if not found:
        raise UnknownItem(
            f"the quarantine of {folder} has no item '{clean(which, 60)}': `htfi quarantine list {folder}` "
            "lists them"
        )
    if len(found) > 1:
        numbers = ", ".join(str(one.held.number) for one in found[:8])
        raise InvalidInput(
            f"{len(found)} items have the id '{clean(which, 60)}': give a number instead: {numbers}"
        )
    return found[0]


def admit(folder: Path, which: str, requester: Requester, why: str) -> tuple[QuarantinedItem, bool]:
    """Let an item out on a named person's word; with it whether a run is going on, which picks it up within seconds.

    Raises: InvalidInput where it is released already, or name or reason are missing, AccessDenied, and as
    `find_quarantined`.
    """
    kept = find_quarantined(folder, which)
    held = kept.held
    reason = _required_text(why, "--why: a reason")
    resource = AccessResource(ResourceKind.NEWS, held.item.id)
    allowed = authorise(requester, folder, AccessAction.RELEASE_NEWS, resource, reason)
    admission = NewsAdmission(
        held.number,
        held.item.id,
        held.screened.digest,
        _required_text(allowed.by, "--by: a name"),
        reason,
        allowed.note or UNSET,
    )
    request_admission(folder, admission)
    return kept._replace(release=admission), is_running(folder)


def require_run_folder(folder: Path) -> None:
    """Raises: InvalidInput where the folder is not that of a run."""
    if not (folder / DATABASE).is_file() and not (folder / HELD_NEWS).is_file():
        raise InvalidInput(f"{folder} is not the folder of a run: name one that `htfi run --out` made")


def _required_text(text: str, what: str) -> str:
    words = clean(text, MAX_REASON_CHARS)
    if not any(char.isalnum() for char in words):
        raise InvalidInput(f"{what} is required: the record states who admitted it and why")
    return words
