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
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from htfi.apps.service.callers import Caller, TooManyAttempts, Unidentified
from htfi.apps.service.held_requests import HeldRequests
from htfi.domain.errors import AccessDenied, DependencyUnavailable, InvalidInput
from htfi.domain.time import NS_PER_S
from htfi.tenancy.accounts import UsageAccount, UsageAccounts, UsageBatch
from htfi.tenancy.claims import UnknownSigningKey
from htfi.tenancy.config import WEIGHTS, ServiceConfig
from htfi.tenancy.guesses import FailedAttempts
from htfi.tenancy.keys import StoredKey, is_same_key, parse_key
from htfi.tenancy.ports import TenantStore
from htfi.tenancy.quotas import Quota
from htfi.tenancy.scopes import ApiScope
from htfi.tenancy.usage import Usage, UsageKey, day_of
from htfi.wiring.service.reading_rights import ReadingRights

if TYPE_CHECKING:  # it needs the extra [tenants]
    from htfi.wiring.service.tokens import TokenIssuers

_TURN_S = 1.0
_LOOK_S = 0.25  # between looks for a key that is not known
_SESSION_NS = 12 * 3_600 * NS_PER_S
_MAX_SESSIONS = 10_000
_OF_RECORD = frozenset({ApiScope.READ, ApiScope.ASK})
T = TypeVar("T")


class _KnownKey(NamedTuple):
    stored: StoredKey
    caller: Caller


class _Granted(NamedTuple):
    """A token that was verified."""

    caller: Caller
    until_ns: int


class _Session(NamedTuple):
    """A caller by key, until the session ends; of one with a token the caller itself."""

    caller: Caller
    until_ns: int


class _Exchange(NamedTuple):
    totals: Mapping[UsageKey, Usage]
    day: int
    changed: tuple[int, list[StoredKey]] | None


