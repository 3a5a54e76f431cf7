"""The layout of entries of versions 2 and later, as tables of docs/record.md: from the types that the program packs."""

import re
import types
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from htfi.domain.decision import Decision, Forecast, NewsTilt
from htfi.pipeline.record.entry import PACKED_APART
from htfi.pipeline.record.wording import RationaleFacts

_NO_TYPE = (types.NoneType, msgspec.UnsetType)


def layout() -> str:
    """A table for each struct, a line for each enumeration, in the order in which a decision reaches them."""
    structs: dict[type, None] = {}
    enums: dict[type, None] = {}
    for kind in (Decision, NewsTilt, RationaleFacts):  # the tilt is a part of the forecast
        _reach(kind, structs, enums)
    tables = [_table(kind) for kind in structs]
    lines = [f"| {kind.__name__} | {', '.join(str(one.value) for one in kind)} |" for kind in enums]  # type: ignore[attr-defined]
    return "\n\n".join([*tables, "\n".join(["| enumeration | members from 0 |", "|---|---|", *lines])])


def _reach(kind: Any, structs: dict[type, None], enums: dict[type, None]) -> None:
    for one in get_args(kind):
        _reach(one, structs, enums)
    if isinstance(kind, type) and issubclass(kind, Enum):
        enums[kind] = None
    if (
        isinstance(kind, type)
        and issubclass(kind, msgspec.Struct)
        and kind not in structs
        and kind is not Forecast
    ):
        structs[kind] = None
        hints = get_type_hints(kind)
        for field in _fields(kind):
            _reach(hints[field.name], structs, enums)


def _fields(kind: type[msgspec.Struct]) -> list[msgspec.structs.FieldInfo]:
    every = msgspec.structs.fields(kind)
    return [one for one in every if kind is not Decision or one.name not in PACKED_APART]


def _table(kind: type[msgspec.Struct]) -> str:
    hints = get_type_hints(kind)
    rows = [
        f"| {place} | {field.name} | {_type_name(hints[field.name])} | {_default(field, hints[field.name])} |"
        for place, field in enumerate(_fields(kind))
    ]
    head = [f"**{kind.__name__}**", "", "| place | field | type | nil stands for |", "|---|---|---|---|"]
    return "\n".join([*head, *rows])


def _default(field: msgspec.structs.FieldInfo, kind: Any) -> str:
    if field.default_factory is not msgspec.NODEFAULT:
        return "empty"
    if field.default is msgspec.NODEFAULT:
        return "none" if types.NoneType in get_args(kind) else ""
    if field.default is msgspec.UNSET:
        return "absent"
    return (
        "empty" if field.default in ("", ()) and field.default is not False else repr(field.default).lower()
    )


def _type_name(kind: Any) -> str:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return " or ".join(_type_name(one) for one in inner if one not in _NO_TYPE)
    if origin is dict:
        return f"map of {_type_name(inner[0])} to {_type_name(inner[1])}"
    if origin is list or (origin is tuple and inner[-1] is Ellipsis):
        return f"array of {_type_name(inner[0])}"
    if origin is tuple:
        return f"array: {', '.join(_type_name(one) for one in inner)}"
    return re.sub(r"^str$", "text", kind.__name__)
