"""Entries of a run's governance log: what changed, for which decisions from on, by whom and why.

An entry is JSON, fields in declared order: {"kind":"stopped","at_ns":…,"before":…,…}. `before` is the index in the
ledger of the first decision that it applies to; it never falls from one entry to the next. `at_ns` is UTC.
"""

from enum import StrEnum

import msgspec
from msgspec import UNSET, UnsetType

from htfi.domain.errors import IntegrityError
from htfi.domain.governance import BreakerState
from htfi.governance.checkpoints.requests import ApprovalQuestion


class StopCause(StrEnum):
    """How a stop was ordered."""

    COMMAND = "command"
    FILE = "file"
    SIGNAL = "signal"
    PEER = "peer"
    DEAD_MAN = "dead_man"


class Stopped(msgspec.Struct, frozen=True, tag_field="kind", tag="stopped"):
    """Nothing in scope is released from here on. `request` names what asked for it, so that it is taken once."""

    at_ns: int
    before: int
    scope: str
    by: str
    why: str
    cause: StopCause
    request: str


class Reenabled(msgspec.Struct, frozen=True, tag_field="kind", tag="reenabled"):
    """A named person ends the stops of a scope and closes its breakers, or the one of a name."""

    at_ns: int
    before: int
    scope: str
    by: str
    why: str
    request: str
    breaker: str = ""
    signed: str | UnsetType = UNSET  # the signed note, of a run under people


class ReenablingRefused(msgspec.Struct, frozen=True, tag_field="kind", tag="reenabling_refused"):
    """A request to re-enable a scope did not count, and why; `by` is the name that it gave."""

    at_ns: int
    before: int
    scope: str
    by: str
    why: str
    request: str
    refusal: str


class BundleAdopted(msgspec.Struct, frozen=True, tag_field="kind", tag="bundle_adopted"):
    """The limits of this policy bundle hold from here on; `text` is the signed bundle, empty where it ended.

    Where a node knows a newer bundle than it has, `stale` says so and everything is withheld.
    """

    at_ns: int
    before: int
    digest: str
    number: int
    text: str
    stale: str = ""


class BreakerMoved(msgspec.Struct, frozen=True, tag_field="kind", tag="breaker"):
    """A breaker of a scope changed its state, for this statistic against its threshold."""

    at_ns: int
    before: int
    breaker: str
    scope: str
    state: BreakerState
    statistic: float
    threshold: float
    evidence: str


class CheckpointMoved(msgspec.Struct, frozen=True, tag_field="kind", tag="checkpoint"):
    """A step in asking people about a decision: asked, approved, denied, delegated, escalated, expired, refused.

    `seen` is the SHA-256 (hex) of the text that the person saw; `detail` says why it was asked, or what was refused.
    `to` is whom it was delegated to, `answer` the id of the request that this came of. The first step has the
    `question`. Where people sign, `signed` is the signed note and `key` the verifier key that it is signed with.
    """

    at_ns: int
    before: int
    decision: str
    step: str
    by: str = ""
    why: str = ""
    seen: str = ""
    deadline_ns: int = 0
    detail: str = ""
    to: str = ""
    answer: str = ""
    question: ApprovalQuestion | None = None
    signed: str = ""
    key: str = ""


class DeletedSpan(msgspec.Struct, frozen=True, gc=False):
    """Entries [start, stop) of the ledger; `leaves` is the SHA-256 (hex) over their leaf hashes in order."""

    start: int
    stop: int
    leaves: str


class DeletedFile(msgspec.Struct, frozen=True, gc=False):
    """A file of the run's folder, as it was before it was deleted."""

    name: str
    num_bytes: int
    sha256: str


class RetentionEnded(msgspec.Struct, frozen=True, tag_field="kind", tag="retention_ended"):
    """A named person had what a retention class no longer keeps deleted: entries' bytes, files of the run's folder."""

    at_ns: int
    before: int
    retention_class: str
    by: str
    why: str
    spans: tuple[DeletedSpan, ...] = ()
    files: tuple[DeletedFile, ...] = ()


class Attested(msgspec.Struct, frozen=True, tag_field="kind", tag="attested"):
    """A named person attests that a duty outside the system is fulfilled: a validation, a test, a review.

    `document` is the SHA-256 (hex) of what shows it; empty where the person names none.
    """

    at_ns: int
    before: int
    subject: str
    by: str
    why: str
    document: str = ""


GovernanceEntry = (
    Stopped
    | Reenabled
    | ReenablingRefused
    | BundleAdopted
    | BreakerMoved
    | CheckpointMoved
    | RetentionEnded
    | Attested
)

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(GovernanceEntry)


def encode_governance(entry: GovernanceEntry) -> bytes:
    """The canonical bytes of an entry."""
    return _ENCODER.encode(entry)


def decode_governance(data: bytes) -> GovernanceEntry:
    """The inverse of `encode_governance`. Raises: IntegrityError for anything that it did not write."""
    try:
        entry = _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise IntegrityError(f"an entry of the governance log is none of this version: {error}") from error
    if _ENCODER.encode(entry) != data:
        raise IntegrityError("an entry of the governance log is not in canonical form")
    return entry
