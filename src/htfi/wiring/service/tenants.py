"""A service's folder: service.toml, and the store of its tenants' keys and usage."""

import os
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from htfi.adapters.stores.snapshot import read_whole
from htfi.domain.errors import InvalidInput, require_extra
from htfi.tenancy.config import SERVICE_FILE, ServiceConfig, parse_service
from htfi.tenancy.keys import StoredKey, make_key, parse_key
from htfi.tenancy.ports import TenantStore
from htfi.tenancy.quotas import Quota
from htfi.tenancy.scopes import ApiScope
from htfi.wiring.service.run_process import RunPlace

if TYPE_CHECKING:
    from htfi.adapters.sql.portable_tables import Rows
    from htfi.adapters.sql.tenant_store import SqlTenantStore
    from htfi.wiring.service.tokens import TokenIssuers

SERVICE_DATABASE_FILE = "service.db"  # of a folder whose service.toml names no database
_PASSWORD_VARIABLE = "HTFI_DATABASE_PASSWORD_FILE"


@dataclass(frozen=True, slots=True)
class ServiceFolder:
    """What is configured, and where."""

    folder: Path
    config: ServiceConfig

    def runs(self) -> Mapping[str, RunPlace]:
        """Where the run of each tenant is."""
        return {
            name: RunPlace(self.folder / one.run, self.folder / one.governance if one.governance else None)
            for name, one in self.config.tenants.items()
        }

    def check_tenant(self, tenant: str) -> None:
        """Raises: InvalidInput where there is none of that name."""
        if tenant not in self.config.tenants:
            known = ", ".join(self.config.tenants)
            raise InvalidInput(f"{self.folder / SERVICE_FILE} has no tenant {tenant!r}: it has {known}")


def read_service(folder: Path) -> ServiceFolder:
    """Raises: InvalidInput, DependencyUnavailable."""
    path = folder / SERVICE_FILE
    data = read_whole(path)
    if data is None:
        raise InvalidInput(f"there is no {path}: it names the service's tenants (docs/tenants.md)")
    try:
        return ServiceFolder(folder, parse_service(data.decode(), str(path)))
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path}: is not UTF-8 text") from error


def open_store(service: ServiceFolder) -> TenantStore:
    """The database's password is read from the file that HTFI_DATABASE_PASSWORD_FILE names, if it names one.

    Raises: MissingExtra, InvalidInput, DependencyUnavailable.
    """
    return open_database(service)


def open_database(
    service: ServiceFolder, database: str | None = None, *, migrates: bool = True
) -> "SqlTenantStore":
    """The same with its tables, or another `database`; empty for service.db in the folder. Raises: as `open_store`."""
    require_extra("a service with tenants", "tenants", "sqlalchemy", "pg8000", "jwt")
    from htfi.adapters.sql.tenant_store import open_tenant_store

    where = service.config.database if database is None else database
    return open_tenant_store(where, service.folder, _database_password(), migrates=migrates)


def read_service_rows(service: ServiceFolder) -> tuple[int, "Rows"]:
    """The database's number of steps and its rows, unchanged; none of either where it has not been made.

    Raises: as `open_store`.
    """
    if not service.config.database and not (service.folder / SERVICE_DATABASE_FILE).exists():
        return 0, {}
    from htfi.adapters.sql.portable_tables import read_tables

    with closing(open_database(service, migrates=False)) as store:
        return read_tables(store)


def _database_password() -> str:
    name = os.environ.get(_PASSWORD_VARIABLE)
    if not name:
        return ""
    try:
        return Path(name).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{_PASSWORD_VARIABLE}: {name} cannot be read: {error}") from error


def open_issuers(service: ServiceFolder) -> "TokenIssuers | None":
    """None where none is configured. Raises: InvalidInput."""
    if not service.config.issuers:
        return None
    from htfi.wiring.service.tokens import TokenIssuers

    return TokenIssuers(service.config, service.folder)


def issue_key(
    store: TenantStore,
    tenant: str,
    name: str,
    scopes: frozenset[ApiScope],
    *,
    expires_ns: int | None = None,
    person: str = "",
    quota: Quota | None = None,
) -> str:
    """A new key as text, which is kept nowhere. Raises: DependencyUnavailable."""
    text = make_key(os.urandom)
    parsed = parse_key(text)
    assert parsed is not None
    store.add_key(
        StoredKey(
            parsed.id, tenant, name, parsed.digest, scopes, time.time_ns(),
            expires_ns=expires_ns, person=person, quota=quota or Quota(),
        )
    )  # fmt: skip
    return text
