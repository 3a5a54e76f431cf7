"""A small TOML file of sources: where they are, and how their rows are read. Wiring loads it.

[[source]]
name = "trades"
path = "trades.parquet"        # or url = "ws://…", or stdin = true; relative to this file
[source.columns]
price = "last_px"              # our field = your column
"""

import tomllib
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import msgspec

from htfi.domain.errors import InvalidInput
from htfi.pipeline.intake.columns import ALL_FIELDS
from htfi.pipeline.intake.spec import PAGE_KEYS, SourceSpec

_KEYS = {item.name: item.type for item in fields(SourceSpec)}


def load_mapping(file: Path) -> list[SourceSpec]:
    """The sources of a mapping, their paths resolved against the file's folder. Raises: InvalidInput."""
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"mapping {file}: {error.strerror}: check the path") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"mapping {file}: not valid TOML: {error}") from error
    unknown = sorted(document.keys() - {"source"})
    if unknown:
        raise InvalidInput(f"mapping {file}: unknown key '{unknown[0]}': a mapping holds [[source]] tables")
    tables = document.get("source", [])
    if not isinstance(tables, list) or not tables:
        raise InvalidInput(f"mapping {file}: no [[source]] table: add one for each file or stream")
    specs = [
        _read_source(table, f"mapping {file}, source {place + 1}", file.parent)
        for place, table in enumerate(cast("list[Any]", tables))
    ]
    names = [spec.name for spec in specs]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(f"mapping {file}: two sources are named '{name}': rename one")
    return specs


def _read_source(table: Any, where: str, folder: Path) -> SourceSpec:
    if not isinstance(table, dict):
        raise InvalidInput(f"{where}: must be a table, [[source]]")
    values = cast("dict[str, Any]", table)
    for key, value in values.items():
        if key not in _KEYS:
            raise InvalidInput(f"{where}: unknown key '{key}': the keys are {', '.join(_KEYS)}")
        _check_type(key, value, where)
    columns = values.get("columns", {})
    for name in columns:
        if name not in ALL_FIELDS:
            raise InvalidInput(
                f"{where}: unknown field '{name}' in columns: the fields are {', '.join(sorted(ALL_FIELDS))}"
            )
    page = values.get("page", {})
    for name in page:
        if name not in PAGE_KEYS:
            raise InvalidInput(f"{where}: unknown key '{name}' in page: the keys are {', '.join(PAGE_KEYS)}")
    lists = {key: tuple(values.get(key, ())) for key in ("only", "residency")}
    if values.get("residency") and values.get("kind") not in (None, "", "news"):
        raise InvalidInput(f"{where}: residency is for news, not for kind '{values['kind']}': remove it")
    stated = dict(values, columns=MappingProxyType(columns), page=MappingProxyType(page), **lists)
    if not stated.get("name"):
        if not stated.get("path"):
            raise InvalidInput(f"{where}: state its name")
        stated["name"] = source_name(stated["path"])
    for key in ("path", "tickers"):
        if stated.get(key):
            stated[key] = str(folder / stated[key])
    scheme, found, path = str(stated.get("url", "")).partition("://")
    if found and scheme == "fix":
        stated["url"] = f"{scheme}://{folder / path}"
    try:
        return SourceSpec(**stated)
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from error


def source_name(path: str) -> str:
    """A file's name without its endings: 'data/AAPL.csv.gz' → 'AAPL'."""
    name = Path(path).name
    for ending in (".gz", ".parquet", ".pq", ".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json"):
        if name.lower().endswith(ending):
            name = name[: -len(ending)]
    return name or Path(path).name


def _check_type(key: str, value: Any, where: str) -> None:
    shape, words = {
        "stdin": (bool, "true or false"),
        "multiline": (bool, "true or false"),
        "only": (list[str], 'a list of texts, such as ["VIX_close"]'),
        "residency": (list[str], 'a list of texts, such as ["eu"]'),
        "columns": (dict[str, str], "a table of texts"),
        "page": (dict[str, str], "a table of CSS selectors"),
    }.get(key, (str, "a text in quotes"))
    try:
        msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{where}: {key} must be {words}") from error
