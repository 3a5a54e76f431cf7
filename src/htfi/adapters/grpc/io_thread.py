"""The one loop, in the one thread, in which all transports of a process do their I/O; they borrow it and give it back.

One for all, since gRPC wakes every loop of a process for each event of any: 32 edges in one benchmark would wake 32
loops for each message.
"""

import asyncio
import threading
from contextlib import suppress

_STOP_S = 5.0
_lock = threading.Lock()
_lent: "_IoThread | None" = None


class _IoThread:
    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(_told)
        self.num_borrowers = 0
        self.thread = threading.Thread(target=self._work, name="link", daemon=True)
        self.thread.start()

    def _work(self) -> None:
        self.loop.run_forever()
        # A look-up of a host's name may be under way in a thread.
        with suppress(TimeoutError):
            self.loop.run_until_complete(asyncio.wait_for(self.loop.shutdown_default_executor(), 1.0))
        self.loop.close()


def borrow() -> asyncio.AbstractEventLoop:
    """The running loop. Give it back when nothing of yours runs in it."""
    global _lent
    with _lock:
        if _lent is None:
            _lent = _IoThread()
        _lent.num_borrowers += 1
        return _lent.loop


def give_back() -> None:
    """The last one ends the thread."""
    global _lent
    with _lock:
        if _lent is None:
            return
        _lent.num_borrowers -= 1
        if _lent.num_borrowers > 0:
            return
        ended, _lent = _lent, None
    ended.loop.call_soon_threadsafe(ended.loop.stop)
    ended.thread.join(_STOP_S)


def _told(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    # Where the process has another loop that uses gRPC, each wakes both, and one finds nothing to read.
    # A path that is no text ends gRPC's server, in a task that nobody awaits: the listener has learned of it.
    if not isinstance(context.get("exception"), BlockingIOError | UnicodeDecodeError):
        loop.default_exception_handler(context)
