"""An event loop that wakes within a tenth of a millisecond: asyncio's own rounds its sleep up to a whole one."""

import asyncio
import select
import selectors

_MOST_FD = 1024  # of select(2)


class _FineSelector(selectors.DefaultSelector):  # pyright: ignore[reportUntypedBaseClass]
    """Sleeps in select(2), which takes microseconds, on the one descriptor that stands for all others."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        fileno = getattr(self, "fileno", None)  # epoll and kqueue have one
        if timeout is not None and timeout > 0 and fileno is not None and fileno() < _MOST_FD:
            select.select([fileno()], (), (), timeout)
            timeout = 0
        return super().select(timeout)


def new_loop() -> asyncio.AbstractEventLoop:
    return asyncio.SelectorEventLoop(_FineSelector())
