"""What counts as market stress, and on which days it can be warned of; `htfi eval warning` judges by it.

A session is *in stress* where a loss has happened (`drawdown_events`) or a level is reached (`level_events`). Stress
that follows stress within the horizon is the same event; its first session is the onset. A session is *at risk* where
none of the last `horizon` sessions, itself included, was in stress: so nothing within an event counts as foreseeing it,
and whether a session is at risk is known on the day.
"""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class StressEvents:
    """Events of one series over T sessions.

    label [T]: 1 where it comes true within `horizon` sessions after, 0 where not, NaN where the session is not at risk
    or the future is not known yet. decided [T]: the last session that a label looks at, −1 without one.
    onset [T]: the session at which the event begins that a 1 precedes, else −1. onsets: all of them, rising.
    at_risk, in_stress [T].
    """

    horizon: int
    label: Array
    decided: Places
    at_risk: Bools
    onset: Places
    onsets: Places
    in_stress: Bools


def drawdown_events(close: Array, depth: float, horizon: int) -> StressEvents:
    """A session at risk is followed by an event where a close within `horizon` sessions lies `depth` below its own.

    A session is in stress where its close lies `depth` or more below the highest of the `horizon` sessions before:
    the same fall, seen in hindsight. close [T], NaN where there is none: such sessions are passed over.
    Raises: InvalidInput where depth is not within 0–1 or horizon below 1.
    """
    if not 0 < depth < 1:
        raise InvalidInput(f"a depth of {depth}: give a share between 0 and 1, such as 0.08")
    known, values = _known_sessions(close, horizon)
    stress = np.zeros(len(values), np.bool_)
    true = np.zeros(len(values), np.bool_)
    if len(values) > horizon:
        windows = sliding_window_view(values, horizon)  # [T − H + 1, H]
        stress[horizon:] = values[horizon:] <= (1 - depth) * windows[:-1].max(axis=1)
        true[:-horizon] = windows[1:].min(axis=1) <= (1 - depth) * values[:-horizon]
    return _make_events(known, len(close), stress, true, np.ones(len(values), np.bool_), horizon)


def level_events(level: Array, to: float, below: float, horizon: int) -> StressEvents:
    """A session at risk, where the level is under `below`, is followed by an event where it reaches `to` in time.

    Raises: InvalidInput where `below` exceeds `to` or horizon is below 1.
    """
    if below > to:
        raise InvalidInput(f"an event at {to:g} cannot be foreseen from above it: {below:g}")
    known, values = _known_sessions(level, horizon)
    stress = values >= to
    true = np.zeros(len(values), np.bool_)
    if len(values) > horizon:
        true[:-horizon] = sliding_window_view(stress, horizon)[1:].any(axis=1)
    return _make_events(known, len(level), stress, true, values < below, horizon)


def _known_sessions(values: Array, horizon: int) -> tuple[Places, Array]:
    if horizon < 1:
        raise InvalidInput(f"a horizon of {horizon} sessions: give 1 or more")
    known = np.flatnonzero(np.isfinite(values))
    return known, values[known]


def _make_events(
    known: Places, num: int, stress: Bools, true: Bools, low: Bools, horizon: int
) -> StressEvents:
    """Events among the known sessions, returned to their places among all `num`."""
    count = np.concatenate([[0], np.cumsum(stress)])
    place = np.arange(len(stress))
    recent = count[place + 1] - count[np.maximum(place + 1 - horizon, 0)]
    at_risk = (recent == 0) & low & (place >= horizon)
    before = count[place] - count[np.maximum(place - horizon, 0)]
    begins = np.flatnonzero(stress & (before == 0) & (place >= horizon))
    label = np.where(at_risk & (place < len(stress) - horizon), true.astype(np.float64), np.nan)
    following = np.searchsorted(begins, place, side="right")
    ahead = np.append(begins, -1)[np.minimum(following, len(begins))]
    own = np.where(label == 1.0, ahead, -1)
    later = np.append(known, np.full(horizon, -1))[horizon:]  # of each known session, the one `horizon` after
    labels, risk, stressed = np.full(num, np.nan), np.zeros(num, np.bool_), np.zeros(num, np.bool_)
    decided, onset = np.full(num, -1, np.intp), np.full(num, -1, np.intp)
    labels[known], risk[known], stressed[known] = label, at_risk, stress
    decided[known] = np.where(np.isnan(label), -1, later)
    onset[known] = np.where(own >= 0, np.append(known, -1)[own], -1)
    return StressEvents(horizon, labels, decided, risk, onset, known[begins], stressed)
