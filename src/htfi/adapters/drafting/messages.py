"""What the author's process tells the draft's: frames of msgpack on a socket. Client and loop share them.

The way back is the board in shared memory and, on the socket, single bytes: READY once, DONE when a block that was
waited for is there; or FAILED and the reason.
"""

import pickle
from collections.abc import Iterator

import msgspec

from htfi.domain.errors import IntegrityError
from htfi.domain.writing import Form

READY, DONE, FAILED = b"r", b"d", b"!"
_HEAD_BYTES = 4


class NewForm(msgspec.Struct, array_like=True, tag=0, frozen=True, gc=False):
    """A form that requests will name by `number`. It is pickled: only the parent process writes to this socket."""

    number: int
    form: bytes


class Join(msgspec.Struct, array_like=True, tag=1, frozen=True, gc=False):
    """A stem takes a slot: its prompt, the answer's tokens so far and how more are drawn."""

    slot: int
    epoch: int
    form: int
    prompt: list[int]
    num_shared: int
    tokens: list[int]
    seed: int
    kind: str
    temperature: float
    top_k: int
    top_p: float


class Ask(msgspec.Struct, array_like=True, tag=2, frozen=True, gc=False):
    """The block that comes next, or is verified now, is of `length` chosen tokens."""

    slot: int
    length: int


class Settled(msgspec.Struct, array_like=True, tag=3, frozen=True, gc=False):
    """The outcome, which begins the round `epoch`."""

    slot: int
    epoch: int
    tokens: list[int]


class Leave(msgspec.Struct, array_like=True, tag=4, frozen=True, gc=False):
    slot: int


Message = NewForm | Join | Ask | Settled | Leave
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Message)


def frame(message: Message) -> bytes:
    body = _encoder.encode(message)
    return len(body).to_bytes(_HEAD_BYTES, "little") + body


def frames(inbox: bytearray) -> Iterator[Message]:
    """Takes whole messages out of what has come in. Raises IntegrityError for anything else."""
    while len(inbox) >= _HEAD_BYTES:
        end = _HEAD_BYTES + int.from_bytes(inbox[:_HEAD_BYTES], "little")
        if len(inbox) < end:
            return
        body = bytes(inbox[_HEAD_BYTES:end])
        del inbox[:end]
        try:
            yield _decoder.decode(body)
        except msgspec.DecodeError as error:
            raise IntegrityError(
                f"the draft's process was told what it does not understand: {error}"
            ) from error


def packed_form(form: Form) -> bytes:
    return pickle.dumps(form)


def unpacked_form(packed: bytes) -> Form:
    return pickle.loads(packed)
