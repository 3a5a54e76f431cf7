"""Makes the function that packs values of one type: straight code, written from the type's annotations.

A loop over descriptions of fields takes three times as long, and an entry waits for it. `fields` says what each type is
packed as.
"""

import types
from collections.abc import Callable
from enum import Enum
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from htfi.pipeline.record.plain import Plain, TextPlaces, pack_float, pack_floats

_ABSENT = (types.NoneType, msgspec.UnsetType)
_AS_THEY_ARE = (int, bool, bytes)

Pack = Callable[[Any, TextPlaces], Plain]


def compile_packer(kind: Any, pack_struct: Callable[[type[msgspec.Struct]], Pack]) -> Pack:
    """The function that packs values of a type; `pack_struct` gives that of each struct in it.

    Raises: TypeError for a type that records do not hold.
    """
    code = _PackerCode(pack_struct)
    return code.function([f"return {code.expression(kind, 'value')}"])


def compile_struct_packer(
    kind: type[msgspec.Struct], names: list[str], pack_struct: Callable[[type[msgspec.Struct]], Pack]
) -> Pack:
    """The function that packs these fields of a struct. Raises: TypeError for a type that records do not hold."""
    code, hints = _PackerCode(pack_struct), get_type_hints(kind)
    defaults = {one.name: default_of(one) for one in msgspec.structs.fields(kind)}
    lines: list[str] = []
    for name in names:
        packed = code.expression(hints[name], "held")
        if defaults[name] is not msgspec.NODEFAULT:
            packed = f"None if {code.is_default(defaults[name])} else {packed}"
        lines += [f"held = value.{name}", f"packed_{name} = {packed}"]
    return code.function([
        *lines,
        f"found = [{', '.join(f'packed_{name}' for name in names)}]",
        "while found and found[-1] is None:",
        "    del found[-1]",
        "return found",
    ])  # fmt: skip


def default_of(field: msgspec.structs.FieldInfo) -> Any:
    """What a field is where nothing is said; `msgspec.NODEFAULT` where it has to be."""
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default


class _PackerCode:
    """A function in the making: its source is lines, the objects that they name are its constants."""

    def __init__(self, pack_struct: Callable[[type[msgspec.Struct]], Pack]) -> None:
        self._pack_struct = pack_struct
        self._constants: dict[str, Any] = {"pack_float": pack_float, "pack_floats": pack_floats}

    def function(self, lines: list[str]) -> Pack:
        body = "\n    ".join(["pack_text = texts.pack", *lines])
        exec(compile(f"def pack(value, texts):\n    {body}\n", "<packer>", "exec"), self._constants)
        return cast("Pack", self._constants["pack"])

    def expression(self, kind: Any, value: str, depth: int = 0) -> str:
        """What packs the value that a name holds."""
        if kind is str:
            return f"pack_text({value})"
        if kind is float:
            return f"pack_float({value})"
        if kind in _AS_THEY_ARE:
            return value
        if isinstance(kind, type) and issubclass(kind, Enum):
            return f"{self._constant({member: place for place, member in enumerate(kind)})}[{value}]"
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return f"{self._constant(self._pack_struct(kind))}({value}, texts)"
        origin, inner = get_origin(kind), get_args(kind)
        key, one = f"key_{depth}", f"one_{depth}"
        if origin is list or (origin is tuple and inner[-1] is Ellipsis):
            return f"[{self.expression(inner[0], one, depth + 1)} for {one} in {value}]"
        if origin is tuple:
            packed = (self.expression(part, f"{value}[{place}]", depth) for place, part in enumerate(inner))
            return f"[{', '.join(packed)}]"
        if origin is dict and inner == (str, float):
            return f"pack_floats({value}, texts)"
        if origin is dict:
            pair = f"{self.expression(inner[0], key, depth + 1)}, {self.expression(inner[1], one, depth + 1)}"
            return f"[part for {key}, {one} in {value}.items() for part in ({pair})]"
        if origin in (Union, types.UnionType):
            rest = [part for part in inner if part not in _ABSENT]
            if len(rest) == 1:
                return f"(None if {value} is None else {self.expression(rest[0], value, depth)})"
        raise TypeError(f"records do not hold {kind}")

    def is_default(self, default: Any) -> str:
        """The condition that `held` is a default to the last bit: −0.0 is not 0.0."""
        name = self._constant(default)
        if default in (None, msgspec.UNSET) or isinstance(default, bool):
            return f"held is {name}"
        same_bits = f"(held or repr(held) == {self._constant(repr(default))})"
        return f"held == {name} and type(held) is {self._constant(type(default))} and {same_bits}"

    def _constant(self, value: Any) -> str:
        name = f"constant_{len(self._constants)}"
        self._constants[name] = value
        return name
