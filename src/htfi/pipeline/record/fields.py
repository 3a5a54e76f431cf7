"""Packs typed values into plain MessagePack values and back: `packer_of(type)`, made once per type from annotations.

| type | packed as |
|---|---|
| struct | array of its fields in declared order, those at the end that are nil left out |
| field with a default | nil where it has that default, else as below |
| enum | place among its members, from 0 |
| int | integer |
| float | integer n where the value is exactly n / 1000, else float 64 |
| str | text; of 64 hexadecimal digits their 32 bytes; where an earlier text of the entry is equal, its place from 0 |
| bool | boolean |
| tuple, list | array |
| dict | array of keys and values in turn |
| `T | None` | nil or T |

Texts of fewer than `plain.MIN_TEXT_CHARS` characters are always spelled. docs/record.md says it for other languages.
"""

from collections.abc import Callable
from functools import cache, cached_property, partial
from typing import Any

import msgspec

from htfi.pipeline.record.packing import Pack, compile_packer, compile_struct_packer
from htfi.pipeline.record.unpacking import Unpack, compile_struct_unpacker, compile_unpacker


class Packer:
    """How values of one type are packed and unpacked; texts go through those of their entry.

    Either is made at its first use: those of a decision take 30 ms, and a new run unpacks nothing.
    """

    def __init__(self, make_pack: Callable[[], Pack], make_unpack: Callable[[], Unpack]) -> None:
        self._make_pack, self._make_unpack = make_pack, make_unpack

    @cached_property
    def pack(self) -> Pack:
        """Raises: TypeError for a type that records do not hold."""
        return self._make_pack()

    @cached_property
    def unpack(self) -> Unpack:
        """Raises: TypeError for a type that records do not hold."""
        return self._make_unpack()


@cache
def packer_of(kind: Any) -> Packer:
    """The packer of a type."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return struct_packer(kind)
    return Packer(
        partial(compile_packer, kind, _pack_struct), partial(compile_unpacker, kind, _unpack_struct)
    )


def _pack_struct(kind: type[msgspec.Struct]) -> Pack:
    return packer_of(kind).pack


def _unpack_struct(kind: type[msgspec.Struct]) -> Unpack:
    return packer_of(kind).unpack


def struct_packer(kind: type[msgspec.Struct], without: frozenset[str] = frozenset()) -> Packer:
    """The packer of a struct; fields in `without` are neither packed nor given to the struct that is unpacked, which is
    then a dict of the others.
    """
    return Packer(
        lambda: compile_struct_packer(kind, _names(kind, without), _pack_struct),
        lambda: compile_struct_unpacker(kind, _names(kind, without), _unpack_struct, is_whole=not without),
    )


def field_place(kind: type[msgspec.Struct], name: str, without: frozenset[str] = frozenset()) -> int:
    """Where a field stands among those that the packer of a struct packs."""
    return _names(kind, without).index(name)


def _names(kind: type[msgspec.Struct], without: frozenset[str]) -> list[str]:
    return [one.name for one in msgspec.structs.fields(kind) if one.name not in without]
