"""Waiting for a channel to the draft process, whatever its descriptor: `select` takes none above 1,023."""

import selectors
import socket

READABLE, WRITABLE = selectors.EVENT_READ, selectors.EVENT_WRITE
_Selector = getattr(selectors, "PollSelector", selectors.DefaultSelector)


def wait_until_ready(channel: socket.socket, event: int, timeout_s: float | None = None) -> bool:
    """Whether the channel is readable or writable by then; without a timeout it waits as long as it takes."""
    with _Selector() as selector:
        selector.register(channel, event)
        return bool(selector.select(timeout_s))
