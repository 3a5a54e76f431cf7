"""An audit of fairness in a terminal and as JSON."""

import math
from typing import Any

import msgspec

from htfi.governance.fairness.findings import GapVerdict, GroupFigure, GroupGap
from htfi.wiring.fairness import TableAudit


def table_json(found: TableAudit) -> dict[str, Any]:
    """Every figure and gap; what is not known is null."""
    return _finite(msgspec.to_builtins(found))


def print_table_audit(found: TableAudit) -> None:
    """Figures of the groups, then the gaps between them."""
    from htfi.apps.display.tables import print_table

    print_table(
        ["attribute", "group", "measure", "rows", "value", "95% interval"],
        [figure_row(one) for one in found.audit.figures],
        title=f"{found.origin}: {found.num_rows:,} rows",
    )
    print_table(
        ["attribute", "groups", "measure", "gap", "95% interval", "p", "verdict"],
        [gap_row(one) for one in found.audit.gaps],
        notes=[
            f"p-values are corrected by {found.correction}; {found.metrics}; rows set aside: {found.num_set_aside:,}"
        ],
    )


def figure_row(one: GroupFigure) -> list[str]:
    return [
        one.attribute, one.group, one.measure, f"{one.num:,}", percent(one.value), span(one.low, one.high)
    ]  # fmt: skip


def gap_row(one: GroupGap) -> list[str]:
    verdict = one.verdict.upper() if one.verdict is GapVerdict.DIFFERENT else one.verdict.value
    return [
        one.attribute, f"{one.first} − {one.second}", one.measure, percent(one.gap), span(one.low, one.high),
        chance(one.adjusted_p), verdict,
    ]  # fmt: skip


def percent(value: float) -> str:
    return f"{100 * value:.1f}%" if math.isfinite(value) else "–"


def span(low: float, high: float) -> str:
    return f"{percent(low)} … {percent(high)}" if math.isfinite(low) else "–"


def chance(p: float) -> str:
    return "–" if math.isnan(p) else f"{p:.3f}" if p >= 0.001 else f"{p:.0e}"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
