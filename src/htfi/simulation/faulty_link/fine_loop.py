"""An event loop whose timers are late by hundredths of a millisecond: asyncio's own rounds up to a whole one."""

import asyncio
import select
import selectors

_MOST_FD = 1024  # of select(2)
_EARLY = 0.005  # of a wait that the kernel may be late by, and a fixed part: then the loop asks again
_EARLY_S = 0.000_12


class _FineSelector(selectors.DefaultSelector):
    """Sleeps a little short in select(2), which takes microseconds, on the one descriptor that stands for all others.

    The loop finds its timer not yet due and asks again for the rest, so that only the last 0.1 ms is spent awake.
    """

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        fileno = getattr(self, "fileno", None)  # epoll and kqueue have one
        if timeout is not None and timeout > 0 and fileno is not None and fileno() < _MOST_FD:
            short_s = timeout * (1.0 - _EARLY) - _EARLY_S
            if short_s > 0:
                select.select([fileno()], (), (), short_s)
            timeout = 0
        return super().select(timeout)


def new_loop() -> asyncio.AbstractEventLoop:
    return asyncio.SelectorEventLoop(_FineSelector())
