"""What a service keeps longer than its terms: usage in its database, answered requests and records of its runs.

Usage and answered requests are deleted while the service goes on. What a run recorded is deleted by order, in its
governance log, once the run has ended (`wiring/retention.py`).
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.governance.regulation.retention import RETENTION_CLASSES, retention_class
from htfi.tenancy.usage import day_of
from htfi.wiring.ledger import DATABASE, is_running
from htfi.wiring.retention import RetentionPlan, apply_retention, plan_retention, required_words
from htfi.wiring.service.answered_requests import ANSWERS, KEPT_NS
from htfi.wiring.service.tenants import ServiceFolder, open_database

_WAIT_S = 5.0


class TenantRetention(NamedTuple):
    """What of a tenant is due; `record` is None where its run has recorded nothing."""

    tenant: str
    num_usage: int
    num_answers: int
    record: RetentionPlan | None
    goes_on: bool  # the run holds its ledger, so that its record waits

    @property
    def is_empty(self) -> bool:
        return not (self.num_usage or self.num_answers) and (self.record is None or self.record.is_empty)


def plan_service_retention(service: ServiceFolder, now_ns: int) -> Iterator[TenantRetention]:
    """What is due at an instant, a tenant at a time. Raises: InvalidInput, IntegrityError, DependencyUnavailable, …"""
    days = checked_days(service)
    first_kept = day_of(now_ns) - service.config.retention.usage
    with closing(open_database(service)) as store:
        for name, place in service.runs().items():
            run = place.folder
            yield TenantRetention(
                name,
                store.num_old_usage(name, first_kept),
                _old_answers(run / ANSWERS, now_ns, "SELECT count(*) FROM requests"),
                plan_retention(run, now_ns, days) if (run / DATABASE).is_file() else None,
                is_running(run),
            )


def apply_service_retention(
    service: ServiceFolder, now_ns: int, by: str, why: str
) -> Iterator[TenantRetention]:
    """Delete what is due; of each tenant what was. A command that was killed is repeated. Raises: as the plan."""
    required_words(by, "--by: a name")
    required_words(why, "--why: a reason")
    days = checked_days(service)
    first_kept = day_of(now_ns) - service.config.retention.usage
    with closing(open_database(service)) as store:
        for name, place in service.runs().items():
            run = place.folder
            goes_on, is_there = is_running(run), (run / DATABASE).is_file()
            num_usage = store.delete_usage(name, first_kept, now_ns, by, why)
            num_answers = _old_answers(run / ANSWERS, now_ns, "DELETE FROM requests")
            record: RetentionPlan | None = None
            if is_there and goes_on:
                record = plan_retention(run, now_ns, days)
            elif is_there:
                record = apply_retention(run, now_ns, days, RETENTION_CLASSES, by, why)
            yield TenantRetention(name, num_usage, num_answers, record, goes_on)


def checked_days(service: ServiceFolder) -> dict[str, int]:
    """The terms of the classes that service.toml states. Raises: InvalidInput for an unknown class."""
    days = service.config.retention.classes
    for name in days:
        try:
            retention_class(name)
        except InvalidInput as error:
            raise InvalidInput(f"{service.folder}/service.toml: retention.classes: {error}") from None
    return days


def _old_answers(path: Path, now_ns: int, statement: str) -> int:
    """How many answered requests are older than they are kept; with DELETE they are gone."""
    if not path.is_file():
        return 0
    try:
        with closing(sqlite3.connect(path, timeout=_WAIT_S)) as database, database:
            found = database.execute(f"{statement} WHERE at_ns < ?", (now_ns - KEPT_NS,))
            row = found.fetchone()
            return found.rowcount if row is None else row[0]
    except sqlite3.Error as error:
        raise DependencyUnavailable(f"{path}: {error}") from error
