"""The clients of one cluster, driven by the thread that made them; errors of the library become ours."""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from aiokafka.errors import KafkaConnectionError, KafkaError

from htfi.adapters.kafka.address import KafkaAddress
from htfi.adapters.kafka.clients import Admin, Consumer, KafkaClient, make_admin, make_consumer
from htfi.domain.errors import HtfiError
from htfi.pipeline.intake.messages import BusUnavailable

CONNECT_S = 5.0
_REQUEST_MS = 5_000
_CLOSE_S = 2.0

Answer = TypeVar("Answer")


class _LastWarning(logging.Handler):
    """Why a broker was not reached, which the library says in its log alone. A thread sees its own."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._of_thread = threading.local()

    def emit(self, record: logging.LogRecord) -> None:
        self._of_thread.text = record.getMessage()

    def take(self) -> str:
        text, self._of_thread.text = getattr(self._of_thread, "text", ""), ""
        return text


# With a handler nothing of the library's reaches standard error; where a program has logging, it gets its lines too.
_last_warning = _LastWarning()
logging.getLogger("aiokafka").addHandler(_last_warning)


class KafkaConnection:
    """Not connected until `open`. A client that was added is stopped by `close`."""

    def __init__(self, address: KafkaAddress, options: Mapping[str, Any]) -> None:
        self.address = address
        self.options = dict(options) | {"request_timeout_ms": _REQUEST_MS}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._admin: Admin | None = None
        self._stops: list[Callable[[], Coroutine[Any, Any, Any]]] = []

    @property
    def admin(self) -> Admin:
        assert self._admin is not None, "it was opened"
        return self._admin

    def open(self) -> None:
        """Raises: BusUnavailable."""
        self._loop = self._loop or asyncio.new_event_loop()
        try:
            self.run(self._connect())
        except BaseException:
            self.close()
            raise

    def run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """What the work gives. Raises: BusUnavailable."""
        assert self._loop is not None, "it was opened"
        try:
            return self._loop.run_until_complete(work)
        except HtfiError:
            raise
        except (OSError, KafkaError, TimeoutError) as error:
            raise BusUnavailable(f"{self.address}: {error or type(error).__name__}") from error

    async def start(self, client: KafkaClient) -> None:
        """Start a client, which `close` stops."""
        self._stops.append(client.stop)
        await asyncio.wait_for(client.start(), CONNECT_S)

    async def start_consumer(self) -> Consumer:
        consumer = make_consumer(**self.options)
        await self.start(consumer)
        return consumer

    async def num_partitions(self) -> int:
        """Of the topic, 0 where there is none: a topic that a broker lacks is not asked for, which might make it."""
        if self.address.topic not in await self.admin.list_topics():
            return 0
        found = await self.admin.describe_topics([self.address.topic])
        return len(found[0]["partitions"])

    def close(self) -> None:
        """It can be opened again."""
        loop, self._loop, self._admin = self._loop, None, None
        stops, self._stops = self._stops, []
        if loop is None:
            return
        for stop in reversed(stops):
            with suppress(OSError, KafkaError, TimeoutError):
                loop.run_until_complete(asyncio.wait_for(stop(), _CLOSE_S))
        loop.run_until_complete(_end_what_is_left())
        loop.close()

    async def _connect(self) -> None:
        self._admin = make_admin(**self.options)
        self._stops.append(self._admin.close)
        _last_warning.take()
        try:
            await asyncio.wait_for(self._admin.start(), CONNECT_S)
        except KafkaConnectionError as error:
            raise BusUnavailable(f"{self.address}: {_last_warning.take() or error}") from error
        except KeyError as error:  # aiokafka 0.14, where a broker refuses what SCRAM sends
            raise BusUnavailable(
                f"{self.address}: not admitted: check KAFKA_USER, KAFKA_PASSWORD and KAFKA_MECHANISM"
            ) from error


async def _end_what_is_left() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
