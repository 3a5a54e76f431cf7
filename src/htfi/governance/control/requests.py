"""What people and processes ask of a run while it goes on; commands write these, the run's watcher reads them."""

from secrets import token_hex

import msgspec

from htfi.domain.governance import BREAKER_NAME, FIRM, MAX_CAUSE_CHARS, BreakerState
from htfi.governance.checkpoints.requests import ApprovalAnswer
from htfi.governance.control.entries import BreakerMoved, StopCause


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


def stop_by_trip(entry: BreakerMoved) -> StopRequest | None:
    """The stop of the other nodes that a trip of a firm-wide breaker calls for; None for any other change.

    Its cause is that of a stop by a peer, which is what it is wherever it arrives. Each has a name of its own: the same
    bars, run once more, trip once more.
    """
    if entry.scope != str(FIRM) or entry.state is not BreakerState.OPEN:
        return None
    words = f"statistic {entry.statistic:.6g} at the limit {entry.threshold:.6g}: {entry.evidence}"
    why = "".join(one if one.isprintable() else " " for one in words)[:MAX_CAUSE_CHARS]
    name = f"trip-{entry.at_ns}-{token_hex(6)}"
    return StopRequest(name, entry.at_ns, entry.scope, f"{BREAKER_NAME} {entry.breaker}", why, StopCause.PEER)
