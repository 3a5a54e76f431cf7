"""Who may ask over HTTP: keys or tokens behind the SDK's `TokenVerifier`, and a file of hashed keys.

Another way to identify a caller, such as JWTs, joins as `CallableVerifier(identify)`.
"""

import hmac
import tomllib
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import msgspec
from mcp.server.auth.provider import AccessToken

from htfi.apps.mcp.serving import CALLER_CLAIM
from htfi.domain.errors import InvalidInput
from htfi.library.serving.callers import Caller, Scope

Identify = Callable[[str], Caller | None]
_MAX_TOKEN_CHARS = 8_192


class CallableVerifier:
    """The SDK's `TokenVerifier` over a function from a bearer token to its caller; None for a token that is none."""

    def __init__(self, identify: Identify) -> None:
        self._identify = identify

    async def verify_token(self, token: str) -> AccessToken | None:
        """The caller as the SDK carries it through a request."""
        caller = None if len(token) > _MAX_TOKEN_CHARS else self._identify(token)
        if caller is None:
            return None
        return AccessToken(
            token="",  # nothing that comes after needs it
            client_id=f"{caller.tenant}/{caller.name}",
            subject=caller.name,
            scopes=sorted(caller.scopes),
            claims={CALLER_CLAIM: caller},
        )


class _Key(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    sha256: str
    scopes: list[Scope]


class _KeysFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    key: list[_Key]


def read_keys(file: Path) -> Identify:
    """Identifies by a TOML file of `[[key]]` tables: name, sha256 (hex, of the key), scopes. Raises: InvalidInput.

    A key is long and random (`python -c "import secrets; print(secrets.token_urlsafe(32))"`), so that its plain hash
    tells nothing of it.
    """
    try:
        known = msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), _KeysFile).key
    except OSError as error:
        raise InvalidInput(f"{file}: {error.strerror}; name a file of keys") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise InvalidInput(
            f"{file}: {error}; write [[key]] tables with name, sha256 and scopes (docs/mcp.md)"
        ) from error
    for one in known:
        if len(one.sha256) != 64 or set(one.sha256) - set("0123456789abcdef"):
            raise InvalidInput(f"{file}: sha256 of {one.name!r} is not 64 hex digits in lower case")
    if not known:
        raise InvalidInput(f"{file} holds no key: no client could ask")
    callers = [(one.sha256, Caller("", one.name, frozenset(one.scopes))) for one in known]

    def identify(token: str) -> Caller | None:
        digest = sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
        found = None
        for known_digest, caller in callers:  # all of them, so that time tells nothing
            if hmac.compare_digest(known_digest, digest):
                found = caller
        return found

    return identify
