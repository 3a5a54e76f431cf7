"""What edge and cloud tell each other: the frames of the protocol, their bytes and their bounds. Both sides use it.

docs/protocol.md is the description for people. A frame carries request, epoch, prefix hash, deadline, seed and token
ids, and no text: prompts and forms travel once, as named parts, and are named by their content ever after. Times are
durations, never instants, so that no two clocks need agree.
"""

import zlib
from collections.abc import Sequence
from enum import IntEnum

import msgspec
import numpy as np

from htfi.domain.errors import InvalidInput

PROTOCOL = 1
NAME_BYTES = 16  # of a part, a request: BLAKE2b
MAX_FRAME_BYTES = 1 << 18
PART_BYTES = 1 << 14  # of a part that one frame carries
_SEAL_BYTES = 4  # CRC-32, little-endian, of what follows
_U32 = 0xFFFFFFFF


class FrameChannel(IntEnum):
    """Who a sealed frame is for: the requests of the link, or the watch over peers."""

    LINK = 0
    HEALTH = 1


class DraftLead(IntEnum):
    """Who guesses ahead for a request, and whether the cloud waits for guesses."""

    PLAIN = 0  # nobody: the cloud writes token by token
    CLOUD = 1  # a draft beside the target
    LOCKSTEP = 2  # the edge, and the cloud waits for its window
    FLIGHT = 3  # the edge, windows ahead of their outcome; without a fitting one the cloud goes on by itself


class RefusalReason(IntEnum):
    """Why a cloud refuses. Some will not change by asking again, some will."""

    DRAINING = 1
    BUSY = 2  # it would be late: say so early
    BUDGET = 3  # more bytes than the request may take
    CANNOT = 4  # it can never be answered here: too long, not a number
    MALFORMED = 5  # a frame that cannot be what it says
    RESIDENCY = 6
    STALE = 7  # an epoch that has passed, or a request nobody knows
    VERSION = 8
    DIGEST = 9
    IDENTITY = 10  # not who its certificate says


class HelloFrame(msgspec.Struct, array_like=True, tag=1, frozen=True, gc=False):
    """An edge's first frame. `target` is the digest that it expects, in hex, empty for any; `tokenizer` its own."""

    version: int
    node: str
    target: str
    tokenizer: str


class WelcomeFrame(msgspec.Struct, array_like=True, tag=2, frozen=True, gc=False):
    """The cloud's first frame: whose weights these are, what may be sent, where data may lie, how much is in flight.

    `life` tells one start of the process from another: parts sent in another life are gone.
    """

    version: int
    node: str
    target: str
    tokenizer: str
    life: int
    has_draft: bool
    residency: tuple[str, ...]
    num_in_flight: int
    in_full: bool = False  # whether it answers with the target in full precision too


class PartFrame(msgspec.Struct, array_like=True, tag=3, frozen=True, gc=False):
    """Bytes of a prompt (packed ids) or a form, from `offset` on, under its name: BLAKE2b-128 of all `total` bytes."""

    name: bytes
    offset: int
    total: int
    data: bytes


class NeedFrame(msgspec.Struct, array_like=True, tag=4, frozen=True, gc=False):
    """The cloud lacks a part from `offset` on."""

    name: bytes
    offset: int


class OpenFrame(msgspec.Struct, array_like=True, tag=5, frozen=True, gc=False):
    """A request. `handle` names it on this stream, `request` everywhere: asked again, it is the same answer.

    `prompt` are parts whose ids follow each other, the first of them shared with other requests. `guesses` (packed)
    are tokens of the answer, from its first on: what another cloud settled, or a first window. They are verified like
    any other guess. A frame with a handle that is known and a higher epoch goes on with the request differently.
    """

    handle: int
    request: bytes
    epoch: int
    prompt: tuple[bytes, ...]
    grammar: bytes
    seed: int
    temperature: float
    top_k: int
    top_p: float
    kind: str
    deadline_ms: int
    lead: int
    budget_bytes: int
    residency: tuple[str, ...]
    guesses: bytes
    suspicion: int = 0  # in thousandths, how far its stream is suspected
    in_full: bool = False  # to be answered by the target in full precision


