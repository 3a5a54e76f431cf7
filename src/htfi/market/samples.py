"""Samples one symbol's price on calendar grids and keeps realised measures of the last returns. kernel drives it.

At each scale the price is taken at every multiple of the step (previous tick: the last price before the grid point).
Of the last `window` returns it keeps RV = Σr², BV = π/2 · n/(n−1) · Σ|r_i||r_i−1|, and tripower quarticity for the
jump test. Returns sit in a ring; the sums are recomputed whenever it wraps, so that rounding never builds up.
"""

import math
from array import array
from collections.abc import Sequence

from htfi.market.regime import Detector

FAST_RETURNS = 30.0  # half-lives of the tick regime, in returns at the base scale
SLOW_RETURNS = 2000.0
MIN_JUMP_RETURNS = 20  # the test is asymptotic: below this it says nothing
MIN_BIPOWER = 1e-6  # of RV: less is rounding

_FOUR_THIRDS = 4.0 / 3.0
_BV_SCALE = math.pi / 2.0  # μ₁⁻² with μ₁ = E|Z|
_TP_SCALE = 1.0 / (2.0 ** (2.0 / 3.0) * math.gamma(7.0 / 6.0) / math.gamma(0.5)) ** 3  # μ_{4/3}⁻³
_JUMP_SCALE = math.pi**2 / 4.0 + math.pi - 5.0


