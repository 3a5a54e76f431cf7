"""A service's tables as rows that any of its databases takes: for backups, and for the move to another database."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, text

from htfi.adapters.sql.migrations import num_steps_done, run_next_step
from htfi.adapters.sql.tenant_store import SqlTenantStore
from htfi.domain.errors import InvalidInput

# The tables and what identifies a row; in the order of `STEPS`.
TABLES: dict[str, tuple[str, ...]] = {
    "keys": ("id",),
    "usage": ("tenant", "key_id", "day"),
    "ledger_sizes": ("tenant", "day"),
    "servers": ("id",),
    "counters": ("name",),
    "deletions": ("id",),
}
_SINCE_STEP = {"deletions": 2}
Rows = dict[str, list[dict[str, Any]]]


def read_tables(store: SqlTenantStore) -> tuple[int, Rows]:
    """The number of steps of the database, and the rows of each table in order of their keys, of one instant.

    Raises: InvalidInput for a newer database, DependencyUnavailable.
    """
    with store.reading() as connection:
        return _read(connection)


def write_tables(store: SqlTenantStore, num_steps: int, rows: Rows, *, over_copy: bool = False) -> bool:
    """Put rows into a database that has none, in one transaction; whether anything had to be written.

    The same again changes nothing. With `over_copy` a copy of earlier rows, which no server has used since, is
    replaced. Raises: InvalidInput where the database holds anything else, DependencyUnavailable.
    """
    with store.writing() as connection:
        while run_next_step(connection, num_steps):
            pass
        _, found = _read(connection)
        if found == rows:
            return False
        if not (is_empty(found) or (over_copy and _is_earlier_copy(found, rows))):
            raise InvalidInput(
                f"the database {store.name} is in use by another service: name one that is empty"
            )
        for name, given in rows.items():
            connection.execute(text(f"DELETE FROM {name}"))
            if given:
                fields = list(given[0])
                values = ", ".join(f":{field}" for field in fields)
                connection.execute(text(f"INSERT INTO {name} ({', '.join(fields)}) VALUES ({values})"), given)
    return True


def check_rows(num_steps: int, rows: Iterable[tuple[str, dict[str, Any]]]) -> Rows:
    """Rows that were read from a file, by table. Raises: InvalidInput."""
    found: Rows = {name: [] for name in _tables_of(num_steps)}
    for name, row in rows:
        if name not in found or not all(
            field.isidentifier() and isinstance(value, str | int | None) for field, value in row.items()
        ):
            raise InvalidInput(f"a row of the table {name[:40]!r} is none of a service's")
        if found[name] and list(row) != list(found[name][0]):
            raise InvalidInput(f"a row of the table {name} has other fields than the first")
        found[name].append(row)
    return found


def is_empty(rows: Rows) -> bool:
    """Whether a database has only what its steps put there."""
    return not any(given for name, given in rows.items() if name != "counters")


def _read(connection: Connection) -> tuple[int, Rows]:
    num_steps = num_steps_done(connection)
    return num_steps, {
        name: sorted(  # here, as databases order texts in different ways
            (dict(row) for row in connection.execute(text(f"SELECT * FROM {name}")).mappings()),
            key=lambda row, name=name: tuple(row[field] for field in TABLES[name]),
        )
        for name in _tables_of(num_steps)
    }


def _tables_of(num_steps: int) -> list[str]:
    return [name for name in TABLES if _SINCE_STEP.get(name, 1) <= num_steps]


def _is_earlier_copy(found: Rows, rows: Rows) -> bool:
    """Whether no server has written to it, and no key was made there, since it was copied from these."""
    batches = {row["id"]: row["last_batch"] for row in rows["servers"]}
    keys = {row["id"] for row in rows["keys"]}
    return all(row["last_batch"] <= batches.get(row["id"], -1) for row in found["servers"]) and all(
        row["id"] in keys for row in found["keys"]
    )
