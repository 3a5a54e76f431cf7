"""A live source's rows out of its inbox, as blocks of parsed rows: reads standard input and WebSockets."""

from typing import Protocol

from htfi.adapters.feeds.decode import JsonRows, Parsed, parse_record
from htfi.adapters.feeds.framing import CHUNK_BYTES, Lines
from htfi.adapters.feeds.inbox import MAX_LINE_BYTES, Arrival, Inbox
from htfi.domain.errors import IntegrityError
from htfi.pipeline.intake.rows import RowParser
from htfi.pipeline.intake.source import Block, Mark
from htfi.pipeline.intake.spec import SourceSpec


class Pump(Protocol):
    """A thread that fills the inbox."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


class LiveReader:
    """Implements the port `Reader`. Marks are [rows before, byte offset in the inbox]."""

    live = True

    def __init__(self, spec: SourceSpec, inbox: Inbox, pump: Pump, rows: JsonRows | None = None) -> None:
        self._spec = spec
        self._inbox = inbox
        self._pump = pump
        self._rows = rows or JsonRows()
        self._parser = RowParser(spec, "")
        self._num_rows = self._offset = self._end = 0
        self._lines = Lines(self._more, 0, MAX_LINE_BYTES)

    def start(self, mark: Mark | None) -> None:
        self._num_rows, self._offset = (0, 0) if mark is None else (mark[0], mark[1])
        if self._offset > self._inbox.num_bytes:
            raise IntegrityError(
                f"inbox {self._inbox.path} is shorter than when the run stopped: "
                "restore it, or use a new folder"
            )
        self._lines = Lines(self._more, self._offset, MAX_LINE_BYTES)
        self._pump.start()

    def read(self) -> Block | None:
        self._end, now_ns, ended = self._inbox.state()
        mark = [self._num_rows, self._offset]
        parsed = Parsed()
        read_on = True
        while read_on and not parsed.items:
            batch = self._lines.next(CHUNK_BYTES)
            read_on = batch is not None
            for offset, line, num_bytes in batch or []:
                self._take(self._inbox.arrival(line, offset), parsed)
                self._offset = offset + num_bytes + 1
        if parsed.items:
            return Block(mark, parsed.items, parsed.identities)
        if ended:
            return None
        return Block(mark, [], known_until_ns=now_ns if self._spec.by_arrival else None)

    def progress(self) -> float | None:
        return None

    def close(self) -> None:
        self._pump.stop()
        self._inbox.close()

    def _take(self, arrival: Arrival, parsed: Parsed) -> None:
        content = arrival.content
        record = (0, content, arrival.num_bytes or len(content))
        item = parse_record(self._rows, self._parser, record, self._num_rows + 1, arrival.at)
        if item is not None:
            self._num_rows += 1
            parsed.add(item, content)

    def _more(self, num_bytes: int) -> bytes:
        at = self._lines.offset_read
        return self._inbox.read(at, min(num_bytes, self._end - at))