class Samples:
    """The sampled price of one symbol at several scales. Sizes: one entry per scale; rings [scale, window]."""

    def __init__(self, steps_ns: Sequence[int], base: int, window: int) -> None:
        count = len(steps_ns)
        self.num_scales = count
        self.base = base
        self.window = window
        self.step_ns = array("q", steps_ns)
        self.grid_ns = array("q", bytes(8 * count))  # the next grid point
        self.last_log = array("d", bytes(8 * count))
        self.is_primed = array("q", bytes(8 * count))  # whether last_log holds a price of this session
        self.num = array("q", bytes(8 * count))
        self.place = array("q", bytes(8 * count))
        self.rv = array("d", bytes(8 * count))
        self.bv = array("d", bytes(8 * count))
        self.tp = array("d", bytes(8 * count))
        self.size = array("d", bytes(8 * count * window))  # |r|
        self.root = array("d", bytes(8 * count * window))  # |r|^(4/3)
        self.due_ns = 0  # the earliest grid point of all scales
        self.detector = Detector(FAST_RETURNS, SLOW_RETURNS)

    def begin(self, now_ns: int) -> None:
        """Forget the last price, not the returns: the next return starts from a price at or after `now_ns`."""
        for scale in range(self.num_scales):
            step = self.step_ns[scale]
            self.grid_ns[scale] = (now_ns // step + 1) * step
            self.is_primed[scale] = 0
        self._find_due()

    def catch_up(self, now_ns: int, price: float) -> None:
        """Take every grid point up to and including `now_ns`, at `price`, the last one before it."""
        log_price = math.log(price)
        for scale in range(self.num_scales):
            grid = self.grid_ns[scale]
            if grid > now_ns:
                continue
            step = self.step_ns[scale]
            num_passed = (now_ns - grid) // step + 1
            self.grid_ns[scale] = grid + num_passed * step
            if self.is_primed[scale]:
                move = log_price - self.last_log[scale]
                self._push(scale, move)
                if scale == self.base:
                    self.detector.update(move * move, move)
            num_still = num_passed - 1
            if num_still > self.window:
                num_still = self.window  # more would push only zeros out
            for _ in range(num_still):
                self._push(scale, 0.0)
            self.last_log[scale] = log_price
            self.is_primed[scale] = 1
        self._find_due()

    def _find_due(self) -> None:
        due = self.grid_ns[0]
        for scale in range(1, self.num_scales):
            if self.grid_ns[scale] < due:
                due = self.grid_ns[scale]
        self.due_ns = due

    def _push(self, scale: int, move: float) -> None:
        window = self.window
        start = scale * window
        place = self.place[scale]
        count = self.num[scale]
        if count == window:
            first = start + place
            second = start + (place + 1) % window
            third = start + (place + 2) % window
            self.rv[scale] -= self.size[first] * self.size[first]
            self.bv[scale] -= self.size[first] * self.size[second]
            self.tp[scale] -= self.root[first] * self.root[second] * self.root[third]
            count -= 1
        size = abs(move)
        root = math.pow(size, _FOUR_THIRDS) if size > 0.0 else 0.0
        self.rv[scale] += size * size
        if count >= 1:
            before = start + (place + window - 1) % window
            self.bv[scale] += size * self.size[before]
            if count >= 2:
                second = start + (place + window - 2) % window
                self.tp[scale] += root * self.root[before] * self.root[second]
        self.size[start + place] = size
        self.root[start + place] = root
        self.num[scale] = count + 1
        if place + 1 < window:
            self.place[scale] = place + 1
        else:
            self.place[scale] = 0
            self._recompute(scale)

    def _recompute(self, scale: int) -> None:
        """Sums of a full ring that starts at place 0."""
        start = scale * self.window
        rv = self.size[start] * self.size[start] + self.size[start + 1] * self.size[start + 1]
        bv = self.size[start] * self.size[start + 1]
        tp = 0.0
        for at in range(start + 2, start + self.window):
            rv += self.size[at] * self.size[at]
            bv += self.size[at] * self.size[at - 1]
            tp += self.root[at] * self.root[at - 1] * self.root[at - 2]
        self.rv[scale] = rv
        self.bv[scale] = bv
        self.tp[scale] = tp

    def count(self, scale: int) -> int:
        """Returns in the window."""
        return self.num[scale]

    def realised(self, scale: int) -> float:
        """RV over the window: a variance of log returns, not per unit of time."""
        return max(self.rv[scale], 0.0)

    def bipower(self, scale: int) -> float:
        """BV over the window; needs two returns."""
        count = self.num[scale]
        return max(_BV_SCALE * count / (count - 1.0) * self.bv[scale], 0.0)

    def has_jump_test(self) -> bool:
        """Whether the price moved often enough to be tested: some moves must follow one another."""
        rv = self.realised(self.base)
        return (
            self.num[self.base] >= MIN_JUMP_RETURNS
            and rv > 0.0
            and self.bipower(self.base) > MIN_BIPOWER * rv
        )

    def jump_z(self) -> float:
        """The ratio statistic of Barndorff-Nielsen and Shephard, by Huang and Tauchen (2005), at the base scale.

        About standard normal where there are no jumps, large where there are.
        """
        count = self.num[self.base]
        rv, bv = self.realised(self.base), self.bipower(self.base)
        tp = max(_TP_SCALE * count * count / (count - 2.0) * self.tp[self.base], 0.0)
        return (1.0 - bv / rv) / math.sqrt(_JUMP_SCALE / count * max(1.0, tp / (bv * bv)))

    def state(self, rings: "array[float]") -> list[float]:
        """Scalars; the returns are appended to `rings` [scale × window]."""
        rings.extend(self.size)
        scalars: list[float] = [self.due_ns]
        for scale in range(self.num_scales):
            scalars += [self.grid_ns[scale], self.is_primed[scale], self.num[scale], self.place[scale]]
            scalars += [self.last_log[scale], self.rv[scale], self.bv[scale], self.tp[scale]]
        return scalars + self.detector.state()

    def restore(self, scalars: list[float], rings: "array[float]") -> None:
        self.due_ns = int(scalars[0])
        for scale in range(self.num_scales):
            at = 1 + 8 * scale
            self.grid_ns[scale], self.is_primed[scale] = int(scalars[at]), int(scalars[at + 1])
            self.num[scale], self.place[scale] = int(scalars[at + 2]), int(scalars[at + 3])
            self.last_log[scale], self.rv[scale] = scalars[at + 4], scalars[at + 5]
            self.bv[scale], self.tp[scale] = scalars[at + 6], scalars[at + 7]
        for at in range(self.num_scales * self.window):
            size = rings[at]
            self.size[at] = size
            self.root[at] = math.pow(size, _FOUR_THIRDS) if size > 0.0 else 0.0
        self.detector.restore(scalars[1 + 8 * self.num_scales :])
