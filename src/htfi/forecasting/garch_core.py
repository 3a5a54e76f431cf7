"""Fits GARCH(1,1), with or without leverage, and Student-t errors to one series; garch_fitting drives it.

σ²_t = ω + (α + γ·1{r<0}) r²_{t−1} + β σ²_{t−1}; r_t = σ_t·z_t, z a Student-t of unit variance with ν degrees of
freedom. The fit is by Fisher scoring: the gradient is exact, the information that of a Student-t given the path of
σ², so that a step costs one pass over the returns and about ten suffice. Compiled where a compiler is at hand
(garch_core.pxd); either way each operation is one that IEEE 754 rounds exactly, in one order: the same bits anywhere.
"""

from array import array
from collections.abc import MutableSequence, Sequence

COMPILED = not __file__.endswith(".py")

# What is climbed, x: ω, the persistence α + γ/2 + β, the share of it that is news (α + γ/2), the share of news that
# falls bring (½ without leverage), and 1/ν. So every constraint is a bound.
_OMEGA, _PERSISTENCE, _NEWS, _FALLS, _TAIL = range(5)
_NUM = 5

_LOWEST = array("d", [1e-7, 0.02, 0.0, 0.0, 1.0 / 60.0])
_HIGHEST = array("d", [10.0, 0.9999, 1.0, 1.0, 1.0 / 2.1])

_BACKCAST_BARS = 75
_BACKCAST_DECAY = 0.94
_SMALLEST = 1e-8
_LN2 = 0.6931471805599453
_HALF_LN_PI = 0.5723649429247001
_LARGE, _TINY, _LN_LARGE = 2.0**400, 2.0**-400, 277.2588722239781
_DAMPING, _LEAST_DAMPING, _MOST_DAMPING = 1e-3, 1e-9, 1e6


