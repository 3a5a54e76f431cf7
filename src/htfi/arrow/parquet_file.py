"""A Parquet file read in constant memory: any of its columns, from any row on, page by page."""

import base64
import binascii
import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import arro3.core
from arro3.core import DataType

from htfi.arrow.columns import is_text
from htfi.arrow.failures import DamagedFile, failures_as_damage
from htfi.arrow.parquet_footer import ARROW_SCHEMA, MAGIC, TAIL_BYTES, ParquetFooter
from htfi.arrow.reader_process import BatchReader
from htfi.arrow.reader_program import PARQUET, FileWithFooter, open_batches, reading
from htfi.arrow.streams import schema_message, schema_of_message

arrow: Any = arro3.core  # whose types are not complete

Batch = Any  # an arro3.core.RecordBatch
Schema = Any  # an arro3.core.Schema

_MAX_HELD_BYTES = 1 << 20
_MIN_BYTES = 4  # of most values in memory, where a file may have repeated ones but once
_HELD_ROWS_AT_ONCE = 1024
_ROWS_AT_ONCE = 1 << 14


class ParquetFile:
    """Rows and columns of a Parquet file. Its pages are read by another process, which a damaged one may end.

    Raises: DamagedFile where it is not a whole one, OSError where it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
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
        return self._schema_of(self._selected(len(self.footer.groups), None, ()))

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
        if self._held is not None:
            yield from _sliced(_with_columns(self._held, columns, coded), first_row, num_rows)
            return
        group, before = 0, 0
        groups = self.footer.groups
        while group < len(groups) and before + groups[group].num_rows <= first_row:
            before += groups[group].num_rows
            group += 1
        if group == len(groups):
            return
        reader = self._read(self._selected(group, columns, coded), num_rows)
        try:
            while (batch := reader.next()) is not None:
                skip = min(max(first_row - before, 0), batch.num_rows)
                before += batch.num_rows
                if skip < batch.num_rows:
                    yield batch.slice(skip) if skip else batch
        finally:
            reader.close()

    def read_all(self, columns: Sequence[str] | None = None) -> Any:
        """An arro3.core.Table of these columns, in memory. Raises: DamagedFile, OSError."""
        batches = list(self.batches(0, _ROWS_AT_ONCE, columns))
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

    @cached_property
    def _held(self) -> Batch | None:
        """All rows of a small file, which is read by one process then, not by one whenever it is asked for.

        Nothing of a damaged one: how far it can be read depends on what is asked for.
        """
        num_stored = sum(group.num_bytes for group in self.footer.groups)
        least_bytes = max(num_stored, self.num_rows * len(self.names) * _MIN_BYTES)
        if least_bytes > _MAX_HELD_BYTES or not self.num_rows:
            return None
        batches: list[Batch] = []
        num_bytes = 0
        reader = self._read(self._selected(0, None, ()), _HELD_ROWS_AT_ONCE)
        try:
            while (batch := reader.next()) is not None:
                num_bytes += batch.nbytes
                if num_bytes > _MAX_HELD_BYTES:
                    return None
                batches.append(batch)
        except DamagedFile:
            return None
        finally:
            reader.close()
        return arrow.Table.from_batches(batches).combine_chunks().to_batches()[0]

    def _selected(self, first_group: int, columns: Sequence[str] | None, coded: Collection[str]) -> bytes:
        """A footer of some columns of the row groups from one on."""
        _, places = self.footer.selected(len(self.footer.groups), columns, {})
        notes: Mapping[str, str] = {}
        if self._schema is not None:
            notes = _noted(arrow.Schema([self._schema.field(place) for place in places]))
        if coded:
            footer, _ = self.footer.selected(len(self.footer.groups), columns, notes)
            notes = _noted(_with_dictionaries(self._schema_of(footer), coded))
        footer, _ = self.footer.selected(first_group, columns, notes)
        return footer

    def _schema_of(self, footer: bytes) -> Schema:
        """That of the batches which a footer describes. No page is read."""
        file = FileWithFooter(reading(self._file.fileno()), self._num_data_bytes, _ending(footer))
        with failures_as_damage(file):
            return cast(Any, open_batches(PARQUET, file, 1)).schema

    def _read(self, footer: bytes, num_rows: int) -> BatchReader:
        return BatchReader(
            self._file.fileno(), self._path, PARQUET, self._num_data_bytes, _ending(footer), num_rows
        )


def _with_columns(batch: Batch, names: Sequence[str] | None, coded: Collection[str]) -> Batch:
    """Some columns of a batch, in its order; texts of those in `coded` in dictionaries."""
    if names is not None:
        batch = batch.select([place for place, name in enumerate(batch.column_names) if name in names])
    if not coded:
        return batch
    schema = _with_dictionaries(batch.schema, coded)
    columns = [column.cast(schema.field(place).type) for place, column in enumerate(batch.columns)]
    return arrow.RecordBatch.from_arrays(columns, schema=schema)


def _sliced(batch: Batch, first_row: int, num_rows: int) -> Iterator[Batch]:
    for begin in range(first_row, batch.num_rows, num_rows):
        yield batch.slice(begin, min(num_rows, batch.num_rows - begin))


def _ending(footer: bytes) -> bytes:
    """A footer, and what stands behind it."""
    return footer + len(footer).to_bytes(4, "little") + MAGIC


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
