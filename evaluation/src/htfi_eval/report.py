"""The page of an evaluation or a benchmark, the outputs of every command, and `htfi eval report`.

A page is one self-contained file: SVG and HTML, and a small script that shows values under the pointer.
"""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import click

from htfi.apps.display.page import page_html, resource
from htfi.domain.errors import InvalidInput
from htfi.library.charts.figures import chart_html
from htfi.library.charts.frame import number
from htfi_eval.better import unlisted_metrics
from htfi_eval.history_file import record_result
from htfi_eval.results import (
    Card,
    Evaluation,
    commit,
    device,
    print_result,
    read_result,
    split_notes,
    write_file,
)

MAX_CARDS = 12
LONG_TABLE = 40  # rows above which a table is collapsed


def write_outputs(
    result: Evaluation,
    *,
    json_file: Path | None,
    html_file: Path | None = None,
    history_file: Path | None = None,
) -> None:
    """Print the table and write the requested files; append the figures to the history if there is one.

    Raises DependencyUnavailable if a file cannot be written.
    """
    print_result(result, json_file)
    if html_file is not None:
        write_page(html_file, result)
    if result.kind == "bench":
        unlisted = unlisted_metrics(result.name, result.metrics)
        assert not unlisted, f"better.py does not say which way {', '.join(unlisted)} is better"
    if history_file is not None:
        record_result(history_file, result)


def write_page(file: Path, evaluation: Evaluation) -> None:
    """Raises DependencyUnavailable where `file` cannot be written."""
    heading = evaluation.title or f"HTFI {evaluation.kind} {evaluation.name}"
    _write(file, heading, _head(evaluation, 1) + _body(evaluation))


def write_gallery(file: Path, evaluations: Sequence[Evaluation], notes: Sequence[str] = ()) -> None:
    """All evaluations on one page: contents, all figures, then each one. Raises DependencyUnavailable."""
    contents = "".join(
        f'<li><a href="#{_anchor(one)}">{escape(one.title or one.name)}</a><p>{escape(one.lead)}</p>{_cards(one)}</li>'
        for one in evaluations
    )
    lines = "".join(f'<p class="note">{escape(note)}</p>' for note in notes)
    parts = ["<h1>Evaluations of forecasts and models</h1>", f'<ol class="contents">{contents}</ol>{lines}']
    parts.append(f"<details><summary>all figures</summary>{_all_figures(evaluations)}</details>")
    parts += [f'<section id="{_anchor(one)}">{_head(one, 2)}{_body(one)}</section>' for one in evaluations]
    _write(file, "HTFI evaluations", "".join(parts))


def _anchor(evaluation: Evaluation) -> str:
    return "eval-" + "".join(c if c.isalnum() else "-" for c in evaluation.name)


def _head(evaluation: Evaluation, level: int) -> str:
    title = escape(evaluation.title or evaluation.name)
    command = f"<span>htfi {evaluation.kind} {escape(evaluation.name)}</span>" if evaluation.title else ""
    lead = f'<p class="lead">{escape(evaluation.lead)}</p>' if evaluation.lead else ""
    return f"<h{level}>{title}{command}</h{level}>{lead}"


def _body(evaluation: Evaluation) -> str:
    charts = "".join(chart_html(chart) for chart in evaluation.charts)
    rows, sentences = split_notes(evaluation.rows, evaluation.notes)
    notes = "".join(f"<li>{escape(note)}</li>" for note in sentences)
    origin = " · ".join(
        escape(sentences)
        for sentences in (
            f"commit {evaluation.commit or commit()}",
            evaluation.device or device(),
            f"seed {evaluation.seed}",
        )
    )
    return (
        _cards(evaluation)
        + (f'<div class="charts">{charts}</div>' if charts else "")
        + (f'<ul class="notes">{notes}</ul>' if notes else "")
        + _table(rows)
        + "".join(
            f'<h3 class="table">{escape(one.title)}</h3>{_table(one.rows)}' for one in evaluation.tables
        )
        + f'<p class="origin">{origin}</p>'
    )


