"""Keys and usage in a database. Implements tenancy's port on SQLite and PostgreSQL alike."""

import secrets
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from htfi.adapters.sql.migrations import run_next_step
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.tenancy.accounts import UsageBatch
from htfi.tenancy.keys import StoredKey
from htfi.tenancy.quotas import Quota
from htfi.tenancy.scopes import ApiScope
from htfi.tenancy.usage import Usage, UsageKey

_WAIT_S = 5.0  # for another's write, for a server that does not answer
_OLD = "tenant = :tenant AND day < :day"
_DAYS = "day BETWEEN :first AND :last"


class SqlTenantStore:
    """Of a database that is brought up to date when it is opened."""

    def __init__(self, where: URL, *, migrates: bool = True) -> None:
        """Unless it `migrates`, the tables stay as they are. Raises: InvalidInput, DependencyUnavailable."""
        self._engine = _engine(where)
        self.name = where.render_as_string(hide_password=True)
        if migrates:
            self.migrate()

    def migrate(self) -> int:
        """Run the steps that are missing, each in a transaction of its own; their number.

        Raises: InvalidInput for a newer database, DependencyUnavailable.
        """
        num_run = 0
        while True:
            with self.writing() as connection:
                if not run_next_step(connection):
                    return num_run
            num_run += 1

    def keys_version(self) -> int:
        with self.reading() as connection:
            return connection.execute(text("SELECT value FROM counters WHERE name = 'keys'")).scalar_one()

    def keys(self, tenant: str | None = None) -> list[StoredKey]:
        where = "" if tenant is None else " WHERE tenant = :tenant"
        with self.reading() as connection:
            rows = connection.execute(
                text(f"SELECT * FROM keys{where} ORDER BY created_ns, id"),
                {} if tenant is None else {"tenant": tenant},
            ).mappings()
            return [_key_of(row) for row in rows]

    def add_key(self, key: StoredKey) -> None:
        row = {
            **msgspec.structs.asdict(key),
            "digest": key.digest.hex(),
            "scopes": ",".join(sorted(key.scopes)),
            "quota": msgspec.json.encode(key.quota).decode(),
        }
        names = ", ".join(row)
        with self.writing() as connection:
            values = ", ".join(f":{name}" for name in row)
            connection.execute(text(f"INSERT INTO keys ({names}) VALUES ({values})"), row)
            _count_change(connection)

    def revoke_key(self, tenant: str, key_id: str, at_ns: int) -> bool:
        with self.writing() as connection:
            changed = connection.execute(
                text(
                    "UPDATE keys SET revoked_ns = :at WHERE tenant = :tenant AND id = :id AND revoked_ns IS NULL"
                ),
                {"at": at_ns, "tenant": tenant, "id": key_id},
            )
            _count_change(connection)
            return changed.rowcount == 1

    def add_usage(self, server: str, batch: UsageBatch) -> None:
        with self.writing() as connection:
            taken = connection.execute(
                text(
                    "INSERT INTO servers (id, last_batch) VALUES (:id, :number) ON CONFLICT (id) DO UPDATE"
                    " SET last_batch = excluded.last_batch WHERE servers.last_batch < excluded.last_batch"
                ),
                {"id": server, "number": batch.number},
            )
            if taken.rowcount != 1:
                return
            amounts = [{**where._asdict(), **used._asdict()} for where, used in batch.amounts.items()]
            sums = ", ".join(f"{name} = usage.{name} + excluded.{name}" for name in Usage._fields)
            fields, values = ", ".join(Usage._fields), ", ".join(f":{name}" for name in Usage._fields)
            _execute_each(
                connection,
                f"INSERT INTO usage (tenant, key_id, day, {fields}) VALUES (:tenant, :key, :day, {values})"
                f" ON CONFLICT (tenant, key_id, day) DO UPDATE SET {sums}",
                amounts,
            )
            _execute_each(
                connection,
                "UPDATE keys SET used_ns = :at WHERE id = :id AND (used_ns IS NULL OR used_ns < :at)",
                [{"id": key, "at": at} for key, at in batch.used_ns.items()],
            )
            _execute_each(
                connection,
                "INSERT INTO ledger_sizes (tenant, day, size) VALUES (:tenant, :day, :size)"
                " ON CONFLICT (tenant, day) DO UPDATE SET size = excluded.size"
                " WHERE ledger_sizes.size < excluded.size",
                [{"tenant": tenant, "day": day, "size": size} for (tenant, day), size in batch.sizes.items()],
            )

    def usage(self, first_day: int, last_day: int, tenant: str | None = None) -> Mapping[UsageKey, Usage]:
        where = _DAYS if tenant is None else f"{_DAYS} AND tenant = :tenant"
        with self.reading() as connection:
            rows = connection.execute(
                text(
                    f"SELECT tenant, key_id, day, {', '.join(Usage._fields)} FROM usage WHERE {where}"
                    " ORDER BY day, tenant, key_id"
                ),
                {"first": first_day, "last": last_day} | ({} if tenant is None else {"tenant": tenant}),
            ).all()
        return {UsageKey(*row[:3]): Usage(*row[3:]) for row in rows}

    def ledger_sizes(self, tenant: str | None = None) -> Mapping[tuple[str, int], int]:
        where = "" if tenant is None else " WHERE tenant = :tenant"
        with self.reading() as connection:
            rows = connection.execute(
                text(f"SELECT tenant, day, size FROM ledger_sizes{where} ORDER BY tenant, day"),
                {} if tenant is None else {"tenant": tenant},
            ).all()
        return {(row[0], row[1]): row[2] for row in rows}

    def num_old_usage(self, tenant: str, before_day: int) -> int:
        """How many rows of usage are of earlier days."""
        with self.reading() as connection:
            return connection.execute(
                text(f"SELECT count(*) FROM usage WHERE {_OLD}"), {"tenant": tenant, "day": before_day}
            ).scalar_one()

    def delete_usage(self, tenant: str, before_day: int, at_ns: int, by: str, why: str) -> int:
        """Delete rows of earlier days; how many. The order is recorded with it, in one transaction."""
        with self.writing() as connection:
            where = {"tenant": tenant, "day": before_day}
            num = connection.execute(text(f"DELETE FROM usage WHERE {_OLD}"), where).rowcount
            if num:
                connection.execute(
                    text(
                        "INSERT INTO deletions (id, at_ns, tenant, what, before_day, num_rows, ordered_by, why)"
                        " VALUES (:id, :at, :tenant, 'usage', :day, :num, :by, :why)"
                    ),
                    where | {"id": secrets.token_hex(8), "at": at_ns, "num": num, "by": by, "why": why},
                )
            return num

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Generator[Connection]:
        """A transaction that sees the database as it was at its first question."""
        is_server = self._engine.dialect.name == "postgresql"
        options: dict[str, Any] = {"isolation_level": "REPEATABLE READ"} if is_server else {}
        with self._translated(), self._engine.execution_options(**options).connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Generator[Connection]:
        with self._translated(), self._engine.execution_options(htfi_writes=True).begin() as connection:
            yield connection

    @contextmanager
    def _translated(self) -> Generator[None]:
        try:
            yield
        except DBAPIError as error:
            raise DependencyUnavailable(
                f"the service's database {self.name}: {_first_line(error.orig)}"
            ) from error
        except (SQLAlchemyError, OSError) as error:
            raise DependencyUnavailable(
                f"the service's database {self.name}: {_first_line(error)}"
            ) from error


