"""The messages of a topic, each partition in its order: its offsets are the places that the inbox keeps.

No consumer group decides where to go on from: whoever asks knows it, from what is on its own disk.
"""

import asyncio
from collections.abc import Mapping, Sequence

from aiokafka.structs import TopicPartition

from htfi.adapters.kafka.clients import Consumer
from htfi.adapters.kafka.connection import KafkaConnection
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.pipeline.intake.messages import BusUnavailable, Message

KEYS = ("from", "until", "stamp")
_BATCH = 1024
_CHECK_S = 5.0  # between looks at whether the cluster still answers, while nothing comes


class KafkaMessageSource:
    """Implements the port `MessageSource`."""

    is_partitioned = True

    def __init__(self, connection: KafkaConnection) -> None:
        """Raises: InvalidInput for words that are not known."""
        words = connection.address.words
        self._begin, self._until = words.get("from", "all"), words.get("until", "")
        if self._begin not in ("all", "new") or self._until not in ("", "now"):
            raise InvalidInput(f"{connection.address}: write from=all or from=new, until=now or nothing")
        self._connection = connection
        self._consumer: Consumer | None = None
        self._partitions: list[TopicPartition] = []
        self._starts: dict[int, int] | None = None  # where to begin in a partition of which nothing was taken
        self._ends: dict[int, int] | None = None  # the offsets at which the source ends
        self._checked_s = 0.0

    def connect(self, after: Mapping[int, int]) -> None:
        self._connection.open()
        self._connection.run(self._consume(after))

    def receive(self, timeout_s: float) -> Sequence[Message]:
        return self._connection.run(self._receive(timeout_s))

    def acknowledge(self) -> None:
        """Nothing to say: the inbox alone holds how far this run is."""

    def has_ended(self, after: Mapping[int, int]) -> bool:
        if self._ends is None:
            return False
        del (
            after
        )  # a position passes what holds no message: marks of transactions, messages that were aborted
        return self._connection.run(self._positions_reach(self._ends))

    def close(self) -> None:
        self._consumer = None
        self._connection.close()

    async def _consume(self, after: Mapping[int, int]) -> None:
        address = self._connection.address
        num = await self._connection.num_partitions()
        if not num:
            raise InvalidInput(f"{address}: there is no such topic: make it first")
        consumer = await self._connection.start_consumer()
        self._partitions = [TopicPartition(address.topic, number) for number in range(num)]
        consumer.assign(self._partitions)
        firsts = await consumer.beginning_offsets(self._partitions)
        ends = await consumer.end_offsets(self._partitions)
        if self._starts is None:
            chosen = ends if self._begin == "new" else firsts
            self._starts = {one.partition: chosen[one] for one in self._partitions}
        if self._until and self._ends is None:
            self._ends = {one.partition: ends[one] for one in self._partitions}
        for one in self._partitions:
            taken = after.get(one.partition)
            if taken is not None:
                self._check_that_it_goes_on(one, taken, firsts[one], ends[one])
            start = taken + 1 if taken is not None else self._starts.get(one.partition, firsts[one])
            consumer.seek(one, max(start, firsts[one]))
        self._consumer = consumer
        self._checked_s = asyncio.get_running_loop().time()

    def _check_that_it_goes_on(self, one: TopicPartition, taken: int, first: int, end: int) -> None:
        where = f"{self._connection.address}, partition {one.partition}"
        if end <= taken:
            raise IntegrityError(
                f"{where} ends at {end}, but {taken} was taken from it: it was made anew: restore it, "
                "or use a new folder"
            )
        if first > taken + 1:
            raise IntegrityError(
                f"{where} begins at {first}, but {taken + 1} comes next: it no longer holds what lies between: keep "
                "messages longer (retention.ms), and use a new folder"
            )

    async def _receive(self, timeout_s: float) -> Sequence[Message]:
        consumer = self._reading()
        found = await consumer.getmany(timeout_ms=int(timeout_s * 1000), max_records=_BATCH)
        messages = [
            Message(one.partition, record.offset, record.value or b"")
            for one, records in found.items()
            for record in records
        ]
        now_s = asyncio.get_running_loop().time()
        if not messages and now_s - self._checked_s > _CHECK_S:
            self._checked_s = now_s
            if await self._connection.num_partitions() != len(self._partitions):
                raise BusUnavailable(f"{self._connection.address}: its partitions have changed")
        return messages

    async def _positions_reach(self, ends: Mapping[int, int]) -> bool:
        consumer = self._reading()
        return all([await consumer.position(one) >= ends.get(one.partition, 0) for one in self._partitions])

    def _reading(self) -> Consumer:
        assert self._consumer is not None, "it was connected"
        return self._consumer
