"""Every setting has bounds of sense in its type, and what lies outside stops the start with one line."""

from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest
from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.events import Bar, FeedItem, News, Quote, Trade
from htfi.domain.settings import check_bounds
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.wiring.settings import Settings, load_settings
from memory_run import loop_over

NUMBERS = (int, float)


def metas(hint: Any, base: type | None = None) -> Iterator[tuple[Any, Meta | None]]:
    """Each number inside a type, with its bounds."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        found = [meta for meta in inner[1:] if isinstance(meta, Meta)]
        if inner[0] in NUMBERS:
            yield inner[0], found[0] if found else None
        else:
            yield from metas(inner[0])
    elif origin is not None:
        for each in inner:
            yield from metas(each)
    elif hint in NUMBERS:
        yield hint, None


def numeric() -> list[tuple[str, str, Any, Meta | None]]:
    found: list[tuple[str, str, Any, Meta | None]] = []
    for table in fields(Settings):
        kind = type(getattr(Settings(), table.name))
        settable = {item.name for item in fields(kind) if item.metadata}
        for name, hint in get_type_hints(kind, include_extras=True).items():
            if name not in settable:
                continue
            found += [(table.name, name, number, meta) for number, meta in metas(hint)]
    return found


NUMERIC = numeric()


def toml(folder: Path, table: str, key: str, value: str) -> Path:
    file = folder / "settings.toml"
    file.write_text(f"[{table}]\n{key} = {value}\n")
    return file


def written(table: str, key: str, value: str) -> str:
    """A value as the setting's type is written: alone, in a list, in a table, in tables of tables."""
    kind = type(getattr(Settings(), table))
    return _nested(get_type_hints(kind, include_extras=True)[key], value)


def _nested(hint: Any, value: str) -> str:
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _nested(inner[0], value)
    if origin is dict:
        return f"{{ 2014-06-09 = {_nested(inner[1], value)} }}"
    return f"[{value}]" if origin is tuple else value


def outside(number: type, meta: Meta) -> list[str]:
    low = meta.ge if meta.ge is not None else meta.gt
    high = meta.le if meta.le is not None else meta.lt
    assert low is not None
    assert high is not None
    if number is int:
        return [str(int(low) - 1), str(int(high) + 1), "9223372036854775807", "-9223372036854775808"]
    return [str(low - 1e-6), str(high * 1.001), "inf", "-inf", "nan", "1e308"]


def test_every_number_among_the_settings_has_bounds() -> None:
    assert len(NUMERIC) > 90
    unbounded = [
        f"{table}.{name}"
        for table, name, _, meta in NUMERIC
        if meta is None or (meta.ge is None and meta.gt is None) or (meta.le is None and meta.lt is None)
    ]
    assert unbounded == []


def test_what_lies_outside_its_bounds_stops_the_start_with_one_line_that_names_it(tmp_path: Path) -> None:
    num = 0
    for table, name, number, meta in NUMERIC:
        assert meta is not None
        for value in outside(number, meta):
            with pytest.raises(InvalidInput) as caught:
                load_settings(toml(tmp_path, table, name, written(table, name, value)), environment={})
            assert f"{table}.{name}" in str(caught.value)
            assert "\n" not in str(caught.value)
            num += 1
    assert num > 500


@pytest.mark.parametrize(
    ("table", "name", "value", "words"),
    [
        (
            "pipeline",
            "deadline_ms",
            "inf",
            "pipeline.deadline_ms must be above 0 and at most 3,600,000, not inf",
        ),
        ("forecasting", "residual_window_bars", "99999999999", "at least 2 and at most 20,000"),
        ("forecasting", "horizons", "[1000000000]", "each of forecasting.horizons must be"),
        ("market", "bar", '"999999999999999999999d"', "not a duration"),
        ("market", "bar", '"0.0000001ms"', "not a duration"),
        ("market", "scales", '["100000d"]', "not a duration"),
        ("market", "bar", f'"volume:1{"0" * 400}"', "amount"),
        ("routing", "positions", "{ ACME = nan }", "routing.positions.ACME must be"),
    ],
)
def test_settings_that_asked_for_the_impossible_are_refused(
    tmp_path: Path, table: str, name: str, value: str, words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        load_settings(toml(tmp_path, table, name, value), environment={})
    if table != "routing":
        with pytest.raises(InvalidInput, match=words):
            load_settings(environment={f"HTFI_{table.upper()}__{name.upper()}": value})


def test_more_quantiles_than_an_entry_holds_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    levels = [k / 100 for k in range(1, 100)]
    file.write_text(f"[forecasting]\nhorizons = {list(range(1, 17))}\nlevels = {levels}\n")
    with pytest.raises(InvalidInput, match="7,920 quantiles: a decision records 3,000 at most"):
        load_settings(file, environment={})


def test_the_defaults_lie_within_their_bounds() -> None:
    for table in fields(Settings):
        check_bounds(table.name, getattr(Settings(), table.name))


def items() -> list[FeedItem]:
    """Bars by day of two series, ticks of a third, and news."""
    start_ns, found = 15_000 * NS_PER_DAY, list[FeedItem]()
    for day in range(30):
        end_ns = start_ns + day * NS_PER_DAY
        for row, symbol in enumerate(("A", "B")):
            price = 100.0 + (day * 7919 % 13) / 10 + row
            found.append(
                Bar(
                    end_ns, end_ns, "bars", 2 * day + row + 1, symbol, "1d", end_ns - NS_PER_DAY, end_ns,
                    price, price + 1, price - 1, price, 1000.0,
                )
            )  # fmt: skip
        found.append(News(end_ns + 1, end_ns, "news", day + 1, f"n{day}", "A wins a large order", ("A",)))
        for tick in range(20):
            at_ns = end_ns + 2 + tick * 30 * NS_PER_S
            found.append(Trade(at_ns, at_ns, "ticks", 2 * (20 * day + tick) + 1, "C", 50.0 + tick % 3, 10.0))
            found.append(Quote(at_ns, at_ns, "ticks", 2 * (20 * day + tick) + 2, "C", 49.9, 5.0, 50.1, 5.0))
    return found


def edges() -> list[tuple[str, str, Any]]:
    """Each bound of each number that shapes a run here, and lists of the largest size."""
    found: list[tuple[str, str, Any]] = []
    for table, name, number, meta in NUMERIC:
        if table in ("cluster", "edge", "server", "turns", "placement", "health", "cache", "models"):
            continue
        assert meta is not None
        held = getattr(getattr(Settings(), table), name)
        low, high = meta.ge if meta.ge is not None else meta.gt, meta.le if meta.le is not None else meta.lt
        if not isinstance(held, tuple | dict):
            found += [(table, name, number(end)) for end in (low, high) if end is not None]
    found.append(("forecasting", "horizons", (1, *range(986, 1001))))
    found.append(("forecasting", "levels", tuple(sorted({k / 100 for k in range(1, 100)}))))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("table", "name", "value"), edges())
def test_a_run_at_the_end_of_a_setting_ends(table: str, name: str, value: Any) -> None:
    try:
        config = replace(getattr(Settings(), table), **{name: value})
    except InvalidInput:
        pytest.skip("the bound is open, or another setting stands against it")
    loop, _, _ = loop_over(items(), settings=replace(load_settings(environment={}), **{table: config}))
    loop.run(lambda: None)
    assert loop.num_events == len(items())
