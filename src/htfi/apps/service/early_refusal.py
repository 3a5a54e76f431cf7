"""Refuses a request over its quota as soon as its head is read: before a task, the middleware and the routes.

It covers what floods: a known key in `Authorization`. All else goes the whole way, where `CallerIdentity` decides.
"""

import time
from collections.abc import Iterable
from http import HTTPStatus
from typing import NamedTuple

from starlette.responses import Response
from starlette.types import Scope

from htfi.apps.service.identity import address_of, is_open, over_quota
from htfi.apps.service.measuring import RequestMeasures
from htfi.apps.service.tenants import Tenants
from htfi.domain.time import NS_PER_S

_STATUS = HTTPStatus.TOO_MANY_REQUESTS
_BEARER = b"bearer "


class RefusedRequest(NamedTuple):
    """The answer, and how long its connection is not read then."""

    response: Response
    pause_s: float


class EarlyRefusal:
    """Of one service; belongs to its event loop."""

    def __init__(
        self, tenants: Tenants, measured: RequestMeasures | None, page_paths: Iterable[str] = ()
    ) -> None:
        """`page_paths` are those of the page's files, which are answered to whoever asks."""
        self._tenants, self._measured = tenants, measured
        self._page_paths = frozenset(page_paths)

    def answer(self, scope: Scope) -> RefusedRequest | None:
        """The answer to a request that is over its quota, which counts as refused; None for any other."""
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(given) != 1 or given[0][: len(_BEARER)].lower() != _BEARER:
            return None
        if is_open(scope["path"], scope["method"], self._page_paths):
            return None
        now_ns, began_ns = time.time_ns(), time.monotonic_ns()
        text = given[0][len(_BEARER) :].decode("latin-1").strip()
        caller = self._tenants.caller_of_key(text, address_of(scope), now_ns)
        if caller is None:
            return None
        accounts = self._tenants.accounts
        refusal = accounts.refuse(caller.tenant, caller.key, now_ns)
        if refusal is None:
            return None
        response = over_quota(refusal, accounts.tenants[caller.tenant], now_ns, scope["path"])
        if self._measured is not None:
            self._measured.end(scope, _STATUS, began_ns, None, is_stream=False)
        return RefusedRequest(response, refusal.pause_ns / NS_PER_S)