class Tenants:
    """`open` reads the keys, `close` stores what is counted."""

    def __init__(
        self, config: ServiceConfig, store: TenantStore, tokens: "TokenIssuers | None" = None
    ) -> None:
        self.config = config
        self.accounts = UsageAccounts(
            {name: UsageAccount.of(one.quota) for name, one in config.tenants.items()}, config.prices
        )
        self.failed = FailedAttempts()
        self.sizes: Callable[[], Mapping[str, int]] = dict
        self.held = HeldRequests()
        self.rights: Mapping[str, ReadingRights] = {}
        self._store, self._tokens = store, tokens
        self._granted: OrderedDict[bytes, _Granted] = OrderedDict()
        self._keys: dict[str, _KnownKey] = {}
        self._sessions: OrderedDict[bytes, _Session] = OrderedDict()
        self._version = -1
        self._server = secrets.token_hex(8)
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="tenant store")
        self._task: asyncio.Task[None] | None = None
        self._known_sizes: dict[tuple[str, int], int] = {}
        self._is_failing = False
        self._looked_s = 0.0
        self._look: asyncio.Task[None] | None = None

    @property
    def weights(self) -> Mapping[str, float]:
        """Of each tenant's turns, by its priority class."""
        return {name: WEIGHTS[one.priority] for name, one in self.config.tenants.items()}

    async def open(self) -> None:
        """Raises: DependencyUnavailable."""
        await self.store_now()
        await self._refresh_due()
        self._task = asyncio.ensure_future(self._work())

    async def close(self) -> None:
        for task in (self._task, self._look):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        with suppress(DependencyUnavailable):
            await self.store_now()
            await self.store_now()  # what came while an earlier batch was sent
        await self.ask(lambda store: store.close())
        self._executor.shutdown()

    async def identify(self, text: str, address: str, now_ns: int) -> Caller:
        """Who brings this key or token. Raises: Unidentified, TooManyAttempts."""
        given = parse_key(text)
        name = given.id if given is not None else ""
        wait_ns = self.failed.wait_ns(address, name, now_ns)
        if wait_ns:
            raise TooManyAttempts("too many keys from this address were wrong", wait_ns)
        if given is not None and given.id not in self._keys:
            await self._look_again()
        known = None if given is None else self._keys.get(given.id)
        if given is None and self._tokens is not None and text.count(".") == 2:
            try:
                return await self._caller_of_token(self._tokens, text, now_ns)
            except AccessDenied as denied:
                self.failed.fail(address, now_ns)
                raise Unidentified(str(denied)) from None
        is_right = given is not None and is_same_key(given, None if known is None else known.stored)
        if known is None or not is_right or not known.stored.is_valid(now_ns):
            self.failed.fail(address, now_ns)
            raise Unidentified("the key is not known, has expired or was revoked")
        self.failed.succeed(address, name)
        return known.caller

    def caller_of_key(self, text: str, address: str, now_ns: int) -> Caller | None:
        """Whose this key is; None where `identify` has more to look at."""
        given = parse_key(text)
        known = None if given is None else self._keys.get(given.id)
        if given is None or known is None or self.failed.wait_ns(address, given.id, now_ns):
            return None
        is_right = is_same_key(given, known.stored) and known.stored.is_valid(now_ns)
        return known.caller if is_right else None

    async def _caller_of_token(self, tokens: "TokenIssuers", text: str, now_ns: int) -> Caller:
        digest = _digest(text)
        kept = self._granted.get(digest)
        if kept is not None and now_ns < kept.until_ns:
            return kept.caller
        try:
            grant = tokens.grant(text)
        except UnknownSigningKey:
            issuer = tokens.issuer(text)
            if not tokens.is_due(issuer, is_asked=True):
                raise
            await self._refresh(tokens, issuer)
            grant = tokens.grant(text)
        key = f"token:{grant.tenant}:{grant.subject}"
        self.accounts.account_of(key, Quota())
        caller = Caller(
            grant.tenant,
            grant.subject,
            grant.scopes,
            key,
            grant.person,
            is_by_token=True,
            until_ns=grant.until_ns,
        )
        self._granted[digest] = _Granted(caller, grant.until_ns)
        if len(self._granted) > _MAX_SESSIONS:
            self._granted.popitem(last=False)
        return caller

    async def _refresh(self, tokens: "TokenIssuers", issuer: str) -> None:
        """Keys are read in a thread, so that no other request waits for who keeps them."""
        try:
            await asyncio.to_thread(tokens.refresh, issuer)
        except (InvalidInput, DependencyUnavailable) as error:
            sys.stderr.write(f"htfi: {error}: the keys before go on\n")
        self._granted.clear()  # what a key that is gone has signed counts no longer

    async def _look_again(self) -> None:
        """Read the keys again where one may have been added just now: every quarter second at most, one for all."""
        if self._is_failing:
            return
        if self._look is None or self._look.done():
            self._look = asyncio.ensure_future(self._look_when_due())
        await asyncio.shield(self._look)

    async def _look_when_due(self) -> None:
        await asyncio.sleep(self._looked_s + _LOOK_S - time.monotonic())
        with suppress(DependencyUnavailable):
            version = self._version
            found = await self.ask(lambda store: _changed_keys(store, version))
            if found is not None:
                self._take_keys(*found)
        self._looked_s = time.monotonic()

    def within_rights(self, caller: Caller) -> Caller:
        """The caller with the scopes that its person's rights leave it."""
        rights = self.rights.get(caller.tenant)
        refusal = "" if rights is None else rights.refusal(caller.person)
        return caller if not refusal else replace(caller, scopes=caller.scopes - _OF_RECORD, refusal=refusal)

    def _is_over(self, caller: Caller) -> bool:
        """Whether who was let in as this caller would not be now."""
        now_ns = time.time_ns()
        if caller.until_ns is not None and now_ns >= caller.until_ns:
            return True
        known = self._keys.get(caller.key)
        if not caller.is_by_token and (known is None or not known.stored.is_valid(now_ns)):
            return True
        return bool(caller.scopes & _OF_RECORD) and bool(self.within_rights(caller).refusal)

    def begin_session(self, caller: Caller, now_ns: int) -> str:
        """A secret that stands for a caller until the session ends, or the key or token does."""
        text, until_ns = secrets.token_urlsafe(32), now_ns + _SESSION_NS
        if caller.until_ns is not None:
            until_ns = min(until_ns, caller.until_ns)
        self._sessions[_digest(text)] = _Session(caller, until_ns)
        if len(self._sessions) > _MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return text

    def caller_of_session(self, text: str, now_ns: int) -> Caller:
        """Raises: AccessDenied."""
        session = self._sessions.get(_digest(text))
        known = None if session is None else self._keys.get(session.caller.key)
        if (
            session is None
            or now_ns >= session.until_ns
            or not (session.caller.is_by_token or (known is not None and known.stored.is_valid(now_ns)))
        ):
            raise Unidentified("the session has ended: give the key again")
        return session.caller if known is None else known.caller

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

    def _exchange(self, store: TenantStore, batch: UsageBatch | None, day: int) -> _Exchange:
        if batch is not None:
            store.add_usage(self._server, batch)
        return _Exchange(store.usage(day, day), day, _changed_keys(store, self._version))

    def _take_keys(self, version: int, keys: list[StoredKey]) -> None:
        self._version, self._keys = version, {}
        for one in keys:
            if one.tenant in self.config.tenants:
                caller = Caller(one.tenant, one.name, one.scopes, one.id, one.person)
                self._keys[one.id] = _KnownKey(one, caller)
                self.accounts.account_of(one.id, one.quota)

    async def _refresh_due(self) -> None:
        if self._tokens is not None:
            for issuer in self._tokens.issuers:
                if self._tokens.is_due(issuer, is_asked=False):
                    await self._refresh(self._tokens, issuer)

    async def _work(self) -> None:
        while True:
            await asyncio.sleep(_TURN_S)
            await self._refresh_due()
            try:
                await self.store_now()
            except DependencyUnavailable as error:
                if not self._is_failing:
                    sys.stderr.write(f"htfi: {error}: known keys go on, usage waits in memory\n")
                self._is_failing = True
            else:
                self._is_failing = False
            self.held.end_where(self._is_over)


def _changed_keys(store: TenantStore, version: int) -> tuple[int, list[StoredKey]] | None:
    """The keys and their version; None where it is the same."""
    found = store.keys_version()
    return None if found == version else (found, store.keys())


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
