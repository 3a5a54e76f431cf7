"""An agent whose connection broke goes on where it was: the events of its session, and of no other."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp.types import JSONRPCResponse

import htfi
from htfi.apps.mcp import resumption
from htfi.apps.mcp.resumption import EventsOfSessions, ResumableSessions, SessionEvents
from mcp_client import McpHttpProcess

VERSION = "2025-11-25"
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
BARS = [
    {"date": f"2024-{1 + day // 28:02}-{1 + day % 28:02}", "symbol": "ACME", "close": 100 + (day * 7) % 11}
    for day in range(60)
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpHttpProcess]:
    folder: Path = tmp_path_factory.mktemp("run")
    with htfi.open_run(folder, interval="1d", models=None) as run:
        list(run.feed(BARS))
    with McpHttpProcess(folder) as started:
        yield started


class Session:
    """A session by hand, whose connections a test can break."""

    def __init__(self, url: str) -> None:
        self._url, self.client = url, httpx.Client(headers=HEADERS, timeout=20.0)
        about = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        answer = self.client.post(url, json=call(0, "initialize", about))
        answer.raise_for_status()
        self.client.headers.update(
            {
                "mcp-session-id": answer.headers["mcp-session-id"],
                "mcp-protocol-version": VERSION,
            }
        )
        self.client.post(
            url, json={"jsonrpc": "2.0", "method": "notifications/initialized"}
        ).raise_for_status()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def begin(self, number: int, tool: str) -> str:
        """Ask, and break the connection after the first event; its id."""
        body = call(number, "tools/call", {"name": tool, "arguments": {}})
        with self.client.stream("POST", self._url, json=body) as answer:
            return next(line for line in answer.iter_lines() if line.startswith("id: "))[4:]

    def resume(self, event: str, *, wait_s: float = 20.0) -> list[str]:
        """The data of what comes after an event until an answer, or nothing for so long."""
        found: list[str] = []
        headers, timeout = {"Last-Event-ID": event}, httpx.Timeout(20.0, read=wait_s)
        try:
            with self.client.stream("GET", self._url, headers=headers, timeout=timeout) as answer:
                assert answer.status_code == 200
                for line in answer.iter_lines():
                    if line.startswith("data: ") and len(line) > 6:
                        found.append(line[6:])
                        break
        except httpx.ReadTimeout:
            pass
        return found


def call(number: int, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}


def test_answer_comes_on_a_new_connection_after_the_first_one_broke(server: McpHttpProcess) -> None:
    with Session(server.url) as session:
        event = session.begin(7, "verify_ledger")
        (answer,) = session.resume(event)
        assert '"id":7' in answer
        assert '"holds":true' in answer.replace(" ", "")
        assert session.resume(event) == [answer]  # for as long as it is kept


def test_event_of_another_session_gives_nothing_of_it(server: McpHttpProcess) -> None:
    with Session(server.url) as one, Session(server.url) as other:
        event = one.begin(7, "verify_ledger")
        assert other.begin(7, "list_stresses") != event
        assert other.resume(event, wait_s=0.5) == []
        assert len(one.resume(event)) == 1


def test_events_end_with_their_session(server: McpHttpProcess) -> None:
    with Session(server.url) as session:
        event = session.begin(7, "list_forecasts")
        assert session.client.delete(server.url).status_code == 200
        assert session.client.get(server.url, headers={"Last-Event-ID": event}).status_code == 404


def message(number: int, size: int = 1) -> JSONRPCResponse:
    return JSONRPCResponse(jsonrpc="2.0", id=number, result={"text": "x" * size})


def test_later_messages_of_one_stream_are_those_that_came_after_in_order() -> None:
    events = SessionEvents()
    first = events.add("1", None)
    events.add("2", message(2))
    ids = [events.add("1", message(number)) for number in (1, 3)]
    found = events.after(first)
    assert found is not None
    assert (found[0], [one.event_id for one in found[1]]) == ("1", ids)
    assert events.after(ids[-1]) == ("1", [])
    assert [events.after(wrong) for wrong in ("", "x-1", ids[0] + "0", ids[0].replace("-", "-0"))] == [
        None
    ] * 4


def test_what_a_session_keeps_is_bounded_in_events_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resumption, "MAX_EVENTS", 10)
    monkeypatch.setattr(resumption, "MAX_SESSION_BYTES", 2_000)
    events = SessionEvents()
    ids = [events.add("1", message(number)) for number in range(30)]
    assert [events.after(one) is not None for one in ids] == [False] * 20 + [True] * 10
    events.add("1", message(31, 1_900))
    assert events.num_bytes <= 2_000
    assert events.after(events.add("1", message(32, 5_000))) is None
    assert events.num_bytes == 0
    events.end()
    assert events.after(events.add("1", message(33))) is None


def test_sessions_that_asked_longest_ago_lose_their_events_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resumption, "MAX_BYTES", 5_000)
    store = EventsOfSessions()
    replayed: dict[str, int] = {}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        name = dict(scope["headers"]).get(b"mcp-session-id", scope["path"].encode())
        head = {"type": "http.response.start", "status": 200, "headers": [(b"mcp-session-id", name)]}
        if scope["method"] == "GET":
            got: list[Any] = []

            async def take(one: Any) -> None:
                got.append(one)

            await store.replay_events_after(scope["path"], take)
            replayed[name.decode()] = len(got)
        else:
            first.setdefault(name.decode(), await store.store_event("1", None))
            await store.store_event("1", message(1, 1_500))
        await send(head)

    first: dict[str, str] = {}
    sessions = ResumableSessions(app, max_sessions=100)

    async def ask(method: str, path: str, name: str = "") -> None:
        headers = [(b"mcp-session-id", name.encode())] if name else []
        scope: Any = {"type": "http", "method": method, "path": path, "headers": headers}

        async def drop(_: Any) -> None: ...

        await sessions(scope, None, drop)  # type: ignore[arg-type]

    async def work() -> None:
        for name in ("a", "b", "c", "d"):
            await ask("POST", name)
        for name in ("a", "b", "c", "d"):
            await ask("GET", first[name], name)
        await ask("GET", first["d"], "c")

    asyncio.run(work())
    assert replayed == {"a": 0, "b": 1, "c": 0, "d": 1}
