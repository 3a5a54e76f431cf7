"""Judges the regime of one stream of returns. samples asks it for ticks, series for bars.

Two exponentially weighted variances, fast and slow, are compared: score = sqrt(fast / slow). A regime is entered at
its threshold and left only when the score has been past a nearer one for a few returns: hysteresis.
"""

import math

from htfi.domain.decision import Regime

LEVELS = (Regime.CALM, Regime.NORMAL, Regime.STRESSED, Regime.SHOCK)
CALM, NORMAL, STRESSED, SHOCK = range(4)

CALM_BELOW = 0.65
CALM_UNTIL = 0.80
STRESSED_FROM = 1.50
STRESSED_UNTIL = 1.25
SHOCK_FROM = 2.30
SHOCK_UNTIL = 1.80
SHOCK_SIGMAS = 5.0  # one return this many fast sigmas out is a shock, if it also passes
SHOCK_SLOW_SIGMAS = 4.0  # this many slow ones, so that a tick after silence is none
MAX_SIGMAS = (
    8.0  # a return counts for no more than this in either variance: one wild print cannot rule the scale
)
PATIENCE = 3  # returns that must agree before a regime is left for a quieter one
MIN_RETURNS = 20  # before this many, the regime is normal: there is nothing to compare with


class Detector:
    """The regime so far: `level` indexes LEVELS; `score` is sqrt(fast variance / slow variance).

    Half-lives are counted in returns. While fewer were seen than a half-life spans, its variance is the plain mean.
    """

    def __init__(self, fast_half_life: float, slow_half_life: float) -> None:
        self.fast_weight = 1.0 - 0.5 ** (1.0 / fast_half_life)
        self.slow_weight = 1.0 - 0.5 ** (1.0 / slow_half_life)
        self.fast: float = 0.0
        self.slow: float = 0.0
        self.num_returns = 0
        self.level = NORMAL
        self.num_quieter = 0
        self.score = 1.0
        self.sigmas = 0.0

    def update(self, variance: float, move: float) -> None:
        """Take one return in: `variance` is its estimate of variance (r² or better), `move` its log return."""
        before = self.fast
        self.sigmas = abs(move) / math.sqrt(before) if before > 0.0 else 0.0
        is_outlier = (
            self.num_returns >= MIN_RETURNS
            and self.sigmas >= SHOCK_SIGMAS
            and move * move >= SHOCK_SLOW_SIGMAS * SHOCK_SLOW_SIGMAS * self.slow
        )
        if self.num_returns >= MIN_RETURNS and self.slow > 0.0:
            variance = min(variance, MAX_SIGMAS * MAX_SIGMAS * max(self.fast, self.slow))
        self.num_returns += 1
        mean_weight = 1.0 / self.num_returns
        self.fast += max(self.fast_weight, mean_weight) * (variance - self.fast)
        self.slow += max(self.slow_weight, mean_weight) * (variance - self.slow)
        self.score = math.sqrt(self.fast / self.slow) if self.slow > 0.0 else 1.0
        if self.num_returns >= MIN_RETURNS:
            self._update_level(SHOCK if is_outlier else target(self.score, self.level))

    def _update_level(self, wanted: int) -> None:
        if wanted >= self.level:
            self.level = wanted
            self.num_quieter = 0
            return
        self.num_quieter += 1
        if self.num_quieter >= PATIENCE:
            self.level -= 1  # one step at a time: a shock passes through stressed
            self.num_quieter = 0

    def regime(self) -> Regime:
        return LEVELS[self.level]

    def ratio(self) -> float:
        return self.score

    def last_sigmas(self) -> float:
        """The last move in fast sigmas known before it."""
        return self.sigmas

    def count(self) -> int:
        return self.num_returns

    def state(self) -> list[float]:
        return [self.fast, self.slow, self.score, self.sigmas, self.num_returns, self.level, self.num_quieter]

    def restore(self, state: list[float]) -> None:
        self.fast, self.slow, self.score, self.sigmas = state[:4]
        self.num_returns, self.level, self.num_quieter = int(state[4]), int(state[5]), int(state[6])


def target(score: float, level: int) -> int:
    """The level that `score` calls for, held at `level` within its margin."""
    if score >= SHOCK_FROM or (level == SHOCK and score >= SHOCK_UNTIL):
        return SHOCK
    if score >= STRESSED_FROM or (level >= STRESSED and score >= STRESSED_UNTIL):
        return STRESSED
    if score < CALM_BELOW or (level == CALM and score < CALM_UNTIL):
        return CALM
    return NORMAL
