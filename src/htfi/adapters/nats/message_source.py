"""The messages of a JetStream stream, in its order, by a durable pull consumer.

Whoever asks knows the place to go on from: the consumer is made anew there at each connection, so that no message is
left with a connection that has ended. The order of sequences is checked: what is missing is asked for again.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

from nats.aio.msg import Msg
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, RetentionPolicy
from nats.js.errors import NotFoundError

from htfi.adapters.nats.connection import NatsConnection
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.pipeline.intake.messages import Message

KEYS = ("subject", "from", "until", "stamp")
_BATCH = 1024
_EXPIRES_S, _HEARTBEAT_S = 30, 5
_SILENT_S = 3 * _HEARTBEAT_S
_FORGET_S = 30 * 86_400.0  # a consumer that nobody asks for is removed by the server
_PULL = (
    f'{{"batch":{_BATCH},"expires":{_EXPIRES_S * 10**9},"idle_heartbeat":{_HEARTBEAT_S * 10**9}}}'.encode()
)


class NatsMessageSource:
    """Implements the port `MessageSource`. `consumer` is the name that the stream's consumer gets."""

    is_partitioned = False

    def __init__(self, connection: NatsConnection, consumer: str) -> None:
        """Raises: InvalidInput for words that are not known."""
        words = connection.address.words
        self._subject = words.get("subject", ">")
        self._begin, self._until = words.get("from", "all"), words.get("until", "")
        if self._begin not in ("all", "new") or self._until not in ("", "now"):
            raise InvalidInput(f"{connection.address}: write from=all or from=new, until=now or nothing")
        self._connection, self._consumer = connection, consumer
        self._start: int | None = None  # the first sequence wanted, where nothing was taken yet
        self._end: int | None = None  # the last one wanted
        self._arrived: list[Message] = []
        self._wakeup = asyncio.Event()
        self._reply_to = ""
        self._next = 1  # the consumer's number of the message that comes next
        self._is_broken = False
        self._num_left = 0  # of the messages asked for
        self._heard_s = 0.0
        self._newest_reply = ""

    def connect(self, after: Mapping[int, int]) -> None:
        self._arrived, self._next, self._is_broken, self._newest_reply = [], 1, False, ""
        self._wakeup = asyncio.Event()
        self._connection.open()
        self._connection.run(self._consume(after.get(0)))

    def receive(self, timeout_s: float) -> Sequence[Message]:
        return self._connection.run(self._receive(timeout_s))

    def acknowledge(self) -> None:
        if self._newest_reply:
            self._connection.run(self._connection.client.publish(self._newest_reply, b"+ACK"))

    def has_ended(self, after: Mapping[int, int]) -> bool:
        return self._end is not None and not self._arrived and max(after.get(0, 0), self._before) >= self._end

    def close(self) -> None:
        self._connection.close()

    @property
    def _before(self) -> int:
        return (self._start or 1) - 1

    async def _consume(self, after: int | None) -> None:
        jetstream, stream = self._connection.jetstream(), self._connection.address.stream
        info = await jetstream.stream_info(stream)
        if info.config.retention not in (None, RetentionPolicy.LIMITS):
            raise InvalidInput(
                f"{self._connection.address}: its retention is {info.config.retention}: a stream that a run can "
                "read again after a crash keeps its messages by limits"
            )
        if after is not None and info.state.last_seq < after:
            raise IntegrityError(
                f"{self._connection.address} ends at {info.state.last_seq}, but {after} was taken from it: it was made "
                "anew: restore it, or use a new folder"
            )
        if self._start is None:
            self._start = info.state.last_seq + 1 if self._begin == "new" else 1
        if self._until and self._end is None:
            try:
                self._end = (await jetstream.get_last_msg(stream, self._subject)).seq or 0
            except NotFoundError:
                self._end = 0
        start = self._start if after is None else after + 1
        with suppress(NotFoundError):
            await jetstream.delete_consumer(stream, self._consumer)
        await jetstream.add_consumer(  # pyright: ignore[reportUnknownMemberType] - untyped options
            stream,
            ConsumerConfig(
                durable_name=self._consumer,
                description="htfi",
                deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=start,
                ack_policy=AckPolicy.ALL,
                ack_wait=60.0,
                max_ack_pending=4 * _BATCH,
                filter_subject=self._subject,
                inactive_threshold=_FORGET_S,
            ),
        )
        self._reply_to = self._connection.client.new_inbox()
        client = self._connection.client
        await client.subscribe(self._reply_to, cb=self._on_message)  # pyright: ignore[reportUnknownMemberType]
        await self._ask()

    async def _ask(self) -> None:
        self._num_left, self._heard_s = _BATCH, asyncio.get_running_loop().time()
        address = f"$JS.API.CONSUMER.MSG.NEXT.{self._connection.address.stream}.{self._consumer}"
        await self._connection.client.publish(address, _PULL, reply=self._reply_to)

    async def _on_message(self, message: Msg) -> None:
        self._heard_s = asyncio.get_running_loop().time()
        status = (message.headers or {}).get("Status") if not message.reply else None
        if status is not None:
            if status == "100":  # a heartbeat
                return
            description = (message.headers or {}).get("Description", "")
            self._is_broken |= status == "409" and "Deleted" in description
            self._num_left = 0
        else:
            stream_place, consumer_place = _places(message.reply)
            if consumer_place != self._next:
                self._is_broken = True  # one was lost on the way, or comes again
                return
            self._next += 1
            self._num_left -= 1
            self._arrived.append(Message(0, stream_place, message.data))
            self._newest_reply = message.reply
        self._wakeup.set()

    async def _receive(self, timeout_s: float) -> Sequence[Message]:
        if not self._arrived:
            self._wakeup.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wakeup.wait(), timeout_s)
        silent_s = asyncio.get_running_loop().time() - self._heard_s
        if not self._arrived and (self._connection.is_lost or self._is_broken or silent_s > _SILENT_S):
            raise self._connection.unavailable()
        arrived, self._arrived = self._arrived, []
        if self._num_left <= 0 and not self._connection.is_lost:
            await self._ask()
        return arrived


def _places(reply: str) -> tuple[int, int]:
    """The stream's and the consumer's number of a message: $JS.ACK.STREAM.CONSUMER.DELIVERED.STREAM.CONSUMER.…, since
    ADR-15 with a domain and an account before the stream.
    """
    tokens = reply.split(".")
    first = 5 if len(tokens) == 9 else 7
    return int(tokens[first]), int(tokens[first + 1])
