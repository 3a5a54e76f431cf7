"""How every bench and evaluation reports: a table for people, and the same figures as JSON for machines."""

import json
import platform
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

Row = Mapping[str, Any]
WIDTH = 150  # columns of a table that goes to a file


def report(
    name: str,
    metrics: Mapping[str, float],
    rows: Sequence[Row],
    *,
    seed: int,
    json_file: Path | None,
    kind: str = "bench",
    notes: Sequence[str] = (),
) -> None:
    """Print `rows` of `htfi KIND NAME` as a table, `notes` and `metrics` beneath it; all go to `json_file` if given."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    table = Table(title=f"htfi {kind} {name}", title_justify="left")
    columns = list(dict.fromkeys(key for row in rows for key in row))
    for column in columns:
        table.add_column(column, justify="left" if column == columns[0] else "right")
    for row in rows:
        table.add_row(*(_shown(row.get(column, "")) for column in columns))
    console.print(table)
    for note in notes:
        console.print(note, highlight=False)
    for key, value in metrics.items():
        console.print(f"{key} = {value:.4g}", highlight=False)
    if json_file is not None:
        body = {
            "name": name,
            "commit": _commit(),
            "device": _device(),
            "seed": seed,
            "metrics": dict(metrics),
            "rows": [dict(row) for row in rows],
            **({"notes": list(notes)} if notes else {}),
        }
        json_file.parent.mkdir(parents=True, exist_ok=True)
        json_file.write_text(json.dumps(body, indent=2) + "\n")
        click.echo(f"figures written to {json_file}", err=True)


def _shown(value: object) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def _commit() -> str:
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return done.stdout.strip()


def _device() -> str:
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return f"{model}, {platform.system()}, Python {platform.python_version()}"
