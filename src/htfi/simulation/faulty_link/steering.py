"""The wire between a faulty link in a process of its own and who steers it: messages, and how they are framed."""

from typing import BinaryIO, TypeVar

import msgspec

from htfi.simulation.faulty_link.pipe import Traffic
from htfi.simulation.faulty_link.proxy import Note
from htfi.simulation.faulty_link.weather import Schedule, Weather

T = TypeVar("T")
_SIZE_BYTES = 4


class Begin(msgspec.Struct, tag=True, frozen=True):
    target: tuple[str, int]
    weather: Weather
    seed: int
    listen: tuple[str, int]


class Enter(msgspec.Struct, tag=True, frozen=True):
    weather: Weather


class Play(msgspec.Struct, tag=True, frozen=True):
    schedule: Schedule


class Aim(msgspec.Struct, tag=True, frozen=True):
    target: tuple[str, int]


class Reset(msgspec.Struct, tag=True, frozen=True):
    pass


class Tell(msgspec.Struct, tag=True, frozen=True):
    pass


Order = Begin | Enter | Play | Aim | Reset | Tell


class State(msgspec.Struct, frozen=True):
    """The answer to every order. `trouble` says why there is no link."""

    address: tuple[str, int]
    weather: Weather
    traffic: list[Traffic]
    notes: list[Note]
    trouble: str = ""


BEGINS = msgspec.msgpack.Decoder(Begin)
ORDERS = msgspec.msgpack.Decoder(Begin | Enter | Play | Aim | Reset | Tell)
STATES = msgspec.msgpack.Decoder(State)


def write(pipe: BinaryIO, message: Order | State) -> None:
    body = msgspec.msgpack.encode(message)
    pipe.write(len(body).to_bytes(_SIZE_BYTES, "big") + body)
    pipe.flush()


def read(pipe: BinaryIO, decoder: "msgspec.msgpack.Decoder[T]") -> T | None:
    """The next message; None at the end."""
    size = pipe.read(_SIZE_BYTES)
    if len(size) < _SIZE_BYTES:
        return None
    return decoder.decode(pipe.read(int.from_bytes(size, "big")))
