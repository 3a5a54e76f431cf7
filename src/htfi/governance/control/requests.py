"""What people and processes ask of a run while it goes on; commands write these, the run's watcher reads them."""

import msgspec

from htfi.governance.checkpoints.requests import ApprovalAnswer
from htfi.governance.control.entries import StopCause


class StopRequest(msgspec.Struct, frozen=True, tag_field="kind", tag="stop"):
    """Release nothing in scope from now on. `id` names the request, `at_ns` is when it was made, UTC."""

    id: str
    at_ns: int
    scope: str
    by: str
    why: str
    cause: StopCause = StopCause.COMMAND


class ReenableRequest(msgspec.Struct, frozen=True, tag_field="kind", tag="reenable"):
    """A named person ends the stops of a scope and closes its breakers, or the one of a name.

    `signed` is the signed note (`governance.people`), empty where there are no people to check it against.
    """

    id: str
    at_ns: int
    scope: str
    by: str
    why: str
    breaker: str = ""
    signed: str = ""


class BundleOffer(msgspec.Struct, frozen=True):
    """The bundle to go by from now on, none where `text` is empty; `stale` says why nothing may be released."""

    id: str
    at_ns: int
    digest: str
    number: int
    text: str
    stale: str = ""


FolderRequest = StopRequest | ReenableRequest | ApprovalAnswer  # what commands leave as files
ControlRequest = FolderRequest | BundleOffer
