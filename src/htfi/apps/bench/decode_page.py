"""The page of `htfi bench decode`: the metrics at a glance, three charts, the whole table; no script, no network."""

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from htfi.apps.bench.decode_charts import gain_svg, legend, survival_svg, time_svg
from htfi.apps.bench.decode_figures import Row, Runs
from htfi.domain.errors import DependencyUnavailable


def write_page(
    file: Path,
    all_runs: Sequence[Runs],
    planned: str,
    drafted: str,
    rows: Sequence[Row],
    metrics: Mapping[str, float],
) -> None:
    """`all_runs`: the shipped pair's first; `planned` is the way of the first chart, `drafted` of the second.

    Raises DependencyUnavailable where `file` cannot be written.
    """
    shipped = all_runs[0]
    figures = "".join(
        f"<div><b>{value:.3g}</b><span>{escape(name.replace('_', ' '))}</span></div>"
        for name, value in metrics.items()
    )
    pieces = {
        "figures": figures,
        "planned": escape(planned),
        "targets": legend([of.label for of in all_runs]),
        "gain": gain_svg(all_runs, planned),
        "parts": legend(["draft", "wait", "verify", "rest"]),
        "times": time_svg(shipped),
        "drafted": escape(drafted),
        "kinds": legend(shipped.kinds),
        "survival": survival_svg(shipped, drafted),
        "table": _table(rows),
    }
    template = files("htfi.apps.bench").joinpath("decode_page.html").read_text(encoding="utf-8")
    page = "".join(pieces[piece] if place % 2 else piece for place, piece in enumerate(template.split("@@")))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(page, encoding="utf-8")
    except OSError as error:
        raise DependencyUnavailable(f"{file}: cannot be written: {error.strerror}") from error


def _table(rows: Sequence[Row]) -> str:
    columns = list(dict.fromkeys(key for told in rows for key in told))
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_shown(told.get(column, '')))}</td>" for column in columns) + "</tr>"
        for told in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _shown(value: object) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else str(value)
