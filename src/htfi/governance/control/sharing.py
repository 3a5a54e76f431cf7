"""Messages by which nodes share what people ask of runs: stops, and the word that ends them."""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from htfi.domain.errors import InvalidInput
from htfi.governance.control.requests import ReenableRequest, StopRequest

MAX_SHARED = 512  # requests that are told; the oldest are left out
MAX_IN_MESSAGE = 64

SharedRequest = StopRequest | ReenableRequest
_Id = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class KnownRequests(msgspec.Struct, frozen=True, tag_field="message", tag="known_requests"):
    """The ids of all requests that the sender knows: who lacks one is sent it."""

    ids: Annotated[tuple[_Id, ...], msgspec.Meta(max_length=MAX_SHARED)]


class MissingRequests(msgspec.Struct, frozen=True, tag_field="message", tag="requests"):
    """Requests that the receiver may lack."""

    requests: Annotated[tuple[SharedRequest, ...], msgspec.Meta(max_length=MAX_IN_MESSAGE)]


ControlMessage = KnownRequests | MissingRequests
_DECODER = msgspec.json.Decoder(ControlMessage)


def encode_control(message: ControlMessage) -> bytes:
    return msgspec.json.encode(message)


def decode_control(body: bytes) -> ControlMessage:
    """Raises: InvalidInput where it is no such message."""
    try:
        return _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"this is no message about requests: {error}") from error


def lacking(own: Sequence[SharedRequest], theirs: KnownRequests) -> list[SharedRequest]:
    """What a node knows that another does not."""
    known = set(theirs.ids)
    return [one for one in own if one.id not in known]
