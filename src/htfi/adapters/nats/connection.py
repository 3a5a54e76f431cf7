"""One connection to a NATS server, driven by the thread that made it; errors of the library become ours."""

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from nats.aio.client import Client
from nats.errors import AuthorizationError, Error
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from htfi.adapters.nats.address import NatsAddress
from htfi.domain.errors import HtfiError, InvalidInput
from htfi.pipeline.intake.messages import BusUnavailable

CONNECT_S = 5.0
_CLOSE_S = 2.0
_PING_S = 5

Answer = TypeVar("Answer")


class NatsConnection:
    """Not connected until `open`. It does not reconnect by itself: what was on its way must be asked for again."""

    def __init__(self, address: NatsAddress, options: Mapping[str, Any]) -> None:
        self.address = address
        self._options = options
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: Client | None = None
        self._trouble = ""

    @property
    def client(self) -> Client:
        assert self._client is not None, "it was opened"
        return self._client

    @property
    def is_lost(self) -> bool:
        return self._client is None or not self._client.is_connected

    def jetstream(self) -> JetStreamContext:
        return self.client.jetstream(timeout=CONNECT_S)  # pyright: ignore[reportUnknownMemberType] - untyped options

    def open(self) -> None:
        """Raises: BusUnavailable."""
        self._loop = self._loop or asyncio.new_event_loop()
        try:
            self.run(self._connect())
        except BaseException:
            self.close()
            raise

    def run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """What the work gives. Raises: BusUnavailable, InvalidInput where the stream is not there."""
        assert self._loop is not None, "it was opened"
        try:
            return self._loop.run_until_complete(work)
        except HtfiError:
            raise
        except NotFoundError as error:
            raise InvalidInput(f"{self.address}: there is no such stream: make it first") from error
        except AuthorizationError as error:
            raise BusUnavailable(f"{self.address}: not admitted: check the credentials") from error
        except (OSError, Error, TimeoutError) as error:
            raise self.unavailable(error) from error

    def unavailable(self, error: Exception | None = None) -> BusUnavailable:
        """What to raise where the server is away."""
        why = (
            self._trouble
            or str(error or "")
            or (type(error).__name__ if error else "the connection has ended")
        )
        return BusUnavailable(f"{self.address}: {why.removeprefix('nats: ')}")

    def close(self) -> None:
        """It can be opened again."""
        client, loop, self._client, self._loop = self._client, self._loop, None, None
        if loop is None:
            return
        if client is not None:
            with suppress(OSError, Error, TimeoutError):
                loop.run_until_complete(asyncio.wait_for(client.close(), _CLOSE_S))
        loop.close()

    async def _connect(self) -> None:
        self._trouble = ""

        async def note(error: Exception) -> None:
            self._trouble = str(error)

        self._client = Client()
        await self._client.connect(  # pyright: ignore[reportUnknownMemberType] - untyped options
            self.address.server,
            name="htfi",
            allow_reconnect=False,
            connect_timeout=int(CONNECT_S),
            ping_interval=_PING_S,
            error_cb=note,
            **self._options,
        )
