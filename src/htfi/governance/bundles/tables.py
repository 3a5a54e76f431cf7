"""The tables of a policy bundle, and which change of a value is tighter. A further table joins `TABLES` in one line."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import StrEnum
from typing import Annotated, Any, NamedTuple, TypeVar, cast

import msgspec
from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.order_limits import OrderLimits
from htfi.domain.settings import check_bounds, setting, setting_from
from htfi.governance.breakers.config import BreakerConfig
from htfi.governance.checkpoints.config import CheckpointConfig
from htfi.governance.config import ANY_SYMBOL, PolicyConfig
from htfi.governance.fairness.config import FairnessConfig

_Name = Annotated[str, Meta(min_length=1, max_length=120)]
_Table = TypeVar("_Table")


@dataclass(frozen=True, slots=True)
class PermittedModels:
    """Table `[models]`: names and versions of experts and readers that may serve; '*' permits all."""

    permitted: tuple[_Name, ...] = setting(
        (ANY_SYMBOL,), "experts and readers that may serve; '*' permits all"
    )

    def __post_init__(self) -> None:
        check_bounds("models", self)

    def refuses(self, name: str) -> bool:
        return ANY_SYMBOL not in self.permitted and name not in self.permitted


@dataclass(frozen=True, slots=True)
class DesksConfig:
    """Table `[desks]`: the symbols of each desk. A symbol in none is of the desk `default`."""

    symbols: dict[_Name, tuple[str, ...]] = setting_from(
        dict[str, tuple[str, ...]], "symbols of each desk, by its name"
    )

    def __post_init__(self) -> None:
        check_bounds("desks", self)

    def by_symbol(self) -> dict[str, tuple[str, ...]]:
        """The desks of each symbol."""
        found: dict[str, tuple[str, ...]] = {}
        for desk, symbols in self.symbols.items():
            for symbol in symbols:
                found[symbol] = (*found.get(symbol, ()), desk)
        return found


@dataclass(frozen=True, slots=True)
class BundleTables:
    """What a bundle sets, a table each; a table that it leaves out has its defaults."""

    policy: PolicyConfig = field(default_factory=PolicyConfig)
    models: PermittedModels = field(default_factory=PermittedModels)
    desks: DesksConfig = field(default_factory=DesksConfig)
    fairness: FairnessConfig = field(default_factory=FairnessConfig)
    breakers: BreakerConfig = field(default_factory=BreakerConfig)
    checkpoints: CheckpointConfig = field(default_factory=CheckpointConfig)
    order_limits: OrderLimits = field(default_factory=OrderLimits)


TABLES: Mapping[str, type[Any]] = {
    one.name: cast("type[Any]", one.default_factory) for one in fields(BundleTables)
}


class ChangeDirection(StrEnum):
    """What a change of a value does."""

    TIGHTER = "tighter"
    LOOSER = "looser"
    OTHER = "other"  # neither, or nobody has said which


class ValueChange(NamedTuple):
    """One value of a bundle that is not what it was, by its full name such as policy.max_band_width."""

    name: str
    before: Any
    after: Any
    kind: ChangeDirection


def read_tables(found: Mapping[str, Any]) -> BundleTables:
    """The tables of a bundle from plain values. Raises: InvalidInput, naming the table and the key."""
    unknown = [name for name in found if name not in TABLES]
    if unknown:
        raise InvalidInput(f"table [{unknown[0][:40]}] is unknown: the tables are {', '.join(TABLES)}")
    return BundleTables(
        **{name: _read_table(name, kind, found.get(name, {})) for name, kind in TABLES.items()}
    )


def _read_table(name: str, kind: type[_Table], values: Any) -> _Table:
    if not isinstance(values, dict):
        raise InvalidInput(f"'{name}' must be a table, such as [{name}]")
    _check_names(name, kind, cast("dict[str, Any]", values))
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"[{name}]: {error}") from error


def _check_names(name: str, kind: type[Any], values: Mapping[str, Any]) -> None:
    """Every key must be a field, in nested tables too: a misspelled limit would silently not hold."""
    known = {one.name: one for one in fields(kind)}
    for key, value in values.items():
        if key not in known:
            raise InvalidInput(f"[{name}] has no '{key[:60]}': it has {', '.join(known)}")
        default = default_of(known[key])
        if is_dataclass(default) and isinstance(value, dict):
            _check_names(f"{name}.{key}", type(default), cast("dict[str, Any]", value))


def default_of(item: Any) -> Any:
    """The default of a dataclass field."""
    return item.default_factory() if item.default_factory is not MISSING else item.default


def changes(before: BundleTables, after: BundleTables) -> Iterator[ValueChange]:
    """Every value that differs, in the order of the tables."""
    for table in TABLES:
        yield from _changes(table, getattr(before, table), getattr(after, table))


def _changes(name: str, before: Any, after: Any) -> Iterator[ValueChange]:
    for item in fields(before):
        one, other = getattr(before, item.name), getattr(after, item.name)
        path = f"{name}.{item.name}"
        if one == other:
            continue
        if is_dataclass(one) and is_dataclass(other):
            yield from _changes(path, one, other)
        else:
            yield ValueChange(path, one, other, _kind_of(item, path, one, other))


def _kind_of(item: Any, path: str, before: Any, after: Any) -> ChangeDirection:
    """By what the field declares, else by its table here, else by its name: a `max_` that falls is tighter."""
    rule = item.metadata.get("tighter") or _TIGHTER.get(path)
    if rule is None and item.name.startswith("max_"):
        rule = lower_is_tighter
    if rule is None:
        return ChangeDirection.OTHER
    is_tighter, is_looser = rule(before, after), rule(after, before)
    if is_tighter == is_looser:
        return ChangeDirection.OTHER
    return ChangeDirection.TIGHTER if is_tighter else ChangeDirection.LOOSER


def lower_is_tighter(before: Any, after: Any) -> bool:
    """None stands for no limit."""
    return after is not None and (before is None or after < before)


def higher_is_tighter(before: Any, after: Any) -> bool:
    return after > before


def fewer_is_tighter(before: Any, after: Any) -> bool:
    """Fewer names; '*' stands for all."""
    if ANY_SYMBOL in before:
        return ANY_SYMBOL not in after
    return set(after) < set(before)


def more_is_tighter(before: Any, after: Any) -> bool:
    """More names."""
    return set(after) > set(before)


_TIGHTER: Mapping[str, Callable[[Any, Any], bool]] = {
    "policy.allowed_symbols": fewer_is_tighter,
    "policy.restricted_symbols": more_is_tighter,
    "policy.min_bar_age_s": lower_is_tighter,  # a delay that is always allowed
    "models.permitted": fewer_is_tighter,
    "order_limits.price_collar": lower_is_tighter,
    "order_limits.window_collar": lower_is_tighter,
    "order_limits.permitted": fewer_is_tighter,
    "order_limits.restricted": more_is_tighter,
    "fairness.test_views": higher_is_tighter,
    "fairness.num_swaps": higher_is_tighter,
    "fairness.min_weight": higher_is_tighter,
}


def write_toml(tables: BundleTables) -> str:
    """The tables as TOML, every value spelled out, so that what is signed is what holds."""
    return "\n".join(
        line for name in TABLES for line in (f"[{name}]", *_lines(name, getattr(tables, name)), "")
    )


def _lines(name: str, table: Any) -> Iterator[str]:
    nested: list[tuple[str, Any]] = []
    for item in fields(table):
        value = getattr(table, item.name)
        if is_dataclass(value):
            nested.append((f"{name}.{item.name}", value))
        elif isinstance(value, dict):
            pairs = cast("dict[str, Any]", value).items()
            yield f"{item.name} = {{ {', '.join(f'{_text(key)} = {_value(one)}' for key, one in pairs)} }}"
        elif value is not None:  # TOML has no nothing: what is left out has its default
            yield f"{item.name} = {_value(value)}"
    for path, value in nested:
        yield ""
        yield f"[{path}]"
        yield from _lines(path, value)


def _value(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return repr(value)
        case tuple() | list():
            return f"[{', '.join(map(_value, cast('list[Any]', value)))}]"
        case _:
            return _text(str(value))


def _text(text: str) -> str:
    return msgspec.json.encode(text).decode()
