"""States of breakers by name and scope: closed, open, half-open. Pure steps `(cell, what happened) → cell`.

A breaker opens when its test trips. After its cool-down it is half-open: decisions in scope are still withheld while
the test, begun anew, watches so many observations; without a trip it closes. One that trips while it is half-open
waits twice as long as before, so that what lasts does not make it change for ever. A breaker of the whole firm never
leaves open by itself: a named person re-enables it.
"""

import msgspec

from htfi.domain.governance import FIRM, BreakerState

FIRM_SCOPE = str(FIRM)
MAX_DOUBLINGS = 7  # of the cool-down: an hour becomes five days and a third at most


class BreakerChange(msgspec.Struct, frozen=True, gc=False):
    """A breaker of a scope changed its state, for this statistic against its threshold.

    `scope` is 'firm', 'desk:NAME', 'model:NAME' or 'series:SYMBOL/interval'; `evidence` says in words what was seen, or
    who re-enabled it and why.
    """

    at_ns: int
    breaker: str
    scope: str
    state: BreakerState
    statistic: float
    threshold: float
    evidence: str


class BreakerCell(msgspec.Struct, frozen=True, gc=False):
    """A breaker of a scope that is not closed: since when, and how many observations it has still to watch.

    `num_relapses`: how often it tripped while it was half-open, since it was closed last.
    """

    state: BreakerState
    since_ns: int
    num_left: int = 0
    num_relapses: int = 0


def open_cell(now_ns: int, before: BreakerCell | None = None) -> BreakerCell:
    """The cell of a breaker that trips now, after the cell `before`; None where it was closed."""
    if before is None:
        return BreakerCell(BreakerState.OPEN, now_ns)
    num_relapses = before.num_relapses + (before.state is BreakerState.HALF_OPEN)
    return BreakerCell(BreakerState.OPEN, now_ns, num_relapses=num_relapses)


def advance_cell(
    cell: BreakerCell, scope: str, now_ns: int, cool_down_ns: int, half_open_observations: int
) -> BreakerCell | None:
    """The cell after one more observation of its scope without a trip; None where it closes."""
    if cell.state is BreakerState.HALF_OPEN:
        left = cell.num_left - 1
        return msgspec.structs.replace(cell, num_left=left) if left > 0 else None
    wait_ns = cool_down_ns * 2 ** min(cell.num_relapses, MAX_DOUBLINGS)
    if scope == FIRM_SCOPE or now_ns - cell.since_ns < wait_ns:
        return cell
    return BreakerCell(BreakerState.HALF_OPEN, now_ns, half_open_observations, cell.num_relapses)
