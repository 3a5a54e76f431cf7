"""Decisions into a JetStream stream of their own: the sequence of a message is the ledger's index plus one.

So the stream itself holds how far it has come. Each message states the sequence that must stand before it, and the
server refuses it otherwise: whatever a killed publisher had under way, no entry is stored twice or out of order.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import cast
from urllib.parse import quote

import msgspec
from nats.aio.msg import Msg
from nats.js.api import Header, StreamInfo
from nats.js.errors import NotFoundError

from htfi.adapters.nats.connection import CONNECT_S, NatsConnection
from htfi.domain.errors import InvalidInput
from htfi.pipeline.intake.messages import BusUnavailable
from htfi.pipeline.publishing import PublishedLine, content_within

KEYS = ("prefix",)
LOG, INDEX, LEAF_HASH, OUTCOME = "Htfi-Log", "Htfi-Index", "Htfi-Leaf-Hash", "Htfi-Outcome"
_PREFIX = "htfi.decisions"
_HEADER_BYTES = 1024  # of a message at most
_MAX_BYTES = 4 << 20  # under way at once
_WRONG_LAST_SEQUENCE = 10071


class _Refusal(msgspec.Struct):
    err_code: int = 0
    description: str = ""


class _Ack(msgspec.Struct):
    seq: int = 0
    error: _Refusal | None = None


_decode_ack = msgspec.json.Decoder(_Ack).decode


class NatsDecisionBus:
    """Implements the port `DecisionBus`. The stream is made where it is missing."""

    def __init__(self, connection: NatsConnection) -> None:
        """Raises: InvalidInput for a prefix that no subject can have."""
        self._connection = connection
        self._prefix = connection.address.words.get("prefix", _PREFIX)
        if (
            not self._prefix
            or subject_of(self._prefix, "x", "x").count(".") < 2
            or not _is_plain(self._prefix)
        ):
            raise InvalidInput(
                f"prefix={self._prefix}: write words with dots between them, such as {_PREFIX}"
            )
        self._log = ""
        self._max_bytes = 0
        self._reply_to = ""
        self._replies: dict[int, bytes] = {}
        self._num_awaited = 0
        self._answered = asyncio.Event()

    def open(self, log: str) -> int:
        self._log = log
        self._connection.open()
        return self._connection.run(self._find_place())

    def publish(self, lines: Sequence[PublishedLine]) -> None:
        group: list[PublishedLine] = []
        num_bytes = 0
        for line in lines:
            group.append(line)
            num_bytes += len(line.content)
            if num_bytes >= _MAX_BYTES:
                self._connection.run(self._send(group))
                group, num_bytes = [], 0
        if group:
            self._connection.run(self._send(group))

    def wait(self, seconds: float) -> None:
        self._connection.run(asyncio.sleep(seconds))
        if self._connection.is_lost:
            raise self._connection.unavailable()

    def close(self) -> None:
        self._connection.close()

    async def _find_place(self) -> int:
        jetstream, address = self._connection.jetstream(), self._connection.address
        try:
            info = await jetstream.stream_info(address.stream)
        except NotFoundError:
            info: StreamInfo = await jetstream.add_stream(  # pyright: ignore[reportUnknownMemberType] - untyped options
                name=address.stream, subjects=[f"{self._prefix}.>"], description="decisions of an htfi run"
            )
        limit, of_stream = self._connection.client.max_payload, info.config.max_msg_size or -1
        self._max_bytes = min(limit, of_stream) if of_stream > 0 else limit
        newest = info.state.last_seq
        if newest and info.state.messages:
            message = await jetstream.get_msg(address.stream, newest)
            headers = cast(dict[str, str], message.headers or {})  # pyright: ignore[reportUnknownMemberType]
            if headers.get(LOG) != self._log or headers.get(INDEX) != str(newest - 1):
                raise InvalidInput(
                    f"{address} holds something else than this ledger: name a stream of its own, which is made where "
                    "it is missing, and a prefix= that no other stream has"
                )
        client = self._connection.client
        self._reply_to = client.new_inbox()
        await client.subscribe(f"{self._reply_to}.*", cb=self._on_reply)  # pyright: ignore[reportUnknownMemberType]
        return newest

    async def _send(self, lines: Sequence[PublishedLine]) -> None:
        """Raises: BusUnavailable."""
        client = self._connection.client
        self._replies, self._answered = {}, asyncio.Event()
        self._num_awaited = len(lines)
        for line in lines:
            subject = subject_of(self._prefix, line.symbol, line.interval)
            reply = f"{self._reply_to}.{line.index}"
            await client.publish(
                subject, content_within(line, self._max_bytes - _HEADER_BYTES), reply, self._headers(line)
            )
        with suppress(TimeoutError):
            await asyncio.wait_for(self._answered.wait(), CONNECT_S)
        for line in lines:
            self._check(line, self._replies.get(line.index))

    async def _on_reply(self, message: Msg) -> None:
        self._replies[int(message.subject.rpartition(".")[2])] = message.data
        if len(self._replies) == self._num_awaited:
            self._answered.set()

    def _check(self, line: PublishedLine, reply: bytes | None) -> None:
        """Raises: BusUnavailable where the message is not stored as the entry's."""
        address = self._connection.address
        if not reply:  # none, or that nobody takes the subject
            raise BusUnavailable(f"{address}: decision {line.index} is not acknowledged")
        ack = _decode_ack(reply)
        if ack.error is not None and ack.error.err_code == _WRONG_LAST_SEQUENCE:
            raise BusUnavailable(f"{address}: something else was published into it")
        if ack.error is not None:
            raise BusUnavailable(f"{address}: decision {line.index} is refused: {ack.error.description}")
        if ack.seq != line.index + 1:
            raise BusUnavailable(f"{address}: decision {line.index} was there already")

    def _headers(self, line: PublishedLine) -> dict[str, str]:
        return {
            Header.MSG_ID.value: f"{self._log}:{line.index}",
            Header.EXPECTED_STREAM.value: self._connection.address.stream,
            Header.EXPECTED_LAST_SEQUENCE.value: str(line.index),
            LOG: self._log,
            INDEX: str(line.index),
            LEAF_HASH: line.leaf_hash,
            OUTCOME: line.outcome,
        }


def subject_of(prefix: str, symbol: str, interval: str) -> str:
    """PREFIX.SYMBOL.INTERVAL, or PREFIX.deleted. All but letters, digits, '-', '_' and '~' is written as %XX of its
    UTF-8, so that each name is one token.
    """
    if not symbol:
        return f"{prefix}.deleted"
    return f"{prefix}.{_token(symbol)}.{_token(interval)}"


def _token(text: str) -> str:
    return quote(text, safe="").replace(".", "%2E")


def _is_plain(prefix: str) -> bool:
    return all(word and _token(word) == word for word in prefix.split("."))
