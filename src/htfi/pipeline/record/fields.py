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

from functools import cache
from typing import Any, NamedTuple

import msgspec

from htfi.pipeline.record.packing import Pack, compile_packer, compile_struct_packer
from htfi.pipeline.record.unpacking import Unpack, compile_struct_unpacker, compile_unpacker


class Packer(NamedTuple):
    """How values of one type are packed and unpacked; texts go through those of their entry."""

    pack: Pack
    unpack: Unpack


@cache
def packer_of(kind: Any) -> Packer:
    """The packer of a type. Raises: TypeError for a type that records do not hold."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return struct_packer(kind)
    return Packer(compile_packer(kind, _pack_struct), compile_unpacker(kind, _unpack_struct))


def _pack_struct(kind: type[msgspec.Struct]) -> Pack:
    return packer_of(kind).pack


def _unpack_struct(kind: type[msgspec.Struct]) -> Unpack:
    return packer_of(kind).unpack


def struct_packer(kind: type[msgspec.Struct], without: frozenset[str] = frozenset()) -> Packer:
    """The packer of a struct; fields in `without` are neither packed nor given to the struct that is unpacked, which is
    then a dict of the others.
    """
    names = _names(kind, without)
    return Packer(
        compile_struct_packer(kind, names, _pack_struct),
        compile_struct_unpacker(kind, names, _unpack_struct, is_whole=not without),
    )


def field_place(kind: type[msgspec.Struct], name: str, without: frozenset[str] = frozenset()) -> int:
    """Where a field stands among those that the packer of a struct packs."""
    return _names(kind, without).index(name)


def _names(kind: type[msgspec.Struct], without: frozenset[str]) -> list[str]:
    return [one.name for one in msgspec.structs.fields(kind) if one.name not in without]
