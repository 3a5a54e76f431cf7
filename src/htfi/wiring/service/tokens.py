"""The issuers whose tokens a service believes, and their keys: from a file or an https address of service.toml."""

import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from htfi.adapters.jwt.verifier import MAX_JWKS_BYTES, TokenVerifier, issuer_of
from htfi.domain.errors import AccessDenied, DependencyUnavailable, InvalidInput
from htfi.tenancy.claims import Grant, grant_of
from htfi.tenancy.config import IssuerConfig, ServiceConfig

REFRESH_S = 600.0  # keys are read again so often
MIN_REFRESH_S = 30.0  # and not oftener, whatever key a token names
_ANSWER_S = 5.0
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class TokenIssuers:
    """`grant` and `is_due` may be called in another thread than `refresh`."""

    def __init__(self, service: ServiceConfig, folder: Path) -> None:
        """Raises: InvalidInput where an issuer's keys are a file that cannot be used."""
        self._service, self._folder = service, folder
        self._by_issuer = {one.issuer: one for one in service.issuers}
        self._verifiers = {
            one.issuer: TokenVerifier(one.issuer, one.audience, one.algorithms) for one in service.issuers
        }
        self._read_s = dict.fromkeys(self._by_issuer, float("-inf"))
        for one in service.issuers:
            if _is_address(one.keys):
                _check_address(one)
            else:
                self.refresh(one.issuer)

    @property
    def issuers(self) -> list[str]:
        return list(self._by_issuer)

    def issuer(self, text: str) -> str:
        """Who a token says has issued it, unverified. Raises: AccessDenied."""
        return issuer_of(text)

    def grant(self, text: str) -> Grant:
        """What a token grants now. Raises: AccessDenied, UnknownSigningKey where its issuer's keys may have changed."""
        issuer = issuer_of(text)
        verifier = self._verifiers.get(issuer)
        if verifier is None:
            raise AccessDenied("the token is of an issuer that is not known here")
        return grant_of(verifier.verify(text), self._by_issuer[issuer], self._service)

    def is_due(self, issuer: str, *, is_asked: bool) -> bool:
        """Whether keys are to be read again: `is_asked` where a token named one that is not there."""
        since_s = time.monotonic() - self._read_s.get(issuer, time.monotonic())
        return since_s >= (MIN_REFRESH_S if is_asked else REFRESH_S)

    def refresh(self, issuer: str) -> None:
        """Read an issuer's keys again; else those before go on. Raises: InvalidInput, DependencyUnavailable."""
        self._read_s[issuer] = time.monotonic()
        keys = self._by_issuer[issuer].keys
        if _is_address(keys):
            self._verifiers[issuer].take_keys(_fetched(keys))
            return
        try:
            data = (self._folder / keys).read_bytes()
        except OSError as error:
            raise InvalidInput(
                f"issuer {issuer}: cannot read {self._folder / keys}: {error.strerror}"
            ) from None
        self._verifiers[issuer].take_keys(data[: MAX_JWKS_BYTES + 1])


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _fetched(address: str) -> bytes:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect())
    try:
        with opener.open(address, timeout=_ANSWER_S) as answer:
            data: bytes = answer.read(MAX_JWKS_BYTES + 1)
    except (OSError, ValueError) as error:
        raise DependencyUnavailable(f"cannot read the keys at {address}: {error}") from None
    if len(data) > MAX_JWKS_BYTES:
        raise InvalidInput(f"the keys at {address} are larger than {MAX_JWKS_BYTES >> 20} MiB")
    return data


def _is_address(keys: str) -> bool:
    return "://" in keys


def _check_address(issuer: IssuerConfig) -> None:
    parts = urlsplit(issuer.keys)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        raise InvalidInput(f"issuer {issuer.issuer}: keys: {issuer.keys}: write an https address, or a file")
