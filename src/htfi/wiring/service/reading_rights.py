"""Whether a caller of the service may read its tenant's record, where that run has a governance folder with people.

A key or token stands for a person of people.toml (`--person`, the claim `person_claim`): the principal is that person
with the roles, desks and tenant stated there, and Cedar decides `read_record` on the run's record. One that stands for
no person, or for one who is not there, reads nothing.
"""

import time
from pathlib import Path

from htfi.domain.errors import HtfiError
from htfi.governance.authorisation import AccessAction, AccessRequest, denial_words
from htfi.governance.people import PEOPLE_FILE
from htfi.governance.reading import record_resource
from htfi.wiring.authorisation import GovernanceAccess, has_people, open_access
from htfi.wiring.reading import record_of_run
from htfi.wiring.service.run_process import RunPlace

_LOOK_S = 1.0  # a right that is withdrawn ends within it
_RULES = "authorisation/*.cedar"
_Stamps = tuple[tuple[str, int, int], ...]


class ReadingRights:
    """Of one run. Belongs to the event loop: decisions are kept for a second, files read again where they changed."""

    def __init__(self, place: RunPlace) -> None:
        self._folder, self._governance = place.folder, place.governance
        self._refusals: dict[str, str] = {}
        self._access: GovernanceAccess | None = None
        self._stamps: _Stamps = ()
        self._looked_s = float("-inf")
        self._is_governed = False

    def refusal(self, person: str) -> str:
        """Why this person may not read the record now; empty where it may, or where no rights are kept."""
        if self._governance is None:
            return ""
        now_s = time.monotonic()
        if now_s - self._looked_s >= _LOOK_S:
            self._looked_s = now_s
            self._refusals.clear()
            self._is_governed = self._is_governed or has_people(self._governance)
        if not self._is_governed:
            return ""
        found = self._refusals.get(person)
        if found is None:
            found = self._refusals[person] = self._decided(self._governance, person)
        return found

    def _decided(self, governance: Path, person: str) -> str:
        """What cannot be decided is refused."""
        if not person:
            return f"the key stands for no person of {PEOPLE_FILE}, by which this run's record is read"
        try:
            stamps = _stamps(governance)
            if self._access is None or stamps != self._stamps:
                self._access, self._stamps = open_access(governance), stamps
            principal = self._access.directory.find(person)
            if principal is None:
                return f"{PEOPLE_FILE} has no person {person[:100]!r}"
            record, owner = record_of_run(self._folder)
            resource = record_resource(record, owner)
            request = AccessRequest(principal, AccessAction.READ_RECORD, resource, time.time_ns())
            decision = self._access.authoriser.decide(request)
        except HtfiError as error:
            self._access = None
            return str(error)
        return "" if decision.is_allowed else denial_words(decision, resource)


def _stamps(governance: Path) -> _Stamps:
    found: list[tuple[str, int, int]] = []
    for path in (governance / PEOPLE_FILE, *sorted(governance.glob(_RULES))):
        try:
            stated = path.stat()
        except OSError:
            continue
        found.append((path.name, stated.st_mtime_ns, stated.st_size))
    return tuple(found)
