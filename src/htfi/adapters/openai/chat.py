"""Calls of one chat endpoint: limits of time, size and cost, and further attempts. The generator calls it in its loop.

The worst case of a call is reserved in the budget before it, and settled after it. No text of the server's goes into a
reason, an error or a log: it may repeat the key.
"""

import asyncio
import logging
import ssl
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, cast

import msgspec

from htfi.adapters.openai.config import FrontierConfig
from htfi.adapters.openai.prompts import UnusableReply
from htfi.domain.errors import InvalidInput, MissingExtra
from htfi.domain.generation import RequestRefused


@dataclass(frozen=True, slots=True)
class RemoteUsage:
    """Used so far: tokens as the server counted them, or at most, where it did not say."""

    num_input_tokens: int = 0
    num_output_tokens: int = 0
    money: float = 0.0
    num_calls: int = 0


class CallReservation(NamedTuple):
    """The most that one call can use."""

    num_input_tokens: int
    num_output_tokens: int


class CallBudget:
    """A ledger of calls under way and done. Calls side by side can never exceed it together."""

    def __init__(self, config: FrontierConfig) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._usage = RemoteUsage()
        self._reserved: list[CallReservation] = []

    @property
    def usage(self) -> RemoteUsage:
        return self._usage

    def reserve(self, call: CallReservation) -> str:
        """Set aside the worst case of a call; a reason where that could exceed the budget, else ''."""
        with self._lock:
            under_way = [*self._reserved, call]
            spent = self._usage
            num_input = spent.num_input_tokens + sum(each.num_input_tokens for each in under_way)
            num_output = spent.num_output_tokens + sum(each.num_output_tokens for each in under_way)
            if num_input + num_output > self._config.budget_tokens:
                left = self._config.budget_tokens - spent.num_input_tokens - spent.num_output_tokens
                return f"budget: {max(left, 0)} of {self._config.budget_tokens} tokens are left"
            if self._money(num_input, num_output) > self._config.budget_money:
                left = self._config.budget_money - spent.money
                return f"budget: {max(left, 0.0):.4f} of {self._config.budget_money:g} in money is left"
            self._reserved.append(call)
            return ""

    def charge(self, call: CallReservation, num_input_tokens: int, num_output_tokens: int) -> None:
        """Give back what was set aside and count what was used."""
        with self._lock:
            self._reserved.remove(call)
            spent = self._usage
            num_input = spent.num_input_tokens + num_input_tokens
            num_output = spent.num_output_tokens + num_output_tokens
            self._usage = RemoteUsage(
                num_input, num_output, self._money(num_input, num_output), spent.num_calls + 1
            )

    def _money(self, num_input: int, num_output: int) -> float:
        config = self._config
        return (
            num_input * config.input_price_per_million + num_output * config.output_price_per_million
        ) / 1_000_000


try:
    import httpx
except ImportError as error:
    raise MissingExtra("remote models need httpx: install htfi[frontier]") from error

_TRANSIENT_STATUS = (408, 425, 429, 500, 502, 503, 504, 529)
_TEMPLATE_TOKENS = 64  # a chat template's own, beyond the bytes of the request
_LOGGERS = ("httpx", "httpcore.connection", "httpcore.http11", "httpcore.proxy")


class ChatReply(NamedTuple):
    """What the model wrote."""

    content: str
    num_input_tokens: int


class _Retry(NamedTuple):
    """An attempt that may be repeated, not before `wait_s`."""

    reason: str
    wait_s: float = 0.0


