"""CSV files of the other side: executions of a drop copy, positions of a statement."""

import csv
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from pathlib import Path

from htfi.domain.errors import InvalidInput

EXECUTION_COLUMNS = ("exec_id", "cl_ord_id", "instrument", "side", "quantity", "price")
POSITION_COLUMNS = ("instrument", "quantity")  # and account, where there are several


def read_text(path: Path) -> str:
    """A file's text. Raises: InvalidInput."""
    try:
        return path.read_text()
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path}: is not text: {error}") from error


def read_rows(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[str, dict[str, str]]]:
    """Where each row stands, and its cells by column. Raises: InvalidInput."""
    reader = csv.DictReader(read_text(path).splitlines())
    missing = [name for name in columns if name not in (reader.fieldnames or ())]
    if missing:
        raise InvalidInput(f"{path}: the column {missing[0]} is missing: it has {', '.join(columns)}")
    for row in reader:
        cells = {name: (value or "").strip() for name, value in row.items() if isinstance(name, str)}
        yield f"{path} line {reader.line_num}", cells


def whole_lots(where: str, text: str) -> int:
    """A number of lots. Raises: InvalidInput."""
    value = decimal_of(where, text)
    if value != value.to_integral_value():
        raise InvalidInput(f"{where}: quantity {text} is no whole number of lots")
    return int(value)


def decimal_of(where: str, text: str) -> Decimal:
    """A finite number. Raises: InvalidInput."""
    try:
        value = Decimal(text.replace(",", ""))
    except InvalidOperation:
        value = Decimal("nan")
    if not value.is_finite():
        raise InvalidInput(f"{where}: '{text[:40]}' is not a number")
    return value
