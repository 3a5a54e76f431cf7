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

Texts of fewer than `MIN_TEXT_CHARS` characters are always spelled. docs/record.md states the same for other languages.
"""

import math
import re
import types
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import cache
from typing import Any, NamedTuple, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from htfi.domain.errors import IntegrityError

MIN_TEXT_CHARS = 3  # of a text that later ones may refer to
_MAX_THOUSANDTHS = 1 << 31
_HEX = re.compile(r"[0-9a-f]{64}")

Plain = Any  # nil, boolean, integer, float, text, bytes, or an array of such


class Texts:
    """The texts of one entry, in the order in which they were spelled."""

    def __init__(self, spelled: Iterable[str] = ()) -> None:
        self.spelled = list(spelled)
        self.places = {text: place for place, text in enumerate(self.spelled)}

    def copy(self) -> "Texts":
        """The same texts, to go on from."""
        made = Texts()
        made.spelled, made.places = self.spelled.copy(), self.places.copy()
        return made

    def pack(self, text: str) -> str | bytes | int:
        place = self.places.get(text)
        if place is not None:
            return place
        if len(text) >= MIN_TEXT_CHARS:
            self.places[text] = len(self.spelled)
            self.spelled.append(text)
        return bytes.fromhex(text) if len(text) == 64 and _HEX.fullmatch(text) else text

    def unpack(self, packed: Plain) -> str:
        if isinstance(packed, int) and not isinstance(packed, bool):
            if packed < 0:
                raise ValueError(f"no text has the place {packed}")
            return self.spelled[packed]
        text = packed.hex() if isinstance(packed, bytes) else packed
        if not isinstance(text, str):
            raise TypeError(f"{type(packed).__name__} where a text belongs")
        if len(text) >= MIN_TEXT_CHARS:
            self.spelled.append(text)
        return text


class Packer(NamedTuple):
    """How values of one type are packed and unpacked; texts go through the entry's `Texts`."""

    pack: Callable[[Any, Texts], Plain]
    unpack: Callable[[Plain, Texts], Any]