class WindowFrame(msgspec.Struct, array_like=True, tag=6, frozen=True, gc=False):
    """Guesses (packed) for the places from `at` on, after a text whose `prefix` hash the edge takes to be settled."""

    handle: int
    epoch: int
    at: int
    prefix: int
    ids: bytes


class AcceptedFrame(msgspec.Struct, array_like=True, tag=7, frozen=True, gc=False):
    """Tokens of the answer (packed) from place `at` on, now settled. `prefix` is the hash of all up to their end.

    `num_stood` of the guesses in the last window stood; −1 where none was read. `is_done`: the answer is whole.
    """

    handle: int
    epoch: int
    at: int
    prefix: int
    num_accepted: int
    is_done: bool
    ids: bytes


class RefusedFrame(msgspec.Struct, array_like=True, tag=8, frozen=True, gc=False):
    """No answer to a request, or to a frame (`handle` −1). `retry_ms` < 0: do not ask again here."""

    handle: int
    epoch: int
    reason: int
    retry_ms: int
    message: str


class CancelFrame(msgspec.Struct, array_like=True, tag=9, frozen=True, gc=False):
    """The edge wants no more of a request."""

    handle: int
    epoch: int


Frame = (
    HelloFrame
    | WelcomeFrame
    | PartFrame
    | NeedFrame
    | OpenFrame
    | WindowFrame
    | AcceptedFrame
    | RefusedFrame
    | CancelFrame
)
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Frame)


def encode(frame: Frame) -> bytes:
    return seal(FrameChannel.LINK, _encoder.encode(frame))


def decode(body: bytes) -> Frame:
    """The frame in an unsealed body. Raises: InvalidInput, in words fit for the peer."""
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"not a frame of protocol {PROTOCOL}: {error}") from error


def seal(channel: FrameChannel, body: bytes) -> bytes:
    """A body as it travels: checksum, channel, body."""
    checked = bytes((channel,)) + body
    return zlib.crc32(checked).to_bytes(_SEAL_BYTES, "little") + checked


def unseal(data: bytes) -> tuple[FrameChannel, bytes]:
    """Whose body this is. Raises: InvalidInput for one that was changed on its way."""
    if not _SEAL_BYTES < len(data) <= MAX_FRAME_BYTES:
        raise InvalidInput(f"a frame of {len(data)} bytes")
    checked = data[_SEAL_BYTES:]
    if zlib.crc32(checked) != int.from_bytes(data[:_SEAL_BYTES], "little"):
        raise InvalidInput("a frame whose checksum does not fit: it was changed on its way")
    if checked[0] not in (FrameChannel.LINK, FrameChannel.HEALTH):
        raise InvalidInput(f"a frame for channel {checked[0]}, which nobody knows")
    return FrameChannel(checked[0]), checked[1:]


def pack(ids: Sequence[int]) -> bytes:
    """Token ids in 2 bytes each where all are below 65,536, else in 3; the first byte tells which."""
    if not ids:
        return b""
    width = 2 if max(ids) < 1 << 16 else 3
    wide = np.array(ids, "<u4").view(np.uint8).reshape(-1, 4)
    return bytes((width,)) + wide[:, :width].tobytes()


def unpack(data: bytes) -> list[int]:
    """The inverse of `pack`. Raises: InvalidInput."""
    if not data:
        return []
    width, rest = data[0], data[1:]
    if width not in (2, 3) or len(rest) % width:
        raise InvalidInput("token ids that are not packed as they should be")
    wide = np.zeros((len(rest) // width, 4), np.uint8)
    wide[:, :width] = np.frombuffer(rest, np.uint8).reshape(-1, width)
    return wide.view("<u4")[:, 0].tolist()


def prefix_hash(tokens: Sequence[int], before: int = 0) -> int:
    """A hash of a text's tokens (32 bits), to be continued with what follows them."""
    return zlib.crc32(np.array(tokens, "<u4").tobytes(), before) & _U32
