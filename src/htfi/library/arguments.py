"""Arguments of the public functions, checked where they come in: a wrong one is one line that names it."""

import operator
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_US, format_duration
from htfi.pipeline.intake.bar_spacing import read_interval
from htfi.wiring.settings import Settings, override

Models = str | tuple[str | Path, str | Path]  # 'default', or the folders of a target and a draft
ORIGIN = "the arguments"  # of settings, in messages


def not_copied(thing: object, instead: str) -> InvalidInput:
    """The error of copying or pickling what is open."""
    return InvalidInput(f"{thing!r} cannot be copied or pickled: {instead}")


def whole_number(name: str, value: Any, least: int | None = None) -> int:
    """A whole number of Python or numpy. Raises: InvalidInput."""
    bound = "" if least is None else f" of at least {least}"
    try:
        number = operator.index(value)
    except TypeError as error:
        raise InvalidInput(f"{name}={value!r}: give a whole number{bound}") from error
    if least is not None and number < least:
        raise InvalidInput(f"{name}={number}: give a whole number{bound}")
    return number


def real_number(name: str, value: Any) -> float:
    """A number of Python or numpy, not a text. Raises: InvalidInput."""
    try:
        if not isinstance(value, str | bytes):
            return float(value)
    except (TypeError, ValueError):
        pass
    raise InvalidInput(f"{name}={value!r}: give a number")


def bars_ahead(horizons: Any) -> list[int]:
    """Horizons in bars, rising: one number or several. Raises: InvalidInput."""
    given: list[Any] = [horizons]
    if isinstance(horizons, Iterable) and not isinstance(horizons, str | bytes):
        given = list(cast("Iterable[Any]", horizons))
    try:
        return sorted({operator.index(one) for one in given})
    except TypeError as error:
        raise InvalidInput(
            f"horizons={horizons!r}: give whole numbers of bars, such as [1, 5, 22]"
        ) from error


def bar_interval(interval: Any) -> str | None:
    """The length of a bar as settings write it: '1D', '5min' and `timedelta` are read too. Raises: InvalidInput."""
    if interval is None:
        return None
    if isinstance(interval, timedelta):
        return format_duration(interval // timedelta(microseconds=1) * NS_PER_US)
    if not isinstance(interval, str):
        raise InvalidInput(f"interval={interval!r}: give a text, such as '1d' or '5m', or a timedelta")
    return read_interval(interval)


def symbol_text(symbol: Any) -> str | None:
    """One symbol. Raises: InvalidInput."""
    if symbol is None or isinstance(symbol, str):
        return symbol
    raise InvalidInput(f"symbol={symbol!r}: give one symbol, as a text; without it all are forecast")


def symbols_asked(name: str, symbols: Any) -> tuple[str, ...]:
    """One symbol or several. Raises: InvalidInput."""
    if isinstance(symbols, str):
        return (symbols,)
    found: tuple[Any, ...] = (None,)
    if isinstance(symbols, Iterable):
        found = tuple(cast("Iterable[Any]", symbols))
    if all(isinstance(one, str) for one in found):
        return found
    raise InvalidInput(f"{name}={symbols!r}: give a symbol, or a list of symbols")


def with_horizons(settings: Settings, horizons: Any) -> Settings:
    """Settings with these horizons. Raises: InvalidInput."""
    return override(settings, "forecasting", ORIGIN, horizons=bars_ahead(horizons))


_FOLDER_SETTINGS = {"chronos": "foundation", "pooled": "pooled"}


def with_experts(settings: Settings, experts: str | Sequence[str]) -> Settings:
    """Settings with these experts; 'chronos:FOLDER' and 'pooled:FOLDER' name a folder too. Raises: InvalidInput."""
    names = list(symbols_asked("experts", experts))
    for place, one in enumerate(names):
        name, _, folder = one.partition(":")
        if name in _FOLDER_SETTINGS and folder:
            names[place] = name
            settings = override(settings, "forecasting", ORIGIN, **{_FOLDER_SETTINGS[name]: folder})
    return override(settings, "forecasting", ORIGIN, experts=names)


def with_models(settings: Settings, models: Models | None) -> Settings:
    """Settings with the language models that are named. Raises: InvalidInput."""
    if models is None or models == "default":
        return settings
    if isinstance(models, str | Mapping) or not isinstance(models, Sequence) or len(models) != 2:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(
            f"models={models!r}: say 'default', or give the folders of a target and a draft as a pair"
        )
    target, draft = models
    return override(settings, "models", ORIGIN, target=str(target), draft=str(draft))
