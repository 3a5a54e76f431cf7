"""Runs a `MarketSpec`: several assets with factors, regimes, stochastic volatility, jumps and shocks, bar by bar.

Stories are built on it, and to get a market with a known truth, call `simulate`. The model, for asset i:
    r[t] = drift + sigma[t] z[t] + shocks,        z = sum_f b_f(regime) g_f + sqrt(1 - sum b_f^2) e
    log sigma[t] = level + response · log m(regime[t]) + sum_w h_w[t] + shape of the day + decaying multiples of shocks
    h_w[t+1] = phi_w h_w[t] + eta_w (-leverage · clip(z[t]) + sqrt(1 - leverage^2) xi)
g, e: Student t with jumps, unit variance. It is Taylor's log-normal stochastic volatility with the leverage of Harvey
and Shephard (1996) and several time scales; as h does not depend on past h through z, it is a linear filter.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi_train.simulation.market.spec import MARKET, JumpSpec, MarketSpec, SimulatedShock, check_shocks

Floats = NDArray[np.float64]

MAX_LEVERAGE_SIGMAS = (
    4.0  # a move beyond this raises volatility no further: otherwise one jump would set a year's level
)
MAX_LOG_SIGMA = 3.0
MAX_LOG_MOVE = 150.0


@dataclass(frozen=True, slots=True)
class MarketPath:
    """One run. T bars, N assets; `seed` gives it back bit for bit.

    log_returns [T, N] with shocks; sigma [T, N] is the true deviation of each bar's return as it stands before the
    bar, without the shocks that arrive at it; shocked_sigma [T, N] has their volatility multiples too and is what the
    bar's noise was scaled by; shock_returns [T, N] the part of the return that shocks made; regimes [T]; close [T, N].
    """

    spec: MarketSpec
    seed: int
    log_returns: Floats
    sigma: Floats
    shocked_sigma: Floats
    shock_returns: Floats
    regimes: NDArray[np.int8]
    close: Floats

    def ohlc(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Open, high, low, close, each [T, N]; low <= open, close <= high. The path inside a bar is a Brownian
        bridge, of which high and low are drawn from their exact marginal laws; the overnight gap comes before it."""
        rng = _generator(self.seed, 1)
        num_bars, num_assets = len(self.log_returns), len(self.spec.assets)
        _, share = day_shape(self.spec, num_bars)
        gap_noise = rng.standard_normal(self.log_returns.shape) * np.sqrt(share * (1.0 - share))
        gap = share * self.log_returns + gap_noise * self.shocked_sigma  # [T, N]
        inside = self.log_returns - gap
        variance = np.square(self.shocked_sigma) * (1.0 - share)
        up, down = -np.log1p(-rng.random((2, num_bars, num_assets)))
        high = 0.5 * (inside + np.sqrt(np.square(inside) + 2.0 * variance * up))
        low = 0.5 * (inside - np.sqrt(np.square(inside) + 2.0 * variance * down))
        opened = self.close * np.exp(-inside)
        highest = np.maximum(opened * np.exp(high), np.maximum(opened, self.close))
        lowest = np.minimum(opened * np.exp(low), np.minimum(opened, self.close))
        return opened, highest, lowest, self.close

    def volumes(self) -> Floats:
        """Units traded per bar [T, N]: they rise with volatility and with the size of the bar's own move, and
        keep a memory of their own of a few bars. (Mixture of distributions: Tauchen and Pitts, 1983.)"""
        rng = _generator(self.seed, 2)
        usual = np.array([asset.bar_volume for asset in self.spec.assets])
        level = np.array([asset.annual_vol for asset in self.spec.assets]) / np.sqrt(self.spec.bars_per_year)
        moved = np.minimum(np.abs(self.log_returns) / self.sigma, 12.0)
        response = np.array([asset.volume_response for asset in self.spec.assets])
        own = autoregress(0.3 * rng.standard_normal(self.sigma.shape), np.full(len(usual), 0.6))
        log_volume = 0.6 * np.log(self.shocked_sigma / level) + response * (np.log1p(moved) - 0.5) + own
        return usual * np.exp(log_volume)


