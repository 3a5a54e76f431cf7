"""Standard input into its inbox: one thread that reads lines as they come. `LiveReader` starts it."""

import os
import threading
from collections.abc import Iterator
from itertools import islice

from htfi.adapters.feeds.live import Inbox
from htfi.adapters.feeds.records import LineReader
from htfi.domain.errors import DependencyUnavailable, HtfiError

_READ_BYTES = 1 << 16
_BATCH_ROWS = 512

_Row = tuple[bytes, int]


class StdinReceiver:
    """After a restart, lines that repeat the inbox from its first on are the same stream again: skipped.

    A stream that begins otherwise is its continuation.
    """

    def __init__(self, inbox: Inbox, descriptor: int = 0) -> None:
        self._inbox = inbox
        self._descriptor = descriptor
        self._stopped = False
        # A daemon: a read that waits for a person's next line must not hold up the end of the process.
        self._thread = threading.Thread(target=self._run, name="stdin", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped = True

    def _run(self) -> None:
        try:
            for rows in self._new_rows():
                if self._stopped:
                    return
                self._inbox.append(rows)
            self._inbox.finish()
        except HtfiError as error:
            self._inbox.finish(error)
        except OSError as error:
            why = error.strerror or str(error)
            self._inbox.finish(DependencyUnavailable(f"standard input: {why}: pipe the stream again"))

    def _new_rows(self) -> Iterator[list[_Row]]:
        """What the inbox does not hold yet, in groups as they came."""
        known = (arrival.content for arrival in self._inbox.rows())
        num_same = 0
        comparing = True
        for group in self._row_batches():
            while comparing and group:
                expected = next(known, None)
                if expected == group[0][0]:
                    num_same += 1
                    del group[0]
                    continue
                comparing = False
                if expected is not None and num_same:
                    yield from self._replayed_rows(num_same)
            if group:
                yield group

    def _replayed_rows(self, num_rows: int) -> Iterator[list[_Row]]:
        """The inbox's first rows, which a continuation happened to begin with."""
        rows = (
            (arrival.content, arrival.num_bytes or len(arrival.content)) for arrival in self._inbox.rows()
        )
        first = islice(rows, num_rows)
        while group := list(islice(first, _BATCH_ROWS)):
            yield group

    def _row_batches(self) -> Iterator[list[_Row]]:
        lines = LineReader(lambda num_bytes: os.read(self._descriptor, num_bytes))
        while (batch := lines.next(_READ_BYTES)) is not None:
            yield [(content, num_bytes) for _, content, num_bytes in batch if content.strip()]
        yield [(content, num_bytes) for _, content, num_bytes in lines.finish() if content.strip()]
