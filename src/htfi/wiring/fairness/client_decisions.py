"""Audits a table of decisions on clients."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from htfi.adapters.fairlearn.metrics import FairlearnMetrics
from htfi.domain.errors import InvalidInput
from htfi.governance.fairness.client_decisions import ClientAudit, ClientDecisions, audit_decisions
from htfi.governance.fairness.findings import Correction
from htfi.governance.fairness.proxies import ProxyFigure
from htfi.wiring.fairness.columns import (
    NamedColumn,
    check_score,
    column_of,
    favourable_rows,
    group_labels,
    numbers_of,
    read_columns_of,
)
from htfi.wiring.fairness.proxies import proxies_of


@dataclass(frozen=True, slots=True)
class TableAudit:
    """The audit of one table. `num_set_aside` rows lack an outcome, a decision or a score."""

    origin: str
    num_rows: int
    num_set_aside: int
    correction: Correction
    metrics: str  # name and version of the libraries
    audit: ClientAudit
    proxies: list[ProxyFigure]


def audit_table(
    file: Path,
    protected: Sequence[str],
    decision: NamedColumn | None,
    outcome: NamedColumn | None,
    score: NamedColumn | None,
    correction: Correction,
) -> TableAudit:
    """Raises: InvalidInput, DependencyUnavailable, MissingExtra."""
    metrics = FairlearnMetrics()
    table = read_columns_of(file)
    if table.num_rows == 0:
        raise InvalidInput(f"{file}: has no rows")
    try:
        known = np.ones(table.num_rows, np.bool_)
        flags: list[NDArray[np.bool_] | None] = []
        for named in (decision, outcome):
            if named is None:
                flags.append(None)
                continue
            found, is_known = favourable_rows(column_of(table, named.name), named)
            flags.append(found)
            known &= is_known
        scores = None
        if score is not None:
            scores, is_known = numbers_of(column_of(table, score.name), score.name)
            known &= is_known
            check_score(scores[known], score.name)
        groups = {name: group_labels(column_of(table, name), name) for name in protected}
        if not known.any():
            raise InvalidInput("no row has all of the named columns filled")
        kept = ClientDecisions(
            {
                name: [one for one, inside in zip(labels, known.tolist(), strict=True) if inside]
                for name, labels in groups.items()
            },
            decision=None if flags[0] is None else flags[0][known],
            outcome=None if flags[1] is None else flags[1][known],
            score=None if scores is None else scores[known],
        )
        audit = audit_decisions(kept, metrics, correction)
        proxies = _client_proxies(kept, correction)
    except InvalidInput as error:
        raise InvalidInput(f"{file}: {error}") from error
    return TableAudit(
        str(file), table.num_rows, int((~known).sum()), correction, metrics.version, audit, proxies
    )


def _client_proxies(table: ClientDecisions, correction: Correction) -> list[ProxyFigure]:
    """How well decision and score predict each group."""
    columns = [
        np.asarray(column, np.float64) for column in (table.decision, table.score) if column is not None
    ]
    if not columns:
        return []
    units = [str(place) for place in range(len(columns[0]))]
    return proxies_of(np.column_stack(columns), table.groups, dict.fromkeys(table.groups, units), correction)
