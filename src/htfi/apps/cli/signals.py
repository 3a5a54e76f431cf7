"""Ctrl-C and SIGTERM as a request to end: run, edge and cloud finish what they have in hand."""

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def ending_gently(end: Callable[[], None]) -> Generator[None]:
    """Inside, the first signal calls `end`; a second one ends the process at once."""

    def stop(signum: int, frame: FrameType | None) -> None:
        del frame
        signal.signal(signum, before[signal.Signals(signum)])
        end()

    before = {signum: signal.signal(signum, stop) for signum in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
