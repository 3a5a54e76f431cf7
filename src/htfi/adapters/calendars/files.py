"""The rows of a calendar's file, each with its place; Parquet, CSV, JSON, JSON lines or iCalendar."""

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from arro3.core import DataType

from htfi.adapters.calendars.rows import CalendarTable
from htfi.adapters.text_encodings import decoded
from htfi.arrow.columns import is_dictionary, one_chunk, plain
from htfi.arrow.failures import DamagedFile
from htfi.arrow.table_files import read_parquet_table
from htfi.domain.errors import InvalidInput

MAX_BYTES = 128 << 20
FORMATS: Mapping[str, str] = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".json": "json",
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".ics": "ics", ".ical": "ics", ".icalendar": "ics",
}  # fmt: skip


def format_of(path: str, stated: str = "") -> str:
    """The format of a file, as stated or by its ending. Raises: InvalidInput."""
    found = stated or FORMATS.get(Path(path).suffix.lower(), "")
    if found not in FORMATS.values():
        offered = ", ".join(dict.fromkeys(FORMATS.values()))
        raise InvalidInput(f"calendar {path}: the format is not known: state format, one of {offered}")
    return found


def read_table(path: Path, data: bytes, stated_format: str = "") -> CalendarTable:
    """The rows of a file; `data` are its bytes, `path` its name. Raises: InvalidInput, with the file's name."""
    match format_of(str(path), stated_format):
        case "parquet":
            return _parquet_rows(path)
        case "ics":
            from htfi.adapters.calendars.icalendar_rows import icalendar_rows

            return icalendar_rows(data, str(path))
        case "csv":
            return _csv_rows(decoded(data, f"calendar {path}"), path)
        case other:
            return _json_rows(decoded(data, f"calendar {path}"), path, is_lines=other == "jsonl")


def _parquet_rows(path: Path) -> CalendarTable:
    try:
        table = read_parquet_table(path)
    except DamagedFile as error:
        raise InvalidInput(f"calendar {path}: not a whole Parquet file ({error}): fetch it again") from error
    except OSError as error:
        raise InvalidInput(f"calendar {path}: {error.strerror or error}: check the path") from error
    names: list[str] = list(table.column_names)
    columns: list[list[Any]] = []
    for column in table.columns:
        whole = one_chunk(column)
        if is_dictionary(whole.type):
            whole = plain(whole)
        if DataType.is_timestamp(whole.type):
            whole = whole.cast(DataType.timestamp("us", tz=whole.type.tz))
        columns.append(whole.to_pylist())
    rows = (
        (f"row {place}", dict(zip(names, cells, strict=True)))
        for place, cells in enumerate(zip(*columns, strict=True), 1)
    )
    return CalendarTable(names, rows)


def _csv_rows(text: str, path: Path) -> CalendarTable:
    first = text.partition("\n")[0]
    separator = max(",;\t|", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        names = [_printable(name) for name in next(reader, list[str]())]
        if not any(names):
            raise InvalidInput(f"calendar {path}: empty: its first line names the columns")
        named = [name for name in names if name]  # a column without a name is passed over
        if len(set(named)) < len(named):
            twice = next(name for name in named if named.count(name) > 1)
            raise InvalidInput(f"calendar {path}: two columns are named '{twice}': rename one")
        rows: list[tuple[str, Mapping[str, Any] | str]] = []
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            place = f"line {reader.line_num}"
            if any(cell.strip() for cell in cells[len(names) :]):
                told = f"{len(cells)} cells where the first line names {len(names)}"
                rows.append((place, f"{told}: put a cell that holds '{separator}' in quotes"))
                continue
            missing = len(names) - len(cells)  # programs drop what is empty at a line's end
            filled = [*cells, *[""] * missing][: len(names)]
            rows.append((place, dict(zip(names, filled, strict=True))))
    except csv.Error as error:
        raise InvalidInput(f"calendar {path}, line {reader.line_num}: not valid CSV: {error}") from error
    return CalendarTable(names, rows)


def _json_rows(text: str, path: Path, *, is_lines: bool) -> CalendarTable:
    try:
        if is_lines:
            found: Any = [json.loads(line) for line in text.splitlines() if line.strip()]
        else:
            found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"calendar {path}: not valid JSON: {error or 'nested too deeply'}") from error
    if isinstance(found, dict):  # {"events": [...]}
        lists: list[Any] = [one for one in cast("dict[str, Any]", found).values() if isinstance(one, list)]
        found = lists[0] if len(lists) == 1 else None
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in cast("list[Any]", found)):
        raise InvalidInput(f"calendar {path}: it must hold a list of objects, one for each event")
    objects = [
        {_printable(name): cell for name, cell in row.items()} for row in cast("list[dict[str, Any]]", found)
    ]
    names = list(dict.fromkeys(name for row in objects for name in row))
    return CalendarTable(names, [(f"entry {place}", row) for place, row in enumerate(objects, 1)])


def _printable(name: str) -> str:
    return "".join(char for char in name if char.isprintable()).strip()
