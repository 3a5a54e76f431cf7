"""Batches that are made one by one, as the stream that arro3 writes: a table need not be in memory to be written."""

import io
from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import Any, BinaryIO

import arro3.io

from htfi.arrow.failures import failures_as_damage

Batch = Any  # an arro3.core.RecordBatch
Schema = Any  # an arro3.core.Schema
_PREFIX_BYTES = 8  # of a message: its mark, and the length of what follows
_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"


def write_parquet(
    file: BinaryIO, schema: Schema, batches: Iterable[Batch], *, group_rows: int, notes: Mapping[str, str]
) -> None:
    """Write batches of a schema as a Parquet file with Zstandard; `notes` are its key-value metadata.

    Raises: what making a batch raises, OSError.
    """
    target = _OutputFile(file)
    source = _BatchStream(schema, takewhile(lambda _: target.failure is None, batches))
    with failures_as_damage(source):
        arro3.io.write_parquet(
            arro3.io.read_ipc_stream(source),  # pyright: ignore[reportArgumentType]
            target,  # pyright: ignore[reportArgumentType]
            compression="zstd(1)",
            max_row_group_size=group_rows,
            key_value_metadata=dict(notes),
        )
    if target.failure is not None:
        raise target.failure


def table_message(table: Any) -> bytes:
    """A table as Arrow's stream of it."""
    out = io.BytesIO()
    arro3.io.write_ipc_stream(table, out)
    return out.getvalue()


def table_of_message(message: bytes) -> Any:
    """Raises: DamagedFile."""
    with failures_as_damage():
        return arro3.io.read_ipc_stream(io.BytesIO(message)).read_all()


def schema_message(schema: Schema) -> bytes:
    """A schema as Arrow's message of it."""
    return table_message(schema.empty_table())[: -len(_END)]


def schema_of_message(message: bytes) -> Schema:
    """Raises: DamagedFile."""
    with failures_as_damage():
        return arro3.io.read_ipc_stream(io.BytesIO(message + _END)).schema


class _Forward:
    """What arro3 asks of a file before it uses one, and never calls."""

    def __init__(self) -> None:
        self.failure: BaseException | None = None

    def seek(self, _offset: int, _whence: int = io.SEEK_SET) -> int:
        raise io.UnsupportedOperation("a stream goes forward")


class _BatchStream(_Forward):
    """Arrow's stream of a schema and of batches, each written when it is read; of a file, what arro3 calls."""

    def __init__(self, schema: Schema, batches: Iterable[Batch]) -> None:
        super().__init__()
        self._batches = iter(batches)
        self._left = memoryview(schema_message(schema))

    def read(self, size: int) -> bytes:
        try:
            while not self._left:
                batch = next(self._batches, None)
                if batch is None:
                    return b""
                self._left = memoryview(_batch_messages(batch))
        except BaseException as error:  # an interruption too: arro3 passes neither on
            self.failure = error
            raise
        found, self._left = bytes(self._left[:size]), self._left[size:]
        return found


class _OutputFile(_Forward):
    """A file that is written; of it, what arro3 calls."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file

    def write(self, data: bytes) -> int:
        """After a failure nothing is written: arro3 would say on standard error what it cannot write."""
        try:
            if self.failure is None:
                self._file.write(data)
        except BaseException as error:  # noqa: BLE001 - raised again when arro3 has ended
            self.failure = error
        return len(data)

    def flush(self) -> None: ...


def _batch_messages(batch: Batch) -> bytes:
    """The messages of a batch and of its dictionaries, without those of the schema and of the end."""
    written = table_message(batch)
    begin = _PREFIX_BYTES + int.from_bytes(written[4:_PREFIX_BYTES], "little")
    return written[begin : -len(_END)]
