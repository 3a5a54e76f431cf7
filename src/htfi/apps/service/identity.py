"""Identifies who asks, before any route: by a key or token in `Authorization`, by a WebSocket's subprotocol, or by the
page's session cookie. What is not on the short list of open paths is refused without one.

Then the quotas: a request over them is answered here, at the least cost.
"""

import time
from collections.abc import Container, Iterable
from http import HTTPStatus
from typing import NamedTuple

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from htfi.apps.service.callers import UNIDENTIFIED, Caller, TooManyAttempts
from htfi.apps.service.metering import Meter
from htfi.apps.service.problems import problem
from htfi.apps.service.tenants import Tenants
from htfi.domain.errors import AccessDenied
from htfi.domain.time import NS_PER_S
from htfi.tenancy.accounts import Refusal, UsageAccount, retry_after_s

COOKIE, SECURE_COOKIE = "htfi_session", "__Host-htfi_session"
SUBPROTOCOL, KEY_SUBPROTOCOL = "htfi", "htfi.key."
SESSION_PATH, HEALTH_PATH, STREAM_PATH = "/v1/session", "/v1/health", "/v1/stream"
_OPEN_PATHS = frozenset({"/v1/openapi.json"})
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="htfi"'}


class Credentials(NamedTuple):
    """What a request brings to be identified by."""

    bearer: str | None = None
    cookie: str | None = None
    is_subprotocol: bool = False
    origin: str = ""
    host: str = ""
    fetch_site: str = ""
    is_stream: bool = False  # that the client would read events


