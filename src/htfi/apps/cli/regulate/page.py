"""The report of the monitors as one page without scripts, and as JSON."""

from html import escape
from typing import Any

import msgspec

from htfi import __version__
from htfi.apps.display.page import fill_template, page_html, resource
from htfi.domain.content_marking import FIELD, content_marking
from htfi.domain.counts import counted
from htfi.domain.time import NS_PER_S, format_ns
from htfi.governance.regulation.findings import CheckOutcome, Finding, Severity
from htfi.governance.regulation.monitor import CheckResult, Span
from htfi.wiring.regulation import RegulationResult

MAX_SHOWN = 50  # findings of a check on the page; all kept ones are in the JSON
_NAMES = {"eu": "European Union", "us": "United States", "cn": "China", "all": "all regimes"}
_STYLES = {CheckOutcome.FOUND: "found", CheckOutcome.NOTHING_FOUND: "clear", CheckOutcome.NOT_JUDGED: "open"}


def as_json(found: RegulationResult, regime: str, span: Span) -> bytes:
    """Fields by name; times in UTC nanoseconds."""
    body: dict[str, Any] = {
        "kind": "regulation-report",
        "version": 1,
        "program": f"htfi {__version__}",
        "regime": regime,
        "span": span,
        "sources": found.sources,
        "counts": found.counts,
        "num_undecodable_entries": found.unread.num_unknown,
        "num_deleted_entries": found.unread.num_deleted,
        "rows_set_aside": {"num": found.set_aside.num, "rows": found.set_aside.rows},
        "checks": found.results,
        FIELD: content_marking(is_generated=False),
    }
    return msgspec.json.format(msgspec.json.encode(body), indent=2) + b"\n"


def render(found: RegulationResult, regime: str, span: Span) -> str:
    """The whole page."""
    own = "htfi.apps.cli.regulate"
    parts = {
        "frame": escape(f"{_NAMES[regime]} · {_period(found, span)}"),
        "figures": _figures(found),
        "overview": _overview(found),
        "findings": "".join(_findings(one) for one in found.results if one.num_found)
        or '<p class="empty">Nothing was found.</p>',
        "open": _open(found),
        "rows": _rows(found),
        "sources": escape(", ".join(found.sources)),
        "version": escape(__version__),
    }
    body = fill_template(resource(own, "page.html"), parts)
    return page_html("HTFI regulation", body, style=resource(own, "page.css"), is_generated=False)


