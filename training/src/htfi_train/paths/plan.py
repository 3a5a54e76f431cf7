"""How far to guess ahead before the target's next pass over many paths.

No plan changes a token. `FewestPasses` suits a target whose passes are expensive whatever their size (remote, or on a
machine that a batch does not fill); `LeastTime` weighs the cost of a pass against the tokens that it is expected to
give.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import NamedTuple, Protocol

import numpy as np

from htfi.decoding.draft_length.pass_costs import (
    DRAFT_PRIOR,
    TARGET_PRIOR,
    NominalPassCosts,
    PassCostEstimator,
)
from htfi.decoding.ports import Ids
from htfi.decoding.sampling import Doubles

# Possible windows of a pass: few sizes, so that costs are learnt soon.
_WINDOWS: Ids = np.array([1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64], np.int64)
_MAX_POSITIONS = int(_WINDOWS[-1]) - 1
_MIN_GAIN = 0.02  # over plain sampling: below it guessing is not worth the risk
_DRAFT_GAIN = 0.05  # over the target's own guesses, which need no second network
_OPENING_TOKENS = 48  # a draft's reading of the prefix takes about as long as writing so many tokens
_REDRAW_SHARE = 0.05  # of the data must be new before the curve is computed again
_PROBE_ROUNDS = 20  # one round in so many tries a window beside the best
_REFRESH = 32  # rounds after which data count less
_DECAY = 0.85
_PRIOR_RATES = (0.96, 0.88)  # of the first guessed position and of far ones
_PRIOR_WEIGHT = 8.0

Ms = Callable[[int, int], float]  # of rows and tokens a row


class GuessSource(Enum):
    """Who guesses: the target's latest logits with the noise of later positions, or the draft, token by token."""

    OWN = "own"
    DRAFT = "draft"


class PathProgress(NamedTuple):
    """Before a round: the tokens that each path [B] lacks, and the rows of a pass of the target."""

    left: Ids
    num_rows: int
    has_draft: bool
    num_rounds: int = 0  # so far
    draft_is_open: bool = False  # it has read the prefix


class PathStep(NamedTuple):
    num_guesses: int  # of each path; 0 is plain sampling
    source: GuessSource = GuessSource.OWN


class PathRoundReport(NamedTuple):
    """The cost of a round and its guesses: `right` [g] of those `tried` [g], all before them being right."""

    step: PathStep
    num_rows: int
    tried: Ids
    right: Ids
    target_ms: float
    draft_ms: float


class PathPlan(Protocol):
    def next(self, progress: PathProgress) -> PathStep: ...

    def learn(self, seen: PathRoundReport) -> None: ...


class PlainPathPlan:
    """No guesses: every pass gives one token of every path."""

    def next(self, progress: PathProgress) -> PathStep:  # noqa: ARG002 (the port's)
        return PathStep(0)

    def learn(self, seen: PathRoundReport) -> None:
        pass


class FewestPasses:
    """Guess the whole rest in every pass: drafted at first, if there is a draft, then refined by the target.

    Refining takes fewer passes than drafting again: after a mismatch a draft is as far from the target as before, while
    the target's own choices followed nearly the same past.
    """

    def next(self, progress: PathProgress) -> PathStep:
        is_drafted = progress.has_draft and progress.num_rounds == 0
        return PathStep(int(progress.left.max()) - 1, GuessSource.DRAFT if is_drafted else GuessSource.OWN)

    def learn(self, seen: PathRoundReport) -> None:
        pass