class CallerIdentity:
    """Sets `caller` and `meter` of a request's scope."""

    def __init__(self, app: ASGIApp, tenants: Tenants, page_paths: Iterable[str]) -> None:
        self._app, self._tenants = app, tenants
        self._page_paths = frozenset(page_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        path: str = scope["path"]
        method: str = scope.get("method", "GET")
        if is_open(path, method, self._page_paths):
            scope["caller"] = UNIDENTIFIED
            await self._app(scope, receive, send)
            return
        now_ns = time.time_ns()
        try:
            given = credentials_of(scope)
            caller = await self._identified(scope, given, method, now_ns)
        except AccessDenied as denied:
            if path != HEALTH_PATH:
                await _refuse(denied, scope, receive, send)
                return
            scope["caller"] = UNIDENTIFIED
            await self._app(scope, receive, send)
            return
        accounts = self._tenants.accounts
        refusal = accounts.admit(caller.tenant, caller.key, now_ns)
        account = accounts.tenants[caller.tenant]
        if refusal is not None:
            await over_quota(refusal, account, now_ns, path)(scope, receive, send)
            return
        caller = self._tenants.within_rights(caller)
        scope["caller"], scope["meter"] = caller, Meter(accounts, caller)
        if scope["type"] == "websocket":
            sending = _accepting(send) if given.is_subprotocol else send
            await self._tenants.held.run(self._app, caller, scope, receive, sending)
        elif path == STREAM_PATH or given.is_stream:
            counting = _counting(send, account, now_ns)
            await self._tenants.held.run(self._app, caller, scope, receive, counting)
        else:
            await self._app(scope, receive, _counting(send, account, now_ns))

    async def _identified(self, scope: Scope, given: Credentials, method: str, now_ns: int) -> Caller:
        if given.bearer is not None:
            return await self._tenants.identify(given.bearer, address_of(scope), now_ns)
        if given.cookie is None:
            raise AccessDenied("say who asks: Authorization: Bearer KEY (docs/tenants.md)")
        check_same_site(given, method, scope["type"] == "websocket")
        return self._tenants.caller_of_session(given.cookie, now_ns)


def is_open(path: str, method: str, page_paths: Container[str] = ()) -> bool:
    """Whether a path of the API or of the page is answered to whoever asks."""
    is_read = (path in _OPEN_PATHS or path in page_paths) and method in _SAFE_METHODS
    return is_read or (path == SESSION_PATH and method == "POST")


class CrossSite(AccessDenied):
    """A page of another site asks with the session of ours."""


def credentials_of(scope: Scope) -> Credentials:
    """Raises: AccessDenied where they are ambiguous or of another kind."""
    bearer: str | None = None
    cookie: str | None = None
    is_subprotocol = is_stream = False
    origin = host = fetch_site = ""
    name = SECURE_COOKIE if scope["scheme"] in ("https", "wss") else COOKIE
    for header, value in scope["headers"]:
        if header == b"authorization":
            kind, _, text = value.decode("latin-1").partition(" ")
            if bearer is not None or kind.lower() != "bearer":
                raise AccessDenied("Authorization: write it once, as Bearer KEY")
            bearer = text.strip()
        elif header == b"cookie":
            found = _cookies(value.decode("latin-1"), name)
            if len(found) > 1 or (found and cookie is not None):
                raise AccessDenied("the session cookie is there twice")
            cookie = found[0] if found else cookie
        elif header == b"origin":
            origin = value.decode("latin-1")
        elif header == b"host":
            host = value.decode("latin-1")
        elif header == b"sec-fetch-site":
            fetch_site = value.decode("latin-1")
        elif header == b"accept":
            is_stream = b"text/event-stream" in value
    if bearer is None and scope["type"] == "websocket":
        offered: list[str] = scope.get("subprotocols", [])
        keys = [one.removeprefix(KEY_SUBPROTOCOL) for one in offered if one.startswith(KEY_SUBPROTOCOL)]
        if len(keys) == 1:
            bearer, is_subprotocol = keys[0], True
    return Credentials(bearer, cookie, is_subprotocol, origin, host, fetch_site, is_stream)


def check_same_site(given: Credentials, method: str, is_websocket: bool) -> None:
    """What a session may be used for by a page: ours everything, one of another site nothing. Raises: CrossSite.

    Browsers send `Origin` with every request that changes something, and `Sec-Fetch-Site` with all; the cookie is
    SameSite=Strict besides.
    """
    is_ours = bool(given.origin) and given.origin.partition("://")[2] == given.host
    if given.fetch_site not in ("", "same-origin", "none"):
        raise CrossSite("a page of another site may not use the session")
    if given.origin and not is_ours:
        raise CrossSite(f"{given.origin[:100]!r} may not use the session")
    if (method not in _SAFE_METHODS or is_websocket) and not (is_ours or given.fetch_site == "same-origin"):
        raise CrossSite("with a session, say where the request comes from: Origin")


def address_of(scope: Scope) -> str:
    """The client's address; empty where it has none, as over a socket in the file system."""
    client = scope.get("client")
    return client[0] if client else ""


def _cookies(text: str, name: str) -> list[str]:
    parts = (one.strip().partition("=") for one in text.split(";"))
    return [value for key, _, value in parts if key == name]


async def _refuse(denied: AccessDenied, scope: Scope, receive: Receive, send: Send) -> None:
    if isinstance(denied, TooManyAttempts):
        headers = {"Retry-After": str(-(-denied.wait_ns // NS_PER_S))}
        answer = problem(HTTPStatus.TOO_MANY_REQUESTS, str(denied), instance=scope["path"], headers=headers)
    elif isinstance(denied, CrossSite):
        answer = problem(HTTPStatus.FORBIDDEN, str(denied), instance=scope["path"])
    else:
        answer = problem(HTTPStatus.UNAUTHORIZED, str(denied), instance=scope["path"], headers=_CHALLENGE)
    await answer(scope, receive, send)


def over_quota(refusal: Refusal, account: UsageAccount, now_ns: int, path: str) -> Response:
    """The answer to a request that is over a quota."""
    detail = f"over the quota: {refusal.what}"
    headers = {"Retry-After": str(retry_after_s(refusal))}
    headers |= {name.decode(): value.decode() for name, value in rate_headers(account, now_ns)}
    return problem(HTTPStatus.TOO_MANY_REQUESTS, detail, instance=path, headers=headers)


def rate_headers(account: UsageAccount, now_ns: int) -> list[tuple[bytes, bytes]]:
    """RateLimit and RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers) of the tenant's rate."""
    rate = account.rate
    if rate is None:
        return []
    window_s = max(rate.interval_ns * rate.burst / NS_PER_S, 1.0)
    left = rate.remaining(account.all_sent_ns, now_ns)
    until_s = max(account.all_sent_ns - now_ns, 0) / NS_PER_S
    return [
        (b"ratelimit-policy", b'"requests";q=%d;w=%d' % (rate.burst, round(window_s))),
        (b"ratelimit", b'"requests";r=%d;t=%d' % (left, -(-until_s // 1))),
    ]


def _counting(send: Send, account: UsageAccount, now_ns: int) -> Send:
    if account.rate is None:
        return send

    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *rate_headers(account, now_ns)]
        await send(message)

    return with_headers


def _accepting(send: Send) -> Send:
    async def with_subprotocol(message: Message) -> None:
        if message["type"] == "websocket.accept" and not message.get("subprotocol"):
            message["subprotocol"] = SUBPROTOCOL
        await send(message)

    return with_subprotocol
