"""The frames of the link, their bytes and their bounds. Both sides use them; docs/protocol.md describes them.

A frame carries names, epoch, prefix hash, deadline, seed and token ids, and no text: prompts and grammars travel once,
as parts, and are named by their content afterwards. Times are durations, never instants, so no clocks need agree.
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
PART_BYTES = 1 << 14  # of a part, per frame
_SEAL_BYTES = 4  # CRC-32, little-endian, of what follows
_U32 = 0xFFFFFFFF


class FrameChannel(IntEnum):
    """The receiver of a sealed frame: the requests of the link, or health monitoring."""

    LINK = 0
    HEALTH = 1


class DraftMode(IntEnum):
    """How a request is drafted: by whom, and whether the cloud waits for guesses."""

    PLAIN = 0  # no draft: the cloud writes token by token
    CLOUD = 1  # a draft beside the target
    LOCKSTEP = 2  # the edge; the cloud waits for its window
    PIPELINED = 3  # the edge, several windows ahead; without a fitting one the cloud continues by itself


class RefusalReason(IntEnum):
    """Why a cloud refuses; asking again helps for some reasons only."""

    DRAINING = 1
    BUSY = 2  # the answer would be late
    BUDGET = 3  # more bytes than the request may take
    UNANSWERABLE = 4  # it can never be answered here: too long, a logit that is not finite
    MALFORMED = 5  # an invalid frame
    RESIDENCY = 6
    STALE = 7  # a past epoch, or an unknown request
    VERSION = 8
    DIGEST = 9
    IDENTITY = 10  # its name is not its certificate's


class HelloFrame(msgspec.Struct, array_like=True, tag=1, frozen=True, gc=False):
    """An edge's first frame. `target` is the digest (hex) that it expects, empty for any; `tokenizer` its own."""

    version: int
    node: str
    target: str
    tokenizer: str


class WelcomeFrame(msgspec.Struct, array_like=True, tag=2, frozen=True, gc=False):
    """The cloud's first frame: its weights, the data that it may hold, and the windows that may be in flight.

    `incarnation` differs at each start of the process: parts sent to another incarnation are gone.
    """

    version: int
    node: str
    target: str
    tokenizer: str
    incarnation: int
    has_draft: bool
    residency: tuple[str, ...]
    num_in_flight: int
    in_full: bool = False  # whether it also has the target in full precision


class PartFrame(msgspec.Struct, array_like=True, tag=3, frozen=True, gc=False):
    """Bytes of a prompt (packed ids) or a grammar from `offset` on; its name is BLAKE2b-128 of all `total` bytes."""

    name: bytes
    offset: int
    total: int
    data: bytes


class NeedFrame(msgspec.Struct, array_like=True, tag=4, frozen=True, gc=False):
    """The cloud lacks a part from byte `offset` on."""

    name: bytes
    offset: int


class OpenFrame(msgspec.Struct, array_like=True, tag=5, frozen=True, gc=False):
    """A request. `handle` names it on this stream, `request` everywhere: equal requests have one answer.

    `prompt` are parts whose ids follow each other, the first shared with other requests. `guesses` (packed) are tokens
    of the answer from its first on: accepted ones of another cloud, or a first window. They are verified like any other
    guess. A known handle with a higher epoch continues the request differently.
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
    draft_mode: int
    budget_bytes: int
    residency: tuple[str, ...]
    guesses: bytes
    suspicion: int = 0  # of its news, in thousandths
    in_full: bool = False  # to be answered by the target in full precision
    traceparent: str = ""  # W3C Trace Context of the step that asks; it shapes no token


class DraftWindowFrame(msgspec.Struct, array_like=True, tag=6, frozen=True, gc=False):
    """Drafted tokens (packed) to verify, from position `at` on, after a text whose `prefix` hash the edge assumes."""

    handle: int
    epoch: int
    at: int
    prefix: int
    ids: bytes


class AcceptedFrame(msgspec.Struct, array_like=True, tag=7, frozen=True, gc=False):
    """Accepted tokens of the answer (packed) from position `at` on. `prefix` is the hash of all tokens up to their end.

    `num_accepted` guesses of the last window were accepted; −1 if none was read. `is_done`: the answer is complete.
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
    """The edge needs no more of a request."""

    handle: int
    epoch: int


Frame = (
    HelloFrame
    | WelcomeFrame
    | PartFrame
    | NeedFrame
    | OpenFrame
    | DraftWindowFrame
    | AcceptedFrame
    | RefusedFrame
    | CancelFrame
)
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Frame)


def encode(frame: Frame) -> bytes:
    return seal(FrameChannel.LINK, _encoder.encode(frame))


def decode(body: bytes) -> Frame:
    """The frame in an unsealed body. Raises: InvalidInput with a message for the peer."""
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"not a frame of protocol {PROTOCOL}: {error}") from error


def seal(channel: FrameChannel, body: bytes) -> bytes:
    """A body as sent: checksum, channel, body."""
    checked = bytes((channel,)) + body
    return zlib.crc32(checked).to_bytes(_SEAL_BYTES, "little") + checked


def seal_health(body: bytes) -> bytes:
    """A message of the health monitor as sent."""
    return seal(FrameChannel.HEALTH, body)


def unseal(data: bytes) -> tuple[FrameChannel, bytes]:
    """Channel and body of a sealed frame. Raises: InvalidInput if it was damaged."""
    if not _SEAL_BYTES < len(data) <= MAX_FRAME_BYTES:
        raise InvalidInput(f"a frame of {len(data)} bytes")
    checked = data[_SEAL_BYTES:]
    if zlib.crc32(checked) != int.from_bytes(data[:_SEAL_BYTES], "little"):
        raise InvalidInput("a frame with a wrong checksum: it was damaged on its way")
    if checked[0] not in (FrameChannel.LINK, FrameChannel.HEALTH):
        raise InvalidInput(f"a frame for channel {checked[0]}, which is unknown")
    return FrameChannel(checked[0]), checked[1:]


def pack(ids: Sequence[int]) -> bytes:
    """Token ids in 2 bytes each if all are below 65,536, else in 3; the first byte is the width."""
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
        raise InvalidInput("token ids that are not packed correctly")
    wide = np.zeros((len(rest) // width, 4), np.uint8)
    wide[:, :width] = np.frombuffer(rest, np.uint8).reshape(-1, width)
    return wide.view("<u4")[:, 0].tolist()


def prefix_hash(tokens: Sequence[int], before: int = 0) -> int:
    """A hash of tokens (32 bits), to be continued with the tokens after them."""
    return zlib.crc32(np.array(tokens, "<u4").tobytes(), before) & _U32
