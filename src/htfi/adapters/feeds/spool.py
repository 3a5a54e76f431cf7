"""Files whose rows are not in order of time: sorted once into a spool in the run's folder, read from there.

An external merge sort: memory stays bounded however long the file. Rows are counted in their new order, so a
rejection says where in the file its row stands. The spool ends in the SHA-256 of its rows: one that is not as it was
written is sorted again. Wiring puts it around a file's reader.
"""

import heapq
import struct
from collections.abc import Callable, Generator, Hashable, Iterator
from contextlib import ExitStack, contextmanager
from hashlib import blake2b, sha256
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, BinaryIO

import msgspec

from htfi.domain.errors import DependencyUnavailable
from htfi.domain.events import Bar, Event, MacroAnnouncement, News, QuarantinedRow, Quote, Trade
from htfi.domain.files import atomic_writer, make_private
from htfi.pipeline.intake.cells import RepairedBar
from htfi.pipeline.intake.source import ReadPosition, RowBlock, RowReader

_RUN_ROWS = 50_000
_HEADER = struct.Struct("<qqI")  # instant, row, bytes of the entry
_BUFFER_BYTES = 1 << 17
_DIGEST_BYTES = 32
_MIN_TIME_NS = -(1 << 63)
_KINDS = (Trade, Quote, Bar, News, MacroAnnouncement, QuarantinedRow, RepairedBar)
_CONSTRUCTORS: tuple[Callable[..., Event | QuarantinedRow], ...] = _KINDS
_TAG_OF = {kind: place for place, kind in enumerate(_KINDS)}
_NEWS, _REJECTION, _REPAIRED = _TAG_OF[News], _TAG_OF[QuarantinedRow], _TAG_OF[RepairedBar]
_ROW, _SYMBOLS, _REJECTED_ROW, _DETAIL = 3, 6, 1, 3  # places of fields

_Packed = tuple[int, int, bytes]  # instant, row, entry


class _SpoolEntry(msgspec.Struct, array_like=True, gc=False):
    """An item as its fields, which takes a third of the space of a map."""

    kind: int  # its place in `_KINDS`
    fields: list[Any]
    identity: bytes