def _period(found: RegulationResult, span: Span) -> str:
    start = span.start_ns or found.counts.start_ns
    end = found.counts.end_ns if span.end_ns == Span().end_ns else span.end_ns
    whole = (instant // NS_PER_S * NS_PER_S for instant in (start, end))
    return " to ".join(map(format_ns, whole)) if end else "an empty record"


def _figures(found: RegulationResult) -> str:
    outcomes = [one.outcome for one in found.results]
    breaches = sum(
        1 for one in found.results for finding in one.findings if finding.severity is Severity.BREACH
    )
    cells = [
        ("short" if breaches else "good", f"{breaches:,}", "breaches of a rule"),
        ("", f"{outcomes.count(CheckOutcome.FOUND)}", f"of {len(outcomes)} checks found something"),
        ("", f"{outcomes.count(CheckOutcome.NOTHING_FOUND)}", "found nothing"),
        ("", f"{outcomes.count(CheckOutcome.NOT_JUDGED)}", "cannot be judged from the record"),
        ("", f"{found.counts.num_decisions:,}", "decisions"),
        ("", f"{found.counts.num_order_events:,}", "order events"),
        ("", f"{found.counts.num_governance_entries:,}", "governance entries"),
    ]
    return "".join(
        f'<div class="{style}"><b>{escape(figure)}</b><span>{escape(label)}</span></div>'
        for style, figure, label in cells
    )


def _overview(found: RegulationResult) -> str:
    rows: list[str] = []
    for one in found.results:
        title = f'<a href="#{escape(one.id)}">{escape(one.title)}</a>' if one.num_found else escape(one.title)
        reasons = "; ".join(f"{each.reason} ({each.num:,})" for each in one.unjudged)
        rows.append(
            f'<tr><td>{title}<span class="id">{escape(one.id)}</span></td>'
            f'<td data-label="articles">{escape("; ".join(one.articles.values()))}</td>'
            f'<td data-label="outcome"><b class="{_STYLES[one.outcome]}">{escape(one.outcome.value)}</b></td>'
            f'<td data-label="judged">{one.num_judged:,}</td><td data-label="found">{one.num_found:,}</td>'
            f'<td data-label="not judged">{escape(reasons)}</td></tr>'
        )
    head = "".join(
        f"<th>{name}</th>" for name in ("check", "articles", "outcome", "judged", "found", "not judged")
    )
    return f'<table class="checks"><tr>{head}</tr>{"".join(rows)}</table>'


def _findings(result: CheckResult) -> str:
    shown = result.findings[:MAX_SHOWN]
    more = result.num_found - len(shown)
    rest = f'<p class="note">{more:,} more are in the JSON or were counted only.</p>' if more else ""
    return (
        f'<section id="{escape(result.id)}"><h2>{escape(result.title)}</h2>'
        f'<p class="note">{escape("; ".join(result.articles.values()))} · {counted(result.num_found, "finding")} '
        f"in {result.num_judged:,} judged</p>"
        f'<ul class="list">{"".join(map(_finding, shown))}</ul>{rest}</section>'
    )


def _finding(finding: Finding) -> str:
    where = finding.where
    span = format_ns(where.start_ns) if where.start_ns else "the whole record"
    if where.end_ns > where.start_ns:
        span += f" to {format_ns(where.end_ns)}"
    about = [where.instrument, where.venue, where.party, where.scope]
    about += [f"order {one}" for one in where.orders[:6]]
    about += [f"entry {one}" for one in where.entries[:6]]
    hidden = max(0, len(where.orders) - 6) + max(0, len(where.entries) - 6)
    about += [f"{hidden} more ids"] if hidden else []
    evidence = " · ".join(
        f"{name.replace('_', ' ')} {_figure(value)}" for name, value in finding.evidence.items()
    )
    return (
        f'<li><p><b class="{finding.severity.value}">{finding.severity.value}</b> {escape(finding.what)}</p>'
        f'<p class="where">{escape(span)} · {escape(", ".join(filter(None, about)) or "the record")}</p>'
        f'<p class="where">{escape(evidence)}</p></li>'
    )


def _figure(value: float | int | str) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value


def _open(found: RegulationResult) -> str:
    items = [
        f"<li><b>{escape(one.title)}</b> {escape(each.reason)}"
        f'<span class="quiet"> · {each.num:,} {"time" if each.num == 1 else "times"}</span></li>'
        for one in found.results
        for each in one.unjudged
    ]
    items += [
        f"<li><b>{escape(one.title)}</b> the record holds nothing on it; not judged: {escape(one.not_judged)}</li>"
        for one in found.results
        if one.outcome is CheckOutcome.NOT_JUDGED and not one.unjudged
    ]
    if found.unread.num_deleted:
        items.append(
            f"<li><b>Ledger</b> {counted(found.unread.num_deleted, 'entry', 'entries')} "
            "were deleted when their retention ended</li>"
        )
    if found.unread.num_unknown:
        items.append(
            f"<li><b>Ledger</b> {counted(found.unread.num_unknown, 'entry', 'entries')} "
            "hold no decision of a version that this program reads</li>"
        )
    return (
        f'<ul class="list plain">{"".join(items)}</ul>'
        if items
        else '<p class="empty">Everything was judged.</p>'
    )


def _rows(found: RegulationResult) -> str:
    if not found.set_aside.num:
        return ""
    items = "".join(f"<li>{escape(row.detail)}</li>" for row in found.set_aside.rows[:MAX_SHOWN])
    more = found.set_aside.num - min(MAX_SHOWN, len(found.set_aside.rows))
    rest = f'<p class="note">{more:,} more.</p>' if more else ""
    return (
        f'<section><h2>Rows set aside</h2><p class="note">{counted(found.set_aside.num, "row")} '
        f'of the order files could not be used.</p><ul class="list plain">{items}</ul>{rest}</section>'
    )
