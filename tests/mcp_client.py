"""The SDK's client of `htfi mcp`, for tests: the server is a process of its own, asked over pipes or sockets."""

import asyncio
import os
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

import forked

_ANSWER_S = 60.0


class McpClient:
    """A session, kept open in a thread of its own until the end of the `with` block."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect = connect
        self._ready, self._ending = threading.Event(), asyncio.Event()
        self._failure: BaseException | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self.session: ClientSession
        self.initialized: Any = None

    def ask(self, question: Coroutine[Any, Any, Any]) -> Any:
        """What a coroutine of the session gives."""
        return asyncio.run_coroutine_threadsafe(question, self._loop).result(_ANSWER_S)

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The structured output of a tool, which must not be an error."""
        found = self.ask(self.session.call_tool(name, arguments))
        assert not found.is_error, found.content[0].text
        return found.structured_content

    def refusal(self, name: str, **arguments: Any) -> str:
        """The line by which a call is refused."""
        found = self.ask(self.session.call_tool(name, arguments))
        assert found.is_error
        (content,) = found.content
        assert "\n" not in content.text
        return content.text

    def read(self, uri: str) -> Any:
        """The one content of a resource."""
        (content,) = self.ask(self.session.read_resource(uri)).contents
        return content

    def __enter__(self) -> "McpClient":
        self._thread.start()
        self._ready.wait(_ANSWER_S)
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join(_ANSWER_S)
        self._loop.close()

    def _work(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._live())

    async def _live(self) -> None:
        try:
            async with self._connect() as streams, ClientSession(*streams[:2]) as session:
                self.session = session
                self.initialized = await session.initialize()
                self._ready.set()
                await self._ending.wait()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the test shows it
            self._failure = error
        finally:
            self._ready.set()


def over_pipes(*arguments: str) -> McpClient:
    """A client that starts the server itself."""
    command = [*forked.HTFI, "mcp", *arguments]
    parameters = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    return McpClient(lambda: stdio_client(parameters))


def over_http(url: str, key: str = "") -> McpClient:
    """A client of a server that runs."""

    @asynccontextmanager
    async def connect() -> AsyncIterator[Any]:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=_ANSWER_S) as client,
            streamable_http_client(url, http_client=client) as streams,
        ):
            yield streams

    return McpClient(connect)


class McpHttpProcess:
    """`htfi mcp --listen` on a free port until the end of the `with` block."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        command = [*forked.HTFI, "mcp", "--follow", str(folder), "--listen", "127.0.0.1:0"]
        self.process = forked.Popen(
            [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        if "http://" not in said:
            self.process.kill()
            raise AssertionError(f"the server did not start: {self.process.communicate()[1]}")
        self.url = said.split()[1]

    def __enter__(self) -> "McpHttpProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()
