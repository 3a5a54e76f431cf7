"""The page's section on central banks: each document beside the last one of its series. Every text is escaped here."""

from collections.abc import Sequence
from html import escape

from htfi.apps.display.statements import comparison_html
from htfi.domain.time import format_ns
from htfi.narrative.facts.statements.compared import ComparedDocument

NUM_SHOWN = 12


def statements_html(documents: Sequence[ComparedDocument]) -> str:
    """The whole section, newest first; empty where there was none."""
    if not documents:
        return ""
    left_out = len(documents) - NUM_SHOWN
    shown = "".join(_document(one) for one in list(reversed(documents))[:NUM_SHOWN])
    more = f'<p class="note">{left_out:,} earlier documents are not shown.</p>' if left_out > 0 else ""
    return (
        "<section>\n  <h2>What central banks said</h2>\n"
        '  <p class="note">Each new document beside the last one of its series: words that came are underlined, those '
        f"that went are struck out.</p>\n  {shown}{more}\n</section>"
    )


def _document(one: ComparedDocument) -> str:
    title = f"{one.comparison.bank.upper()}, {one.kind.value}, {_day(one.at_ns)}"
    beside = f"{one.headline} · from {one.source} · before: {_day(one.before_at_ns)}"
    return f'<h3>{escape(title)}</h3><p class="note">{escape(beside)}</p>{comparison_html(one.comparison)}'


def _day(at_ns: int) -> str:
    return format_ns(at_ns)[:10]
