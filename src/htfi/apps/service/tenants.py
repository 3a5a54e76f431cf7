"""The tenants of a service while it is up: whose key is whose, what each may use still, and what goes to the store.

All belongs to the event loop; the store is asked in a thread of its own, every second. A key that was added or revoked
counts from then on; while the store cannot be reached, the keys that are known go on and usage waits in memory.
"""

import asyncio
import hashlib
import secrets
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from htfi.apps.service.callers import Caller
from htfi.domain.errors import AccessDenied, DependencyUnavailable
from htfi.domain.time import NS_PER_S
from htfi.tenancy.accounts import UsageAccount, UsageAccounts, UsageBatch
from htfi.tenancy.config import ServiceConfig
from htfi.tenancy.guesses import FailedAttempts
from htfi.tenancy.keys import StoredKey, is_same_key, parse_key
from htfi.tenancy.ports import TenantStore
from htfi.tenancy.usage import Usage, UsageKey, day_of

_TURN_S = 1.0
_LOOK_S = 0.25  # between looks for a key that is not known
_SESSION_NS = 12 * 3_600 * NS_PER_S
_MAX_SESSIONS = 10_000
T = TypeVar("T")


class _KnownKey(NamedTuple):
    stored: StoredKey
    caller: Caller


@dataclass(frozen=True, slots=True)
class _Session:
    key: str
    until_ns: int


class _Turn(NamedTuple):
    totals: Mapping[UsageKey, Usage]
    day: int
    changed: tuple[int, list[StoredKey]] | None


class Tenants:
    """`open` reads the keys, `close` stores what is counted."""

    def __init__(self, config: ServiceConfig, store: TenantStore) -> None:
        self.config = config
        self.accounts = UsageAccounts(
            {name: UsageAccount.of(one.quota) for name, one in config.tenants.items()}, config.prices
        )
        self.failed = FailedAttempts()
        self.sizes: Callable[[], Mapping[str, int]] = dict
        self._store = store
        self._keys: dict[str, _KnownKey] = {}
        self._sessions: OrderedDict[bytes, _Session] = OrderedDict()
        self._version = -1
        self._server = secrets.token_hex(8)
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="tenant store")
        self._task: asyncio.Task[None] | None = None
        self._known_sizes: dict[tuple[str, int], int] = {}
        self._is_failing = False
        self._looked_s = 0.0

    async def open(self) -> None:
        """Raises: DependencyUnavailable."""
        await self.store_now()
        self._task = asyncio.ensure_future(self._work())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        with suppress(DependencyUnavailable):
            await self.store_now()
            await self.store_now()  # what came while an earlier batch was sent
        await self.ask(lambda store: store.close())
        self._executor.shutdown()

    def caller_of(self, text: str, address: str, now_ns: int) -> Caller:
        """Whose key this is. Raises: AccessDenied, TooManyAttempts."""
        given = parse_key(text)
        known = None if given is None else self._keys.get(given.id)
        wait_ns = self.failed.wait_ns(address, "" if given is None else given.id, now_ns)
        if wait_ns:
            raise TooManyAttempts("too many keys from this address were wrong", wait_ns)
        is_right = given is not None and is_same_key(given, None if known is None else known.stored)
        if known is None or not is_right or not known.stored.is_valid(now_ns):
            self.failed.fail(address, now_ns)
            raise AccessDenied("the key is not known, has expired or was revoked")
        self.failed.succeed(address, known.stored.id)
        return known.caller

    async def look_for(self, text: str) -> None:
        """Read the keys again where this one may have been added just now; not oftener than every quarter second."""
        given, now_s = parse_key(text), time.monotonic()
        is_due = now_s - self._looked_s >= _LOOK_S and not self._is_failing
        if given is None or given.id in self._keys or not is_due:
            return
        self._looked_s = now_s
        with suppress(DependencyUnavailable):
            version = self._version
            found = await self.ask(lambda store: _changed_keys(store, version))
            if found is not None:
                self._take_keys(*found)

    def begin_session(self, caller: Caller, now_ns: int) -> str:
        """A secret that stands for a caller until the session ends or the key does."""
        text = secrets.token_urlsafe(32)
        self._sessions[_digest(text)] = _Session(caller.key, now_ns + _SESSION_NS)
        if len(self._sessions) > _MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return text

    def caller_of_session(self, text: str, now_ns: int) -> Caller:
        """Raises: AccessDenied."""
        session = self._sessions.get(_digest(text))
        known = None if session is None else self._keys.get(session.key)
        if (
            session is None
            or known is None
            or now_ns >= session.until_ns
            or not known.stored.is_valid(now_ns)
        ):
            raise AccessDenied("the session has ended: give the key again")
        return known.caller

    def end_session(self, text: str) -> None:
        self._sessions.pop(_digest(text), None)

    async def ask(self, question: Callable[[TenantStore], T]) -> T:
        """What the store answers. Raises: as the question does."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, question, self._store)

    async def store_now(self) -> None:
        """One exchange with the store. Raises: DependencyUnavailable."""
        day = day_of(time.time_ns())
        for tenant, size in self.sizes().items():
            if size > self._known_sizes.get((tenant, day), 0):
                self._known_sizes[tenant, day] = self.accounts.sizes[tenant, day] = size
        batch = self.accounts.batch()
        turn = await self.ask(lambda store: self._exchange(store, batch, day))
        self.accounts.acknowledge(turn.totals, turn.day)
        if turn.changed is not None:
            self._take_keys(*turn.changed)

    def _exchange(self, store: TenantStore, batch: UsageBatch | None, day: int) -> _Turn:
        if batch is not None:
            store.add_usage(self._server, batch)
        return _Turn(store.usage(day, day), day, _changed_keys(store, self._version))

    def _take_keys(self, version: int, keys: list[StoredKey]) -> None:
        self._version, self._keys = version, {}
        for one in keys:
            if one.tenant in self.config.tenants:
                caller = Caller(one.tenant, one.name, one.scopes, one.id, one.person)
                self._keys[one.id] = _KnownKey(one, caller)
                self.accounts.account_of(one.id, one.quota)

    async def _work(self) -> None:
        while True:
            await asyncio.sleep(_TURN_S)
            try:
                await self.store_now()
            except DependencyUnavailable as error:
                if not self._is_failing:
                    sys.stderr.write(f"htfi: {error}: known keys go on, usage waits in memory\n")
                self._is_failing = True
            else:
                self._is_failing = False


class TooManyAttempts(AccessDenied):
    """An address has given too many wrong keys."""

    def __init__(self, why: str, wait_ns: int) -> None:
        super().__init__(why)
        self.wait_ns = wait_ns


def _changed_keys(store: TenantStore, version: int) -> tuple[int, list[StoredKey]] | None:
    """The keys and their version; None where it is the same."""
    found = store.keys_version()
    return None if found == version else (found, store.keys())


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
