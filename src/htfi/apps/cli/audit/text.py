"""An audit of fairness in a terminal and as JSON."""

import math
from typing import Any, cast

import msgspec

from htfi.domain.content_marking import FIELD, content_marking
from htfi.governance.fairness.findings import GapVerdict, GroupFigure, GroupGap
from htfi.governance.fairness.forecasts import COVERAGE, MODEL_READ, WAITING, WITHHELD
from htfi.governance.fairness.proxies import ProxyFigure
from htfi.wiring.fairness.client_decisions import TableAudit
from htfi.wiring.fairness.forecasts import RunAudit

_IN_SHARES = frozenset({COVERAGE, MODEL_READ, WITHHELD})
FIGURE_COLUMNS = ("attribute", "group", "measure", "rows", "value", "95% interval")
GAP_COLUMNS = ("attribute", "groups", "measure", "gap", "95% interval", "p", "verdict")
PROXY_COLUMNS = ("attribute", "group", "rows", "AUC", "AUC by chance up to", "p")


def audit_json(found: TableAudit | RunAudit) -> dict[str, Any]:
    """Every figure and gap; what is not known is null."""
    figures = cast("dict[str, Any]", _finite(msgspec.to_builtins(found)))
    return figures | {FIELD: content_marking(is_generated=False)}


def print_audit(found: TableAudit | RunAudit) -> None:
    """Figures of the groups, the gaps between them, and what decisions tell of groups."""
    from htfi.apps.display.tables import print_table

    in_shares = isinstance(found, TableAudit)
    print_table(FIGURE_COLUMNS, figure_rows(found.audit.figures, in_shares=in_shares), title=title_of(found))
    print_table(GAP_COLUMNS, gap_rows(found.audit.gaps, in_shares=in_shares))
    print_table(PROXY_COLUMNS, proxy_rows(found.proxies), notes=notes_of(found))


def title_of(found: TableAudit | RunAudit) -> str:
    if isinstance(found, TableAudit):
        return f"{found.origin}: {found.num_rows:,} rows"
    return f"{found.origin}: {found.num_forecasts:,} forecasts on {found.num_symbols:,} symbols"


def notes_of(found: TableAudit | RunAudit) -> list[str]:
    """How to read the tables, a sentence each."""
    notes = [
        f"p-values are corrected for the number of pairs of a measure, by {found.correction.value.title()}",
        "within noise: larger than what is tolerated, but chance alone makes such gaps; groups that are too small to "
        "be compared are listed only",
    ]
    if isinstance(found, TableAudit):
        largest = [
            f"{measure} of {attribute} {value:.3f}"
            for attribute, by_measure in found.audit.disparities.items()
            for measure, value in by_measure.items()
        ]
        notes.append(f"largest differences by {found.metrics}: {', '.join(largest)}")
        notes.append(f"rows set aside because a value is missing: {found.num_set_aside:,}")
        return notes
    notes.append("width and CRPS in usual moves of the series; intervals by drawing whole instants again")
    if math.isfinite(found.coverage_gap):
        notes.append(f"widest gap of 90% coverage that is not noise: {100 * found.coverage_gap:.1f} points")
    return notes


def figure_rows(figures: list[GroupFigure], *, in_shares: bool) -> list[list[str]]:
    return [
        [
            one.attribute, one.group, one.measure, f"{one.num:,}", written(one.value, one.measure, in_shares),
            span(one.low, one.high, one.measure, in_shares),
        ]
        for one in figures
    ]  # fmt: skip


def gap_rows(gaps: list[GroupGap], *, in_shares: bool) -> list[list[str]]:
    return [
        [
            one.attribute, f"{one.first} − {one.second}", one.measure, written(one.gap, one.measure, in_shares),
            span(one.low, one.high, one.measure, in_shares), chance(one.adjusted_p),
            one.verdict.value.upper() if one.verdict is GapVerdict.DIFFERENT else one.verdict.value,
        ]
        for one in gaps
    ]  # fmt: skip


def proxy_rows(proxies: list[ProxyFigure]) -> list[list[str]]:
    return [
        [
            one.attribute,
            one.group,
            f"{one.num:,}",
            plain(one.auc),
            plain(one.null_high),
            chance(one.adjusted_p),
        ]
        for one in proxies
    ]


def written(value: float, measure: str, in_shares: bool) -> str:
    if not math.isfinite(value):
        return "–"
    if in_shares or measure in _IN_SHARES:
        return f"{100 * value:.1f}%"
    return f"{value:.1f}" if measure == WAITING else f"{value:.3f}"


def span(low: float, high: float, measure: str, in_shares: bool) -> str:
    if not math.isfinite(low):
        return "–"
    return f"{written(low, measure, in_shares)} … {written(high, measure, in_shares)}"


def plain(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else "–"


def chance(p: float) -> str:
    return "–" if math.isnan(p) else f"{p:.3f}" if p >= 0.001 else f"{p:.0e}"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_finite(one) for one in cast("list[Any]", value)]
    return None if isinstance(value, float) and not math.isfinite(value) else value