def simulate(spec: MarketSpec, shocks: Sequence[SimulatedShock], num_bars: int, seed: int) -> MarketPath:
    """One path of the market. The noise depends on the seed alone, so a run without a shock is its counterfactual:
    before the shock's bar both are the same, and later they differ by the shock's return and volatility only.

    Raises InvalidInput for no bars, a shock that lies outside the path or names what is not there, or a market so wild
    that prices overflow.
    """
    if num_bars < 1:
        raise InvalidInput(f"a path of {num_bars} bars cannot be simulated; it needs at least one")
    check_shocks(spec, shocks, num_bars)
    rng = _generator(seed, 0)
    regimes = _regime_path(spec, rng, num_bars)
    loadings = spec.loadings()  # [4, N, F]
    noise = _noise(spec, rng, regimes, loadings)  # [T, N]
    log_vol = _log_volatility(spec, rng, regimes, noise)
    before, after, moves = _shock_effects(spec, shocks, regimes, loadings, num_bars)
    if (log_vol + after).max() > MAX_LOG_SIGMA:
        raise InvalidInput(
            "volatility explodes: one bar has a sigma beyond 2000%; lower annual_vol or the shocks"
        )
    sigma = np.exp(log_vol + before)
    shocked_sigma = np.exp(log_vol + after)
    shock_returns = _apply_shocks(moves, sigma)
    drift = np.array([asset.annual_drift for asset in spec.assets]) / spec.bars_per_year
    log_returns = drift + shocked_sigma * noise + shock_returns
    start = np.array([asset.start_price for asset in spec.assets])
    log_moves = np.cumsum(log_returns, axis=0)
    if np.abs(log_moves).max() > MAX_LOG_MOVE:
        raise InvalidInput("a price leaves what a number holds; lower annual_vol, the drift or the shocks")
    return MarketPath(
        spec, seed, log_returns, sigma, shocked_sigma, shock_returns, regimes, start * np.exp(log_moves)
    )


def _generator(seed: int, stream: int) -> np.random.Generator:
    if seed < 0:
        raise InvalidInput(f"the seed {seed} is negative")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, stream])))


def _regime_path(spec: MarketSpec, rng: np.random.Generator, num_bars: int) -> NDArray[np.int8]:
    upto = np.cumsum(np.asarray(spec.regimes.transitions), axis=1).tolist()
    chance = rng.random(num_bars + 1).tolist()
    long_run = np.cumsum(spec.regimes.long_run()).tolist()
    regime = _next_regime(long_run, chance[0])
    path = np.empty(num_bars, dtype=np.int8)
    for t in range(num_bars):
        regime = _next_regime(upto[regime], chance[t + 1])
        path[t] = regime
    return path


def _next_regime(upto: list[float], chance: float) -> int:
    return sum(chance >= bound for bound in upto[:3])


def _noise(spec: MarketSpec, rng: np.random.Generator, regimes: NDArray[np.int8], loadings: Floats) -> Floats:
    """Innovations [T, N] of unit variance in every regime, correlated through the factors."""
    num_bars, num_factors = len(regimes), spec.num_factors
    factor_jumps = [spec.market_jumps, *[spec.sector_jumps] * (num_factors - 1)]
    tails = np.full(num_factors, spec.factor_tail_index)
    skews = np.zeros(num_factors)
    skews[MARKET] = spec.market_skew
    factors = _innovations(spec, rng, regimes, tails, skews, factor_jumps)  # [T, F]
    own_tails = np.array([asset.tail_index for asset in spec.assets])
    own = _innovations(
        spec, rng, regimes, own_tails, np.zeros(len(own_tails)), [asset.jumps for asset in spec.assets]
    )  # [T, N]
    rest = np.sqrt(1.0 - np.square(loadings).sum(axis=2))  # [4, N]
    noise = rest[regimes] * own
    for regime in range(4):
        here = np.flatnonzero(regimes == regime)
        if len(here):
            noise[here] += factors[here] @ loadings[regime].T
    return noise.reshape(num_bars, len(spec.assets))


