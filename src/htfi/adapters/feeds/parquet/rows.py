"""Where rows of Arrow columns lie: in a Parquet file, or in a table in memory. The reader takes batches of them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from arro3.core import Table

from htfi.adapters.feeds.parquet.arrow_columns import Batch
from htfi.arrow.failures import DamagedFile
from htfi.arrow.parquet_file import ParquetFile
from htfi.domain.errors import DependencyUnavailable, InvalidInput


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
    """The rows of a table in memory, of any library that has Arrow's interface."""

    def __init__(self, name: str, table: Any) -> None:
        self._name = name
        self._table = table if isinstance(table, Table) else Table.from_arrow(table)

    def __str__(self) -> str:
        return self._name

    @property
    def num_rows(self) -> int:
        return self._table.num_rows

    @property
    def names(self) -> list[str]:
        return self._table.column_names

    def batches(self, first_row: int, num_rows: int, columns: Sequence[str]) -> Iterator[Batch]:
        for batch in self._table.select(list(columns)).slice(min(first_row, self.num_rows)).to_batches():
            for begin in range(0, batch.num_rows, num_rows):
                yield batch.slice(begin, min(num_rows, batch.num_rows - begin))

    def rows_of(self, num_bytes: int) -> int:
        return max(1, int(num_bytes * self.num_rows / max(self._table.nbytes, 1)))

    def hold_texts_once(self) -> None: ...

    def close(self) -> None: ...


class ParquetRows:
    """The rows of a Parquet file, in constant memory. Raises: InvalidInput, DependencyUnavailable."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._has_long_texts = False
        try:
            self._file = ParquetFile(path)
        except DamagedFile as error:
            raise InvalidInput(f"{path} is not a whole Parquet file ({error}): fetch it again") from error
        except OSError as error:
            raise DependencyUnavailable(
                f"{path}: {error.strerror or error}: check the path and its rights"
            ) from error

    def __str__(self) -> str:
        return str(self._path)

    @property
    def num_rows(self) -> int:
        return self._file.num_rows

    @property
    def names(self) -> list[str]:
        return self._file.names

    def batches(self, first_row: int, num_rows: int, columns: Sequence[str]) -> Iterator[Batch]:
        """Whole row groups before the row are not read."""
        num_read = first_row
        coded = columns if self._has_long_texts else ()
        try:
            for batch in self._file.batches(first_row, num_rows, columns, coded):
                yield batch
                num_read += batch.num_rows
        except DamagedFile as error:
            raise InvalidInput(
                f"{self._path}: damaged after row {num_read} ({error}): fetch it again"
            ) from error
        except OSError as error:
            raise DependencyUnavailable(
                f"{self._path}: cannot be read after row {num_read}: {error.strerror or error}"
            ) from error

    def rows_of(self, num_bytes: int) -> int:
        """By the file's widest row group."""
        groups = self._file.footer.groups
        row_bytes = max((group.num_bytes / max(group.num_rows, 1) for group in groups), default=1.0)
        return max(1, int(num_bytes / max(row_bytes, 1.0)))

    def hold_texts_once(self) -> None:
        """As the file holds it."""
        self._has_long_texts = True

    def close(self) -> None:
        self._file.close()