class Fit:
    """One series' likelihood, and the way up it.

    `returns` have a mean square of 1. The Gaussian prior on x has `center` and `precision` [5], zeros for none; that of
    ω is on ω − center·(1 − persistence), so that a center of 1 draws the long-run variance to the mean square. After
    `climb`: `x`, `loglik` there (of these returns, prior left out) and `variance`, that of the next bar.
    """

    def __init__(
        self,
        returns: Sequence[float],
        has_leverage: bool,
        center: Sequence[float],
        precision: Sequence[float],
    ) -> None:
        self.returns = returns
        self.num = len(returns)
        self.has_leverage = has_leverage
        self.center = center
        self.precision = precision
        self.num_passes = 0
        self.x = array("d", bytes(8 * _NUM))
        self.loglik = 0.0
        self.height = 0.0
        self.variance = 0.0
        self.gradient = array("d", bytes(8 * _NUM))
        self.information = array("d", bytes(8 * _NUM * _NUM))
        self.trial = array("d", bytes(8 * _NUM))
        self.trial_loglik = 0.0
        self.trial_variance = 0.0
        self.trial_gradient = array("d", bytes(8 * _NUM))
        self.trial_information = array("d", bytes(8 * _NUM * _NUM))
        self.slopes = array("d", bytes(8 * _NUM))
        self.products = array("d", bytes(8 * _NUM * _NUM))
        self.jacobian = array("d", bytes(8 * _NUM * _NUM))
        self.system = array("d", bytes(8 * _NUM * (_NUM + 1)))
        self.backcast = 1.0
        self._look_back()

    def _look_back(self) -> None:
        """The variance before the first bar: the mean of the first squares, fading."""
        weight = 1.0
        total = 0.0
        weights = 0.0
        for t in range(min(_BACKCAST_BARS, self.num)):
            total += weight * self.returns[t] * self.returns[t]
            weights += weight
            weight *= _BACKCAST_DECAY
        self.backcast = max(total / weights, _SMALLEST)

    def start(self, x: Sequence[float]) -> bool:
        """Begin at x, or stay where that is better. Whether x was taken."""
        for j in range(_NUM):
            self.trial[j] = min(max(x[j], _LOWEST[j]), _HIGHEST[j])
        if not self.has_leverage:
            self.trial[_FALLS] = 0.5
        return self._advance()

    def climb(self, most_passes: int, tolerance: float) -> None:
        """Climb from the best start until a step promises less than `tolerance` of log-likelihood."""
        damping = _DAMPING
        while self.num_passes < most_passes and damping < _MOST_DAMPING:
            if self._propose(damping) < tolerance:
                return
            damping = max(0.1 * damping, _LEAST_DAMPING) if self._advance() else 10.0 * damping

    def _advance(self) -> bool:
        """Look at `trial`, and go there if it is higher."""
        self._pass()
        self.num_passes += 1
        height = self.trial_loglik
        for j in range(_NUM):
            usual = self.center[j]
            if j == _OMEGA:
                usual *= 1.0 - self.trial[_PERSISTENCE]
            away = self.trial[j] - usual
            pull = self.precision[j] * away
            height -= 0.5 * pull * away
            self.trial_gradient[j] -= pull
            self.trial_information[j * _NUM + j] += self.precision[j]
            if j == _OMEGA:  # usual falls as the persistence rises
                also = self.precision[j] * self.center[j]
                self.trial_gradient[_PERSISTENCE] -= also * away
                self.trial_information[_PERSISTENCE * _NUM + _PERSISTENCE] += also * self.center[j]
                self.trial_information[_OMEGA * _NUM + _PERSISTENCE] += also
                self.trial_information[_PERSISTENCE * _NUM + _OMEGA] += also
        if self.num_passes > 1 and not height > self.height:
            return False
        self.height = height
        self.loglik = self.trial_loglik
        self.variance = self.trial_variance
        for j in range(_NUM):
            self.x[j] = self.trial[j]
            self.gradient[j] = self.trial_gradient[j]
        for j in range(_NUM * _NUM):
            self.information[j] = self.trial_information[j]
        return True

    def _propose(self, damping: float) -> float:
        """Set `trial` a damped step ahead, within the bounds; the gain that the gradient promises."""
        width = _NUM + 1
        system = self.system
        for j in range(_NUM):
            slope = self.gradient[j]
            is_held = (self.x[j] <= _LOWEST[j] and slope <= 0.0) or (
                self.x[j] >= _HIGHEST[j] and slope >= 0.0
            )
            if is_held or (j == _FALLS and not self.has_leverage):
                for i in range(width):
                    system[j * width + i] = 0.0
                system[j * width + j] = 1.0
                continue
            for i in range(_NUM):
                system[j * width + i] = self.information[j * _NUM + i]
            system[j * width + j] += damping * (self.information[j * _NUM + j] + 1.0)
            system[j * width + _NUM] = slope
        _solve(system)
        promised = 0.0
        for j in range(_NUM):
            self.trial[j] = min(max(self.x[j] + system[j * width + _NUM], _LOWEST[j]), _HIGHEST[j])
            promised += self.gradient[j] * (self.trial[j] - self.x[j])
        return promised

    def _pass(self) -> None:
        """Log-likelihood, gradient and information at `trial`, and the variance of the bar to come."""
        x = self.trial
        news = x[_PERSISTENCE] * x[_NEWS]
        omega = x[_OMEGA]
        rise = 2.0 * news * (1.0 - x[_FALLS])
        fall = 2.0 * news * x[_FALLS]
        beta = x[_PERSISTENCE] - news
        nu = 1.0 / x[_TAIL]
        spare = nu - 2.0
        back = self.backcast
        # σ² and its derivatives by ω, the weight of rises, that of falls, and β
        var = omega + (news + beta) * back
        d_omega = 1.0
        d_rise = d_fall = 0.5 * back
        d_beta = back
        g_omega = g_rise = g_fall = g_beta = 0.0  # sums of the score by each
        m_omega = m_rise = m_fall = m_beta = 0.0  # of the derivatives of ln σ²
        oo = orr = of = ob = rr = rf = rb = ff = fb = bb = 0.0  # of their products
        # logs of products: one logarithm for hundreds of bars
        scales = tails = 1.0
        log_scales = log_tails = shares = 0.0
        for t in range(self.num):
            move = self.returns[t]
            square = move * move
            inverse = 1.0 / var
            mass = spare * var + square
            share = square / mass
            slope = 0.5 * ((nu + 1.0) * share - 1.0)
            shares += share
            scales *= var
            if scales > _LARGE:
                scales *= _TINY
                log_scales += _LN_LARGE
            elif scales < _TINY:
                scales *= _LARGE
                log_scales -= _LN_LARGE
            tails *= mass * inverse
            if tails > _LARGE:
                tails *= _TINY
                log_tails += _LN_LARGE
            elif tails < _TINY:
                tails *= _LARGE
                log_tails -= _LN_LARGE
            by_omega = d_omega * inverse
            by_rise = d_rise * inverse
            by_fall = d_fall * inverse
            by_beta = d_beta * inverse
            g_omega += slope * by_omega
            g_rise += slope * by_rise
            g_fall += slope * by_fall
            g_beta += slope * by_beta
            m_omega += by_omega
            m_rise += by_rise
            m_fall += by_fall
            m_beta += by_beta
            oo += by_omega * by_omega
            orr += by_omega * by_rise
            of += by_omega * by_fall
            ob += by_omega * by_beta
            rr += by_rise * by_rise
            rf += by_rise * by_fall
            rb += by_rise * by_beta
            ff += by_fall * by_fall
            fb += by_fall * by_beta
            bb += by_beta * by_beta
            d_omega = 1.0 + beta * d_omega
            d_rise = beta * d_rise
            d_fall = beta * d_fall
            d_beta = var + beta * d_beta
            if move < 0.0:
                d_fall += square
                var = omega + fall * square + beta * var
            else:
                d_rise += square
                var = omega + rise * square + beta * var
        self.trial_variance = var
        log_scales += _log(scales)
        log_tails += _log(tails) - self.num * _log(spare)
        slopes = self.slopes
        slopes[0] = g_omega
        slopes[1] = g_rise
        slopes[2] = g_fall
        slopes[3] = g_beta
        products = self.products
        products[0] = oo
        products[1] = products[5] = orr
        products[2] = products[10] = of
        products[3] = products[15] = ob
        products[6] = rr
        products[7] = products[11] = rf
        products[8] = products[16] = rb
        products[12] = ff
        products[13] = products[17] = fb
        products[18] = bb
        products[4] = products[20] = m_omega
        products[9] = products[21] = m_rise
        products[14] = products[22] = m_fall
        products[19] = products[23] = m_beta
        self._add_tails(nu, log_scales, log_tails, shares)
        self._to_climbed()

    def _add_tails(self, nu: float, log_scales: float, log_tails: float, shares: float) -> None:
        """What depends on ν alone: the likelihood's constant, its slope, and the information on ν and ln σ².

        That of a Student-t by the logarithm of its own squared scale τ² and ν is known (Lange, Little and Taylor
        1989): ν/(2(ν+3)), −1/((ν+1)(ν+3)) and a trigamma; here τ² = σ²(ν−2)/ν.
        """
        spare = nu - 2.0
        x = 0.5 * nu
        y = x + 0.5
        # Γ, ψ and ψ′ at y less those at x, both moved up to where Stirling's series serve
        ratio = 1.0
        digamma = 0.0
        trigamma = 0.0
        while x < 8.0:
            ratio *= x / y
            digamma += 1.0 / x - 1.0 / y
            trigamma += 1.0 / (y * y) - 1.0 / (x * x)
            x += 1.0
            y += 1.0
        log_x = _log(x)
        log_y = _log(y)
        log_gamma = _log(ratio) + (y - 0.5) * log_y - (x - 0.5) * log_x - 0.5 + _stirling(y) - _stirling(x)
        digamma += log_y - log_x + _digamma_rest(y) - _digamma_rest(x)
        trigamma += _trigamma(y) - _trigamma(x)
        self.trial_loglik = (
            self.num * (log_gamma - _HALF_LN_PI - 0.5 * _log(spare))
            - 0.5 * log_scales
            - 0.5 * (nu + 1.0) * log_tails
        )
        by_nu = 0.5 * (digamma - 1.0 / spare)
        self.slopes[4] = self.num * by_nu - 0.5 * log_tails + 0.5 * (nu + 1.0) / spare * shares
        by_scale = 0.5 * nu / (nu + 3.0)
        both = -1.0 / ((nu + 1.0) * (nu + 3.0))
        tail = 0.25 * (-trigamma - 2.0 * (nu + 5.0) / (nu * (nu + 1.0) * (nu + 3.0)))
        moved = 2.0 / (nu * spare)
        products = self.products
        for i in range(4):
            for j in range(4):
                products[i * _NUM + j] *= by_scale
            products[i * _NUM + 4] *= by_scale * moved + both
            products[4 * _NUM + i] = products[i * _NUM + 4]
        products[24] = self.num * (by_scale * moved * moved + 2.0 * both * moved + tail)

    def _to_climbed(self) -> None:
        """From derivatives by (ω, rise, fall, β, ν) to those by what is climbed."""
        x = self.trial
        persistence = x[_PERSISTENCE]
        news = x[_NEWS]
        falls = x[_FALLS]
        jacobian = self.jacobian  # [5, 5], a row for each of ω, rise, fall, β, ν
        jacobian[0 * _NUM + _OMEGA] = 1.0
        jacobian[1 * _NUM + _PERSISTENCE] = 2.0 * news * (1.0 - falls)
        jacobian[1 * _NUM + _NEWS] = 2.0 * persistence * (1.0 - falls)
        jacobian[1 * _NUM + _FALLS] = -2.0 * persistence * news
        jacobian[2 * _NUM + _PERSISTENCE] = 2.0 * news * falls
        jacobian[2 * _NUM + _NEWS] = 2.0 * persistence * falls
        jacobian[2 * _NUM + _FALLS] = 2.0 * persistence * news
        jacobian[3 * _NUM + _PERSISTENCE] = 1.0 - news
        jacobian[3 * _NUM + _NEWS] = -persistence
        jacobian[4 * _NUM + _TAIL] = -1.0 / (x[_TAIL] * x[_TAIL])
        for j in range(_NUM):
            total = 0.0
            for a in range(_NUM):
                total += jacobian[a * _NUM + j] * self.slopes[a]
            self.trial_gradient[j] = total
            for i in range(j + 1):
                total = 0.0
                for a in range(_NUM):
                    for b in range(_NUM):
                        total += jacobian[a * _NUM + j] * self.products[a * _NUM + b] * jacobian[b * _NUM + i]
                self.trial_information[j * _NUM + i] = total
                self.trial_information[i * _NUM + j] = total


