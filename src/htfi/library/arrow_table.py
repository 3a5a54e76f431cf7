"""The Arrow table that results come back as where pyarrow is not installed."""

from collections.abc import Iterator, Sequence
from typing import Any

from htfi.arrow.columns import Column, Table, one_chunk
from htfi.arrow.streams import table_message, table_of_message
from htfi.library.pandas_columns import pandas_frame


class ArrowTable:
    """Columns by name, with the names of pyarrow's methods; any library with Arrow's interface takes it as its own."""

    def __init__(self, table: Table) -> None:
        self._table = table

    @property
    def num_rows(self) -> int:
        return self._table.num_rows

    @property
    def num_columns(self) -> int:
        return self._table.num_columns

    @property
    def column_names(self) -> list[str]:
        return self._table.column_names

    @property
    def schema(self) -> Any:
        """An `arro3.core.Schema`."""
        return self._table.schema

    @property
    def columns(self) -> list[Any]:
        """An `arro3.core.ChunkedArray` each."""
        return self._table.columns

    def column(self, which: int | str) -> Any:
        """An `arro3.core.ChunkedArray`. Raises: KeyError."""
        if isinstance(which, str) and which not in self.column_names:
            raise KeyError(which)
        return self._table.column(which)

    __getitem__ = column

    def select(self, columns: Sequence[int] | Sequence[str]) -> "ArrowTable":
        return ArrowTable(self._table.select(list(columns)))

    def slice(self, offset: int = 0, length: int | None = None) -> "ArrowTable":
        offset = min(offset, self.num_rows)
        left = self.num_rows - offset
        return ArrowTable(self._table.slice(offset, left if length is None else min(length, left)))

    def to_pydict(self) -> dict[str, list[Any]]:
        return {
            name: column.to_pylist()
            for name, column in zip(self.column_names, self._table.columns, strict=True)
        }

    def to_pylist(self) -> list[dict[str, Any]]:
        """A dictionary for each row."""
        columns = self.to_pydict()
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def to_pandas(self) -> Any:
        """A DataFrame; pandas must be installed."""
        return pandas_frame(self._arrays())

    def _arrays(self) -> dict[str, Column]:
        return {
            name: one_chunk(column)
            for name, column in zip(self.column_names, self._table.columns, strict=True)
        }

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._table.__arrow_c_schema__()

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return _table_of, (table_message(self._table),)

    def __len__(self) -> int:
        return self.num_rows

    def __iter__(self) -> Iterator[Any]:
        return iter(self.columns)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArrowTable) and self._table == other._table

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return repr(self._table).replace("arro3.core.Table", "htfi.library.arrow_table.ArrowTable", 1)


def _table_of(message: bytes) -> ArrowTable:
    """A table that was copied or pickled."""
    return ArrowTable(table_of_message(message))
