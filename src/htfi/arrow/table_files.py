"""Whole tables from files: Parquet, Arrow and CSV, in memory."""

import csv
from pathlib import Path
from typing import Any

import arro3.core
import arro3.io

from htfi.arrow.columns import TEXT, Table, one_chunk
from htfi.arrow.failures import DamagedFile, failures_as_damage
from htfi.arrow.parquet_file import ParquetFile
from htfi.arrow.reader_process import BatchReader
from htfi.arrow.reader_program import ARROW
from htfi.arrow.texts import parsed_cells

arrow: Any = arro3.core  # whose types are not complete

_ARROW_MAGIC = b"ARROW1"
_ROWS_AT_ONCE = 1 << 16


def read_parquet_table(path: Path) -> Table:
    """Raises: DamagedFile, OSError."""
    with ParquetFile(path) as file:
        return file.read_all()


def read_arrow_table(path: Path) -> Table:
    """Of Arrow's file format, which Feather is too. Raises: DamagedFile, OSError."""
    with path.open("rb") as file:
        begins = file.read(len(_ARROW_MAGIC))
        num_bytes = file.seek(0, 2)
        file.seek(max(num_bytes - len(_ARROW_MAGIC), 0))
        if begins != _ARROW_MAGIC or file.read() != _ARROW_MAGIC:
            raise DamagedFile("it does not begin and end with ARROW1")
        reader = BatchReader(file.fileno(), path, ARROW, num_bytes)
        batches = list(iter(reader.next, None))
        return arrow.Table.from_batches(batches, schema=reader.schema)


def read_csv_table(path: Path, separator: str = ",") -> Table:
    """A table with a header; each column is what all of its cells are. Raises: DamagedFile, OSError."""
    with path.open(encoding="utf-8-sig", newline="") as lines:
        try:
            names = next(csv.reader(lines, delimiter=separator), list[str]())
        except (csv.Error, UnicodeDecodeError) as error:
            raise DamagedFile(f"its header cannot be read: {error}") from error
    if not names:
        raise DamagedFile("it is empty")
    schema = arrow.Schema([arrow.Field(f"{place}", TEXT) for place in range(len(names))])
    with path.open("rb") as file, failures_as_damage():
        reader: Any = arro3.io.read_csv(
            file, schema, has_header=True, delimiter=separator, batch_size=_ROWS_AT_ONCE
        )
        table = reader.read_all()
    columns = [parsed_cells(one_chunk(column)) for column in table.columns]
    return arrow.Table.from_arrays(columns, names=names)
