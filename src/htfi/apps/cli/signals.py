"""Ctrl-C and SIGTERM as a request to end, and a bound on how long that may take: run, edge and cloud ask for both.

A thread of its own learns of signals from the handler in C, through a pipe. So it does not matter in what another
thread is stuck: a write that no process reads, a lock, a thread that the interpreter waits for when it exits.
"""

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

from htfi.domain.governance import FIRM, SystemName
from htfi.governance.control.entries import StopCause
from htfi.governance.control.requests import StopRequest

EXIT_OVERDUE = 1  # the exit status of a process that took too long to end
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_KERNEL_MARGIN_S = 5.0  # after which a process ends even if its interpreter runs no thread
_WRITE_S = 0.5


class ShutdownTimer:
    """Ends the process `within_s` after the first signal, with one line and `EXIT_OVERDUE`; at once at the second
    one, with the status that a shell reports for a program that it ended. In that time SIGALRM is taken.
    """

    def __init__(self, within_s: float, who: str) -> None:
        self._within_s, self._who = within_s, who
        self._until_s: float | None = None  # once asked to end
        self._num_signals = 0
        self._reads, self._writes = os.pipe()
        os.set_blocking(self._writes, False)
        self._before = signal.set_wakeup_fd(self._writes, warn_on_full_buffer=False)
        threading.Thread(target=self._watch, name="ending", daemon=True).start()

    @property
    def is_requested(self) -> bool:
        return self._until_s is not None

    def begin(self) -> None:
        """The time runs from the first call on."""
        if self._until_s is None:
            self._until_s = _arm_timer(self._within_s)

    def extend(self, within_s: float) -> None:
        """From now on so long, where a signal has come: what was to end has ended, and something else is left."""
        self._within_s = within_s
        if self._until_s is not None:
            self._until_s = _arm_timer(within_s)

    def close(self) -> None:
        """Watch no longer, unless a signal has come: then the rest of the process is watched."""
        if not self.is_requested:
            signal.set_wakeup_fd(self._before)
            os.close(self._writes)

    def _watch(self) -> None:
        poll = select.poll()
        poll.register(self._reads, select.POLLIN)
        while True:
            left_s = None if self._until_s is None else self._until_s - time.monotonic()
            if left_s is not None and left_s <= 0.0:
                _exit_now(
                    EXIT_OVERDUE,
                    f"{self._who} did not stop within {self._within_s:g} s and was ended",
                )
            if not poll.poll(None if left_s is None else 1e3 * min(left_s, 1.0)):
                continue
            numbers = os.read(self._reads, 64)
            if not numbers:
                poll.unregister(self._reads)
                os.close(self._reads)
                if self._until_s is None:
                    return
            for number in numbers:
                if number in _STOP_SIGNALS:
                    self._num_signals += 1
                    if self._num_signals > 1:
                        _exit_now(128 + number, f"{self._who} received a second signal and was ended")
                    self.begin()


@contextmanager
def graceful_shutdown(end: Callable[[], None], within_s: float, who: str) -> Generator[ShutdownTimer]:
    """Inside, the first signal calls `end`, in the main thread. From it on the whole process is bounded: see
    `ShutdownTimer`.

    `who` begins the line for a person.
    """
    timer = ShutdownTimer(within_s, who)

    def stop(signum: int, frame: FrameType | None) -> None:
        del signum, frame
        timer.begin()
        end()

    before = {signum: signal.signal(signum, stop) for signum in _STOP_SIGNALS}
    try:
        yield timer
    finally:
        if not timer.is_requested:  # else a second signal is still to end the process
            for signum, handler in before.items():
                signal.signal(signum, handler)
        timer.close()


@contextmanager
def stop_by_signal(push: Callable[[StopRequest], None]) -> Generator[None]:
    """Inside, the signal USR1 asks for a stop of the firm, where the system has it."""
    number = getattr(signal, "SIGUSR1", None)
    if number is None:
        yield
        return

    def ask(signum: int, frame: FrameType | None) -> None:
        del signum, frame
        now_ns = time.time_ns()
        push(
            StopRequest(
                f"signal-{now_ns}", now_ns, str(FIRM), SystemName.SIGNAL, "sent to the run", StopCause.SIGNAL
            )
        )

    before = signal.signal(number, ask)
    try:
        yield
    finally:
        signal.signal(number, before)


def _arm_timer(within_s: float) -> float:
    """When the process ends; the kernel ends it a little later, should no thread of it run."""
    signal.setitimer(signal.ITIMER_REAL, within_s + _KERNEL_MARGIN_S)
    return time.monotonic() + within_s


def _exit_now(status: int, line: str) -> None:
    if os.isatty(1):
        _write_if_ready(1, "\x1b[?25h")  # the live view has hidden the cursor
    _write_if_ready(2, f"htfi: {line}; what is recorded is safe\n")
    os._exit(status)


def _write_if_ready(descriptor: int, text: str) -> None:
    """Write, unless the reader is gone."""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    ready = poll.poll(1e3 * _WRITE_S)
    if ready and ready[0][1] & select.POLLOUT:
        os.write(descriptor, text.encode())
