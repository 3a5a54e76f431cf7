"""A simulated world: its assets, what happens in it and when, and the prices that follow. `stories` runs it.

Prices come from the simulated market; events are laid over them bar by bar, because what an event still does depends
on what prices have shown before it.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from htfi.simulation.companies import Asset, draw_assets
from htfi.simulation.dice import Dice
from htfi.simulation.events import Event, Standing
from htfi.simulation.market.process import simulate
from htfi.simulation.market.spec import MarketSpec
from htfi.simulation.plots import Plan, Plot, draw_plot
from htfi.simulation.rationale import Situation, rationale

DECAY = 0.94
FIRST_BAR = 64
HORIZON = 24
JUMP_SIGMAS = 3.1  # a move that a reader sees as an answer to news
FRESH_WINDOW = 4

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one beat means for one asset: what is to be expected, what came, and why. Effects in sigmas, signed."""

    expected: float
    realised: float
    confidence: float
    consistency: str
    cause: str
    rationale: str
    volatility_multiplier: float
    situation: Situation
    standing: Standing
    relevant: bool

    @property
    def likeliest(self) -> int:
        return (self.expected > 0) - (self.expected < 0)

    @property
    def direction(self) -> int:
        return (self.realised > 0) - (self.realised < 0)


@dataclass(slots=True)
class Beat:
    """One moment of a world: the plot, who is asked about, and what it meant for each."""

    bar: int
    plot: Plot
    asked: tuple[int, ...]
    outcomes: dict[int, Outcome] = field(default_factory=dict[int, Outcome])

    @property
    def event(self) -> Event | None:
        return self.plot.event


@dataclass(frozen=True, slots=True)
class World:
    """`scaled` [T, N] are returns in units of the EWMA volatility before each."""

    number: int
    assets: tuple[Asset, ...]
    by_symbol: dict[str, Asset]
    beats: tuple[Beat, ...]
    scaled: Floats
    bar_ns: int
    first_ns: int
    dice: Dice


_NS = 1_000_000_000
_BARS_NS = (300 * _NS, 1800 * _NS, 3600 * _NS, 86400 * _NS, 86400 * _NS)
_FIRST_NS = 1_104_537_600 * _NS  # 2005
_YEARS_NS = 20 * 365 * 86400 * _NS


