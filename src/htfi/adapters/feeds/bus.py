"""The messages of a bus into their inbox, each once: the inbox holds the place of the message that a row came in.

A message is acknowledged when its rows are on the disk. After a crash the bus is asked for what follows the newest
place of the inbox, and of a message that was half written only the rest is taken.
"""

import threading
import time
from collections.abc import Callable, Sequence

from htfi.adapters.feeds.live import Inbox, RowOrigin, message_rows, reconnect_delay_s
from htfi.domain.errors import DependencyUnavailable, HtfiError
from htfi.pipeline.intake.messages import BusUnavailable, Message, MessageSource

FIRST_CONNECT_S = 10.0
_RECEIVE_S = 0.25


class BusReceiver:
    """Gives up only when the very first connection does not come about within 10 s."""

    def __init__(self, inbox: Inbox, source: MessageSource, name: str, notify: Callable[[str], None]) -> None:
        self._inbox, self._source, self._name, self._notify = inbox, source, name, notify
        self._after: dict[int, int] = {}  # the newest place of which all rows are taken
        self._partial: dict[
            int, tuple[int, int]
        ] = {}  # a message of which some rows are: its place, how many
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bus", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5.0)

    def _run(self) -> None:
        try:
            self._read_places()
            self._follow()
        except HtfiError as error:
            self._inbox.finish(error)

    def _follow(self) -> None:
        give_up_s = time.monotonic() + FIRST_CONNECT_S
        has_come_about = self._inbox.num_bytes > 0
        num_failures, is_reported = 0, False
        while not self._stopped.is_set():
            try:
                self._source.connect(self._after)
                has_come_about = True
                if is_reported:
                    self._notify(f"source '{self._name}': the bus is back")
                    is_reported = False
                while not self._stopped.is_set():
                    if self._source.has_ended(self._after):
                        self._inbox.finish()
                        return
                    if messages := self._source.receive(_RECEIVE_S):
                        self._take(messages)
                        self._source.acknowledge()
                        num_failures = 0
            except BusUnavailable as error:
                if not has_come_about and time.monotonic() >= give_up_s:
                    raise DependencyUnavailable(f"source '{self._name}': {error}") from error
                if has_come_about and not is_reported:
                    self._notify(f"source '{self._name}': {error}; trying again")
                    is_reported = True
            finally:
                self._source.close()
            delay_s = reconnect_delay_s(num_failures)
            if not has_come_about:
                delay_s = min(delay_s, max(give_up_s - time.monotonic(), 0.0))
            self._stopped.wait(delay_s)
            num_failures += 1

    def _take(self, messages: Sequence[Message]) -> None:
        """Write down the rows of messages that are new. Raises: DependencyUnavailable."""
        rows: list[tuple[bytes, int]] = []
        origins: list[RowOrigin] = []
        for partition, place, content in messages:
            if place <= self._after.get(partition, -1):
                continue  # delivered again
            found = message_rows(content)
            begun, num_taken = self._partial.pop(partition, (-1, 0))
            first = num_taken if begun == place else 0
            rows += found[first:]
            origins += [
                RowOrigin(partition, place, at, len(found) - 1 - at) for at in range(first, len(found))
            ]
            self._after[partition] = place
        if rows:
            self._inbox.append(rows, origins)
            self._inbox.sync()

    def _read_places(self) -> None:
        """How far the inbox has come. Raises: IntegrityError."""
        for row in self._inbox.rows(last_only=not self._source.is_partitioned):
            if row.more:
                self._partial[row.partition] = row.place, row.before + 1
                self._after.setdefault(row.partition, row.place - 1)
            else:
                self._after[row.partition] = row.place
                self._partial.pop(row.partition, None)
