"""Messages by which the nodes of an installation agree on changes of the policy bundle: their bytes and their bounds.

A change is a signed note: a bundle that is activated, or a revocation. Changes have positions, the first is 1.
"""

from typing import Annotated, NamedTuple

import msgspec

from htfi.domain.errors import InvalidInput

MAX_NOTE_CHARS = 1 << 18
MAX_MESSAGE_BYTES = 1 << 20
_MAX_COUNT = 1 << 48

_Position = Annotated[int, msgspec.Meta(ge=1, le=_MAX_COUNT)]
_Note = Annotated[str, msgspec.Meta(max_length=MAX_NOTE_CHARS)]


class Ballot(NamedTuple):
    """A numbered attempt of a node to have a change chosen. The greater one wins."""

    number: Annotated[int, msgspec.Meta(ge=0, le=_MAX_COUNT)]
    node: Annotated[str, msgspec.Meta(max_length=64)]


NO_BALLOT = Ballot(0, "")


class AdoptionStatus(msgspec.Struct, array_like=True, tag=1, frozen=True, gc=False):
    """What a node goes by: how many changes it knows to be chosen, the digest of its bundle, its clock (UTC ns)."""

    num_chosen: Annotated[int, msgspec.Meta(ge=0, le=_MAX_COUNT)]
    digest: Annotated[str, msgspec.Meta(max_length=64)]
    clock_ns: int


class PrepareBallot(msgspec.Struct, array_like=True, tag=2, frozen=True, gc=False):
    """Asks to take part in a ballot and in no lower one (phase 1a)."""

    position: _Position
    ballot: Ballot


class BallotPromise(msgspec.Struct, array_like=True, tag=3, frozen=True, gc=False):
    """The promise, with the change that the node accepted before; an empty note: none (phase 1b)."""

    position: _Position
    ballot: Ballot
    accepted_in: Ballot
    accepted: _Note


class AcceptRequest(msgspec.Struct, array_like=True, tag=4, frozen=True, gc=False):
    """Asks to accept a change (phase 2a)."""

    position: _Position
    ballot: Ballot
    note: _Note


class AcceptReply(msgspec.Struct, array_like=True, tag=5, frozen=True, gc=False):
    """The acknowledgement: this change is on the node's disk (phase 2b)."""

    position: _Position
    ballot: Ballot


class BallotRefusal(msgspec.Struct, array_like=True, tag=6, frozen=True, gc=False):
    """The node has promised a higher ballot."""

    position: _Position
    promised: Ballot


class ChosenChange(msgspec.Struct, array_like=True, tag=7, frozen=True, gc=False):
    """A majority has acknowledged this change: it is chosen for good."""

    position: _Position
    note: _Note


AdoptionMessage = (
    AdoptionStatus
    | PrepareBallot
    | BallotPromise
    | AcceptRequest
    | AcceptReply
    | BallotRefusal
    | ChosenChange
)
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(AdoptionMessage)


def encode_adoption(message: AdoptionMessage) -> bytes:
    return _encoder.encode(message)


def decode_adoption(body: bytes) -> AdoptionMessage:
    """Raises: InvalidInput, in one line."""
    if len(body) > MAX_MESSAGE_BYTES:
        raise InvalidInput(f"a message about bundles has {len(body)} bytes; {MAX_MESSAGE_BYTES} are read")
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"not a message about bundles: {error}") from error
