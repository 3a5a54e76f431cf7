"""The quarantine's files: rows that could not be used or were repaired, and news that the sanitiser holds back.

quarantine.jsonl has one line for each row and why; held_news.jsonl one for each item, as it came, with what the
sanitiser said, for `htfi quarantine`. A run that continues from a saved position cuts the files back to it first, so
that nothing stands there twice, and holds the same items again to the same bytes.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from htfi.domain.errors import DependencyUnavailable, IntegrityError, InvalidInput
from htfi.domain.events import News, QuarantinedRow
from htfi.domain.files import add_checksum, checksum_holds, open_private
from htfi.domain.news import ScreenedItem
from htfi.pipeline.intake.quarantine_reasons import QuarantineReason
from htfi.pipeline.operator_actions import HeldItem
from htfi.pipeline.ports import Position

HELD_NEWS = "held_news.jsonl"
_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(HeldItem)


class HeldNewsFile:
    """Implements the port `HeldNewsStore`. Every item is with the operating system before the next is read.

    Raises: DependencyUnavailable where the disk takes no more.
    """

    def __init__(self, path: Path, position: Position | None = None) -> None:
        self._path = path
        saved = position or {"num_bytes": 0, "num_held": 0}
        self._num_bytes: int = saved["num_bytes"]
        self._num_held: int = saved["num_held"]
        try:
            self._file = open_private(path, os.O_RDWR | os.O_APPEND)
            if os.fstat(self._file).st_size < self._num_bytes:
                raise InvalidInput(
                    f"{path} is shorter than when the run stopped: restore it, or use a new folder"
                )
            os.ftruncate(self._file, self._num_bytes)
        except OSError as error:
            raise self._unavailable(error) from error

    @property
    def num_held(self) -> int:
        return self._num_held

    def hold(self, item: News, screened: ScreenedItem) -> None:
        """Keep an item as it came, under the next number."""
        self._num_held += 1
        line = add_checksum(_encode_line(HeldItem(self._num_held, item, screened)), self._num_bytes) + b"\n"
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError as error:
            raise self._unavailable(error) from error
        self._num_bytes += len(line)

    def find(self, number: int) -> HeldItem | None:
        if not 1 <= number <= self._num_held:
            return None
        return next((held for held in read_held(self._path) if held.number == number), None)

    def position(self) -> Position:
        """The file's length with every item so far in it, safe on the disk, and their number."""
        try:
            os.fsync(self._file)
        except OSError as error:
            raise self._unavailable(error) from error
        return {"num_bytes": self._num_bytes, "num_held": self._num_held}

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _unavailable(self, error: OSError) -> DependencyUnavailable:
        why = error.strerror or str(error)
        return DependencyUnavailable(
            f"quarantine {self._path}: {why}: free some disk space or choose another folder"
        )


def read_held(path: Path) -> Iterator[HeldItem]:
    """Every item of the file, in order; a last line that is not finished yet is left out, as is a missing file.

    Raises: DependencyUnavailable, IntegrityError at a broken line.
    """
    try:
        place = 0
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    return
                if not checksum_holds(line, place):
                    raise IntegrityError(
                        f"{path}, line {number}: was changed after the run: repeat the run's command, which makes the "
                        "file from its inputs"
                    )
                yield _decode_line(line, number, path)
                place += len(line)
    except FileNotFoundError:
        return
    except OSError as error:
        raise DependencyUnavailable(f"{path}: cannot be read: {error.strerror}") from error


def _decode_line(line: bytes, number: int, path: Path) -> HeldItem:
    try:
        held = _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise IntegrityError(
            f"{path}, line {number}: is not an item in quarantine: restore it from a copy"
        ) from error
    if held.number != number:
        raise IntegrityError(f"{path}, line {number}: holds item {held.number}: restore it from a copy")
    return held


def _encode_line(held: HeldItem) -> bytes:
    try:
        return _ENCODER.encode(held)
    except UnicodeEncodeError:  # half of a surrogate pair stands alone: no file can hold it
        fields = {name: _whole(value) for name, value in msgspec.structs.asdict(held.item).items()}
        return _ENCODER.encode(replace(held, item=msgspec.convert(fields, News)))


def _whole(value: object) -> object:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


_BUFFER_BYTES = 1 << 16


class QuarantineFile:
    """Implements the port `RowQuarantine`. Raises: DependencyUnavailable where the disk takes no more."""

    def __init__(self, path: Path, position: Position | None = None) -> None:
        self._path = path
        self._encoder = msgspec.json.Encoder()
        self._pending = bytearray()
        self._examples: dict[tuple[str, str], str] = {}
        saved = position or {"num_bytes": 0, "counts": {}}
        self._num_bytes: int = saved["num_bytes"]
        self._counts: dict[str, dict[str, int]] = {source: dict(by) for source, by in saved["counts"].items()}
        try:
            self._file = open_private(path, os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0))
            if os.fstat(self._file).st_size < self._num_bytes:
                raise InvalidInput(
                    f"{path} is shorter than when the run stopped: restore it, or use a new folder"
                )
            os.ftruncate(self._file, self._num_bytes)
        except OSError as error:
            raise self._unavailable(error) from error

    def set_aside(self, rejection: QuarantinedRow) -> None:
        by_reason = self._counts.setdefault(rejection.source, {})
        by_reason[rejection.reason] = by_reason.get(rejection.reason, 0) + 1
        self._examples.setdefault((rejection.source, rejection.reason), rejection.detail)
        place = self._num_bytes + len(self._pending)
        self._pending += add_checksum(self._encoder.encode(rejection), place) + b"\n"
        if len(self._pending) >= _BUFFER_BYTES:
            self._flush()

    def counts(self) -> dict[str, int]:
        """Rows set aside so far, by reason."""
        total: dict[str, int] = {}
        for by_reason in self.counts_by_source().values():
            for reason, count in by_reason.items():
                total[reason] = total.get(reason, 0) + count
        return dict(sorted(total.items()))

    def counts_by_source(self) -> dict[str, dict[str, int]]:
        """Rows set aside so far, by source and reason."""
        return {
            source: {
                reason: count for reason, count in by_reason.items() if reason != QuarantineReason.REPAIRED
            }
            for source, by_reason in self._counts.items()
        }

    def example(self, source: str, reason: str) -> str:
        """What was said of the first such row since the start; '' where none is known."""
        return self._examples.get((source, reason), "")

    def num_repaired(self) -> int:
        return sum(by_reason.get(QuarantineReason.REPAIRED, 0) for by_reason in self._counts.values())

    def position(self) -> Position:
        """The file's length with everything set aside so far in it, and the counts."""
        self._flush()
        counts = {source: dict(by_reason) for source, by_reason in self._counts.items()}
        return {"num_bytes": self._num_bytes, "counts": counts}

    def close(self) -> None:
        if self._file < 0:
            return
        try:
            self._flush()
        finally:
            os.close(self._file)
            self._file = -1

    def _flush(self) -> None:
        try:
            while self._pending:
                num_written = os.write(self._file, self._pending)
                self._num_bytes += num_written
                del self._pending[:num_written]
        except OSError as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: OSError) -> DependencyUnavailable:
        why = error.strerror or str(error)
        return DependencyUnavailable(
            f"quarantine {self._path}: {why}: free some disk space or choose another folder"
        )
