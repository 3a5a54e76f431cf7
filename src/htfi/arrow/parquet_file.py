"""A Parquet file read in constant memory: any of its columns, from any row on, page by page."""

import base64
import binascii
import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import arro3.core as arrow
import arro3.io
from arro3.core import DataType

from htfi.arrow.columns import is_text
from htfi.arrow.failures import DamagedFile, failures_as_damage
from htfi.arrow.parquet_footer import ARROW_SCHEMA, MAGIC, TAIL_BYTES, ParquetFooter
from htfi.arrow.streams import schema_message, schema_of_message

Batch = Any  # an arro3.core.RecordBatch
Schema = Any  # an arro3.core.Schema


class ParquetFile:
    """Rows and columns of a Parquet file.

    Raises: DamagedFile where it is not a whole one, OSError where it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb", buffering=0)
        try:
            num_bytes = self._file.seek(0, io.SEEK_END)
            self._num_data_bytes, footer = _footer(self._file, num_bytes)
            self.footer = ParquetFooter.parse(footer, self._num_data_bytes)
            self._schema = _arrow_schema(self.footer)
        except BaseException:
            self.close()
            raise

    @property
    def num_rows(self) -> int:
        return self.footer.num_rows

    @property
    def names(self) -> list[str]:
        return self.footer.names

    @cached_property
    def schema(self) -> Schema:
        """The Arrow schema of all columns. Raises: DamagedFile."""
        return self._open(len(self.footer.groups), None, (), 1).schema

    def batches(
        self,
        first_row: int = 0,
        num_rows: int = 8192,
        columns: Sequence[str] | None = None,
        coded: Collection[str] = (),
    ) -> Iterator[Batch]:
        """Batches of at most `num_rows` of these columns, from a row on. Row groups before the row are not read.

        Texts of the columns in `coded` come as the file holds them: each different one once, in a dictionary.

        Raises: DamagedFile, OSError.
        """
        group, before = 0, 0
        groups = self.footer.groups
        while group < len(groups) and before + groups[group].num_rows <= first_row:
            before += groups[group].num_rows
            group += 1
        if group == len(groups):
            return
        reader = self._open(group, columns, coded, num_rows)
        while (batch := reader.next()) is not None:
            skip = min(max(first_row - before, 0), batch.num_rows)
            before += batch.num_rows
            if skip < batch.num_rows:
                yield batch.slice(skip) if skip else batch

    def read_all(self, columns: Sequence[str] | None = None) -> Any:
        """An arro3.core.Table of these columns, in memory. Raises: DamagedFile, OSError."""
        batches = list(self.batches(0, 1 << 16, columns))
        if not batches:
            return self.schema.empty_table().select(self.names if columns is None else list(columns))
        return arrow.Table.from_batches(batches)

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> "ParquetFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self.close()

    def _open(
        self, first_group: int, columns: Sequence[str] | None, coded: Collection[str], num_rows: int
    ) -> "_BatchReader":
        """A reader over some columns of the row groups from one on."""
        _, places = self.footer.selected(len(self.footer.groups), columns, {})
        notes: Mapping[str, str] = {}
        if self._schema is not None:
            notes = _noted(arrow.Schema([self._schema.field(place) for place in places]))
        if coded:
            footer, _ = self.footer.selected(len(self.footer.groups), columns, notes)
            notes = _noted(_with_dictionaries(self._read(footer, 1).schema, coded))
        footer, _ = self.footer.selected(first_group, columns, notes)
        return self._read(footer, num_rows)

    def _read(self, footer: bytes, num_rows: int) -> "_BatchReader":
        return _BatchReader(_FileWithFooter(self._file, self._num_data_bytes, footer), num_rows)


class _BatchReader:
    """Batches of the file that a footer describes. Raises: DamagedFile, OSError."""

    def __init__(self, file: "_FileWithFooter", num_rows: int) -> None:
        self._file = file
        with failures_as_damage(file):
            self._reader: Any = arro3.io.read_parquet(cast(Any, file), batch_size=num_rows)

    @property
    def schema(self) -> Schema:
        return self._reader.schema

    def next(self) -> Batch | None:
        with failures_as_damage(self._file):
            return next(self._reader, None)


class _FileWithFooter:
    """The bytes of a file's pages, and behind them another footer than its own; of a file, what arro3 calls."""

    def __init__(self, file: io.FileIO, num_data_bytes: int, footer: bytes) -> None:
        self.failure: BaseException | None = None
        self._file = file
        self._num_data_bytes = num_data_bytes
        self._footer = footer + len(footer).to_bytes(4, "little") + MAGIC
        self._at = 0

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._num_data_bytes + len(self._footer))[whence]
        return self._at

    def read(self, size: int) -> bytes:
        begin = self._at - self._num_data_bytes
        try:
            if begin < 0:
                self._file.seek(self._at)
                found = self._file.read(min(size, -begin))
            else:
                found = self._footer[begin : begin + size]
        except BaseException as error:  # an interruption too: arro3 passes neither on
            self.failure = error
            raise
        self._at += len(found)
        return found


def _footer(file: io.FileIO, num_bytes: int) -> tuple[int, bytes]:
    """How many bytes stand before the footer, and the footer. Raises: DamagedFile."""
    if num_bytes < len(MAGIC) + TAIL_BYTES:
        raise DamagedFile(f"it has {num_bytes} bytes")
    file.seek(0)
    begins = file.read(len(MAGIC))
    file.seek(num_bytes - TAIL_BYTES)
    tail = file.read(TAIL_BYTES)
    if begins != MAGIC or tail[4:] != MAGIC:
        raise DamagedFile("it does not begin and end with PAR1")
    footer_bytes = int.from_bytes(tail[:4], "little")
    begin = num_bytes - TAIL_BYTES - footer_bytes
    if begin < len(MAGIC):
        raise DamagedFile("its footer is longer than the file")
    file.seek(begin)
    return begin, file.read(footer_bytes)


def _arrow_schema(footer: ParquetFooter) -> Schema | None:
    """The schema that the file's writer noted; nothing where it noted none that can be read."""
    noted = footer.notes.get(ARROW_SCHEMA)
    if noted is None:
        return None
    try:
        schema = schema_of_message(base64.b64decode(noted))
    except (DamagedFile, binascii.Error):
        return None
    return schema if schema.names == footer.names else None


def _noted(schema: Schema) -> Mapping[str, str]:
    return {ARROW_SCHEMA: base64.b64encode(schema_message(schema)).decode()}


def _with_dictionaries(schema: Schema, coded: Collection[str]) -> Schema:
    """The schema with texts of these columns in dictionaries."""
    fields = [schema.field(place) for place in range(len(schema))]
    return arrow.Schema(
        [
            field.with_type(DataType.dictionary(DataType.int32(), field.type))
            if field.name in coded and is_text(field.type)
            else field
            for field in fields
        ]
    )