@cache
def packer_of(kind: Any) -> Packer:
    """The packer of a type. Raises: TypeError for a type that records do not hold."""
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _enum_packer(kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return struct_packer(kind)
    origin, inner = get_origin(kind), get_args(kind)
    if origin is tuple and len(inner) == 2 and inner[1] is Ellipsis:
        return _array_packer(packer_of(inner[0]), tuple)
    if origin is list:
        return _array_packer(packer_of(inner[0]), list)
    if origin is tuple:
        return _row_packer([packer_of(one) for one in inner])
    if origin is dict:
        return _map_packer(packer_of(inner[0]), packer_of(inner[1]))
    if origin in (Union, types.UnionType):
        rest = [one for one in inner if one not in (types.NoneType, msgspec.UnsetType)]
        if len(rest) == 1:
            return _optional_packer(packer_of(rest[0]))
    raise TypeError(f"records do not hold {kind}")


def _pack_float(value: float, texts: Texts) -> float | int:
    del texts
    scaled = value * 1000.0
    if -_MAX_THOUSANDTHS < scaled < _MAX_THOUSANDTHS:
        whole = round(scaled)
        if whole / 1000.0 == value and (whole or str(value)[0] != "-"):
            return whole
    elif not math.isfinite(value):
        raise IntegrityError(str(value))
    return value


def _unpack_float(packed: Plain, texts: Texts) -> float:
    del texts
    if isinstance(packed, float):
        return packed
    if isinstance(packed, int) and not isinstance(packed, bool):
        return packed / 1000.0
    raise TypeError(f"{type(packed).__name__} where a number belongs")


def _exactly(kind: type) -> Callable[[Plain, Texts], Any]:
    def unpack(packed: Plain, texts: Texts) -> Any:
        del texts
        if type(packed) is not kind:
            raise TypeError(f"{type(packed).__name__} where {kind.__name__} belongs")
        return packed

    return unpack


def _itself(value: Any, texts: Texts) -> Plain:
    del texts
    return value


def _pack_text(value: str, texts: Texts) -> Plain:
    return texts.pack(value)


def _unpack_text(packed: Plain, texts: Texts) -> str:
    return texts.unpack(packed)


_SIMPLE: Mapping[Any, Packer] = {
    str: Packer(_pack_text, _unpack_text),
    float: Packer(_pack_float, _unpack_float),
    int: Packer(_itself, _exactly(int)),
    bool: Packer(_itself, _exactly(bool)),
    bytes: Packer(_itself, _exactly(bytes)),
}


def _enum_packer(kind: type[Enum]) -> Packer:
    members = tuple(kind)
    places = {member: place for place, member in enumerate(members)}

    def pack(value: Enum, texts: Texts) -> Plain:
        del texts
        return places[value]

    def unpack(packed: Plain, texts: Texts) -> Enum:
        del texts
        if type(packed) is not int or packed < 0:
            raise TypeError(f"{packed!r} is no {kind.__name__}")
        return members[packed]

    return Packer(pack, unpack)


def _array_packer(inner: Packer, made: Callable[[list[Any]], Any]) -> Packer:
    pack_one, unpack_one = inner

    def pack(values: Iterable[Any], texts: Texts) -> Plain:
        return [pack_one(value, texts) for value in values]

    def unpack(packed: Plain, texts: Texts) -> Any:
        return made([unpack_one(value, texts) for value in _array(packed)])

    return Packer(pack, unpack)


def _row_packer(inner: list[Packer]) -> Packer:
    def pack(values: Iterable[Any], texts: Texts) -> Plain:
        return [one.pack(value, texts) for one, value in zip(inner, values, strict=True)]

    def unpack(packed: Plain, texts: Texts) -> tuple[Any, ...]:
        return tuple(one.unpack(value, texts) for one, value in zip(inner, _array(packed), strict=True))

    return Packer(pack, unpack)


def _map_packer(keys: Packer, values: Packer) -> Packer:
    def pack(mapping: Mapping[Any, Any], texts: Texts) -> Plain:
        found: list[Plain] = []
        for key, value in mapping.items():
            found += (keys.pack(key, texts), values.pack(value, texts))
        return found

    def unpack(packed: Plain, texts: Texts) -> dict[Any, Any]:
        flat = iter(_array(packed))
        return {
            keys.unpack(key, texts): values.unpack(value, texts)
            for key, value in zip(flat, flat, strict=True)
        }

    return Packer(pack, unpack)


def _optional_packer(inner: Packer) -> Packer:
    def pack(value: Any, texts: Texts) -> Plain:
        return None if value is None else inner.pack(value, texts)

    def unpack(packed: Plain, texts: Texts) -> Any:
        return None if packed is None else inner.unpack(packed, texts)

    return Packer(pack, unpack)


class _Field(NamedTuple):
    name: str
    pack: Callable[[Any, Texts], Plain]
    unpack: Callable[[Plain, Texts], Any]
    default: Any  # `msgspec.NODEFAULT` where there is none
    default_type: type[Any]


def struct_packer(kind: type[msgspec.Struct], without: frozenset[str] = frozenset()) -> Packer:
    """The packer of a struct; fields in `without` are neither packed nor given to the struct that is unpacked, which is
    then a dict of the others.
    """
    hints = get_type_hints(kind)
    fields = [
        _Field(one.name, *packer_of(hints[one.name]), default := _default_of(one), _type_of(default))
        for one in msgspec.structs.fields(kind)
        if one.name not in without
    ]

    def pack(value: Any, texts: Texts) -> Plain:
        found: list[Plain] = []
        last = 0
        for place, (name, pack_one, _, default, default_type) in enumerate(fields, 1):
            held = getattr(value, name)
            is_default = held is default or (
                type(held) is default_type and held == default and (held or repr(held) == repr(default))
            )  # to the last bit: −0.0 is not 0.0
            if is_default:
                found.append(None)
                continue
            packed = pack_one(held, texts)
            found.append(packed)
            if packed is not None:
                last = place
        return found[:last]

    def unpack(packed: Plain, texts: Texts) -> Any:
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

    return Packer(pack, unpack)


def field_place(kind: type[msgspec.Struct], name: str, without: frozenset[str] = frozenset()) -> int:
    """Where a field stands among those that the packer of a struct packs."""
    return [one.name for one in msgspec.structs.fields(kind) if one.name not in without].index(name)


def _type_of(value: Any) -> type[Any]:
    return cast("type[Any]", type(value))


def _default_of(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default


def _array(packed: Plain) -> list[Plain]:
    if not isinstance(packed, list):
        raise TypeError(f"{type(packed).__name__} where an array belongs")
    return cast("list[Plain]", packed)