def _innovations(
    spec: MarketSpec,
    rng: np.random.Generator,
    regimes: NDArray[np.int8],
    tails: Floats,
    skews: Floats,
    jumps: Sequence[JumpSpec],
) -> Floats:
    """Skewed Student t plus compensated jumps, mean 0 and variance 1, [T, len(jumps)]."""
    shape = (len(regimes), len(jumps))
    smooth = rng.standard_t(tails, shape) * np.sqrt((tails - 2.0) / tails)
    if skews.any():
        # falls stretched, rises shrunk: the mean becomes -skew E|t|, the mean square 1 + skew^2
        mean_size = np.array([_mean_size(tail) for tail in tails.tolist()])
        stretched = smooth * np.where(smooth < 0.0, 1.0 + skews, 1.0 - skews)
        variance = 1.0 + np.square(skews) * (1.0 - np.square(mean_size))
        smooth = (stretched + skews * mean_size) / np.sqrt(variance)
    rate = np.array([jump.per_year for jump in jumps]) / spec.bars_per_year
    mean = np.array([jump.mean_sigmas for jump in jumps])
    spread = np.array([jump.deviation_sigmas for jump in jumps])
    second = np.square(mean) + np.square(spread)
    chance = np.minimum(np.asarray(spec.regimes.jump_rate)[:, None] * rate, 0.5)  # [4, n]
    # jumps hold at most half of the variance: many large ones are thinned until they do
    chance = np.minimum(chance, 0.5 / np.maximum(second, 1e-12))
    remaining = np.sqrt(1.0 - chance * second + np.square(chance * mean))
    happened = rng.random(shape) < chance[regimes]
    size = mean + spread * rng.standard_normal(shape)
    return remaining[regimes] * smooth + happened * size - (chance * mean)[regimes]


def _mean_size(tail_index: float) -> float:
    """E|t| of a Student t of unit variance."""
    log_beta = math.lgamma(0.5) + math.lgamma(tail_index / 2.0) - math.lgamma((tail_index + 1.0) / 2.0)
    return 2.0 * math.sqrt(tail_index - 2.0) / (tail_index - 1.0) * math.exp(-log_beta)


def _log_volatility(
    spec: MarketSpec, rng: np.random.Generator, regimes: NDArray[np.int8], noise: Floats
) -> Floats:
    """Log of sigma [T, N], such that the mean square of sigma over a long path is that of the asset's annual_vol."""
    num_bars, num_assets = len(noise), len(spec.assets)
    leverage = np.array([asset.leverage for asset in spec.assets])
    response = np.array([asset.regime_response for asset in spec.assets])
    felt = -leverage * np.clip(noise, -MAX_LEVERAGE_SIGMAS, MAX_LEVERAGE_SIGMAS)
    total = np.zeros((num_bars, num_assets))
    variance = 0.0
    for wave in spec.volatility_components:
        phi = float(0.5 ** (1.0 / wave.half_life_bars))
        eta = wave.deviation * np.sqrt(1.0 - phi * phi)
        common = rng.standard_normal((num_bars + 1, 1))
        own = rng.standard_normal((num_bars + 1, num_assets))
        free = np.sqrt(wave.common_share) * common + np.sqrt(1.0 - wave.common_share) * own
        push = np.empty((num_bars, num_assets))
        push[0] = wave.deviation * free[0]  # the start is drawn from the long run
        push[1:] = eta * (felt[:-1] + np.sqrt(1.0 - np.square(leverage)) * free[1:num_bars])
        total += autoregress(push, np.full(num_assets, phi))
        variance += wave.deviation**2
    multiples = np.log(np.maximum(np.asarray(spec.regimes.volatility), 1e-3))[:, None] * response  # [4, N]
    mean_square = spec.regimes.long_run() @ np.exp(2.0 * multiples)
    annual = np.array([asset.annual_vol for asset in spec.assets])
    level = np.log(annual) - 0.5 * np.log(spec.bars_per_year) - variance - 0.5 * np.log(mean_square)
    return level + multiples[regimes] + total + np.log(day_shape(spec, num_bars)[0])


