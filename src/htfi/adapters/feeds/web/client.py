"""One GET at a time over HTTP, bounded in time, size, redirects and in whom it may reach. `WebPoller` calls it.

httpcore speaks HTTP/1.1 and keeps connections; redirects, decoding and limits are here, because each hop
and each piece must be checked.
"""

import ssl
import threading
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import httpcore

from htfi.adapters.feeds.rate_limits import RateLimiter, retry_after_s
from htfi.adapters.feeds.web.address import WebAddress, resolve_link
from htfi.adapters.feeds.web.connections import Deadline, GuardedBackend
from htfi.adapters.feeds.web.robots import RobotsRules, parse_robots
from htfi.domain.errors import InvalidInput

MAX_BODY_BYTES = 16_000_000
REQUEST_S = 30.0
_CONNECT_S = 10.0
_READ_S = 10.0
_MAX_REDIRECTS = 5
_ROBOTS_TTL_S = 86_400.0
_MAX_CACHED_ROBOTS = 64
_CHUNK_BYTES = 1 << 18
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """`body` is decoded; `status` is 200 or 304. `address` is where it came from at last."""

    address: WebAddress
    status: int
    headers: Mapping[str, str]
    body: bytes


class FetchFailed(Exception):
    """Nothing that can be used came: why, how long the server wants to be left alone, how large it was."""

    def __init__(
        self, detail: str, wait_s: float = 0.0, num_bytes: int = 0, status: int = 0, forbidden: bool = False
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.retry_after_s = wait_s
        self.num_bytes = num_bytes  # of a body that was too large
        self.status = status
        self.forbidden = forbidden  # by robots.txt


class WebClient:
    """For one source and one thread. `agent` says who asks; `configured` is the host that a person wrote."""

    def __init__(
        self,
        configured: str,
        agent: str,
        throttle: RateLimiter,
        stopped: threading.Event,
        *,
        robots: bool = False,
        request_s: float | None = None,
        max_body_bytes: int = MAX_BODY_BYTES,
    ) -> None:
        self._agent = agent
        self._rate_limiter = throttle
        self._stopped = stopped
        self._request_s = REQUEST_S if request_s is None else request_s
        self._max_body_bytes = max_body_bytes
        self._requires_robots = robots
        self._robots: dict[str, tuple[float, RobotsRules]] = {}
        self._deadline = Deadline(stopped)
        self._pool = httpcore.ConnectionPool(
            ssl_context=ssl.create_default_context(),
            max_connections=4,
            keepalive_expiry=30.0,
            network_backend=GuardedBackend(configured, self._deadline),
        )

    def get(
        self, address: WebAddress, wanted: str, conditions: Mapping[str, str] | None = None
    ) -> HttpResponse:
        """Ask, following redirects of the same scheme. Raises: FetchFailed."""
        seen = {address.url}
        for _ in range(_MAX_REDIRECTS + 1):
            if self._requires_robots:
                self.check_robots(address)
            self._wait(self._rate_limiter.reserve(address.host))
            status, headers, body = self._request(address, wanted, conditions or {})
            if status not in _REDIRECTS:
                return HttpResponse(address, status, headers, body)
            address = self._get_following_redirects(address, headers)
            if address.url in seen:
                raise FetchFailed(f"redirects in a circle: {address.url}")
            seen.add(address.url)
        raise FetchFailed(f"more than {_MAX_REDIRECTS} redirects")

    @property
    def stopped(self) -> bool:
        return self._stopped.is_set()

    def require_robots(self) -> None:
        """From now on, robots.txt is asked: what is read are pages made for people."""
        self._requires_robots = True

    def close(self) -> None:
        self._pool.close()

    def check_robots(self, address: WebAddress) -> None:
        """Raises: FetchFailed, where robots.txt disallows the address or cannot be had (RFC 9309)."""
        known = self._robots.get(address.origin)
        if known is None or time.monotonic() - known[0] > _ROBOTS_TTL_S:
            if len(self._robots) >= _MAX_CACHED_ROBOTS:
                self._robots.clear()
            known = self._robots[address.origin] = time.monotonic(), self._fetch_robots(address)
            if known[1].delay_s:
                self._rate_limiter.slow_down(address.host, known[1].delay_s)
        if not known[1].allows(address.target):
            raise FetchFailed(f"robots.txt of {address.host} disallows {address.target[:80]}", forbidden=True)

    def _fetch_robots(self, address: WebAddress) -> RobotsRules:
        at = replace(address, target="/robots.txt")
        for _ in range(_MAX_REDIRECTS + 1):
            self._wait(self._rate_limiter.reserve(at.host))
            try:
                status, headers, body = self._request(at, "text/plain", {})
            except FetchFailed as error:
                if 400 <= error.status < 500 and error.status != 429:
                    return RobotsRules()  # there is none: all is allowed
                raise FetchFailed(f"robots.txt: {error.detail}", error.retry_after_s) from error
            if status not in _REDIRECTS:
                return parse_robots(body, self._agent)
            at = self._get_following_redirects(at, headers)
        raise FetchFailed("robots.txt: too many redirects")

    def _wait(self, seconds: float) -> None:
        if self._stopped.wait(seconds):
            raise FetchFailed("the run stops")

    def _get_following_redirects(self, address: WebAddress, headers: Mapping[str, str]) -> WebAddress:
        try:
            found = resolve_link(address, headers.get("location", ""))
        except InvalidInput as error:
            raise FetchFailed(f"redirects to what is not a web address: {error}") from error
        if found.scheme != address.scheme:
            raise FetchFailed(f"redirects to another scheme: write {found.url} instead")
        return found

    def _request(
        self, address: WebAddress, wanted: str, conditions: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str], bytes]:
        request = {
            "Host": address.origin.partition("//")[2],
            "User-Agent": self._agent,
            "Accept": wanted,
            "Accept-Encoding": "gzip",
            **conditions,
        }
        limits = {"connect": _CONNECT_S, "read": _READ_S, "write": _READ_S, "pool": _CONNECT_S}
        self._deadline.begin(self._request_s)
        try:
            with self._pool.stream(
                "GET",
                address.url,
                headers=[(name.encode(), value.encode("latin-1")) for name, value in request.items()],
                extensions={"timeout": limits},
            ) as response:
                headers = _headers(response.headers)
                if response.status in _REDIRECTS or response.status == 304:
                    return response.status, headers, b""
                if response.status != 200:
                    raise self._http_error(address, response.status, headers)
                return 200, headers, self._read(response, headers)
        except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError) as error:
            why = str(error) or type(error).__name__
            raise FetchFailed(f"{address.host}: {why[:200]}") from error
        except (OSError, ValueError, RuntimeError) as error:
            raise FetchFailed(f"{address.host}: {str(error)[:200]}") from error

    def _http_error(self, address: WebAddress, status: int, headers: Mapping[str, str]) -> FetchFailed:
        wait_s = retry_after_s(headers) if status in (429, 503) else 0.0
        if wait_s:
            self._rate_limiter.block(address.host, wait_s)
        return FetchFailed(f"{address.host} answers {status}", wait_s, status=status)

    def _read(self, response: Any, headers: Mapping[str, str]) -> bytes:
        stated = headers.get("content-length", "")
        if stated.isdecimal() and int(stated) > self._max_body_bytes:
            raise self._oversized(int(stated))
        decoder = _decoder(headers.get("content-encoding", ""))
        body = bytearray()
        for piece in response.iter_stream():
            for begin in range(0, len(piece), _CHUNK_BYTES):
                body += decoder.decode(
                    piece[begin : begin + _CHUNK_BYTES], self._max_body_bytes + 1 - len(body)
                )
                if len(body) > self._max_body_bytes:
                    raise self._oversized(None)
        decoder.finish()
        return bytes(body)

    def _oversized(self, num_bytes: int | None) -> FetchFailed:
        most = self._max_body_bytes
        size = f"{num_bytes} bytes" if num_bytes else "too many bytes"
        return FetchFailed(f"{size}: an answer has at most {most}", num_bytes=num_bytes or most + 1)


class _IdentityDecoder:
    def decode(self, piece: bytes, most: int) -> bytes:
        del most
        return piece

    def finish(self) -> None: ...


class _GzipDecoder:
    """gzip or zlib, never more than is asked for, so that a bomb costs nothing."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(47)  # either header
        self._begun = False

    def decode(self, piece: bytes, most: int) -> bytes:
        self._begun = True
        try:
            return self._inflate.decompress(piece, most)
        except zlib.error as error:
            raise FetchFailed(f"the compressed answer is damaged: {error}") from error

    def finish(self) -> None:
        if self._begun and not self._inflate.eof:
            raise FetchFailed("the compressed answer is cut short")


def _decoder(encoding: str) -> _IdentityDecoder | _GzipDecoder:
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return _IdentityDecoder()
    if name in ("gzip", "x-gzip", "deflate"):
        return _GzipDecoder()
    raise FetchFailed(f"the response is encoded as '{name[:40]}', which was not requested")


def _headers(raw: list[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in raw}
