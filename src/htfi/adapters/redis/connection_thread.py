"""A thread with one connection to a server: the caller waits for it a bounded time, and never for the network itself.

A socket's own timeout starts again with every byte that comes, so a server that stalls could hold the asker; here the
asker leaves when its time is up, and the line rests until the server has answered again.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

_FIRST_PAUSE_S, _MAX_PAUSE_S = 0.1, 10.0
_CLOSE_S = 2.0  # that `close` waits for the thread at most

Action = Callable[[Any], Any]


class RedisRequest:
    """Something asked over a line; `answer` is there once `done` is set, unless it `failed`."""

    __slots__ = ("action", "answer", "done", "failed", "size")

    def __init__(self, work: Action, size: int) -> None:
        self.action = work
        self.size = size
        self.done = threading.Event()
        self.answer: Any = None
        self.failed = False


class ConnectionThread:
    """`connect` gives a connection that answers `ping` and `close`; `trouble` gets what it raises. `idle` is work done
    whenever nothing else has been for `idle_s`.

    After a fault nothing is asked until a ping was answered, with growing pauses between pings.
    """

    def __init__(
        self,
        name: str,
        connect: Callable[[], Any],
        trouble: Callable[[Exception], None],
        *,
        max_waiting_bytes: int,
        idle: Action | None = None,
        idle_s: float = 1.0,
    ) -> None:
        self._connect = connect
        self._report_trouble = trouble
        self._max_bytes = max_waiting_bytes
        self._idle, self._idle_s = idle, idle_s
        self._requests: deque[RedisRequest] = deque()
        self._num_bytes = 0
        self._wake = threading.Condition()
        self._is_healthy = self._is_closed = False
        self._current = False
        self.num_lost = 0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def wait_healthy(self, timeout_s: float) -> bool:
        """Wait for the first answer."""
        with self._wake:
            return (
                self._wake.wait_for(lambda: self._is_healthy or self._is_closed, timeout_s)
                and self._is_healthy
            )

    def call(self, work: Action, timeout_s: float) -> tuple[bool, Any]:
        """Whether it was answered in time, and the answer. Once it was not, the line rests."""
        if not self._is_healthy or self._current:
            return False, None
        job = RedisRequest(work, 0)
        with self._wake:
            self._requests.append(job)
            self._wake.notify()
        if not job.done.wait(timeout_s):
            self._is_healthy = False
            return False, None
        return not job.failed, job.answer

    def post(self, work: Action, num_bytes: int) -> bool:
        """Have something done without waiting for it. False where the line rests or has enough to do."""
        if not self._is_healthy or self._num_bytes + num_bytes > self._max_bytes:
            self.num_lost += 1
            return False
        with self._wake:
            self._num_bytes += num_bytes
            self._requests.append(RedisRequest(work, num_bytes))
            self._wake.notify()
        return True

    def drain(self, timeout_s: float) -> bool:
        """Wait until all that was sent is done."""
        until_s = time.monotonic() + timeout_s
        while (self._requests or self._current) and self._is_healthy:
            if time.monotonic() > until_s:
                return False
            time.sleep(0.001)
        return not self._requests

    def close(self) -> None:
        with self._wake:
            self._is_closed = True
            self._is_healthy = False
            self._wake.notify_all()
        self._thread.join(_CLOSE_S)

    def _run(self) -> None:
        rest_s = _FIRST_PAUSE_S
        connection: Any = None
        while not self._is_closed:
            try:
                if connection is None:
                    connection = self._connect()
                connection.ping()
                rest_s = _FIRST_PAUSE_S
                self._serve(connection)
            except Exception as error:  # noqa: BLE001  # a client that receives nonsense raises anything
                self._is_healthy = False
                self._report_trouble(error)
            self._give_up_waiting()
            connection = _close_quietly(connection)
            with self._wake:
                self._wake.wait_for(lambda: self._is_closed, rest_s)
            rest_s = min(2.0 * rest_s, _MAX_PAUSE_S)

    def _serve(self, connection: Any) -> None:
        """Until it is closed, or a caller has waited in vain."""
        with self._wake:
            self._is_healthy = True
            self._wake.notify_all()
        while self._is_healthy:
            with self._wake:
                self._wake.wait_for(lambda: bool(self._requests) or not self._is_healthy, self._idle_s)
                job = self._requests.popleft() if self._requests and self._is_healthy else None
                self._current = job is not None
            if job is None:
                if self._is_healthy and self._idle is not None:
                    self._idle(connection)
                continue
            try:
                job.answer = job.action(connection)
            except BaseException:
                job.failed = True
                raise
            finally:
                self._num_bytes -= job.size
                self._current = False
                job.done.set()

    def _give_up_waiting(self) -> None:
        with self._wake:
            while self._requests:
                job = self._requests.popleft()
                job.failed = True
                self._num_bytes -= job.size
                self.num_lost += 1
                job.done.set()


def _close_quietly(connection: Any) -> None:
    if connection is not None:
        with suppress(Exception):
            connection.close()
