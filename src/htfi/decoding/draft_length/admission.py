"""Which draft slots of a batch are worth their time: the most expected tokens per ms.

Slots are admitted in order of expected gain per unit of time, as long as throughput rises (DSpark). Where to stop, when
a wider pass costs all rows, is solved exactly by Dinkelbach's method: if a ms is worth λ tokens, a slot is worth its
acceptance less λ times its price; the best set at λ gives the next λ, until it stays.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from htfi.domain.errors import InvalidInput

_MAX_STEPS = 32  # Dinkelbach's method needs three or four; each raises the rate
_TIE = 1e-12


@dataclass(frozen=True, slots=True)
class RoundCost:
    """ms of a round: width_ms[w] if the longest draft has w tokens (rows are padded to it), never falling in w, plus
    slot_ms for each drafted token.
    """

    width_ms: Sequence[float]
    slot_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class AdmittedLengths:
    """Draft lengths by row, and their expected throughput."""

    lengths: list[int]
    tokens_per_ms: float


def admit_draft_slots(
    curves: Sequence[Sequence[float]], caps: Sequence[int], price: RoundCost
) -> AdmittedLengths:
    """Lengths ≤ caps that maximise expected tokens per ms, the shortest among equals.

    curves: acceptance by row, never rising; rows of one kind may share one object, which is faster. Source: DSpark's
    rule; Dinkelbach, Management Science 13 (1967). Raises: InvalidInput if curves and caps differ in number or nothing
    takes time.
    """
    if len(curves) != len(caps):
        raise InvalidInput(f"admission: {len(curves)} curves for {len(caps)} caps")
    if not price.width_ms or price.width_ms[0] <= 0.0:
        raise InvalidInput("admission: a pass without drafts takes time too; width_ms[0] must be above 0")
    widest = max(min(max(caps, default=0), len(price.width_ms) - 1), 0)
    groups = _groups(curves, caps, widest)
    num_rows = float(len(curves))
    best = _SlotChoice(num_rows / price.width_ms[0], 0, 1.0)
    for _ in range(_MAX_STEPS):
        found = _best_at(best.tokens_per_ms, groups, price, num_rows, widest)
        if found.tokens_per_ms <= best.tokens_per_ms * (1.0 + _TIE):
            break
        best = found
    lengths = [
        _length(curve, min(cap, best.width), best.hurdle) for curve, cap in zip(curves, caps, strict=True)
    ]
    return AdmittedLengths(lengths, best.tokens_per_ms)


class _SlotChoice(NamedTuple):
    """A set of slots: those up to `width` whose acceptance exceeds `hurdle`."""

    tokens_per_ms: float
    width: int
    hurdle: float


_CurveGroups = list[tuple[Sequence[float], list[int]]]


def _groups(curves: Sequence[Sequence[float]], caps: Sequence[int], widest: int) -> _CurveGroups:
    """Rows that share a curve: for each position, how many of them may draft it."""
    found: dict[int, tuple[Sequence[float], list[int]]] = {}
    for curve, cap in zip(curves, caps, strict=True):
        _, ends = found.setdefault(id(curve), (curve, [0] * (widest + 1)))
        ends[min(max(cap, 0), widest, len(curve))] += 1
    groups: _CurveGroups = []
    for curve, ends in found.values():
        for place in range(widest - 1, -1, -1):
            ends[place] += ends[place + 1]
        groups.append((curve, ends))
    return groups


def _best_at(
    rate: float, groups: _CurveGroups, price: RoundCost, num_rows: float, widest: int
) -> _SlotChoice:
    """The best set of slots if a ms is worth `rate` tokens."""
    hurdle = rate * price.slot_ms
    tokens, slots = num_rows, 0
    best_value, best = float("-inf"), _SlotChoice(0.0, 0, hurdle)
    for width in range(widest + 1):
        if width:
            for curve, may in groups:
                if may[width] and curve[width - 1] > hurdle:
                    tokens += may[width] * curve[width - 1]
                    slots += may[width]
        ms = price.width_ms[width] + price.slot_ms * slots
        if tokens - rate * ms > best_value + _TIE:
            best_value, best = tokens - rate * ms, _SlotChoice(tokens / ms, width, hurdle)
    return best


def _length(curve: Sequence[float], cap: int, hurdle: float) -> int:
    cap = min(max(cap, 0), len(curve))
    while cap and curve[cap - 1] <= hurdle:
        cap -= 1
    return cap
