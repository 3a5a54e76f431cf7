"""The page of `htfi audit fairness --html`: a plot for each measure, then the tables; no script, no network."""

from collections.abc import Sequence
from html import escape
from itertools import starmap

from htfi.apps.cli.audit.text import (
    FIGURE_COLUMNS,
    GAP_COLUMNS,
    PROXY_COLUMNS,
    figure_rows,
    gap_rows,
    notes_of,
    proxy_rows,
    title_of,
)
from htfi.apps.display.page import page_html
from htfi.governance.fairness.findings import GroupFigure
from htfi.library.charts.figures import chart_html
from htfi.library.charts.specs import DotChart, DotGroup
from htfi.wiring.fairness.client_decisions import TableAudit
from htfi.wiring.fairness.forecasts import RunAudit

_STYLE = (
    "td.text,th.text{text-align:left} figure{margin-bottom:32px} .different{font-weight:600;color:#b3261e}"
)
# On a phone each row is a block of labelled cells.
_NARROW_STYLE = (
    "@media (max-width:640px){.cells thead{display:none}.cells tr{display:grid;grid-template-columns:1fr 1fr;"
    "gap:4px 12px;padding:10px 0;border-bottom:1px solid var(--line)}.cells td{display:block;padding:0;border:0}"
    ".cells td::before{content:attr(data-label);display:block;color:var(--quiet);font-size:13px;font-weight:400}}"
)


def audit_page(found: TableAudit | RunAudit) -> str:
    """The whole page."""
    in_shares = isinstance(found, TableAudit)
    figures = found.audit.figures
    measures = list(dict.fromkeys((one.attribute, one.measure) for one in figures if one.num))
    plots = "".join(
        chart_html(_chart(attribute, measure, [
            one for one in figures if (one.attribute, one.measure) == (attribute, measure) and one.num
        ]))
        for attribute, measure in measures
    )  # fmt: skip
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in notes_of(found))
    body = (
        f"<header><h1>Fairness</h1><p>{escape(title_of(found))}</p></header><main>{notes}"
        f"<section><h2>Gaps between groups</h2>{_gaps(found, in_shares=in_shares)}"
        f"</section><section><h2>Groups</h2>{plots}"
        f"{_table(FIGURE_COLUMNS, figure_rows(figures, in_shares=in_shares))}</section>"
        '<section><h2>What decisions tell of groups</h2><p class="note">How well a group can be predicted from what '
        "is decided: 0.5 is not at all. The null permutes the attribute over whole companies or people.</p>"
        f"{_table(PROXY_COLUMNS, proxy_rows(found.proxies))}</section></main>"
    )
    return page_html("HTFI fairness", body, style=_STYLE + _NARROW_STYLE, is_generated=False)


def _gaps(found: TableAudit | RunAudit, *, in_shares: bool) -> str:
    if not found.audit.gaps:
        return '<p class="empty">No two groups are large enough to be compared.</p>'
    return _table(GAP_COLUMNS, gap_rows(found.audit.gaps, in_shares=in_shares))


def _chart(attribute: str, measure: str, figures: Sequence[GroupFigure]) -> DotChart:
    return DotChart(
        f"{measure} by {attribute}",
        "95% intervals.",
        [f"{one.group} ({one.num:,})" for one in figures],
        [
            DotGroup(
                measure,
                [one.value for one in figures],
                [one.low for one in figures],
                [one.high for one in figures],
            )
        ],
    )


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th class="text">{escape(column)}</th>' for column in columns)
    lines = "".join(f"<tr>{''.join(starmap(_cell, zip(columns, row, strict=True)))}</tr>" for row in rows)
    table = f'<table class="words cells"><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>'
    return f'<div class="scroll">{table}</div>'


def _cell(column: str, text: str) -> str:
    style = "text different" if text == "DIFFERENT" else "text"
    return f'<td class="{style}" data-label="{escape(column)}">{escape(text)}</td>'
