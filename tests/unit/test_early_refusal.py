"""Requests over a quota are refused at their head, and the connection is read later after each; not behind proxies."""

import asyncio
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from uvicorn import Config
from uvicorn.server import ServerState

from htfi.apps.service.early_refusal import EarlyRefusal, RefusedRequest
from htfi.apps.service.http_protocol import BoundedHttpProtocol
from htfi.apps.service.tenants import Tenants
from htfi.library.serving.callers import Caller
from htfi.library.serving.callers import Scope as ApiScope
from htfi.tenancy.accounts import UsageAccount, UsageAccounts
from htfi.tenancy.config import ServiceConfig
from htfi.tenancy.quotas import Quota

REFUSED, ADMITTED = b"GET /refused HTTP/1.1\r\nHost: a\r\n\r\n", b"GET /admitted HTTP/1.1\r\nHost: a\r\n\r\n"
PAUSE_S = 0.25


def early(quota: Quota) -> tuple[EarlyRefusal, UsageAccounts]:
    """Of a service with one tenant, whose key "right" has a quota."""
    accounts = UsageAccounts({"acme": UsageAccount.of(Quota())}, ServiceConfig({}).prices)
    accounts.account_of("key", quota)
    caller = Caller("acme", "Ann", frozenset({ApiScope.READ}), "key")

    def caller_of_key(text: str, address: str, now_ns: int) -> Caller | None:
        assert (address, now_ns > 0) == ("127.0.0.1", True)
        return caller if text == "right" else None

    tenants = SimpleNamespace(accounts=accounts, caller_of_key=caller_of_key)
    return EarlyRefusal(cast(Tenants, tenants), None, ["/", "/assets/page.js"]), accounts


def scope(path: str, *authorizations: bytes) -> Scope:
    headers = [(b"authorization", one) for one in authorizations]
    return {"type": "http", "path": path, "method": "GET", "headers": headers, "client": ("127.0.0.1", 1)}


def test_known_key_is_refused_only_once_its_quota_is_spent() -> None:
    refusing, accounts = early(Quota(requests_per_day=1))
    asked = scope("/v1/series", b"Bearer right")
    assert refusing.answer(asked) is None
    accounts.use("acme", "key", time.time_ns(), requests=1)
    refused = refusing.answer(asked)
    assert refused is not None
    assert refused.pause_s == 1.0
    answer = refused.response
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) > 0
    batch = accounts.batch()
    assert batch is not None
    assert sum(one.refused for one in batch.amounts.values()) == 1


@pytest.mark.parametrize(
    "asked",
    [
        scope("/v1/series"),
        scope("/v1/series", b"Bearer wrong"),
        scope("/v1/series", b"Basic right"),
        scope("/v1/series", b"Bearer right", b"Bearer right"),
        scope("/v1/openapi.json", b"Bearer right"),
        scope("/assets/page.js", b"Bearer right"),
    ],
    ids=["no key", "unknown key", "another scheme", "two keys", "open path", "page's file"],
)
def test_all_else_goes_the_whole_way(asked: Scope) -> None:
    refusing, accounts = early(Quota(requests_per_day=1))
    accounts.use("acme", "key", time.time_ns(), requests=1)
    assert refusing.answer(asked) is None
    assert refusing.answer(scope("/v1/series", b"bearer right")) is not None


class _Transport(asyncio.Transport):
    """Notes what is written, and whether it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.written, self.is_read, self.is_closed = b"", True, False

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True


class _Clock:
    """The loop, whose timers never ring by themselves."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Any:
        self.timers.append((delay_s, call))
        return SimpleNamespace(cancel=lambda: None)


async def _answered(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("yes")(scope, receive, send)


def _refusing(scope: Scope) -> RefusedRequest | None:
    return RefusedRequest(PlainTextResponse("no", 429), PAUSE_S) if scope["path"] == "/refused" else None


def connection(requests: list[bytes], *, is_behind_proxy: bool = False) -> tuple[list[float], _Transport]:
    """The pauses after requests of one connection, each sent when it is read again; and the connection."""

    async def scene() -> tuple[list[float], _Transport]:
        clock, transport = _Clock(asyncio.get_running_loop()), _Transport()
        config = Config(_answered, proxy_headers=is_behind_proxy)
        config.load()
        protocol = BoundedHttpProtocol(
            _refusing, config=config, server_state=ServerState(), app_state={}, _loop=clock
        )
        protocol.connection_made(transport)
        pauses: list[float] = []
        for request in requests:
            assert transport.is_read
            clock.timers.clear()
            protocol.data_received(request)
            for delay_s, resume in clock.timers:
                if delay_s == PAUSE_S:
                    assert not transport.is_read
                    pauses.append(delay_s)
                    resume()
            for _ in range(5 * request.count(b"GET")):
                await asyncio.sleep(0)
        return pauses, transport

    return asyncio.run(scene())


def test_connection_is_not_read_after_each_refusal() -> None:
    pauses, transport = connection([*[REFUSED] * 9, ADMITTED, REFUSED])
    assert pauses == [PAUSE_S] * 10
    assert transport.written.count(b"HTTP/1.1 429") == 10
    assert transport.written.count(b"HTTP/1.1 200") == 1


def test_requests_sent_ahead_of_a_refusal_are_refused_once_more_and_then_not_read() -> None:
    _, transport = connection([REFUSED * 400])
    assert transport.is_closed
    assert transport.written.count(b"HTTP/1.1 429") == 2
    assert transport.written.count(b"connection: close") == 1


def test_requests_sent_ahead_are_answered_while_they_are_admitted() -> None:
    _, transport = connection([ADMITTED * 400, REFUSED])
    assert not transport.is_closed
    assert transport.written.count(b"HTTP/1.1 200") == 400


def test_connection_is_kept_after_the_pause_unless_its_client_wants_it_closed() -> None:
    assert not connection([REFUSED, ADMITTED])[1].is_closed
    pauses, transport = connection([REFUSED.replace(b"Host: a", b"Host: a\r\nConnection: close")])
    assert (pauses, transport.is_closed) == ([], True)
    assert b"connection: close" in transport.written


def test_behind_a_proxy_a_connection_is_read_at_once() -> None:
    pauses, transport = connection([REFUSED, REFUSED, ADMITTED], is_behind_proxy=True)
    assert pauses == []
    assert transport.written.count(b"HTTP/1.1 429") == 2
    assert transport.written.count(b"HTTP/1.1 200") == 1
