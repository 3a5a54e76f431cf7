"""Usage as rows: by day, tenant and key what was asked, by day and tenant how many decisions its ledger took up."""

import csv
import io
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any, cast

import msgspec

from htfi.arrow.columns import number_column, text_column
from htfi.arrow.streams import write_parquet
from htfi.domain.files import atomic_writer, write_atomically
from htfi.tenancy.ports import TenantStore
from htfi.tenancy.usage import UsageRow

_EPOCH = date(1970, 1, 1)


def usage_rows(
    store: TenantStore, currency: str, first_day: int, last_day: int, tenant: str | None = None
) -> list[UsageRow]:
    """Of days since 1970, both included; in order of day, tenant and key. Raises: DependencyUnavailable."""
    rows = [
        UsageRow(_text(where.day), where.tenant, where.key, *used, currency=currency)
        for where, used in store.usage(first_day, last_day, tenant).items()
    ]
    before: dict[str, int] = {}
    for (name, day), size in store.ledger_sizes(tenant).items():  # in order of the days
        decisions = size - before.get(name, 0)
        before[name] = size
        if first_day <= day <= last_day and decisions:
            rows.append(UsageRow(_text(day), name, "", decisions=decisions))
    return sorted(rows, key=lambda row: (row.day, row.tenant, row.key))


def write_usage_csv(path: Path, rows: Sequence[UsageRow]) -> None:
    """With a line of names. Raises: OSError."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(UsageRow.__struct_fields__)
    writer.writerows(msgspec.structs.astuple(row) for row in rows)
    write_atomically(path, out.getvalue().encode())


def write_usage_parquet(path: Path, rows: Sequence[UsageRow]) -> None:
    """Raises: OSError."""
    import numpy as np
    from arro3.core import Table

    columns: Any = {
        name: text_column([getattr(row, name) for row in rows])
        if name in ("day", "tenant", "key", "currency")
        else number_column(np.array([getattr(row, name) for row in rows], np.int64))
        for name in UsageRow.__struct_fields__
    }
    table = cast(Any, Table).from_pydict(columns)
    with atomic_writer(path) as file:
        write_parquet(file, table.schema, table.to_batches(), group_rows=65_536, notes={})


def _text(day: int) -> str:
    return (_EPOCH + timedelta(days=day)).isoformat()
