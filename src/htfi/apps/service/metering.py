"""What a request uses: routes add to the meter of the request, the accounts of its tenant and key sum it up.

    meter(request).add(tokens=answer.num_tokens, cpu_s=answer.cpu_s)

On a service without keys nothing is counted.
"""

import time

from starlette.requests import HTTPConnection

from htfi.apps.service.callers import Caller
from htfi.tenancy.accounts import UsageAccounts
from htfi.tenancy.usage import MICROS


class Meter:
    """Of one request that was admitted."""

    __slots__ = ("_accounts", "_caller")

    def __init__(self, accounts: UsageAccounts | None, caller: Caller) -> None:
        self._accounts, self._caller = accounts, caller

    def add(self, *, tokens: int = 0, cpu_s: float = 0.0) -> None:
        """Count tokens that a model read or wrote, or processor time; as often as there is something to count."""
        if self._accounts is not None:
            self._accounts.use(
                self._caller.tenant,
                self._caller.key,
                time.time_ns(),
                tokens=tokens,
                cpu_us=round(cpu_s * MICROS),
            )


def meter(connection: HTTPConnection) -> Meter:
    """The meter of a request or WebSocket."""
    found: Meter | None = connection.scope.get("meter")
    return found or _UNMETERED


_UNMETERED = Meter(None, Caller("", "", frozenset()))
