"""Parts of prompts and forms, held by name: both sides name them, the cloud's desk keeps them.

A part is known by the BLAKE2b-128 of its bytes, so that what an edge has sent once is never sent again, an interrupted
part goes on where it stopped, and nobody can put one part in the place of another.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from htfi.decoding.link.frames import NAME_BYTES, Part
from htfi.decoding.sampling import Sampling
from htfi.domain.errors import InvalidInput

MAX_PART_BYTES = 1 << 21
_SEED_MASK = 2**64 - 1


def part_name(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=NAME_BYTES).digest()


def request_name(
    prompt: Sequence[bytes], form: bytes, seed: int, sampling: Sampling, *, in_full: bool = False
) -> bytes:
    """The name of a question that is put in parts of these names: the same question has the same answer everywhere.

    Seeds are equal modulo 2^64; `in_full` the target is another than in the precision that the clouds agree on.
    """
    temperature, top_k, top_p = sampling
    told = f"{seed & _SEED_MASK} {float(temperature)!r} {top_k} {float(top_p)!r} {len(prompt)} "
    told = f"{told}{'in full ' if in_full else ''}".encode()
    return part_name(told + b"".join(prompt) + form)


class Taken(NamedTuple):
    """What came of a frame: the whole part if that is there now, else from which byte on it is still to come."""

    whole: bytes | None
    missing_from: int


@dataclass(slots=True)
class _Shelf:
    """One tenant's parts, the least recently used first, and those that have begun to come."""

    whole: OrderedDict[bytes, bytes] = field(default_factory=OrderedDict[bytes, bytes])
    begun: OrderedDict[bytes, tuple[int, bytearray]] = field(
        default_factory=OrderedDict[bytes, tuple[int, bytearray]]
    )
    num_bytes: int = 0


class Parts:
    """Whole parts may be used by every tenant, begun ones only by who began them.

    Beyond `max_bytes`, the tenant that holds most loses what it has not used for longest: nobody can push the parts
    of others out by sending many. `max_begun` parts of a tenant may be on their way at once.
    """

    def __init__(self, max_bytes: int, max_begun: int) -> None:
        self._max_bytes = max_bytes
        self._max_begun = max_begun
        self._shelves: dict[str, _Shelf] = {}
        self._owner: dict[bytes, str] = {}
        self.num_bytes = 0

    def get(self, name: bytes) -> bytes | None:
        owner = self._owner.get(name)
        if owner is None:
            return None
        shelf = self._shelves[owner]
        shelf.whole.move_to_end(name)
        return shelf.whole[name]

    def missing_from(self, tenant: str, name: bytes) -> int:
        """How much of a part that is not whole has come."""
        shelf = self._shelves.get(tenant)
        begun = shelf.begun.get(name) if shelf else None
        return len(begun[1]) if begun else 0

    def take(self, tenant: str, part: Part) -> Taken:
        """Put what a frame brings to what has come before. Raises: InvalidInput for what no part can be."""
        name, offset, total, data = part.name, part.offset, part.total, part.data
        if len(name) != NAME_BYTES or not 0 <= offset <= offset + len(data) <= total:
            raise InvalidInput(f"a part of {total} bytes with {len(data)} of them from {offset} on")
        if total > MAX_PART_BYTES:
            raise InvalidInput(f"a part of {total} bytes; at most {MAX_PART_BYTES} are kept")
        if (known := self.get(name)) is not None:
            return Taken(known, total)
        shelf = self._shelves.setdefault(tenant, _Shelf())
        before, come = shelf.begun.pop(name, (total, bytearray()))
        if before != total:
            shelf.num_bytes -= len(come)
            self.num_bytes -= len(come)
            raise InvalidInput(f"a part of {before} bytes that now has {total}")
        if offset > len(come):  # what lies between was lost, or forgotten here
            if come:
                shelf.begun[name] = (total, come)
            return Taken(None, len(come))
        new = data[len(come) - offset :]
        come += new
        self._grow(shelf, len(new))
        if len(come) < total:
            shelf.begun[name] = (total, come)
            if len(shelf.begun) > self._max_begun:
                self._grow(shelf, -len(shelf.begun.popitem(last=False)[1][1]))
            self._shrink()
            return Taken(None, len(come))
        whole = bytes(come)
        if part_name(whole) != name:
            self._grow(shelf, -total)
            raise InvalidInput("a part whose bytes are not those that its name says")
        shelf.whole[name] = whole
        self._owner[name] = tenant
        self._shrink()
        return Taken(whole, total)

    def _grow(self, shelf: _Shelf, num_bytes: int) -> None:
        shelf.num_bytes += num_bytes
        self.num_bytes += num_bytes

    def _shrink(self) -> None:
        while self.num_bytes > self._max_bytes:
            shelf = max(self._shelves.values(), key=lambda shelf: shelf.num_bytes)
            if shelf.whole:
                name, data = shelf.whole.popitem(last=False)
                del self._owner[name]
                self._grow(shelf, -len(data))
            else:
                self._grow(shelf, -len(shelf.begun.popitem(last=False)[1][1]))
