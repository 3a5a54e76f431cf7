"""The wire between a faulty link in a process of its own and who steers it: messages, and how they are framed."""

from typing import BinaryIO, TypeVar

import msgspec

from htfi_eval.faulty_link.conditions import LinkConditions, LinkSchedule
from htfi_eval.faulty_link.connection import PipeTraffic
from htfi_eval.faulty_link.proxy import TimelineEntry

T = TypeVar("T")
_SIZE_BYTES = 4


class BeginLink(msgspec.Struct, tag=True, frozen=True):
    target: tuple[str, int]
    conditions: LinkConditions
    seed: int
    listen: tuple[str, int]


class SetConditions(msgspec.Struct, tag=True, frozen=True):
    conditions: LinkConditions


class PlaySchedule(msgspec.Struct, tag=True, frozen=True):
    schedule: LinkSchedule


class SetTarget(msgspec.Struct, tag=True, frozen=True):
    target: tuple[str, int]


class ResetConnections(msgspec.Struct, tag=True, frozen=True):
    pass


class ReportState(msgspec.Struct, tag=True, frozen=True):
    pass


LinkOrder = BeginLink | SetConditions | PlaySchedule | SetTarget | ResetConnections | ReportState


class LinkState(msgspec.Struct, frozen=True):
    """The answer to every order. `trouble` says why there is no link."""

    address: tuple[str, int]
    conditions: LinkConditions
    traffic: list[PipeTraffic]
    notes: list[TimelineEntry]
    error: str = ""


BEGINS = msgspec.msgpack.Decoder(BeginLink)
ORDERS = msgspec.msgpack.Decoder(
    BeginLink | SetConditions | PlaySchedule | SetTarget | ResetConnections | ReportState
)
STATES = msgspec.msgpack.Decoder(LinkState)


def write_message(pipe: BinaryIO, message: LinkOrder | LinkState) -> None:
    body = msgspec.msgpack.encode(message)
    pipe.write(len(body).to_bytes(_SIZE_BYTES, "big") + body)
    pipe.flush()


def read_message(pipe: BinaryIO, decoder: msgspec.msgpack.Decoder[T]) -> T | None:
    """The next message; None at the end."""
    size = pipe.read(_SIZE_BYTES)
    if len(size) < _SIZE_BYTES:
        return None
    return decoder.decode(pipe.read(int.from_bytes(size, "big")))