class SpoolReader:
    """Implements the port `RowReader`. Marks are [rows before, byte offset in the spool]."""

    live = False

    def __init__(self, reader: RowReader, path: Path, block_rows: int) -> None:
        self._reader = reader
        self._path = path
        self._block_rows = block_rows
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(_SpoolEntry).decode
        self._file: BinaryIO | None = None
        self._num_rows = self._offset = self._num_bytes = 0

    def start(self, mark: ReadPosition | None) -> None:
        try:
            if mark is None or not _is_whole(self._path):
                self._sort()
            self._num_rows, self._offset = (0, 0) if mark is None else (mark[0], mark[1])
            self._file = self._path.open("rb", _BUFFER_BYTES)
            self._num_bytes = self._path.stat().st_size - _DIGEST_BYTES
            self._file.seek(self._offset)
        except OSError as error:
            raise self._unavailable(error) from error

    def read(self) -> RowBlock | None:
        assert self._file is not None
        mark = [self._num_rows, self._offset]
        items: list[Event | QuarantinedRow] = []
        identities: list[Hashable] = []
        try:
            for _, row, packed in _entries(self._file, self._num_bytes - self._offset, self._block_rows):
                self._offset += _HEADER.size + len(packed)
                self._num_rows += 1
                entry = self._decode(packed)
                items.append(self._renumbered(entry, row))
                identities.append(entry.identity)
        except OSError as error:
            raise self._unavailable(error) from error
        return RowBlock(mark, items, identities) if items else None

    def progress(self) -> float | None:
        return self._offset / self._num_bytes if self._num_bytes else 0.0

    def close(self) -> None:
        self._reader.close()
        if self._file is not None:
            self._file.close()
            if self._offset >= self._num_bytes:
                self._path.unlink(missing_ok=True)  # read to its end: a resumed run would sort it again

    def _renumbered(self, entry: _SpoolEntry, row: int) -> Event | QuarantinedRow:
        fields = entry.fields
        if entry.kind == _REJECTION:
            fields[_REJECTED_ROW] = self._num_rows
            fields[_DETAIL] += f" (row {row} of the file)"
            fields.pop()  # repairs: a rejection has none
        else:
            fields[_ROW] = self._num_rows
            if entry.kind == _NEWS:
                fields[_SYMBOLS] = tuple(fields[_SYMBOLS])
            elif entry.kind == _REPAIRED:
                note = msgspec.convert(fields.pop(), QuarantinedRow)
                detail = f"{note.detail} (row {row} of the file)"
                note = msgspec.structs.replace(note, row=self._num_rows, detail=detail)
                return RepairedBar(*fields, note=note)
        return _CONSTRUCTORS[entry.kind](*fields)

    def _sort(self) -> None:
        make_private(self._path.parent)
        self._reader.start(None)
        digest = sha256()
        with ExitStack() as closing:
            runs = [closing.enter_context(part) for part in map(self._write_sorted_run, self._rows())]
            out = closing.enter_context(atomic_writer(self._path))
            for instant, row, packed in heapq.merge(*(_entries(run, num) for run, num in runs)):
                entry = _HEADER.pack(instant, row, len(packed)) + packed
                digest.update(entry)
                out.write(entry)
            out.write(digest.digest())

    @contextmanager
    def _write_sorted_run(self, rows: list[_Packed]) -> Generator[tuple[IO[bytes], int]]:
        """A sorted part of the file and its bytes, on disk only as long as it is open."""
        rows.sort()
        with TemporaryFile(buffering=_BUFFER_BYTES, dir=self._path.parent) as run:
            for instant, row, packed in rows:
                run.write(_HEADER.pack(instant, row, len(packed)) + packed)
            num_bytes = run.tell()
            run.seek(0)
            yield run, num_bytes

    def _rows(self) -> Iterator[list[_Packed]]:
        """The file's rows, packed, in parts that fit into memory; a rejection stays beside the row before."""
        rows: list[_Packed] = []
        latest_ns = _MIN_TIME_NS
        while (block := self._reader.read()) is not None:
            for place, item in enumerate(block.items):
                identity = b""
                if not isinstance(item, QuarantinedRow):
                    latest_ns = item.available_at_ns
                    if block.identities is not None:
                        identity_text = repr(block.identities[place]).encode()
                        identity = blake2b(identity_text, digest_size=12).digest()
                entry = _SpoolEntry(_TAG_OF[type(item)], list(msgspec.structs.astuple(item)), identity)
                rows.append((latest_ns, item.row, self._encode(entry)))
            if len(rows) >= _RUN_ROWS:
                yield rows
                rows = []
        if rows:
            yield rows

    def _unavailable(self, error: OSError) -> DependencyUnavailable:
        why = error.strerror or str(error)
        return DependencyUnavailable(
            f"spool {self._path}: {why}: free some disk space or choose another folder"
        )


def _entries(file: IO[bytes], size: int, num_rows: int = -1) -> Iterator[_Packed]:
    """Of the next `size` bytes, at most so many."""
    while num_rows and size > 0:
        instant, row, num_bytes = _HEADER.unpack(file.read(_HEADER.size))
        yield instant, row, file.read(num_bytes)
        size -= _HEADER.size + num_bytes
        num_rows -= 1


def _is_whole(path: Path) -> bool:
    """Whether a spool is there, as it was written. Raises: OSError."""
    if not path.exists():
        return False
    left = path.stat().st_size - _DIGEST_BYTES
    digest = sha256()
    with path.open("rb") as file:
        while left > 0 and (part := file.read(min(left, 1 << 20))):
            digest.update(part)
            left -= len(part)
        return file.read() == digest.digest()
