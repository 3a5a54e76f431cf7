"""The result of an evaluation or a benchmark: a table for people, and the same figures as JSON for machines."""

import json
import math
import platform
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import click
import msgspec
import numpy as np

from htfi.apps.display.tables import print_table
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.library.charts.specs import Chart

Row = Mapping[str, Any]


class Card(msgspec.Struct, frozen=True):
    """A figure at the top of a page: "0.981", "of EWMA's CRPS". `good`: whether it reaches its goal, if it has one."""

    value: str
    label: str
    good: bool | None = None


class TitledTable(msgspec.Struct, frozen=True):
    """A further table of an evaluation that has several; `page_only`: too long for a terminal."""

    title: str
    rows: list[dict[str, Any]]
    page_only: bool = False


class Evaluation(msgspec.Struct, kw_only=True):
    """The result of one `htfi eval NAME` or `htfi bench NAME`. `lead` is the main result in one sentence.

    `tables` follow the table of `rows`. `data` names what was measured on where no option does: figures of other data
    are not compared with these.
    """

    name: str
    title: str = ""
    lead: str = ""
    metrics: dict[str, float | None]
    cards: list[Card] = []
    charts: list[Chart] = []
    rows: list[dict[str, Any]] = []
    tables: list[TitledTable] = []
    notes: list[str] = []
    seed: int = 0
    commit: str = ""
    device: str = ""
    kind: str = "eval"  # or "bench"
    data: str = ""


class PartFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What one part of an evaluation in several parts found; the command joins them into one `Evaluation`."""

    title: str
    metrics: dict[str, float | None]
    rows: list[dict[str, Any]]
    notes: list[str] = []
    charts: list[Chart] = []


class _Figures(msgspec.Struct):
    """Of a results file, what is carried over."""

    metrics: dict[str, float | None]


def read_metrics(file: Path) -> dict[str, float | None]:
    """The figures that another command has written. Raises: InvalidInput."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=_Figures).metrics
    except (OSError, msgspec.DecodeError) as error:
        raise InvalidInput(f"{file}: {error}; write it with htfi bench NAME --json") from error


def print_result(result: Evaluation, json_file: Path | None) -> None:
    """Print the tables, the notes and the metrics; write all of it to `json_file` if given.

    A row with one cell is a note: it is printed as a line under the table. Raises: DependencyUnavailable.
    """
    rows, notes = split_notes(result.rows, result.notes)
    metrics = {key: value for key, value in result.metrics.items() if value is not None}
    lines = [
        *notes,
        f"{device()}; seed {result.seed}",
        *(f"{key} = {format_cell(value)}" for key, value in metrics.items()),
    ]
    tables = [TitledTable(f"htfi {result.kind} {result.name}", [dict(row) for row in rows])]
    tables += [table for table in result.tables if not table.page_only]
    for table in tables:
        columns = list(dict.fromkeys(key for row in table.rows for key in row))
        cells = [[format_cell(row.get(column)) for column in columns] for row in table.rows]
        print_table(columns, cells, title=table.title, notes=lines if table is tables[-1] else ())
    if json_file is None:
        return
    body = {
        "name": result.name, "kind": result.kind, "commit": commit(), "device": device(), "seed": result.seed,
        "metrics": metrics, "rows": rows, "notes": notes, "title": result.title, "lead": result.lead,
        "cards": msgspec.to_builtins(result.cards),
        "charts": msgspec.to_builtins(result.charts, enc_hook=_builtin),
        "tables": msgspec.to_builtins(result.tables, enc_hook=_builtin), "data": result.data,
    }  # fmt: skip
    optional = ("notes", "title", "lead", "cards", "charts", "tables", "data")
    kept = {key: value for key, value in body.items() if value or key not in optional}
    write_file(json_file, json.dumps(_finite(kept), indent=2, allow_nan=False) + "\n")
    click.echo(f"figures written to {json_file}", err=True)


def read_result(file: Path) -> Evaluation:
    """Read the file that a command wrote with --json. Raises InvalidInput."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=Evaluation)
    except OSError as error:
        raise InvalidInput(f"{file}: cannot be read: {error.strerror}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file}: is not the JSON of an evaluation: {error}") from error


def write_file(file: Path, text: str) -> None:
    """Raises: DependencyUnavailable."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DependencyUnavailable(f"{file}: cannot be written: {error.strerror}") from error


def split_notes(rows: Sequence[Row], notes: Sequence[str] = ()) -> tuple[list[Row], list[str]]:
    """Rows with two cells or more, and the notes: the text of every row with one cell, then `notes`."""
    filled = [[value for value in row.values() if value not in ("", None)] for row in rows]
    kept = [row for row, values in zip(rows, filled, strict=True) if len(values) > 1]
    return kept, [*(str(values[0]) for values in filled if len(values) == 1), *notes]


def commit() -> str:
    """The current commit of the project; "unknown" outside a checkout."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return done.stdout.strip()


def device() -> str:
    """The processor, system and Python that the figures were measured on."""
    return f"{processor()}, {platform.system()}, Python {platform.python_version()}"


def processor() -> str:
    """The processor, as the system names it."""
    return processor_facts().get("model name", "") or platform.processor() or platform.machine()


def processor_facts() -> dict[str, str]:
    """What Linux says of the first processor; empty on other systems."""
    try:
        first = Path("/proc/cpuinfo").read_text().partition("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _builtin(value: Any) -> Any:
    """Convert numpy's numbers and arrays to Python's."""
    if isinstance(value, np.generic | np.ndarray):
        return cast(Any, value.tolist())
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def _finite(value: Any) -> Any:
    """Replace what JSON lacks: NaN by null, numpy's numbers by Python's."""
    if isinstance(value, np.generic | np.ndarray):
        value = _builtin(value)
    if isinstance(value, Mapping):
        return {key: _finite(one) for key, one in cast(Mapping[str, Any], value).items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in cast(list[Any], value)]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def format_cell(value: object) -> str:
    """A cell of a table in the terminal: four digits, all digits before the point, thousands with commas."""
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:,.4g}"
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return "" if value is None else f"{value:,}" if is_count else str(value)
