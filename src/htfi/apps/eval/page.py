"""The page of `htfi eval mini`: the figures at a glance, two charts, and the whole table; no script, no network."""

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from htfi.apps.eval.cases import Case
from htfi.apps.eval.charts import accuracy_svg, legend_html, reliability_svg
from htfi.apps.eval.evaluation import Views
from htfi.domain.errors import DependencyUnavailable

# What is shown large: the metric, what it is called, and how it is written.
_FIGURES = (
    ("direction_accuracy_target", "of directions right: target", "{:.1%}"),
    ("direction_accuracy_draft", "draft", "{:.1%}"),
    ("direction_accuracy_words", "bag of words", "{:.1%}"),
    ("direction_accuracy_all_features", "words, tags, prices", "{:.1%}"),
    ("direction_accuracy_ceiling", "ceiling", "{:.1%}"),
    ("direction_accuracy_target_shuffled", "target, shuffled", "{:.1%}"),
    ("ece_target", "calibration error", "{:.1%}"),
    ("match_rate_view", "of a view agreed", "{:.1%}"),
    ("match_rate_path", "of a path agreed", "{:.1%}"),
)


def write_page(
    file: Path,
    views: Views,
    cases: Sequence[Case],
    rows: Sequence[Mapping[str, Any]],
    metrics: Mapping[str, float],
    notes: Sequence[str],
    versions: Sequence[str],
) -> None:
    """Raises DependencyUnavailable where `file` cannot be written."""
    parts = {
        "models": escape(" · ".join(versions)),
        "figures": "".join(
            f"<div><b>{form.format(metrics[name])}</b><span>{escape(called)}</span></div>"
            for name, called, form in _FIGURES
            if name in metrics
        ),
        "legend": legend_html(views),
        "accuracy": accuracy_svg(views, cases),
        "reliability": reliability_svg(views),
        "notes": escape("; ".join(notes)),
        "table": _table(rows),
    }
    template = files("htfi.apps.eval").joinpath("page.html").read_text(encoding="utf-8")
    pieces = [parts[piece] if k % 2 else piece for k, piece in enumerate(template.split("@@"))]
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(pieces), encoding="utf-8")
    except OSError as error:
        raise DependencyUnavailable(f"{file}: cannot be written: {error.strerror}") from error


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(row.get(column, '')))}</td>" for column in columns) + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"
