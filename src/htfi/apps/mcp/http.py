"""MCP over streamable HTTP: one address, `/mcp`, with checks of Host and Origin, and bearer tokens where keys are."""

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette

from htfi.apps.mcp.access import CallableVerifier, Identify
from htfi.apps.mcp.resumption import RETRY_MS, EventsOfSessions, ResumableSessions
from htfi.apps.mcp.server import RecordServer
from htfi.domain.errors import InvalidInput
from htfi.library.serving.callers import Scope
from htfi.library.serving.run import ReadableRun

PATH = "/mcp"
MAX_BODY_BYTES = 4 << 20
_MAX_SESSIONS = 1_000
_IDLE_S = 1_800.0
_NAMES = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True)
class HttpAccess:
    """Who may ask over HTTP, and under which names. `issuer` is the OAuth server that gives out tokens, if any."""

    identify: Identify | None = None
    public_url: str = ""
    issuer: str = ""

    def __post_init__(self) -> None:
        for name, url in (("--public-url", self.public_url), ("--issuer", self.issuer)):
            if url and (urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc):
                raise InvalidInput(f"{name} {url}: write a URL, such as https://mcp.example.com/mcp")


def create_app(run: ReadableRun, access: HttpAccess, address: str) -> Starlette:
    """The application at one address, HOST:PORT; it follows the run while it is up."""
    server = RecordServer({"": run}, *auth_of(access, address))
    app = over_http(server, access, address)
    sessions = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(started: Starlette) -> AsyncGenerator[Any]:
        run.open()
        announcing = asyncio.ensure_future(server.announce())
        try:
            async with sessions(started) as state:
                yield state
        finally:
            announcing.cancel()
            with suppress(asyncio.CancelledError):
                await announcing
            await run.close()

    app.router.lifespan_context = lifespan
    return app


def over_http(server: MCPServer[Any], access: HttpAccess, address: str) -> Starlette:
    """A server at one address, with the checks of Host and Origin and the bounds that all have here."""
    public = [] if not access.public_url else [access.public_url]
    return over_http_at(server, [address.rpartition(":")[0]], public)


def over_http_at(
    server: MCPServer[Any],
    names: Sequence[str],
    public_urls: Sequence[str] = (),
    *,
    is_stateless: bool = False,
) -> Starlette:
    """A server that is asked by these host names, with and without a port, and by these URLs."""
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        stateless_http=is_stateless,
        event_store=None if is_stateless else EventsOfSessions(),
        retry_interval=None if is_stateless else RETRY_MS,
        transport_security=_security(names, public_urls),
        max_request_body_size=MAX_BODY_BYTES,
        session_idle_timeout=None if is_stateless else _IDLE_S,
        max_sessions=_MAX_SESSIONS,
    )
    if not is_stateless:
        app.add_middleware(ResumableSessions, max_sessions=_MAX_SESSIONS)
    return app


def serve_http(run: ReadableRun, access: HttpAccess, listening: socket.socket) -> None:
    """Answer until SIGINT or SIGTERM."""
    logging.getLogger("mcp").setLevel(logging.ERROR)
    host, port = listening.getsockname()[:2]
    app = create_app(run, access, f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    config = uvicorn.Config(
        app, lifespan="on", log_level="warning", access_log=False, server_header=False,
        timeout_graceful_shutdown=2,
    )  # fmt: skip
    uvicorn.Server(config).run(sockets=[listening])


def auth_of(access: HttpAccess, address: str) -> tuple[CallableVerifier | None, AuthSettings | None]:
    """What the SDK needs to ask for tokens; nothing without keys."""
    if access.identify is None:
        return None, None
    url = access.public_url or f"http://{address}{PATH}"
    settings: dict[str, Any] = {
        "issuer_url": access.issuer or url,
        "resource_server_url": url
        if access.issuer
        else None,  # without an issuer there is none to lead clients to
        "validate_token_resource": False if access.issuer else None,  # `identify` checks the audience
        "required_scopes": [Scope.READ.value],
    }
    return CallableVerifier(access.identify), AuthSettings(**settings)


def _security(names: Sequence[str], public_urls: Sequence[str]) -> TransportSecuritySettings:
    known = (*_NAMES, *names)
    hosts = [form for name in known for form in (name, f"{name}:*")]
    origins = [f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts]
    for url in public_urls:
        parts = urlsplit(url)
        hosts.append(parts.netloc)
        origins.append(f"{parts.scheme}://{parts.netloc}")
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True, allowed_hosts=hosts, allowed_origins=origins
    )
