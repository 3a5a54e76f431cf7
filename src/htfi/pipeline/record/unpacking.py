"""Makes the function that unpacks values of one type: straight code, written from the type's annotations.

It accepts what `packing` makes and refuses all else. `fields` says what each type is packed as.
"""

import types
from collections.abc import Callable
from enum import Enum
from typing import Any, NoReturn, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from htfi.pipeline.record.packing import default_of
from htfi.pipeline.record.plain import Plain, SpelledTexts, unpack_float, unpack_floats

_ABSENT = (types.NoneType, msgspec.UnsetType)
_AS_THEY_ARE = (int, bool, bytes)

Unpack = Callable[[Plain, SpelledTexts], Any]


def compile_unpacker(kind: Any, unpack_struct: Callable[[type[msgspec.Struct]], Unpack]) -> Unpack:
    """The function that unpacks values of a type; `unpack_struct` gives that of each struct in it.

    It raises ValueError, TypeError or IndexError where a value is not of the type.
    Raises: TypeError for a type that records do not hold.
    """
    code = _UnpackerCode(unpack_struct)
    return code.function([f"return {code.expression(kind, 'value')}"])


def compile_struct_unpacker(
    kind: type[msgspec.Struct],
    names: list[str],
    unpack_struct: Callable[[type[msgspec.Struct]], Unpack],
    *,
    is_whole: bool,
) -> Unpack:
    """The function that unpacks these fields of a struct: to the struct where it `is_whole`, else to a dict of them.

    Raises: TypeError for a type that records do not hold.
    """
    code, hints = _UnpackerCode(unpack_struct), get_type_hints(kind)
    defaults = {one.name: default_of(one) for one in msgspec.structs.fields(kind)}
    parts: list[str] = []
    for name in names:
        default = defaults[name]
        absent = "None" if default is msgspec.NODEFAULT else code.constant(default)
        parts.append(
            f"{name}={absent} if packed_{name} is None else {code.expression(hints[name], f'packed_{name}')}"
        )
    made = code.constant(kind if is_whole else dict[str, Any])
    return code.function([
        f"num = len({code.checked('value', list)})",
        f"if num > {len(names)}:",
        f"    raise ValueError(f'{{num}} fields, {kind.__name__} has {len(names)}: update htfi')",
        f"{' '.join(f'packed_{name},' for name in names)} = (*value, *[None] * ({len(names)} - num))",
        f"return {made}({', '.join(parts)})",
    ])  # fmt: skip


class _UnpackerCode:
    """A function in the making: its source is lines, the objects that they name are its constants."""

    def __init__(self, unpack_struct: Callable[[type[msgspec.Struct]], Unpack]) -> None:
        self._unpack_struct = unpack_struct
        self._constants: dict[str, Any] = {
            "unpack_float": unpack_float, "unpack_floats": unpack_floats, "refuse": _refuse, "pairs": _pairs,
            "place": _place,
        }  # fmt: skip

    def function(self, lines: list[str]) -> Unpack:
        body = "\n    ".join(["unpack_text = texts.unpack", *lines])
        exec(compile(f"def unpack(value, texts):\n    {body}\n", "<unpacker>", "exec"), self._constants)
        return cast("Unpack", self._constants["unpack"])

    def expression(self, kind: Any, value: str, depth: int = 0) -> str:
        """What unpacks the value that a name holds."""
        if kind is str:
            return f"unpack_text({value})"
        if kind is float:
            return f"({value} if type({value}) is float else unpack_float({value}))"
        if kind in _AS_THEY_ARE:
            return self.checked(value, kind)
        if isinstance(kind, type) and issubclass(kind, Enum):
            return f"{self.constant(tuple(kind))}[place({value})]"
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return f"{self.constant(self._unpack_struct(kind))}({value}, texts)"
        origin, inner = get_origin(kind), get_args(kind)
        key, one, array = f"key_{depth}", f"one_{depth}", self.checked(value, list)
        if origin is list or (origin is tuple and inner[-1] is Ellipsis):
            found = f"[{self.expression(inner[0], one, depth + 1)} for {one} in {array}]"
            return found if origin is list else f"(*{found},)"
        if origin is tuple:
            parts = [self.expression(part, f"{one}_{place}", depth + 1) for place, part in enumerate(inner)]
            names = " ".join(f"{one}_{place}," for place in range(len(inner)))
            return f"[({', '.join(parts)},) for ({names}) in ({array},)][0]"
        if origin is dict and inner == (str, float):
            return f"unpack_floats({array}, texts)"
        if origin is dict:
            pair = f"{self.expression(inner[0], key, depth + 1)}: {self.expression(inner[1], one, depth + 1)}"
            return f"{{{pair} for {key}, {one} in pairs({array})}}"
        if origin in (Union, types.UnionType):
            rest = [part for part in inner if part not in _ABSENT]
            if len(rest) == 1:
                return f"(None if {value} is None else {self.expression(rest[0], value, depth)})"
        raise TypeError(f"records do not hold {kind}")

    def checked(self, value: str, kind: type) -> str:
        """The value, where it is of just this type."""
        return f"({value} if type({value}) is {kind.__name__} else refuse({value}, {kind.__name__!r}))"

    def constant(self, value: Any) -> str:
        """The name of an object."""
        name = f"constant_{len(self._constants)}"
        self._constants[name] = value
        return name


def _refuse(packed: Plain, wanted: str) -> NoReturn:
    raise TypeError(f"{type(packed).__name__} where {wanted} belongs")


def _place(packed: Plain) -> int:
    """Where a member stands among those of its enum."""
    if type(packed) is not int:
        _refuse(packed, "int")
    if packed < 0:
        raise ValueError(f"no member has the place {packed}")
    return packed


def _pairs(flat: list[Plain]) -> "zip[tuple[Plain, Plain]]":
    """Keys and values in turn."""
    each = iter(flat)
    return zip(each, each, strict=True)
