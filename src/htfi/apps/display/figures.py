"""How every bench and evaluation reports: a table for people, and the same figures as JSON for machines."""

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
from htfi.domain.errors import DependencyUnavailable

Row = Mapping[str, Any]


def report(
    name: str,
    metrics: Mapping[str, float],
    rows: Sequence[Row],
    *,
    seed: int,
    json_file: Path | None,
    kind: str = "bench",
    notes: Sequence[str] = (),
    title: str = "",
    lead: str = "",
    cards: Sequence[msgspec.Struct] = (),
    charts: Sequence[msgspec.Struct] = (),
) -> None:
    """Print `rows` of `htfi KIND NAME` as a table, `notes` and `metrics` beneath it; all go to `json_file` if given.

    A row that says nothing but its name is a note, and goes where notes go. For pages the JSON also holds a title, a
    lead sentence, the figures to show large and the charts.
    """
    rows, notes = split_notes(rows, notes)
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [[_shown(row.get(column, "")) for column in columns] for row in rows]
    told = [*notes, f"{device()}; seed {seed}", *(f"{key} = {value:.4g}" for key, value in metrics.items())]
    print_table(columns, cells, title=f"htfi {kind} {name}", notes=told)
    if json_file is not None:
        body = {
            "name": name,
            "kind": kind,
            "commit": commit(),
            "device": device(),
            "seed": seed,
            "metrics": dict(metrics),
            "rows": [dict(row) for row in rows],
            **{key: told for key, told in (("notes", list(notes)), ("title", title), ("lead", lead)) if told},
            **({"cards": msgspec.to_builtins(list(cards))} if cards else {}),
            **({"charts": msgspec.to_builtins(list(charts), enc_hook=_builtin)} if charts else {}),
        }
        try:
            json_file.parent.mkdir(parents=True, exist_ok=True)
            json_file.write_text(
                json.dumps(_finite(body), indent=2, allow_nan=False) + "\n", encoding="utf-8"
            )
        except OSError as error:
            raise DependencyUnavailable(f"{json_file}: cannot be written: {error.strerror}") from error
        click.echo(f"figures written to {json_file}", err=True)


def split_notes(rows: Sequence[Row], notes: Sequence[str] = ()) -> tuple[list[Row], list[str]]:
    """Rows with something to say in two columns or more, and as sentences those with one, before `notes`."""
    said = [[value for value in row.values() if value not in ("", None)] for row in rows]
    kept = [row for row, values in zip(rows, said, strict=True) if len(values) > 1]
    return kept, [*(str(values[0]) for values in said if len(values) == 1), *notes]


def _builtin(told: Any) -> Any:
    """numpy's numbers and arrays as Python's."""
    if isinstance(told, np.generic | np.ndarray):
        return cast(Any, told.tolist())
    raise TypeError(f"{type(told).__name__} cannot be written as JSON")


def _finite(told: Any) -> Any:
    """JSON knows no NaN: null in its place; nor numpy's numbers."""
    if isinstance(told, np.generic | np.ndarray):
        told = _builtin(told)
    if isinstance(told, dict):
        return {key: _finite(value) for key, value in cast(dict[str, Any], told).items()}
    if isinstance(told, list | tuple):
        return [_finite(value) for value in cast(list[Any], told)]
    return None if isinstance(told, float) and not math.isfinite(told) else told


def _shown(value: object) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def commit() -> str:
    """Of the project that runs here; "unknown" outside a checkout."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return done.stdout.strip()


def device() -> str:
    """The processor, system and Python that the figures were measured on."""
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return f"{model}, {platform.system()}, Python {platform.python_version()}"
