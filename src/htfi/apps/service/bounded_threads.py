"""What takes files and locks, in threads of its own: a bounded number at work and waiting."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from htfi.apps.service.problems import ServiceBusy

T = TypeVar("T")


class BoundedThreads:
    """Calls functions in `num` threads; at most `max_waiting` are under way. Belongs to an event loop."""

    def __init__(self, name: str, num: int, max_waiting: int) -> None:
        self._executor = ThreadPoolExecutor(num, thread_name_prefix=name)
        self._max_waiting = max_waiting
        self._num_waiting = 0

    async def call(self, act: Callable[[], T]) -> T:
        """What the function gives. Raises: ServiceBusy, and what it raises."""
        if self._num_waiting >= self._max_waiting:
            raise ServiceBusy(f"{self._max_waiting} requests wait already: ask again in a while")
        self._num_waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, act)
        finally:
            self._num_waiting -= 1

    def close(self) -> None:
        """Wait for what has begun; what has not is dropped."""
        self._executor.shutdown(cancel_futures=True)
