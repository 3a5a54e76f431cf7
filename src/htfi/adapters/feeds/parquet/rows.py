"""Where rows of Arrow columns lie: in a Parquet file, or in a table in memory. The reader takes batches of them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow
import pyarrow.parquet

from htfi.adapters.feeds.parquet.arrow_columns import Batch
from htfi.domain.errors import DependencyUnavailable, InvalidInput

pa: Any = pyarrow  # ships no types
pq: Any = pyarrow.parquet

_KEEP_BATCHES = 32  # then freed pages go back to the system, which the pool does not do by itself


class ArrowRows(Protocol):
    """Rows that can be read from any one on; `str` names them in messages."""

    @property
    def num_rows(self) -> int: ...
    @property
    def names(self) -> list[str]: ...

    def batches(self, first_row: int, num_rows: int, columns: Sequence[str]) -> Iterator[Batch]:
        """Batches of at most `num_rows` of these columns, from a row on. Raises: InvalidInput."""
        ...

    def rows_of(self, num_bytes: int) -> int:
        """How many rows make about so many bytes."""
        ...

    def hold_texts_once(self) -> None:
        """Keep a long text that stands in many rows once."""
        ...

    def close(self) -> None: ...


class TableRows:
    """The rows of a `pyarrow.Table`."""

    def __init__(self, name: str, table: Any) -> None:
        self._name = name
        self._table = table

    def __str__(self) -> str:
        return self._name

    @property
    def num_rows(self) -> int:
        return self._table.num_rows

    @property
    def names(self) -> list[str]:
        return self._table.column_names

    def batches(self, first_row: int, num_rows: int, columns: Sequence[str]) -> Iterator[Batch]:
        yield from self._table.select(columns).slice(first_row).to_batches(max_chunksize=num_rows)

    def rows_of(self, num_bytes: int) -> int:
        return max(1, int(num_bytes * self.num_rows / max(self._table.nbytes, 1)))

    def hold_texts_once(self) -> None: ...

    def close(self) -> None: ...


class ParquetRows:
    """The rows of a Parquet file, in constant memory. Raises: InvalidInput, DependencyUnavailable."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = self._open()

    def __str__(self) -> str:
        return str(self._path)

    @property
    def num_rows(self) -> int:
        return self._file.metadata.num_rows

    @property
    def names(self) -> list[str]:
        return self._file.schema_arrow.names

    def batches(self, first_row: int, num_rows: int, columns: Sequence[str]) -> Iterator[Batch]:
        """Whole row groups before the row are not read."""
        metadata = self._file.metadata
        group, before = 0, 0
        while group < metadata.num_row_groups and before + metadata.row_group(group).num_rows <= first_row:
            before += metadata.row_group(group).num_rows
            group += 1
        if group == metadata.num_row_groups:
            return
        groups = list(range(group, metadata.num_row_groups))
        try:
            batches = self._file.iter_batches(num_rows, groups, columns=columns, use_threads=False)
            for num_batches, batch in enumerate(batches):
                if num_batches % _KEEP_BATCHES == 0:
                    pa.default_memory_pool().release_unused()
                skip = min(max(first_row - before, 0), batch.num_rows)
                before += batch.num_rows
                if skip < batch.num_rows:
                    yield batch.slice(skip) if skip else batch
        except (pa.ArrowException, OSError) as error:
            raise InvalidInput(
                f"{self._path}: damaged after row {before} ({_line(error)}): fetch it again"
            ) from error

    def rows_of(self, num_bytes: int) -> int:
        """By the file's widest row group."""
        metadata = self._file.metadata
        groups = [metadata.row_group(place) for place in range(metadata.num_row_groups)]
        row_bytes = max((group.total_byte_size / max(group.num_rows, 1) for group in groups), default=1.0)
        return max(1, int(num_bytes / max(row_bytes, 1.0)))

    def hold_texts_once(self) -> None:
        """As the file holds it."""
        names = self.names
        self._file.close()
        self._file = self._open(names)

    def close(self) -> None:
        self._file.close()

    def _open(self, coded: list[str] | None = None) -> Any:
        try:
            return pq.ParquetFile(self._path, pre_buffer=False, read_dictionary=coded)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise InvalidInput(
                f"{self._path} is not a whole Parquet file ({_line(error)}): fetch it again"
            ) from error
        except OSError as error:
            why = error.strerror or _line(error)
            raise DependencyUnavailable(f"{self._path}: {why}: check the path and its rights") from error


def _line(error: BaseException) -> str:
    return str(error).splitlines()[0][:120] if str(error) else type(error).__name__
