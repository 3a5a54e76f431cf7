"""Messages between health monitors: their bytes and their bounds. `monitor` uses it.

A body is a version byte and a tagged MessagePack array. All times are durations, so that no two clocks need agree.
"""

import math
from enum import IntEnum
from typing import Annotated

import msgspec

from htfi.domain.errors import InvalidInput

VERSION = 1
MAX_BODY_BYTES = 4_096
MAX_CLAIMS = 17  # NUM_CLAIMS, and one that goes round

MAX_NAME = 64  # characters

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME)]
MAX_COUNT = 1 << 48
Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_COUNT)]
MAX_INCARNATION = 1 << 40
Incarnation = Annotated[int, msgspec.Meta(ge=0, le=MAX_INCARNATION)]
MAX_FIGURE = 1e9
MAX_PART_BYTES = 3_072
MAX_PARTS = 352  # of a message of 1 MB
Positive = Annotated[float, msgspec.Meta(ge=0.0, le=MAX_FIGURE)]


class NodeStatus(IntEnum):
    """The claimed status of a node. Of two claims at the same incarnation the higher one wins."""

    ALIVE = 0
    DEGRADED = 1
    DRAINING = 2
    SUSPECT = 3
    DEAD = 4


class NodeHealthMetrics(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What a node reports of its target model, its queue and its device. 0 is 'unknown' except for counts.

    `queue` requests wait, the next of them for `queue_ms`; `num_rows` are in the pass. `verify_ms`: a pass of the
    target costs these: fixed + per_row · rows + (per_token + per_cell · rows) · tokens, of new tokens a row.
    `progress` grows with each step of work that is done, so that standing still can be seen.
    """

    queue: Count = 0
    queue_ms: Positive = 0.0
    num_rows: Count = 0
    step_p50_ms: Positive = 0.0
    step_p95_ms: Positive = 0.0
    prompt_ms_per_token: Positive = 0.0
    verify_ms: tuple[Positive, Positive, Positive, Positive] = (0.0, 0.0, 0.0, 0.0)
    draft_ms_per_token: Positive = 0.0
    progress: Count = 0
    temperature_c: float | None = None
    throttle_share: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)] = 0.0
    power_w: Positive = 0.0
    is_draining: bool = False


class MembershipClaim(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Gossip: a node's status. Only the node itself raises its incarnation."""

    node: Name
    incarnation: Incarnation
    status: NodeStatus


class Heartbeat(msgspec.Struct, array_like=True, tag=1, frozen=True, gc=False):
    """A heartbeat. `echo` is the last one received from the receiver, `hold_us` ago; `metrics` None: unchanged.

    `life` identifies one start of the sender's process.
    """

    seq: Count
    echo: Count
    hold_us: Count
    life: Count
    incarnation: Incarnation
    status: NodeStatus
    metrics: NodeHealthMetrics | None
    claims: Annotated[tuple[MembershipClaim, ...], msgspec.Meta(max_length=MAX_CLAIMS)]


class PeerProbe(msgspec.Struct, array_like=True, tag=2, frozen=True, gc=False):
    """Asks whether a node's heartbeats arrive. The receiver answers from what it receives anyway."""

    token: Count
    node: Name


class ProbeReply(msgspec.Struct, array_like=True, tag=3, frozen=True, gc=False):
    """The age of that node's last heartbeat; −1: none arrives."""

    token: Count
    node: Name
    age_ms: Annotated[int, msgspec.Meta(ge=-1, le=1 << 32)]


class LeaseRequest(msgspec.Struct, array_like=True, tag=4, frozen=True, gc=False):
    """Asks to lead a role for one lease."""

    role: Name
    life: Count
    seq: Count


class LeaseGrant(msgspec.Struct, array_like=True, tag=5, frozen=True, gc=False):
    """The answer: granted, or denied because another node holds the lease for `remaining_ms`."""

    role: Name
    life: Count
    seq: Count
    is_granted: bool
    holder: Annotated[str, msgspec.Meta(max_length=64)]
    remaining_ms: Count


class LeaseRelinquish(msgspec.Struct, array_like=True, tag=6, frozen=True, gc=False):
    """Returns what was granted up to this request."""

    role: Name
    life: Count
    seq: Count


class BundlePart(msgspec.Struct, array_like=True, tag=7, frozen=True, gc=False):
    """A part of a message about policy bundles, `index` of `num`; `seq` numbers the messages of the sender."""

    seq: Count
    index: Annotated[int, msgspec.Meta(ge=0, lt=MAX_PARTS)]
    num: Annotated[int, msgspec.Meta(ge=1, le=MAX_PARTS)]
    content: Annotated[bytes, msgspec.Meta(max_length=MAX_PART_BYTES)]


HealthMessage = Heartbeat | PeerProbe | ProbeReply | LeaseRequest | LeaseGrant | LeaseRelinquish | BundlePart
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(HealthMessage)


def sanitise_metrics(metrics: NodeHealthMetrics) -> NodeHealthMetrics:
    """Metrics that any peer reads: plain numbers within their bounds; what is none counts as unknown.

    Peers refuse figures outside the bounds, so a node with a broken sensor would seem silent to them.
    """
    fixed, per_row, per_token, per_cell = metrics.verify_ms
    temperature_c = metrics.temperature_c
    if temperature_c is not None:
        temperature_c = float(temperature_c) if math.isfinite(temperature_c) else None
    return NodeHealthMetrics(
        _clamp_count(metrics.queue),
        _clamp_figure(metrics.queue_ms),
        _clamp_count(metrics.num_rows),
        _clamp_figure(metrics.step_p50_ms),
        _clamp_figure(metrics.step_p95_ms),
        _clamp_figure(metrics.prompt_ms_per_token),
        (_clamp_figure(fixed), _clamp_figure(per_row), _clamp_figure(per_token), _clamp_figure(per_cell)),
        _clamp_figure(metrics.draft_ms_per_token),
        _clamp_count(metrics.progress),
        temperature_c,
        _clamp_figure(metrics.throttle_share, 1.0),
        _clamp_figure(metrics.power_w),
        bool(metrics.is_draining),
    )


def _clamp_figure(value: float, most: float = MAX_FIGURE) -> float:
    return float(min(value, most)) if value >= 0.0 else 0.0


def _clamp_count(value: int) -> int:
    return int(min(max(value, 0), MAX_COUNT))


def encode_message(message: HealthMessage) -> bytes:
    return bytes((VERSION,)) + _encoder.encode(message)


def decode_message(body: bytes) -> HealthMessage:
    """Raises: InvalidInput, in one line, for what no monitor of this version sends."""
    if not 1 < len(body) <= MAX_BODY_BYTES:
        raise InvalidInput(f"health: a body of {len(body)} bytes; 2 to {MAX_BODY_BYTES} are read")
    if body[0] != VERSION:
        raise InvalidInput(
            f"health: the peer speaks version {body[0]}, this node {VERSION}: update the older one"
        )
    try:
        message = _decoder.decode(memoryview(body)[1:])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"health: not a message of version {VERSION}: {error}") from error
    if isinstance(message, Heartbeat) and message.status > NodeStatus.DRAINING:
        raise InvalidInput(f"health: a node reports its own status as {message.status.name.lower()}")
    return message