class _ReplyMessage(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _ReplyChoice(msgspec.Struct):
    message: _ReplyMessage
    finish_reason: str | None = None


class _ReplyBody(msgspec.Struct):
    choices: list[_ReplyChoice]
    usage: Any = None


class ChatClient:
    """One endpoint and the connections to it; lives in one event loop."""

    def __init__(
        self,
        config: FrontierConfig,
        key: str,
        budget: CallBudget,
        random: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        now_s: Callable[[], float],
    ) -> None:
        self._config, self._budget = config, budget
        self._random, self._sleep, self._now_s = random, sleep, now_s
        self._slots = asyncio.Semaphore(config.max_parallel)
        self._url = config.base_url.rstrip("/") + "/chat/completions"
        self._log_filter = _KeyRedactingFilter(key)
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(self._log_filter)
        seconds = config.read_timeout_ms / 1e3
        self._client = httpx.AsyncClient(
            # A compressed reply could be far larger than its bytes on the way.
            headers={"Accept-Encoding": "identity", **({"Authorization": f"Bearer {key}"} if key else {})},
            timeout=httpx.Timeout(seconds, connect=config.connect_timeout_ms / 1e3, pool=None),
            limits=httpx.Limits(max_connections=config.max_parallel),
            follow_redirects=False,  # the key goes to one host
            trust_env=False,  # no proxy, password file or authority that the settings do not name
            verify=_ssl_context(config.ca_file),
        )

    async def complete(self, body: bytes, until_s: float) -> ChatReply | RequestRefused:
        """One reply, after as many attempts as fit before `until_s` of the loop's clock. Raises: UnusableReply."""
        for attempt in range(1, self._config.max_attempts + 1):
            async with self._slots:
                outcome = await self._attempt(body)
            if not isinstance(outcome, _Retry):
                return outcome
            if attempt == self._config.max_attempts:
                return RequestRefused(f"{outcome.reason}, {attempt} times")
            longest = min(self._config.max_backoff_ms, self._config.backoff_ms * 2.0 ** (attempt - 1)) / 1e3
            wait_s = (
                outcome.wait_s + self._random() * longest
            )  # full jitter: many callers come back spread out
            if asyncio.get_running_loop().time() + wait_s >= until_s:
                return RequestRefused(f"{outcome.reason}; no time is left to try again")
            await self._sleep(wait_s)
        raise AssertionError("an attempt always ends the loop")

    async def close(self) -> None:
        await self._client.aclose()
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(self._log_filter)

    async def _attempt(self, body: bytes) -> ChatReply | RequestRefused | _Retry:
        # A token is at least one byte, so the bytes bound the tokens whatever the tokenizer.
        call = CallReservation(len(body) + _TEMPLATE_TOKENS, self._config.max_output_tokens)
        if reason := self._budget.reserve(call):
            return RequestRefused(reason)
        used = CallReservation(0, 0)

        async def watch(event: str, info: Any) -> None:  # noqa: ARG001 — the library's signature
            nonlocal used
            if event.endswith("send_request_body.started"):
                used = call  # from here on the server may work for us, and bill it

        try:
            request = self._client.build_request(
                "POST",
                self._url,
                content=body,
                headers={"Content-Type": "application/json"},
                extensions={"trace": watch},
            )
            response = await self._client.send(request, stream=True)
            try:
                if response.status_code != 200:
                    used = CallReservation(0, 0)
                    return self._http_error(response)
                whole = await self._read(response)
                if isinstance(whole, RequestRefused):
                    return whole
                decoded = _decode_body(whole)
                used = _tokens_used(decoded.usage, call)
                return _make_reply(decoded, used)
            finally:
                await response.aclose()
        except (httpx.HTTPError, httpx.StreamError, OSError) as error:
            return self._transport_error(error)
        finally:
            self._budget.charge(call, *used)

    async def _read(self, response: httpx.Response) -> bytes | RequestRefused:
        limit = self._config.max_reply_bytes
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            return RequestRefused("the server's reply is compressed, which was not requested")
        whole = bytearray()
        async for part in response.aiter_raw():
            whole += part
            if len(whole) > limit:
                return RequestRefused(f"the server's reply is larger than {limit} bytes")
        return bytes(whole)

    def _http_error(self, response: httpx.Response) -> RequestRefused | _Retry:
        status, host = response.status_code, self._config.host
        if status in _TRANSIENT_STATUS:
            wait_s = _retry_after_s(response.headers.get("Retry-After", ""), self._now_s())
            return _Retry(f"{host} cannot answer now (status {status})", wait_s)
        if status in (401, 403):
            return RequestRefused(
                f"{host} does not accept the key in {self._config.key_variable or '(none)'} (status {status})"
            )
        if status == 404:
            return RequestRefused(
                f"{host} does not know the address or the model '{self._config.model}' (status 404)"
            )
        if 300 <= status < 400:
            return RequestRefused(
                f"{host} redirects the request (status {status}); redirects are not followed"
            )
        return RequestRefused(f"{host} does not accept the request (status {status}); see frontier.omit")

    def _transport_error(self, error: Exception) -> RequestRefused | _Retry:
        host = self._config.host
        if _is_certificate_error(error):
            return RequestRefused(
                f"the certificate of {host} is not trusted; name its authority in frontier.ca_file"
            )
        if isinstance(error, httpx.ConnectTimeout | httpx.ConnectError):
            return _Retry(f"{host} cannot be reached")
        if isinstance(error, httpx.TimeoutException):
            return _Retry(f"{host} fell silent for {self._config.read_timeout_ms:g} ms")
        return _Retry(f"the connection to {host} broke")


class _KeyRedactingFilter(logging.Filter):
    """Drops what the HTTP library logs of a header or address that repeats the key."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self._key = key

    def filter(self, record: logging.LogRecord) -> bool:
        return not self._key or self._key not in record.getMessage()


def _ssl_context(ca_file: str) -> ssl.SSLContext:
    context = httpx.create_ssl_context(verify=True, trust_env=False)
    if ca_file:
        try:
            context.load_verify_locations(ca_file)
        except OSError as error:  # of which an unreadable certificate is one
            raise InvalidInput(
                f"frontier.ca_file: {ca_file} is not a readable PEM file of certificates"
            ) from error
    return context


def _is_certificate_error(error: BaseException | None) -> bool:
    for _ in range(8):
        if error is None or isinstance(error, ssl.SSLCertVerificationError):
            break
        error = error.__cause__ or error.__context__
    return error is not None and isinstance(error, ssl.SSLCertVerificationError)


def _retry_after_s(text: str, now_s: float) -> float:
    """Seconds to wait, from seconds or a date; 0 for anything else. Source: RFC 9110, 10.2.3."""
    if text.isascii() and text.isdigit() and len(text) < 10:
        return float(text)
    with suppress(ValueError, TypeError, OverflowError):
        return max(parsedate_to_datetime(text).timestamp() - now_s, 0.0)
    return 0.0


def _decode_body(body: bytes) -> _ReplyBody:
    try:
        decoded = msgspec.json.decode(body, type=_ReplyBody)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnusableReply("the reply was no chat completion") from error
    if not decoded.choices:
        raise UnusableReply("the reply held no answer")
    return decoded


def _tokens_used(usage: Any, most: CallReservation) -> CallReservation:
    """Tokens as the server counted them; the most there can be where it does not say."""
    counts = cast("dict[str, Any]", usage) if isinstance(usage, dict) else {}
    stated = (counts.get("prompt_tokens"), counts.get("completion_tokens"))
    if all(type(count) is int and 0 <= count < 2**40 for count in stated):
        return CallReservation(*cast("tuple[int, int]", stated))
    return most


def _make_reply(body: _ReplyBody, used: CallReservation) -> ChatReply | RequestRefused:
    first = body.choices[0]
    if first.message.refusal or first.finish_reason == "content_filter":
        return RequestRefused("the model declined to answer")
    if first.finish_reason == "length":
        raise UnusableReply("it was cut off")
    if not first.message.content:
        raise UnusableReply("it was empty")
    return ChatReply(first.message.content, used.num_input_tokens)