def _cards(evaluation: Evaluation) -> str:
    """The figures at the top; without cards, the first metrics."""
    named = list(evaluation.metrics.items())[:MAX_CARDS]
    cards = evaluation.cards or [Card(number(value), name.replace("_", " ")) for name, value in named]
    shown = "".join(
        f'<div class="{_goal_class(card)}"><b>{escape(card.value)}</b><span>{escape(card.label)}</span></div>'
        for card in cards
    )
    return f'<div class="figures">{shown}</div>' if shown else ""


def _goal_class(card: Card) -> str:
    return "" if card.good is None else "good" if card.good else "short"


def _all_figures(evaluations: Sequence[Evaluation]) -> str:
    blocks: list[str] = []
    for one in evaluations:
        rows = "".join(
            f"<tr><th>{escape(name)}</th><td>{number(value)}</td></tr>" for name, value in one.metrics.items()
        )
        if rows:
            head = f'<caption><a href="#{_anchor(one)}">{escape(one.name)}</a></caption>'
            blocks.append(f"<table>{head}{rows}</table>")
    return f'<div class="all-figures">{"".join(blocks)}</div>'


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return ""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    opens = ["<th" if _is_number(rows, column) else '<th class="words"' for column in columns]
    head = "".join(f"{begin}>{escape(column)}</th>" for begin, column in zip(opens, columns, strict=True))
    cells = [begin.replace("<th", "<td") for begin in opens]
    body = "".join(
        "<tr>"
        + "".join(
            f"{begin}>{escape(_cell(row.get(of)))}</td>" for begin, of in zip(cells, columns, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    table = f'<div class="scroll"><table class="data"><tr>{head}</tr>{body}</table></div>'
    if len(rows) <= LONG_TABLE:
        return table
    return f"<details><summary>the table: {len(rows):,} rows</summary>{table}</details>"


def _is_number(rows: Sequence[Mapping[str, Any]], column: str) -> bool:
    """Whether a column is right-aligned: none of its cells begins with a letter."""
    return not any(str(row.get(column) or "")[:1].isalpha() for row in rows)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return number(value)
    is_count = isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10_000
    return f"{value:,}" if is_count else str(value)


def _write(file: Path, title: str, body: str) -> None:
    write_file(file, page_html(title, body, scripts=[resource("htfi.apps.display", "readout.js")]))
    click.echo(f"page written to {file}", err=True)


# Order on the page; others follow by name.
_ORDER = ("returns", "volatility", "narrative", "portfolio", "warning", "mini-returns", "mini")
FOLDER = Path("build/goals")

_EPILOG = """\b
Examples:
  htfi eval warning --json build/goals/warning.json
  htfi eval report                                 all of build/goals
  htfi eval report mine/*.json --html mine/all.html
"""


@click.command("report", short_help="One page of all evaluations.", epilog=_EPILOG)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--html", "html_file", default="build/evaluation.html", show_default=True,
    type=click.Path(path_type=Path, dir_okay=False), help="Write the page to FILE.",
)  # fmt: skip
def command(files: tuple[Path, ...], html_file: Path) -> None:
    """Put the evaluations in FILES, written by other commands with --json, on one page.

    Without FILES: those in build/goals. Benchmarks are left out.
    """
    given = files or tuple(sorted(FOLDER.glob("*.json")))
    if not given:
        raise InvalidInput(f"{FOLDER} has no JSON; name files, or write some with htfi eval NAME --json FILE")
    found = [read_result(file) for file in given]
    shown = [one for one in found if one.kind == "eval"]
    if not shown:
        raise InvalidInput(f"{given[0]}: only benchmarks, no evaluation; see htfi eval --help")
    shown.sort(key=lambda one: (_ORDER.index(one.name) if one.name in _ORDER else len(_ORDER), one.name))
    passed = [one.name for one in found if one.kind != "eval"]
    write_gallery(html_file, shown, [f"benchmarks left out: {', '.join(passed)}"] if passed else [])
