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

import types
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any, NamedTuple, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from htfi.pipeline.record.packing import Pack, compile_packer, compile_struct_packer, default_of
from htfi.pipeline.record.plain import Plain, SpelledTexts

Unpack = Callable[[Plain, SpelledTexts], Any]


class Packer(NamedTuple):
    """How values of one type are packed and unpacked; texts go through those of their entry."""

    pack: Pack
    unpack: Unpack


@cache
def packer_of(kind: Any) -> Packer:
    """The packer of a type. Raises: TypeError for a type that records do not hold."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return struct_packer(kind)
    return Packer(compile_packer(kind, _pack_struct), _unpacker_of(kind))


def _pack_struct(kind: type[msgspec.Struct]) -> Pack:
    return packer_of(kind).pack


def _unpacker_of(kind: Any) -> Unpack:
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _enum_unpacker(kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return packer_of(kind).unpack
    origin, inner = get_origin(kind), get_args(kind)
    if origin is tuple and len(inner) == 2 and inner[1] is Ellipsis:
        return _array_unpacker(_unpacker_of(inner[0]), tuple)
    if origin is list:
        return _array_unpacker(_unpacker_of(inner[0]), list)
    if origin is tuple:
        return _row_unpacker([_unpacker_of(one) for one in inner])
    if origin is dict:
        return _map_unpacker(_unpacker_of(inner[0]), _unpacker_of(inner[1]))
    if origin in (Union, types.UnionType):
        rest = [one for one in inner if one not in (types.NoneType, msgspec.UnsetType)]
        if len(rest) == 1:
            return _optional_unpacker(_unpacker_of(rest[0]))
    raise TypeError(f"records do not hold {kind}")


def _unpack_float(packed: Plain, texts: SpelledTexts) -> float:
    del texts
    if isinstance(packed, float):
        return packed
    if isinstance(packed, int) and not isinstance(packed, bool):
        return packed / 1000.0
    raise TypeError(f"{type(packed).__name__} where a number belongs")


def _exactly(kind: type) -> Unpack:
    def unpack(packed: Plain, texts: SpelledTexts) -> Any:
        del texts
        if type(packed) is not kind:
            raise TypeError(f"{type(packed).__name__} where {kind.__name__} belongs")
        return packed

    return unpack


def _unpack_text(packed: Plain, texts: SpelledTexts) -> str:
    return texts.unpack(packed)


_SIMPLE: Mapping[Any, Unpack] = {
    str: _unpack_text,
    float: _unpack_float,
    int: _exactly(int),
    bool: _exactly(bool),
    bytes: _exactly(bytes),
}


def _enum_unpacker(kind: type[Enum]) -> Unpack:
    members = tuple(kind)

    def unpack(packed: Plain, texts: SpelledTexts) -> Enum:
        del texts
        if type(packed) is not int or packed < 0:
            raise TypeError(f"{packed!r} is no {kind.__name__}")
        return members[packed]

    return unpack


def _array_unpacker(unpack_one: Unpack, made: Callable[[list[Any]], Any]) -> Unpack:
    def unpack(packed: Plain, texts: SpelledTexts) -> Any:
        return made([unpack_one(value, texts) for value in _array(packed)])

    return unpack


def _row_unpacker(inner: list[Unpack]) -> Unpack:
    def unpack(packed: Plain, texts: SpelledTexts) -> tuple[Any, ...]:
        return tuple(one(value, texts) for one, value in zip(inner, _array(packed), strict=True))

    return unpack


def _map_unpacker(unpack_key: Unpack, unpack_value: Unpack) -> Unpack:
    def unpack(packed: Plain, texts: SpelledTexts) -> dict[Any, Any]:
        flat = iter(_array(packed))
        return {
            unpack_key(key, texts): unpack_value(value, texts) for key, value in zip(flat, flat, strict=True)
        }

    return unpack


def _optional_unpacker(unpack_value: Unpack) -> Unpack:
    def unpack(packed: Plain, texts: SpelledTexts) -> Any:
        return None if packed is None else unpack_value(packed, texts)

    return unpack


class _Field(NamedTuple):
    name: str
    unpack: Unpack
    default: Any  # `msgspec.NODEFAULT` where there is none


def struct_packer(kind: type[msgspec.Struct], without: frozenset[str] = frozenset()) -> Packer:
    """The packer of a struct; fields in `without` are neither packed nor given to the struct that is unpacked, which is
    then a dict of the others.
    """
    hints = get_type_hints(kind)
    fields = [
        _Field(one.name, _unpacker_of(hints[one.name]), default_of(one))
        for one in msgspec.structs.fields(kind)
        if one.name not in without
    ]

    def unpack(packed: Plain, texts: SpelledTexts) -> Any:
        values = _array(packed)
        if len(values) > len(fields):
            raise ValueError(f"{len(values)} fields, {kind.__name__} has {len(fields)}: update htfi")
        found: dict[str, Any] = {}
        for place, field in enumerate(fields):
            value = values[place] if place < len(values) else None
            if value is not None:
                found[field.name] = field.unpack(value, texts)
            else:
                found[field.name] = None if field.default is msgspec.NODEFAULT else field.default
        return found if without else kind(**found)

    return Packer(compile_struct_packer(kind, [one.name for one in fields], _pack_struct), unpack)


def field_place(kind: type[msgspec.Struct], name: str, without: frozenset[str] = frozenset()) -> int:
    """Where a field stands among those that the packer of a struct packs."""
    return [one.name for one in msgspec.structs.fields(kind) if one.name not in without].index(name)


def _array(packed: Plain) -> list[Plain]:
    if not isinstance(packed, list):
        raise TypeError(f"{type(packed).__name__} where an array belongs")
    return cast("list[Plain]", packed)
