"""What is used of aiokafka's clients, with the types that it leaves open."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.structs import TopicPartition


class Record(Protocol):
    """A message with its place."""

    @property
    def offset(self) -> int: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Sequence[tuple[str, bytes]]: ...


class KafkaClient(Protocol):
    """What is started and stopped."""

    async def start(self) -> None: ...
    async def stop(self) -> None: ...


class Consumer(KafkaClient, Protocol):
    """Reads the partitions that it is told to."""

    def assign(self, partitions: Sequence[TopicPartition]) -> None: ...
    def seek(self, partition: TopicPartition, offset: int) -> None: ...
    async def position(self, partition: TopicPartition) -> int: ...
    async def beginning_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]: ...
    async def end_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]: ...
    async def getmany(
        self, *partitions: TopicPartition, timeout_ms: int, max_records: int | None = None
    ) -> Mapping[TopicPartition, Sequence[Record]]: ...


class Producer(KafkaClient, Protocol):
    """Writes; `send` gives a future of what the broker says."""

    async def begin_transaction(self) -> None: ...
    async def commit_transaction(self) -> None: ...
    async def abort_transaction(self) -> None: ...
    async def send(
        self,
        topic: str,
        value: bytes,
        key: bytes | None,
        partition: int,
        headers: Sequence[tuple[str, bytes]],
    ) -> Any: ...


class Admin(Protocol):
    """Asks for topics and makes them."""

    async def start(self) -> None: ...
    async def close(self) -> None: ...
    async def list_topics(self) -> list[str]: ...
    async def describe_topics(self, topics: list[str]) -> list[dict[str, Any]]: ...
    async def describe_cluster(self) -> dict[str, Any]: ...
    async def create_topics(self, topics: list[NewTopic]) -> Any: ...


def make_consumer(**options: Any) -> Consumer:
    """One without a group: it reads what it is told to, and sees of transactions only what was committed."""
    return cast(
        Consumer,
        AIOKafkaConsumer(
            group_id=None, enable_auto_commit=False, auto_offset_reset="none",
            isolation_level="read_committed", **options,
        ),
    )  # fmt: skip


def make_producer(transactional_id: str | None, max_bytes: int, **options: Any) -> Producer:
    """One whose records all replicas in step hold when they are acknowledged."""
    return cast(
        Producer,
        AIOKafkaProducer(
            acks="all", transactional_id=transactional_id, max_request_size=max_bytes, **options
        ),
    )


def make_admin(**options: Any) -> Admin:
    """Not started yet."""
    return cast(Admin, AIOKafkaAdminClient(**options))
