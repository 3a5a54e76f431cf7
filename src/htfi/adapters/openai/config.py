"""Settings of a remote model: where it is, how long it may take, what it may cost. Wiring composes them."""

import math
from dataclasses import dataclass
from urllib.parse import urlsplit

from htfi.domain.errors import InvalidInput

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_OMITTABLE = ("temperature", "seed", "response_format")


@dataclass(frozen=True, slots=True)
class FrontierConfig:
    """One model at one address.

    The key is read from the environment variable `key_variable`; empty means that the server wants none. Prices and
    `budget_money` are in one currency of your choice. `omit` names parameters that the server does not accept.
    """

    base_url: str
    model: str
    key_variable: str = "OPENAI_API_KEY"
    budget_tokens: int = 1_000_000
    budget_money: float = 1.0
    input_price_per_million: float = 0.0
    output_price_per_million: float = 0.0
    max_output_tokens: int = 1_024
    max_parallel: int = 8
    max_attempts: int = 4
    max_reply_bytes: int = 1_048_576
    connect_timeout_ms: float = 3_000.0
    read_timeout_ms: float = 30_000.0
    backoff_ms: float = 200.0
    max_backoff_ms: float = 10_000.0
    output_limit_name: str = "max_tokens"  # newer OpenAI models want "max_completion_tokens"
    omit: tuple[str, ...] = ()
    ca_file: str = ""  # further authorities to trust, as a PEM file

    def __post_init__(self) -> None:
        _check_address(self.base_url, bool(self.key_variable))
        if not self.model:
            raise InvalidInput("frontier.model must name a model")
        for name in ("budget_tokens", "max_output_tokens", "max_parallel", "max_attempts", "max_reply_bytes"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"frontier.{name} must be at least 1, not {getattr(self, name)}")
        for name in ("connect_timeout_ms", "read_timeout_ms"):
            if not 0.0 < getattr(self, name) < math.inf:
                raise InvalidInput(f"frontier.{name} must be above 0, not {getattr(self, name)}")
        amounts = ("budget_money", "input_price_per_million", "output_price_per_million", "backoff_ms")
        for name in (*amounts, "max_backoff_ms"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise InvalidInput(f"frontier.{name} must be 0 or more, not {getattr(self, name)}")
        if self.output_limit_name not in ("max_tokens", "max_completion_tokens"):
            raise InvalidInput("frontier.output_limit_name must be max_tokens or max_completion_tokens")
        if bad := [name for name in self.omit if name not in _OMITTABLE]:
            raise InvalidInput(f"frontier.omit can name {', '.join(_OMITTABLE)}; not {bad[0]}")

    @property
    def host(self) -> str:
        return urlsplit(self.base_url).netloc


def _check_address(url: str, has_key: bool) -> None:
    """No message repeats the address: it might hold a password."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidInput("frontier.base_url is not an address such as https://host/v1") from error
    if parts.scheme not in ("http", "https") or not host or not url.isascii() or not url.isprintable():
        raise InvalidInput("frontier.base_url must be an address such as https://host/v1")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise InvalidInput(
            "frontier.base_url must hold no password, query or fragment; name the key's variable"
        )
    if parts.scheme == "http" and has_key and host not in _LOOPBACK:
        raise InvalidInput(f"frontier.base_url: a key is not sent unencrypted to {host}; use https")
