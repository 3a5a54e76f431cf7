"""The store of tenants: keys and usage. Every method raises DependencyUnavailable where the store cannot be reached."""

from collections.abc import Mapping
from typing import Protocol

from htfi.tenancy.accounts import UsageBatch
from htfi.tenancy.keys import StoredKey
from htfi.tenancy.usage import Usage, UsageKey


class TenantStore(Protocol):
    """Belongs to one thread at a time."""

    def keys_version(self) -> int:
        """Another number whenever a key was added or revoked."""
        ...

    def keys(self, tenant: str | None = None) -> list[StoredKey]:
        """In order of their making; revoked ones too."""
        ...

    def add_key(self, key: StoredKey) -> None: ...

    def revoke_key(self, tenant: str, key_id: str, at_ns: int) -> bool:
        """False where the tenant has no such key that is not revoked yet."""
        ...

    def add_usage(self, server: str, batch: UsageBatch) -> None:
        """Once for each number of a server: a batch that is there already changes nothing."""
        ...

    def usage(self, first_day: int, last_day: int, tenant: str | None = None) -> Mapping[UsageKey, Usage]:
        """Sums of days, both included."""
        ...

    def ledger_sizes(self, tenant: str | None = None) -> Mapping[tuple[str, int], int]:
        """How many entries a tenant's ledger had at the end of each day on which it was looked at."""
        ...

    def close(self) -> None: ...
