"""The swap test of a view: what of it stands under every counterfactual swap, and whether the decision is held.

Pure: the pipeline judges by it, and an auditor repeats it from what was recorded.
"""

import math
from collections.abc import Sequence

from htfi.domain.governance import Hold, HoldKind, SwapFacts, SwapMove
from htfi.governance.fairness.config import FairnessConfig

_DECIMALS = 6


def judge_swaps(moves: Sequence[SwapMove], config: FairnessConfig) -> SwapFacts:
    """The share of the view that all swaps leave standing; 1 where each changes it by noise at most.

    A move is what a reader expects, in standard deviations of one bar: direction · size · confidence. What is left of
    a view is the part on which it and all of its counterfactuals agree: nothing where one of them turns it round.
    """
    weight = min((_share_left(move, config.max_move_sigmas) for move in moves), default=1.0)
    return SwapFacts(tuple(moves), round(weight, _DECIMALS), config.max_move_sigmas, config.min_weight)


def swap_hold(series: str, swaps: SwapFacts) -> Hold | None:
    """Why a decision on a series is held back for its swaps; None where it is not."""
    if swaps.weight > swaps.min_weight:
        return None
    worst = min(swaps.moves, key=lambda move: _share_left(move, swaps.max_move_sigmas))
    cause = (
        f"a {worst.kind} swap moves the view of {worst.reader} from {worst.before:+.2f} to {worst.after:+.2f} "
        f"standard deviations: {swaps.weight:.0%} of it stands, more than {swaps.min_weight:.0%} must"
    )
    return Hold(HoldKind.FAIRNESS, f"series:{series}", cause[:240])


def swap_problems(swaps: SwapFacts) -> list[str]:
    """Whether a recorded weight follows from the recorded moves."""
    limits = FairnessConfig(max_move_sigmas=swaps.max_move_sigmas, min_weight=swaps.min_weight)
    if judge_swaps(swaps.moves, limits) != swaps:
        return ["the weight that its swap test left does not follow from its swaps"]
    return []


def num_moved(moves: Sequence[SwapMove], max_move_sigmas: float) -> int:
    """How many views a swap changes by more than noise."""
    return sum(_is_moved(move, max_move_sigmas) for move in moves)


def _is_moved(move: SwapMove, max_move_sigmas: float) -> bool:
    return not abs(move.after - move.before) <= max_move_sigmas


def _share_left(move: SwapMove, max_move_sigmas: float) -> float:
    if not (math.isfinite(move.before) and math.isfinite(move.after)):
        return 0.0
    if not _is_moved(move, max_move_sigmas) or move.before == 0.0:
        return 1.0
    return min(max(move.after / move.before, 0.0), 1.0)
