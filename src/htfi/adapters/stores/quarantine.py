"""The quarantine file: one JSON line for each row that could not be used or was repaired, and why. Feeds fill it.

A run that goes on from a saved position cuts the file back to it first, so that no row stands there twice.
"""

import os
from pathlib import Path

import msgspec

from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.events import QuarantinedRow
from htfi.domain.files import add_checksum, open_private
from htfi.pipeline.intake.quarantine_reasons import QuarantineReason
from htfi.pipeline.ports import Position

_BUFFER_BYTES = 1 << 16


class QuarantineFile:
    """Implements the port `Quarantine`. Raises: DependencyUnavailable where the disk takes no more."""

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
            f"quarantine {self._path}: {why}: free the disk or choose another folder"
        )