def run_world(seed: int, number: int) -> World:
    """The world of this number: about 80 beats' worth of questions over some 600 bars."""
    dice = Dice(seed, number)
    assets = draw_assets(dice, 4 + dice.below(5), 2 + dice.below(4))
    num_bars = 420 + dice.below(300)
    base = _base_returns(dice, len(assets), num_bars)
    beats: list[Beat] = []
    bar = FIRST_BAR + dice.below(8)
    while bar + HORIZON + 1 < num_bars:
        beats.append(_beat(dice, assets, bar))
        bar += HORIZON + 6 + dice.below(10)
    scaled = _run(dice, assets, beats, base)
    return World(
        number, assets, {asset.symbol: asset for asset in assets}, tuple(beats), scaled,
        dice.pick(_BARS_NS), _FIRST_NS + dice.below(_YEARS_NS // (3600 * _NS)) * 3600 * _NS, dice,
    )  # fmt: skip


def _base_returns(dice: Dice, num_assets: int, num_bars: int) -> Floats:
    rng = np.random.Generator(np.random.PCG64(dice.below(2**52)))
    spec = MarketSpec.random(rng, num_assets=num_assets, intraday=dice.chance(0.15))
    return simulate(spec, (), num_bars, dice.below(2**52)).log_returns


def _beat(dice: Dice, assets: tuple[Asset, ...], bar: int) -> Beat:
    plot = draw_plot(dice, assets)
    touched: list[int] = []
    others: list[int] = []
    for place, asset in enumerate(assets):
        (touched if plot.event is not None and plot.event.concerns(asset) else others).append(place)
    asked = dice.sample(touched, 3)
    if others and (not asked or dice.chance(0.27)):
        asked.append(dice.pick(others))
    return Beat(bar, plot, tuple(asked))


def _run(dice: Dice, assets: tuple[Asset, ...], beats: list[Beat], base: Floats) -> Floats:
    """Lays the beats over the base returns; fills in their outcomes and gives the scaled returns [T, N]."""
    returns = base.copy()
    leaks: dict[int, list[tuple[int, float]]] = {}  # bar: asset, move in sigmas
    for beat in beats:
        for lag, sign in beat.plot.leaks:
            for place, asset in enumerate(assets):
                claim = beat.plot.moved_by(asset)
                if claim:
                    size = math.copysign(dice.between(3.8, 7.0), claim) * sign
                    leaks.setdefault(beat.bar - lag, []).append((place, size))
    by_bar = {beat.bar: beat for beat in beats}
    variance = np.mean(np.square(base[:40]), axis=0)
    scaled = np.empty_like(base)
    for bar in range(len(base)):
        sigma = np.sqrt(variance)
        for place, size in leaks.get(bar, ()):
            returns[bar, place] = 0.3 * returns[bar, place] + size * sigma[place]
        now = returns[bar]
        scaled[bar] = now / sigma
        variance = DECAY * variance + (1.0 - DECAY) * np.square(now)
        beat = by_bar.get(bar)
        if beat is not None:
            _unfold(dice, assets, beat, scaled, np.sqrt(variance), returns)
    return scaled


def _unfold(
    dice: Dice, assets: tuple[Asset, ...], beat: Beat, scaled: Floats, sigma: Floats, returns: Floats
) -> None:
    """Decides what the beat does to each asset and lays it over the returns to come."""
    luck, mishap = dice.unit(), dice.unit()
    first = beat.bar + 1
    bars = np.arange(HORIZON)
    for place, asset in enumerate(assets):
        outcome = judge(dice, beat.plot, asset, scaled[beat.bar - 31 : first, place], luck, mishap)
        beat.outcomes[place] = outcome
        ahead = returns[first : first + HORIZON, place]
        multiplier = outcome.volatility_multiplier
        if multiplier != 1.0:
            fade = np.exp2(-bars / 8.0)
            ahead *= np.sqrt(1.0 + (multiplier**2 - 1.0) * fade / fade.mean())
        if outcome.realised and beat.plot.event is not None:
            event = beat.plot.event
            landing = np.where(
                bars >= event.delay_bars, np.exp2(-(bars - event.delay_bars) / event.half_life_bars), 0.0
            )
            ahead += outcome.realised * sigma[place] * landing / landing.sum()
        elif outcome.realised:
            ahead[0] += outcome.realised * sigma[place]


# What is to be expected when nothing is: how sure one can be, by situation.
_FLAT_SURE = {
    Situation.PRICED: 0.87, Situation.STALE: 0.92, Situation.FORGED: 0.93, Situation.DENIED_UNMOVED: 0.86,
    Situation.EMPTY: 0.9, Situation.IRRELEVANT: 0.95, Situation.NO_NEWS: 0.96,
}  # fmt: skip


def judge(dice: Dice, plot: Plot, asset: Asset, context: Floats, luck: float, mishap: float) -> Outcome:
    """What the plot means for the asset, given its recent scaled returns (oldest first)."""
    event = plot.event
    claim = event.effect_on(asset) if event else 0.0
    if event is None or not event.concerns(asset) or plot.plan is Plan.QUIET:
        situation = Situation.IRRELEVANT if plot.plan is not Plan.NO_NEWS else Situation.NO_NEWS
        return _flat(dice, situation, "", "none", "unmoved", 1.0, False)
    window = context[-plot.window :]
    jump = float(window[np.argmax(np.abs(window))])
    consistency = "unmoved"
    if claim and abs(jump) > JUMP_SIGMAS:
        consistency = "with" if jump * claim > 0 else "against"
    situation, size = _situation(plot, claim, consistency, jump)
    cause, indirect = str(event.kind), event.subject != asset.symbol
    if not size:
        multiplier = 1.0 + 0.3 * (event.volatility_multiplier - 1.0)
        sign = (claim > 0) - (claim < 0)
        return _flat(dice, situation, event.why, cause, consistency, multiplier, indirect, sign)
    sure = event.credibility * (0.96 if situation is Situation.AGAINST else 1.0)
    standing = Standing.TRUE if luck < sure else (Standing.FALSE if mishap < 0.6 else Standing.REVERSED)
    came = {Standing.TRUE: 1.0, Standing.FALSE: 0.0}.get(standing, -1.0)
    sign = 1 if size > 0 else -1
    words = rationale(dice, situation, event.why, sign, indirect)
    # what comes to nothing unsettles prices less
    multiplier = 1.0 + (event.volatility_multiplier - 1.0) * (1.0 if came else 0.6)
    return Outcome(size, came * size, sure, consistency, cause, words, multiplier, situation, standing, True)


def _situation(plot: Plot, claim: float, consistency: str, jump: float) -> tuple[Situation, float]:
    """How the news stands, and the effect still to come."""
    if plot.plan is Plan.FORGED:
        return Situation.FORGED, 0.0
    if not claim:
        return Situation.EMPTY, 0.0
    if plot.plan is Plan.STALE:
        return Situation.STALE, 0.0
    if plot.plan is Plan.DENIED:
        if consistency == "against":
            return Situation.DENIED, math.copysign(0.75 * abs(jump), claim)
        return Situation.DENIED_UNMOVED, 0.0
    if consistency == "with":
        return Situation.PRICED, 0.0
    if plot.plan is Plan.CONFLICT:
        return Situation.OFFICIAL, claim
    if consistency == "against":
        undone = 0.5 * abs(jump) if plot.plan is Plan.CORRECTED else 0.0
        return Situation.AGAINST, claim + math.copysign(undone, claim)
    return Situation.FRESH, claim


def _flat(
    dice: Dice, situation: Situation, why: str, cause: str, consistency: str, multiplier: float,
    indirect: bool, sign: int = 0,
) -> Outcome:  # fmt: skip
    sure = _FLAT_SURE[situation]
    came = 0.0 if dice.chance(sure) else dice.sign() * dice.between(1.0, 4.0)
    standing = Standing.FORGED if situation is Situation.FORGED else Standing.PRICED
    words = rationale(dice, situation, why, sign, indirect)
    return Outcome(
        0.0, came, sure, consistency, cause, words, multiplier, situation, standing, cause != "none"
    )
