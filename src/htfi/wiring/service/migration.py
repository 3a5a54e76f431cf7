"""Brings a service's database to this version, and moves its rows to another database."""

from contextlib import closing
from typing import NamedTuple

from htfi.domain.errors import InvalidInput
from htfi.wiring.service.tenants import ServiceFolder, open_database, read_service_rows


class CopiedRows(NamedTuple):
    """How many rows were there to copy, and whether the other database had them all."""

    num_rows: int
    was_there: bool


def missing_steps(service: ServiceFolder) -> tuple[int, int]:
    """How many steps the database has, and how many it lacks; nothing is changed. Raises: as `open_store`."""
    done, _ = read_service_rows(service)
    from htfi.adapters.sql.migrations import STEPS

    return done, len(STEPS) - done


def migrate_service(service: ServiceFolder) -> int:
    """Run the steps that are missing, each in a transaction; how many. Raises: as `open_store`."""
    with closing(open_database(service, migrates=False)) as store:
        return store.migrate()


def move_rows(service: ServiceFolder, database: str) -> CopiedRows:
    """Copy all rows to an empty PostgreSQL, in one transaction. The same again copies what changed since.

    Raises: InvalidInput where the other database is in use; as `open_store`.
    """
    if database == service.config.database:
        raise InvalidInput("--to names the database that the service has already")
    from htfi.adapters.sql.portable_tables import write_tables

    if not database.startswith("postgresql"):
        raise InvalidInput("--to: write postgresql://USER@HOST/NAME")
    migrate_service(service)
    num_steps, rows = read_service_rows(service)
    with closing(open_database(service, database, migrates=False)) as store:
        was_there = not write_tables(store, num_steps, rows, over_copy=True)
    return CopiedRows(sum(map(len, rows.values())), was_there)
