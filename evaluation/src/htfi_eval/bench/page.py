"""A bench's page: its template filled, the metrics at a glance and the whole table in it; no script, no network."""

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from htfi.apps.display.figures import split_notes
from htfi.domain.errors import DependencyUnavailable

Row = Mapping[str, Any]


def fill_page(
    file: Path,
    template: str,
    pieces: Mapping[str, str],
    rows: Sequence[Row],
    metrics: Mapping[str, float],
    notes: Sequence[str] = (),
) -> None:
    """Write `template` with its @@pieces@@ in place; `notes` stand under the table of `rows`.

    Raises DependencyUnavailable where `file` cannot be written.
    """
    folder = files("htfi_eval.bench")
    filled = {
        **pieces,
        "style": folder.joinpath("bench.css").read_text(encoding="utf-8"),
        "figures": "".join(
            f"<div><b>{value:.3g}</b><span>{escape(name.replace('_', ' '))}</span></div>"
            for name, value in metrics.items()
        ),
        "table": _table(rows, notes),
    }
    parts = folder.joinpath(template).read_text(encoding="utf-8").split("@@")
    page = "".join(filled[part] if place % 2 else part for place, part in enumerate(parts))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(page, encoding="utf-8")
    except OSError as error:
        raise DependencyUnavailable(f"{file}: cannot be written: {error.strerror}") from error


def _table(rows: Sequence[Row], notes: Sequence[str]) -> str:
    rows, notes = split_notes(rows, notes)
    columns = list(dict.fromkeys(key for told in rows for key in told))
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_shown(told.get(column, '')))}</td>" for column in columns) + "</tr>"
        for told in rows
    )
    told = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>' + (
        f'<ul class="note">{told}</ul>' if told else ""
    )


def _shown(value: object) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else str(value)