def day_shape(spec: MarketSpec, num_bars: int) -> tuple[Floats, Floats]:
    """Multiple of sigma by the time of day [T, N], of mean square 1, and the share of each bar's variance that comes
    overnight [T, N]. The night belongs to a day's first bar; a daily bar is its day's first."""
    clock = (np.arange(spec.bars_per_day) + 0.5) / spec.bars_per_day
    inside = np.square(u_shape(clock, spec.day_shape))[:, None]
    night = np.array([asset.overnight_share for asset in spec.assets])
    gap = np.zeros((spec.bars_per_day, len(night)))
    gap[0] = night * spec.bars_per_day
    variance = gap + inside * (1.0 - night)
    day = np.arange(num_bars) % spec.bars_per_day
    return np.sqrt(variance)[day], (gap / variance)[day]


def u_shape(clock: Floats, depth: float) -> Floats:
    """Multiple of sigma at each time of the session (0 opens, 1 closes), its mean square 1 over the times given."""
    curve = np.maximum(1.0 + depth * (np.square((clock - 0.55) / 0.5) * 2.0 - 0.7), 0.1)
    return curve / np.sqrt(np.mean(np.square(curve)))


def autoregress(push: Floats, phi: Floats) -> Floats:
    """y[t] = phi y[t-1] + push[t], along the first axis, one phi per column."""
    out = np.empty_like(push)
    state = np.zeros(push.shape[1])
    for t in range(len(push)):
        np.multiply(state, phi, out=out[t])
        out[t] += push[t]
        state = out[t]
    return out


def _shock_effects(
    spec: MarketSpec,
    shocks: Sequence[SimulatedShock],
    regimes: NDArray[np.int8],
    loadings: Floats,
    num_bars: int,
) -> tuple[Floats, Floats, list[tuple[SimulatedShock, Floats]]]:
    """Log multiples of sigma [T, N] without and with the shocks that arrive at the bar, and each shock's reach [N]."""
    num_assets = len(spec.assets)
    before, after = np.zeros((num_bars, num_assets)), np.zeros((num_bars, num_assets))
    moves: list[tuple[SimulatedShock, Floats]] = []
    for shock in shocks:
        if shock.asset is not None:
            reach = np.zeros(num_assets)
            reach[shock.asset] = 1.0
        else:
            reach = loadings[regimes[shock.bar], :, shock.factor]
        moves.append((shock, reach))
        if shock.volatility == 1.0:
            continue
        # a factor's variance rises by the square of the multiple, and an asset has its loading squared of it
        multiple = 0.5 * np.log1p(np.square(reach) * (shock.volatility**2 - 1.0))
        fading = 0.5 ** (np.arange(num_bars - shock.bar) / shock.half_life_bars)
        after[shock.bar :] += fading[:, None] * multiple
        before[shock.bar + 1 :] += fading[1:, None] * multiple
    return before, after, moves


def _apply_shocks(moves: list[tuple[SimulatedShock, Floats]], sigma: Floats) -> Floats:
    returns = np.zeros_like(sigma)
    for shock, reach in moves:
        whole = shock.size_sigmas * reach * sigma[shock.bar]
        for k, share in enumerate(shock.shares[: len(sigma) - shock.bar]):
            returns[shock.bar + k] += share * whole
    return returns