def _solve(system: MutableSequence[float]) -> None:
    """Gauss-Jordan elimination of [5, 6], positive definite; the last column becomes the answer."""
    width = _NUM + 1
    for i in range(_NUM):
        pivot = system[i * width + i]
        for j in range(width):
            system[i * width + j] /= pivot
        for k in range(_NUM):
            if k != i:
                factor = system[k * width + i]
                for j in range(width):
                    system[k * width + j] -= factor * system[i * width + j]


def _log(x: float) -> float:
    """ln x for 2^±500, within 1e-15 or an ulp: as domain.exact, without frexp."""
    power = 0.0
    while x >= 4294967296.0:
        x *= 2.3283064365386963e-10
        power += 32.0
    while x < 2.3283064365386963e-10:
        x *= 4294967296.0
        power -= 32.0
    while x >= 1.4142135623730951:
        x *= 0.5
        power += 1.0
    while x < 0.7071067811865476:
        x *= 2.0
        power -= 1.0
    f = (x - 1.0) / (x + 1.0)
    square = f * f
    series = 0.0
    for k in range(10, -1, -1):
        series = series * square + 1.0 / (2.0 * k + 1.0)
    return power * _LN2 + 2.0 * f * series


def _stirling(x: float) -> float:
    """ln Γ(x) − (x − ½) ln x + x − ½ ln 2π, x ≥ 8, within 1e-12."""
    inverse = 1.0 / x
    square = inverse * inverse
    return inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0)))


def _digamma_rest(x: float) -> float:
    """ψ(x) − ln x."""
    inverse = 1.0 / x
    square = inverse * inverse
    return -0.5 * inverse - square * (
        1.0 / 12.0 - square * (1.0 / 120.0 - square * (1.0 / 252.0 - square / 240.0))
    )


def _trigamma(x: float) -> float:
    inverse = 1.0 / x
    square = inverse * inverse
    return inverse * (
        1.0
        + 0.5 * inverse
        + square * (1.0 / 6.0 - square * (1.0 / 30.0 - square * (1.0 / 42.0 - square / 30.0)))
    )
