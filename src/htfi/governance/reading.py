"""Who read the record of a run: entries of a governance folder's log, and what the rules are asked. Pure.

An entry is written before anything is shown, for what was denied too.
"""

from collections.abc import Iterable

import msgspec

from htfi.domain.errors import IntegrityError
from htfi.governance.authorisation import AccessAction, AccessResource, ResourceKind
from htfi.governance.config import RecordConfig
from htfi.governance.people import RequestStatement

_KIND = "record_read"
_OPENING = f'{{"kind":"{_KIND}"'.encode()  # of its canonical bytes


class RecordRead(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag=_KIND):
    """A person read a run's record, or was denied it: `refusal` says why, and is empty where it was allowed.

    `record` is the verifier key of the run's ledger, `tenant` whose it is; `what` is the command with what it was asked
    for. `signed` is the person's note, empty where the key was nobody's.
    """

    at_ns: int
    record: str
    tenant: str
    by: str
    what: str
    why: str
    signed: str = ""
    refusal: str = ""


_ENCODER = msgspec.json.Encoder()
_DECODE = msgspec.json.Decoder(RecordRead).decode


def encode_reading(entry: RecordRead) -> bytes:
    """The canonical bytes of an entry."""
    return _ENCODER.encode(entry)


def readings_in(entries: Iterable[bytes], record: str) -> list[RecordRead]:
    """Those of a governance log that are of one run's record, oldest first. Raises: IntegrityError."""
    try:
        found = [_DECODE(entry) for entry in entries if entry.startswith(_OPENING)]
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise IntegrityError(f"an entry of the governance log cannot be read: {error}") from error
    return [one for one in found if one.record == record]


def record_resource(record: str, config: RecordConfig) -> AccessResource:
    """The record of a run, by the verifier key of its ledger, as rules see it."""
    return AccessResource(ResourceKind.RECORD, record, config.tenant, config.desks)


def reading_statement(record: str, what: str, why: str, at_ns: int) -> RequestStatement:
    """What a person signs who reads a record."""
    return RequestStatement(
        AccessAction.READ_RECORD, f"{ResourceKind.RECORD.value}:{what}", record, at_ns, why
    )
