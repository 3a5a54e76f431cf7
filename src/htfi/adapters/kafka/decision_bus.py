"""Decisions into one partition of a topic, in the ledger's order: the last record's header says how far it has come.

With transactions the cluster itself sees to it that each entry is there once: a publisher that opens with the ledger's
transactional id aborts what an earlier one had under way and shuts it out, before it reads how far that one came.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256

from aiokafka.admin import NewTopic
from aiokafka.errors import (
    IncompatibleBrokerVersion,
    KafkaError,
    TransactionalIdAuthorizationFailed,
    UnknownError,
    UnsupportedVersionError,
    for_code,
)
from aiokafka.structs import RecordMetadata, TopicPartition

from htfi.adapters.kafka.clients import Consumer, Producer, Record, make_producer
from htfi.adapters.kafka.connection import KafkaConnection
from htfi.domain.errors import InvalidInput
from htfi.pipeline.intake.messages import BusUnavailable
from htfi.pipeline.publishing import PublishedLine, content_within

KEYS = ("partition", "transactions")
LOG, INDEX, LEAF_HASH, OUTCOME = "Htfi-Log", "Htfi-Index", "Htfi-Leaf-Hash", "Htfi-Outcome"
_MAX_BYTES = 1_000_000  # of a line in a record: brokers take 1 MiB with its headers unless told otherwise
_ACK_S = 10.0
_MAX_REPLICAS = 3
_TOPIC_EXISTS = 36
_KEPT = {"cleanup.policy": "delete", "retention.ms": "-1"}


class KafkaDecisionBus:
    """Implements the port `DecisionBus`. The topic is made where it is missing, with one partition."""

    def __init__(self, connection: KafkaConnection) -> None:
        """Raises: InvalidInput."""
        self._connection = connection
        words = connection.address.words
        number, transactions = words.get("partition", "0"), words.get("transactions", "yes")
        if not number.isdecimal() or transactions not in ("yes", "no"):
            raise InvalidInput(
                f"{connection.address}: write partition=NUMBER, transactions=yes or transactions=no"
            )
        self._partition = TopicPartition(connection.address.topic, int(number))
        self._is_transactional = transactions == "yes"
        self._producer: Producer | None = None
        self._log = ""
        self._next_offset = 0  # at which the next record stands at the earliest

    def open(self, log: str) -> int:
        self._log = log
        self._connection.open()
        return self._connection.run(self._find_place())

    def publish(self, lines: Sequence[PublishedLine]) -> None:
        self._connection.run(self._send(lines))

    def wait(self, seconds: float) -> None:
        self._connection.run(asyncio.sleep(seconds))

    def close(self) -> None:
        self._producer = None
        self._connection.close()

    async def _find_place(self) -> int:
        num = await self._connection.num_partitions()
        if not num:
            await self._make_topic()
        elif self._partition.partition >= num:
            raise InvalidInput(f"{self._connection.address} has {num} partitions, numbered from 0")
        self._producer = await self._start_producer()  # whatever was under way is settled from here on
        consumer = await self._connection.start_consumer()
        consumer.assign([self._partition])
        first = (await consumer.beginning_offsets([self._partition]))[self._partition]
        end = (await consumer.end_offsets([self._partition]))[self._partition]
        newest = await _newest_record(consumer, self._partition, first, end)
        self._next_offset = max(end, newest.offset + 1) if newest else end
        await consumer.stop()
        return self._index_after(newest, first)

    def _index_after(self, newest: Record | None, first: int) -> int:
        """Raises: InvalidInput."""
        where = f"{self._connection.address}, partition {self._partition.partition},"
        if newest is None:
            if first:
                raise InvalidInput(f"{where} has forgotten what it held: name a topic that keeps its records")
            return 0
        headers = {name: value.decode() for name, value in newest.headers}
        if headers.get(LOG) != self._log or not headers.get(INDEX, "").isdecimal():
            raise InvalidInput(
                f"{where} holds something else than this ledger: name a topic of its own, which is made where it is "
                "missing"
            )
        return int(headers[INDEX]) + 1

    async def _make_topic(self) -> None:
        if self._partition.partition:
            raise InvalidInput(f"{self._connection.address}: there is no such topic: make it first")
        brokers = (await self._connection.admin.describe_cluster())["brokers"]
        topic = NewTopic(
            self._partition.topic, 1, min(_MAX_REPLICAS, max(len(brokers), 1)), topic_configs=_KEPT
        )
        answer = await self._connection.admin.create_topics([topic])
        for _, code, *_ in answer.topic_errors:
            if code not in (0, _TOPIC_EXISTS):
                raise for_code(code)

    async def _start_producer(self) -> Producer:
        name = f"htfi-{sha256(f'{self._log}:{self._partition}'.encode()).hexdigest()[:20]}"
        producer = make_producer(
            name if self._is_transactional else None, 2 * _MAX_BYTES, **self._connection.options
        )
        try:
            await self._connection.start(producer)
        except (
            IncompatibleBrokerVersion, TransactionalIdAuthorizationFailed, UnknownError, UnsupportedVersionError,
        ) as error:  # fmt: skip
            if not self._is_transactional:
                raise
            raise InvalidInput(
                f"{self._connection.address}: the broker gives no transaction ({type(error).__name__}): allow it, or "
                "write ?transactions=no"
            ) from error
        return producer

    async def _send(self, lines: Sequence[PublishedLine]) -> None:
        """Raises: BusUnavailable, KafkaError."""
        producer = self._producer
        assert producer is not None, "it was opened"
        if not self._is_transactional:
            self._check(await self._send_all(producer, lines), self._next_offset)
            return
        await producer.begin_transaction()
        try:
            self._check(await self._send_all(producer, lines), self._next_offset + 1)
        except BaseException:
            with suppress(KafkaError, TimeoutError):
                await asyncio.wait_for(producer.abort_transaction(), _ACK_S)
            raise
        await asyncio.wait_for(producer.commit_transaction(), _ACK_S)

    async def _send_all(self, producer: Producer, lines: Sequence[PublishedLine]) -> list[RecordMetadata]:
        under_way = [
            await producer.send(
                self._partition.topic,
                content_within(line, _MAX_BYTES),
                key=f"{line.symbol}/{line.interval}".encode() if line.symbol else None,
                partition=self._partition.partition,
                headers=[(name, value.encode()) for name, value in self._headers(line).items()],
            )
            for line in lines
        ]
        return await asyncio.wait_for(asyncio.gather(*under_way), _ACK_S)

    def _check(self, stored: Sequence[RecordMetadata], latest: int) -> None:
        """Records stand side by side, the first after what was there: in transactions a mark may stand between.

        Raises: BusUnavailable.
        """
        first = stored[0].offset
        offsets = [one.offset for one in stored]
        if not self._next_offset <= first <= latest or offsets != list(range(first, first + len(offsets))):
            raise BusUnavailable(f"{self._connection.address}: something else was published into it")
        self._next_offset = offsets[-1] + 1

    def _headers(self, line: PublishedLine) -> dict[str, str]:
        return {
            LOG: self._log,
            INDEX: str(line.index),
            LEAF_HASH: line.leaf_hash,
            OUTCOME: line.outcome,
        }


async def _newest_record(
    consumer: Consumer, partition: TopicPartition, first: int, end: int
) -> Record | None:
    """The last record; after it may stand marks of transactions, and records that were aborted."""
    step, begin = 4, end
    while begin > first:
        begin = max(first, end - step)
        consumer.seek(partition, begin)
        newest: Record | None = None
        while await consumer.position(partition) < end:
            found = await asyncio.wait_for(consumer.getmany(partition, timeout_ms=200), _ACK_S)
            newest = (found.get(partition) or [newest])[-1]
        if newest is not None:
            return newest
        step *= 8
    return None