def open_tenant_store(
    database: str, folder: Path, password: str = "", *, migrates: bool = True
) -> SqlTenantStore:
    """The store at postgresql://…, or in service.db of the folder. Raises: InvalidInput, DependencyUnavailable."""
    if not database:
        return SqlTenantStore(URL.create("sqlite", database=str(folder / "service.db")), migrates=migrates)
    try:
        where = make_url(database)
    except ArgumentError:
        raise InvalidInput(
            "database: write postgresql://USER@HOST/NAME, or leave it out for SQLite"
        ) from None
    if where.drivername not in ("postgresql", "postgresql+pg8000"):
        raise InvalidInput(f"database: {where.drivername} is not known: write postgresql://USER@HOST/NAME")
    server = where.set(drivername="postgresql+pg8000", password=password or where.password)
    return SqlTenantStore(server, migrates=migrates)


def _engine(where: URL) -> Engine:
    if where.get_backend_name() == "postgresql":
        return create_engine(where, pool_pre_ping=True, pool_size=2, connect_args={"timeout": _WAIT_S})
    engine = create_engine(where, connect_args={"timeout": _WAIT_S})

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: Any) -> None:  # pyright: ignore[reportUnusedFunction]
        connection.isolation_level = None  # transactions begin below, not where the driver would begin them
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:  # pyright: ignore[reportUnusedFunction]
        writes = connection.get_execution_options().get("htfi_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _key_of(row: Mapping[Any, Any]) -> StoredKey:
    fields = dict(row)
    fields["digest"] = bytes.fromhex(fields["digest"])
    fields["scopes"] = frozenset(ApiScope(one) for one in fields["scopes"].split(","))
    fields["quota"] = msgspec.json.decode(fields["quota"], type=Quota)
    return StoredKey(**fields)


def _execute_each(connection: Connection, statement: str, rows: list[dict[str, Any]]) -> None:
    if rows:
        connection.execute(text(statement), rows)


def _count_change(connection: Connection) -> None:
    connection.execute(text("UPDATE counters SET value = value + 1 WHERE name = 'keys'"))


def _first_line(error: BaseException | None) -> str:
    lines = str(error).splitlines()
    return lines[0][:200] if lines else type(error).__name__
