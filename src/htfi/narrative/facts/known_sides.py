"""The side of an event that code knows: of a central bank's action, and of a figure against what was expected."""

import math

from htfi.narrative.facts.policy.action import PolicyAction, PolicyExpectation, PolicyModality, PolicyMove
from htfi.narrative.facts.record import NewsFacts
from htfi.narrative.facts.surprises import Side, Surprise, Verdict

# Of releases one usual size from what was expected, prices follow in about two of three (Andersen et al. 2003).
_MIN_SURE, _SURE_GAIN, _MAX_USUAL = 0.6, 0.08, 3.0
_POLICY_RATE = "policy rate"
_ACTION_SIDES = {
    PolicyMove.CUT: -1.0,
    PolicyMove.RAISE: 1.0,
    PolicyMove.EXPAND: -1.0,
    PolicyMove.START: -1.0,
    PolicyMove.TAPER: 1.0,
    PolicyMove.STOP: 1.0,
}
_SAID = frozenset({PolicyModality.DID, PolicyModality.WILL})


def action_axis(action: PolicyAction) -> float | None:
    """The side of a central bank's action: tighter +1, easier −1, 0 as was expected; None where unknown."""
    if action.modality not in _SAID:
        return None
    side = _ACTION_SIDES.get(action.move, 0.0)
    if action.expectation is PolicyExpectation.AS_EXPECTED:
        return 0.0
    if action.expectation is PolicyExpectation.SMALLER:
        return -side
    if action.move is PolicyMove.HOLD:
        if action.expected_move is not None:
            return -_ACTION_SIDES[action.expected_move]
        if action.expected is None or action.low is None or action.expected == action.low:
            return None if action.expectation is PolicyExpectation.SURPRISE else 0.0
        return 1.0 if action.expected < action.low else -1.0
    return side


def surprise_axis(facts: NewsFacts) -> float | None:
    """The side of the first comparison of a known measure, along the axis of its kind; None where there is none."""
    for one in facts.surprises:
        if one.measure == _POLICY_RATE:  # what a central bank did says more than a comparison of levels
            continue
        if one.verdict is Verdict.IN_LINE:
            return 0.0
        if one.verdict is not Verdict.UNCLEAR and one.side is not Side.UNKNOWN:
            return (1.0 if one.verdict is Verdict.ABOVE else -1.0) * _turn(one)
    return None


def sureness(facts: NewsFacts, axis: float) -> float:
    """Probability, 0–1, that prices follow a side that code found: larger surprises are followed more often."""
    if axis == 0.0:
        return 0.0
    sizes = [abs(one.usual_sizes) for one in facts.surprises if not math.isnan(one.usual_sizes)]
    return _MIN_SURE + _SURE_GAIN * min(max(sizes, default=1.0), _MAX_USUAL)


def _turn(surprise: Surprise) -> float:
    return -1.0 if surprise.side is Side.BAD else 1.0