class LeastTime:
    """The least time per token, from the cost of passes and how often guesses are right; it learns both online.

    `draft` costs are those of writing so many tokens in turn. Nominal costs do not depend on the clock.
    """

    def __init__(
        self, target: PassCostEstimator | None = None, draft: PassCostEstimator | None = None
    ) -> None:
        self._target: PassCostEstimator = NominalPassCosts(TARGET_PRIOR) if target is None else target
        self._draft: PassCostEstimator = NominalPassCosts(DRAFT_PRIOR) if draft is None else draft
        self._survival = {source: PositionAcceptance() for source in GuessSource}
        self._num_rounds = 0

    def next(self, progress: PathProgress) -> PathStep:
        curves = {source: of.curve() for source, of in self._survival.items()}
        step = fastest_step(progress, curves, self._target.estimate, self._draft.estimate)
        self._num_rounds += 1
        if self._num_rounds % _PROBE_ROUNDS:
            return step
        return _neighbouring_step(
            step, int(progress.left.max()), upwards=bool(self._num_rounds // _PROBE_ROUNDS % 2)
        )

    def learn(self, seen: PathRoundReport) -> None:
        num_guesses, source = seen.step
        self._target.learn(seen.num_rows, num_guesses + 1, seen.target_ms)
        if num_guesses:
            if source is GuessSource.DRAFT and seen.draft_ms > 0.0:
                self._draft.learn(seen.num_rows, num_guesses, seen.draft_ms)
            self._survival[source].learn(seen.tried, seen.right)
        for survival in self._survival.values():
            survival.fade()


def fastest_step(
    progress: PathProgress, survival: Mapping[GuessSource, Doubles], target_ms: Ms, draft_ms: Ms
) -> PathStep:
    """The step with the least ms per token that it is expected to give.

    `survival` [positions] is the chance that so many guesses are all right: 1 for none, then falling.
    """
    most = int(progress.left.max())
    windows, ends = _windows(most)
    # paths that lack more than j tokens: only these use a window's token j
    reach = len(progress.left) - np.cumsum(np.bincount(progress.left))[: windows[-1]]
    num_rows = progress.num_rows
    target = np.array([target_ms(num_rows, window) for window in windows])
    best, least = PathStep(0), (1.0 - _MIN_GAIN) * target[0] / reach[0]
    for source, gain in ((GuessSource.OWN, 0.0), (GuessSource.DRAFT, _DRAFT_GAIN)):
        if len(windows) == 1 or (source is GuessSource.DRAFT and not progress.has_draft):
            continue
        gained = np.cumsum(reach * survival[source][: windows[-1]])[ends]
        if source is GuessSource.OWN:
            each = target / gained
        else:
            each = (target + np.array([draft_ms(num_rows, window - 1) for window in windows])) / gained
            if not progress.draft_is_open:
                each += draft_ms(1, _OPENING_TOKENS) / progress.left.sum()
        at = int(each[1:].argmin()) + 1
        if each[at] < (1.0 - gain) * least:
            best, least = PathStep(windows[at] - 1, source), float(each[at])
    return best


@cache
def _windows(most: int) -> tuple[list[int], Ids]:
    """The possible windows if no path lacks more than `most` tokens, and the last position of each."""
    windows = np.minimum(_WINDOWS[: int(np.searchsorted(_WINDOWS, most)) + 1], most)
    return windows.tolist(), windows - 1


def _neighbouring_step(step: PathStep, most: int, upwards: bool) -> PathStep:
    """The next longer or shorter window: an untried window is never learnt, and a neighbour costs little."""
    at = int(np.searchsorted(_WINDOWS, step.num_guesses + 1)) + (1 if upwards else -1)
    window = int(_WINDOWS[min(max(at, 0), len(_WINDOWS) - 1)])
    return PathStep(min(window, most) - 1, step.source)


class PositionAcceptance:
    """How many guesses are right in a row, counted by position over all rows of a round; old rounds fade.

    `AcceptanceCurves` is for single requests, by kind.
    """

    def __init__(self) -> None:
        first, far = _PRIOR_RATES
        rates = np.maximum(first - 0.02 * np.arange(_MAX_POSITIONS), far)
        self._prior = rates
        self._tried = np.zeros(_MAX_POSITIONS)
        self._right = np.zeros(_MAX_POSITIONS)
        self._age = 0
        self._num_tried = self._num_new = 0.0  # in all, and since the curve was computed
        self._curve: Doubles | None = None

    def learn(self, tried: Ids, right: Ids) -> None:
        """One round: `right` [g] of `tried` [g] guesses at each position, those before them being right."""
        num = min(len(tried), _MAX_POSITIONS)
        self._tried[:num] += tried[:num]
        self._right[:num] += right[:num]
        num_tried = int(tried.sum())
        self._num_new += num_tried
        self._num_tried += num_tried
        if self._num_new > _REDRAW_SHARE * self._num_tried:
            self._curve = None

    def fade(self) -> None:
        """End of a round: data count a little less, so that failed windows are tried again eventually."""
        self._age += 1
        if self._age % _REFRESH == 0:
            for counts in (self._tried, self._right):
                counts *= _DECAY
            self._num_tried *= _DECAY
            self._curve = None

    def curve(self) -> Doubles:
        """P(the first j guesses are all right), j = 0 … 63. Little-known positions follow the prior."""
        if self._curve is None:
            self._num_new = 0
            level = (self._right.sum() + _PRIOR_WEIGHT) / (self._tried @ self._prior + _PRIOR_WEIGHT)
            usual = np.clip(self._prior * level, 0.002, 0.998)
            rates = (self._right + _PRIOR_WEIGHT * usual) / (self._tried + _PRIOR_WEIGHT)
            curve: Doubles = np.ones(_MAX_POSITIONS + 1)
            np.cumprod(rates, out=curve[1:])
            self._curve = curve
        return self._curve
