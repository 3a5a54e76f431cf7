"""Settings whose types state their bounds. Each table of settings calls `check_bounds` when it is made.

A setting outside its bounds would ask for memory that no machine has, never end, or be no number at all.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, fields, is_dataclass
from functools import lru_cache
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_DAY

T = TypeVar("T")

HOUR_MS = 3_600_000.0
DAY_MS = 24 * HOUR_MS

Share = Annotated[float, Meta(ge=0.0, le=1.0)]
PositiveShare = Annotated[float, Meta(gt=0.0, le=1.0)]
InnerShare = Annotated[float, Meta(gt=0.0, lt=1.0)]
Count = Annotated[int, Meta(ge=1, le=1_000_000)]
NonNegativeCount = Annotated[int, Meta(ge=0, le=1_000_000)]
Bytes = Annotated[int, Meta(ge=1, le=2**40)]
Milliseconds = Annotated[float, Meta(ge=0.0, le=DAY_MS)]
PositiveMilliseconds = Annotated[float, Meta(gt=0.0, le=DAY_MS)]
Bars = Annotated[float, Meta(gt=0.0, le=1e6)]
Celsius = Annotated[float, Meta(gt=0.0, le=200.0)]
NonNegativeFactor = Annotated[float, Meta(ge=0.0, le=1e3)]
SpanNs = Annotated[int, Meta(ge=1, le=3660 * NS_PER_DAY)]


def setting(default: T, meaning: str, unit: str = "") -> T:
    """A field of a table of settings with what `htfi settings` says of it; empty: it is not for people to set.

    Where `unit` is empty the end of the field's name states it.
    """
    return field(default=default, metadata={"meaning": meaning, "unit": unit})


def setting_from(make: Callable[[], T], meaning: str, unit: str = "") -> T:
    """The same for a default that is made again each time."""
    return field(default_factory=make, metadata={"meaning": meaning, "unit": unit})


def check_bounds(table: str, settings: Any) -> None:
    """Check every value of a table, a dataclass, against the bounds in its type. Raises: InvalidInput."""
    for name, hint in _hints(cast("type[Any]", type(settings))).items():
        check_value(f"{table}.{name}", getattr(settings, name), hint)


def check_values(table: str, kind: type[Any], values: dict[str, Any]) -> None:
    """The same for values that are to become a table of that kind; the conversion checks other types."""
    for name, hint in _hints(kind).items():
        if name in values:
            check_value(f"{table}.{name}", values[name], hint)


def check_keys(table: str, values: Iterable[str], known: Sequence[str], of: str = "key") -> None:
    """Check the names that a table uses. Raises: InvalidInput for the first that it does not have, with the nearest."""
    for name in values:
        if name not in known:
            from difflib import get_close_matches  # late: most names are known

            near = get_close_matches(name.lower(), known, n=1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise InvalidInput(f"{table}: unknown {of} '{name}': the {of}s are {', '.join(known)}{hint}")


def check_value(name: str, value: Any, hint: Any) -> None:
    """Check one value against its type; of a table in it the keys as well. Raises: InvalidInput."""
    origin, inner = get_origin(hint), get_args(hint)
    if is_dataclass(hint) and isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        check_keys(name, table, [item.name for item in fields(hint)])
        check_values(name, cast("type[Any]", hint), table)
    if origin is Annotated:
        for meta in inner[1:]:
            if isinstance(meta, Meta) and not _within_bounds(value, meta):
                raise InvalidInput(f"{name} must be {_bounds_text(meta)}, not {_value_text(value)}")
        check_value(name, value, inner[0])
    elif origin in (Union, UnionType):
        for each in inner:
            if value is not None and each is not type(None):
                check_value(name, value, each)
    elif origin is tuple and isinstance(value, tuple | list):
        for place, item in enumerate(cast("list[Any]", value), 1):
            where = f"{name}[{place}]" if isinstance(item, dict) else f"each of {name}"
            check_value(where, item, inner[0])
    elif origin is dict and isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            check_value(f"{name}.{key}", item, inner[1])


@lru_cache(maxsize=64)
def _hints(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _within_bounds(value: Any, meta: Meta) -> bool:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (
            (meta.ge is None or value >= meta.ge)
            and (meta.gt is None or value > meta.gt)
            and (meta.le is None or value <= meta.le)
            and (meta.lt is None or value < meta.lt)
        )
    if isinstance(value, str | tuple | list):
        size = len(cast("list[Any]", value))
        return (meta.min_length or 0) <= size and (meta.max_length is None or size <= meta.max_length)
    return True


def _bounds_text(meta: Meta) -> str:
    if meta.max_length is not None:
        return f"{meta.min_length or 0} to {meta.max_length} long"
    bounds = (("at least", meta.ge), ("above", meta.gt), ("at most", meta.le), ("below", meta.lt))
    return " and ".join(f"{words} {bound:,.15g}" for words, bound in bounds if bound is not None)


def _value_text(value: Any) -> str:
    return f"{value:,.15g}" if isinstance(value, float) else str(value)[:60]


def toml_value(value: Any) -> str:
    """A value as it stands in a TOML file; nothing where there is none."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case int() | float():
            return f"{value:_}" if isinstance(value, int) else f"{value:g}"
        case tuple() | list():
            return f"[{', '.join(map(toml_value, cast('list[Any]', value)))}]"
        case dict():
            return "{}"
        case _:
            return f'"{value}"'
