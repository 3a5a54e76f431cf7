"""Columns of a table that `htfi audit fairness` reads: numbers, groups, what is favourable."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.arrow.failures import DamagedFile
from htfi.arrow.table_files import read_csv_table, read_parquet_table
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.governance.fairness.findings import NOT_REPORTED

MAX_GROUPS = 200  # values of a protected column
MAX_NUMERIC_GROUPS = 10  # a column of numbers with more values is cut at its quartiles
_MAX_TABLE_BYTES = 1 << 30
_FAVOURABLE = ("1", "1.0", "true", "yes", "y", "approved", "approve")
_UNFAVOURABLE = ("0", "0.0", "false", "no", "n", "denied", "deny")


@dataclass(frozen=True, slots=True)
class NamedColumn:
    """A column, and the value of it that is favourable; empty where its values say so themselves."""

    name: str
    favourable: str = ""

    @classmethod
    def parse(cls, text: str) -> "NamedColumn":
        """Of 'COL' or 'COL=VALUE'."""
        name, _, value = text.partition("=")
        return cls(name.strip(), value.strip())


def read_columns_of(file: Path) -> Any:
    """The table (arro3.core.Table) in a file of Parquet or CSV. Raises: InvalidInput, DependencyUnavailable."""
    try:
        if file.stat().st_size > _MAX_TABLE_BYTES:
            raise InvalidInput(f"{file} is larger than 1 GiB: cut it, or take a sample of its rows")
        if file.suffix.lower() in (".parquet", ".pq"):
            return read_parquet_table(file)
        if file.suffix.lower() in (".csv", ".tsv", ".txt"):
            head = file.read_text(encoding="utf-8-sig", errors="replace").partition("\n")[0]
            separator = max(",;\t", key=head.count)
            return read_csv_table(file, separator)
    except OSError as error:
        raise DependencyUnavailable(f"{file}: cannot be read: {error.strerror or error}") from error
    except DamagedFile as error:
        raise InvalidInput(f"{file}: is not a table: {error}") from error
    raise InvalidInput(f"{file}: its name must end in .parquet or .csv")


def column_of(table: Any, name: str) -> Any:
    """A column by its name. Raises: InvalidInput with the names that there are."""
    if name not in table.column_names:
        raise InvalidInput(
            f"there is no column '{name}': the columns are {', '.join(table.column_names[:40])}"
        )
    return table.column(name)


def favourable_rows(column: Any, named: NamedColumn) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which rows hold the favourable value, and which hold a value at all, [N] each. Raises: InvalidInput."""
    texts = [cell_text(value) for value in column.to_pylist()]
    known = np.array([text != "" for text in texts], np.bool_)
    values = sorted({text for text in texts if text})
    if len(values) > 2:
        raise InvalidInput(
            f"column '{named.name}' is not binary: it holds {len(values)} values "
            f"({', '.join(values[:4])}, …); name another column, or recode it"
        )
    favourable = _same_number(named.favourable, values)
    if not favourable:
        favourable = next((value for value in values if value.casefold() in _FAVOURABLE), "")
        opposite = [value for value in values if value != favourable]
        if not favourable and all(value.casefold() in _UNFAVOURABLE for value in opposite):
            favourable = "1"
        elif not favourable or any(value.casefold() not in _UNFAVOURABLE for value in opposite):
            raise InvalidInput(
                f"column '{named.name}' holds {' and '.join(values) or 'nothing'}: say which value is favourable, "
                f"as {named.name}={values[-1] if values else 'VALUE'}"
            )
    elif favourable not in values:
        raise InvalidInput(
            f"column '{named.name}' never holds {named.favourable}: it holds {' and '.join(values)}"
        )
    return np.array([text == favourable for text in texts], np.bool_), known


def group_labels(column: Any, name: str) -> list[str]:
    """The group of each row: the value, or the quarter of a column of many numbers. Raises: InvalidInput."""
    values = column.to_pylist()
    texts = [cell_text(value) for value in values]
    distinct = {text for text in texts if text}
    if not distinct:
        raise InvalidInput(f"column '{name}' is empty")
    is_numeric = all(isinstance(value, int | float) or value is None for value in values)
    if is_numeric and len(distinct) > MAX_NUMERIC_GROUPS:
        return _quarters(np.array([np.nan if value is None else float(value) for value in values]))
    if len(distinct) > MAX_GROUPS:
        raise InvalidInput(
            f"column '{name}' holds {len(distinct):,} different values: {MAX_GROUPS} groups at most are compared"
        )
    return [text or NOT_REPORTED for text in texts]


def _quarters(values: NDArray[np.float64]) -> list[str]:
    known = np.isfinite(values)
    edges = np.unique(np.quantile(values[known], [0.25, 0.5, 0.75]))
    names = [f"≤ {edges[0]:g}"]
    names += [f"{low:g} < … ≤ {high:g}" for low, high in pairwise(edges)]
    names.append(f"> {edges[-1]:g}")
    places = np.searchsorted(edges, np.where(known, values, 0.0), side="left")
    return [
        names[place] if is_known else NOT_REPORTED
        for place, is_known in zip(places.tolist(), known.tolist(), strict=True)
    ]


def numbers_of(column: Any, name: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    try:
        values = np.array(
            [np.nan if value is None else float(value) for value in column.to_pylist()], np.float64
        )
    except (TypeError, ValueError):
        raise InvalidInput(f"column '{name}' is not a column of numbers") from None
    return values, np.isfinite(values)


def check_score(scores: NDArray[np.float64], name: str) -> None:
    if scores.size and (scores.min() < 0.0 or scores.max() > 1.0):
        raise InvalidInput(
            f"column '{name}' runs from {scores.min():g} to {scores.max():g}: a score must be the chance, 0 to 1, "
            "of a favourable outcome"
        )


def cell_text(value: Any) -> str:
    """A cell in words; nothing where it is empty or no number."""
    if value is None or (isinstance(value, float) and not np.isfinite(value)):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _same_number(text: str, values: Sequence[str]) -> str:
    """`text` as the column writes it: 1.0 is 1."""
    if text in values or not text:
        return text
    return next((value for value in values if value.casefold() == text.casefold()), text)
