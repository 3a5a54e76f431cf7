"""Files of order events: Parquet, JSON lines and CSV, read in constant memory; rows that cannot be used are set aside.

JSON lines hold events as the execution path writes them. CSV and Parquet have a column `kind` and one for each field,
empty where an event has none; `decision.index` and `decision.leaf_hash` are the receipt. In place of `at_ns`, a column
`at` may hold an ISO 8601 instant with its zone.
"""

import csv
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from htfi.arrow.failures import DamagedFile
from htfi.arrow.parquet_file import ParquetFile
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.events import QuarantinedRow
from htfi.domain.orders import OrderEvent, decode_order_event, order_event_of
from htfi.domain.time import parse_timestamp
from htfi.pipeline.intake.quarantine_reasons import QuarantineReason

MAX_ROW_BYTES = 1 << 20
MAX_SHOWN_CHARS = 300
MAX_TIME_NS = 1 << 62
MAX_QUANTITY = 1 << 53
_BATCH_ROWS = 4_096
_LISTS = ("permitted", "restricted")  # in a cell separated by blanks

SetAside = Callable[[QuarantinedRow], None]


def read_order_file(path: Path, set_aside: SetAside) -> Iterator[OrderEvent]:
    """Events in order of time. Rows that are none, or earlier than the one before, go to `set_aside` with why.

    Raises: InvalidInput where the file's form is unknown, DependencyUnavailable where it cannot be read.
    """
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise InvalidInput(
            f"{path}: its name does not show its form: order files end in .jsonl, .csv or .parquet"
        )
    newest_ns = 0
    try:
        for number, make, raw in reader(path):
            try:
                event = make()
                _check(event)
                if event.at_ns < newest_ns:
                    raise InvalidInput(
                        f"at_ns {event.at_ns} is earlier than {newest_ns} in a row before: sort the file"
                    )
            except (msgspec.DecodeError, UnicodeDecodeError, InvalidInput, ValueError) as error:
                set_aside(_rejected(path, number, error, raw))
                continue
            newest_ns = event.at_ns
            yield event
    except OSError as error:
        raise DependencyUnavailable(f"{path}: cannot be read: {error.strerror or error}") from error


_Row = tuple[int, Callable[[], OrderEvent], str]


def _json_lines(path: Path) -> Iterator[_Row]:
    with path.open("rb") as file:
        for number, line in enumerate(_lines(file), 1):
            if line.strip():
                yield (
                    number,
                    lambda line=line: _decoded(line),
                    line[:MAX_SHOWN_CHARS].decode(errors="replace"),
                )


def _decoded(line: bytes) -> OrderEvent:
    if len(line) > MAX_ROW_BYTES:
        raise InvalidInput(f"a line of more than {MAX_ROW_BYTES:,} bytes")
    return decode_order_event(line)


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Lines; of one that is too long the beginning, and the rest is passed over."""
    while line := file.readline(MAX_ROW_BYTES + 1):
        yield line
        while len(line) > MAX_ROW_BYTES and not line.endswith(b"\n"):
            line = file.readline(MAX_ROW_BYTES + 1)


def _csv_rows(path: Path) -> Iterator[_Row]:
    with path.open("rb") as file:
        text = (
            line.decode("utf-8-sig" if number == 0 else "utf-8", "replace")
            for number, line in enumerate(_lines(file))
        )
        rows = csv.reader(text)
        try:
            header = next(rows, None)
        except csv.Error as error:
            raise InvalidInput(f"{path}: its first line is not a header: {error}") from error
        if header is None:
            return
        names = [name.strip() for name in header]
        if "kind" not in names:
            raise InvalidInput(
                f"{path}: the header has no column kind: it names each event, such as new or fill"
            )
        while True:
            try:
                cells = next(rows, None)
            except csv.Error as error:
                raise InvalidInput(f"{path}, line {rows.line_num}: {error}") from error
            if cells is None:
                return
            if cells:
                yield (
                    rows.line_num,
                    lambda cells=cells: _of_cells(names, cells),
                    _as_csv(cells)[:MAX_SHOWN_CHARS],
                )


def _as_csv(cells: list[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(cells)
    return out.getvalue()


def _of_cells(names: list[str], cells: list[str]) -> OrderEvent:
    if len(cells) != len(names):
        raise InvalidInput(f"{len(cells)} cells in a table of {len(names)} columns")
    return _event({name: cell for name, cell in zip(names, cells, strict=True) if cell != ""})


def _parquet_rows(path: Path) -> Iterator[_Row]:
    number = 0
    try:
        with ParquetFile(path) as file:
            if "kind" not in file.names:
                raise InvalidInput(f"{path}: it has no column kind: it names each event, such as new or fill")
            for batch in file.batches(0, _BATCH_ROWS):
                for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    number += 1
                    row = zip(file.names, values, strict=True)
                    cells = {name: value for name, value in row if value is not None and value != ""}
                    yield number, lambda cells=cells: _event(cells), str(cells)[:MAX_SHOWN_CHARS]
    except DamagedFile as error:
        where = f"is damaged after row {number}" if number else "is not a Parquet file"
        raise InvalidInput(f"{path}: {where}: {error}") from error


def _event(cells: dict[str, Any]) -> OrderEvent:
    """An event of a row's cells: dotted names are parts of a field."""
    fields: dict[str, Any] = {}
    for name, value in cells.items():
        part = fields
        *parents, last = name.split(".")
        for parent in parents:
            part = part.setdefault(parent, {})
        part[last] = value.split() if name in _LISTS and isinstance(value, str) else value
    if "at" in fields and "at_ns" not in fields:
        at = fields.pop("at")
        if not isinstance(at, str):
            raise InvalidInput(
                "at is not an ISO 8601 instant: write it as text with its zone, or at_ns as a number"
            )
        fields["at_ns"] = parse_timestamp(at)
    for name in ("price", "stop_price", "bid", "ask", "last", "tick", "multiplier", "max_order_value"):
        if isinstance(fields.get(name), float):
            fields[name] = repr(fields[name])  # the shortest text that reads as this number
    return order_event_of(fields)


def _check(event: OrderEvent) -> None:
    """What types do not say. Raises: InvalidInput."""
    if not 0 < event.at_ns <= MAX_TIME_NS:
        raise InvalidInput(f"at_ns {event.at_ns} is no instant: nanoseconds since 1970 in UTC are expected")
    for name in ("price", "stop_price", "bid", "ask", "last"):
        value = getattr(event, name, None)
        if value is not None and not value.is_finite():
            raise InvalidInput(f"{name} is {value}: a finite number is expected")
    quantity = getattr(event, "quantity", None)
    if quantity is not None and not 0 < quantity <= MAX_QUANTITY:
        raise InvalidInput(f"quantity is {quantity}: a positive number of lots is expected")


def _rejected(path: Path, number: int, error: Exception, raw: str) -> QuarantinedRow:
    return QuarantinedRow(
        path.name, number, QuarantineReason.MALFORMED, f"{path.name} row {number}: {error}", raw
    )


_READERS: dict[str, Callable[[Path], Iterator[_Row]]] = {
    ".jsonl": _json_lines, ".ndjson": _json_lines, ".csv": _csv_rows, ".parquet": _parquet_rows, ".pq": _parquet_rows,
}  # fmt: skip
