"""A simulated world: its assets, what happens in it and when, and the prices that follow. `stories` runs it.

Prices come from the simulated market; events are laid over them bar by bar, because what an event still does depends
on what prices have shown before it.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from htfi.simulation.companies import SimulatedAsset, draw_assets
from htfi.simulation.events import ClaimStatus, NewsEvent
from htfi.simulation.market.process import simulate
from htfi.simulation.market.spec import MarketSpec
from htfi.simulation.rationale import NewsSituation, rationale_sentence
from htfi.simulation.reported_events import ReportedEvent, ReportPattern, draw_reported_event
from htfi.simulation.rng import Rng

DECAY = 0.94
FIRST_BAR = 64
HORIZON = 24
JUMP_SIGMAS = 3.1  # a move that a reader sees as an answer to news
FRESH_WINDOW = 4

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class AssetOutcome:
    """What one beat means for one asset: what is to be expected, what came, and why. Effects in sigmas, signed."""

    expected: float
    realised: float
    confidence: float
    consistency: str
    cause: str
    rationale: str
    volatility_multiplier: float
    situation: NewsSituation
    standing: ClaimStatus
    relevant: bool

    @property
    def likeliest(self) -> int:
        return (self.expected > 0) - (self.expected < 0)

    @property
    def direction(self) -> int:
        return (self.realised > 0) - (self.realised < 0)


@dataclass(slots=True)
class NewsMoment:
    """One moment of a world: the plot, who is asked about, and what it meant for each."""

    bar: int
    reported: ReportedEvent
    assets: tuple[int, ...]
    outcomes: dict[int, AssetOutcome] = field(default_factory=dict[int, AssetOutcome])

    @property
    def event(self) -> NewsEvent | None:
        return self.reported.event


@dataclass(frozen=True, slots=True)
class SimulatedMarket:
    """`scaled` [T, N] are returns in units of the EWMA volatility before each."""

    number: int
    assets: tuple[SimulatedAsset, ...]
    by_symbol: dict[str, SimulatedAsset]
    moments: tuple[NewsMoment, ...]
    scaled: Floats
    bar_ns: int
    first_ns: int
    rng: Rng


_NS = 1_000_000_000
_BARS_NS = (300 * _NS, 1800 * _NS, 3600 * _NS, 86400 * _NS, 86400 * _NS)
_FIRST_NS = 1_104_537_600 * _NS  # 2005
_YEARS_NS = 20 * 365 * 86400 * _NS


def simulate_market(seed: int, number: int) -> SimulatedMarket:
    """The world of this number: about 80 beats' worth of questions over some 600 bars."""
    dice = Rng(seed, number)
    assets = draw_assets(dice, 4 + dice.integer(5), 2 + dice.integer(4))
    num_bars = 420 + dice.integer(300)
    base = _base_returns(dice, len(assets), num_bars)
    beats: list[NewsMoment] = []
    bar = FIRST_BAR + dice.integer(8)
    while bar + HORIZON + 1 < num_bars:
        beats.append(_draw_moment(dice, assets, bar))
        bar += HORIZON + 6 + dice.integer(10)
    scaled = _apply_moments(dice, assets, beats, base)
    return SimulatedMarket(
        number, assets, {asset.symbol: asset for asset in assets}, tuple(beats), scaled,
        dice.choice(_BARS_NS), _FIRST_NS + dice.integer(_YEARS_NS // (3600 * _NS)) * 3600 * _NS, dice,
    )  # fmt: skip


def _base_returns(dice: Rng, num_assets: int, num_bars: int) -> Floats:
    rng = np.random.Generator(np.random.PCG64(dice.integer(2**52)))
    spec = MarketSpec.random(rng, num_assets=num_assets, intraday=dice.chance(0.15))
    return simulate(spec, (), num_bars, dice.integer(2**52)).log_returns


def _draw_moment(dice: Rng, assets: tuple[SimulatedAsset, ...], bar: int) -> NewsMoment:
    plot = draw_reported_event(dice, assets)
    touched: list[int] = []
    others: list[int] = []
    for place, asset in enumerate(assets):
        (touched if plot.event is not None and plot.event.concerns(asset) else others).append(place)
    asked = dice.sample(touched, 3)
    if others and (not asked or dice.chance(0.27)):
        asked.append(dice.choice(others))
    return NewsMoment(bar, plot, tuple(asked))


def _apply_moments(
    dice: Rng, assets: tuple[SimulatedAsset, ...], beats: list[NewsMoment], base: Floats
) -> Floats:
    """Lays the beats over the base returns; fills in their outcomes and gives the scaled returns [T, N]."""
    returns = base.copy()
    leaks: dict[int, list[tuple[int, float]]] = {}  # bar: asset, move in sigmas
    for beat in beats:
        for lag, sign in beat.reported.is_leaked:
            for place, asset in enumerate(assets):
                claim = beat.reported.leaked_effect(asset)
                if claim:
                    size = math.copysign(dice.uniform_between(3.8, 7.0), claim) * sign
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
            _apply_moment(dice, assets, beat, scaled, np.sqrt(variance), returns)
    return scaled


def _apply_moment(
    dice: Rng,
    assets: tuple[SimulatedAsset, ...],
    beat: NewsMoment,
    scaled: Floats,
    sigma: Floats,
    returns: Floats,
) -> None:
    """Decides what the beat does to each asset and lays it over the returns to come."""
    luck, mishap = dice.uniform(), dice.uniform()
    first = beat.bar + 1
    bars = np.arange(HORIZON)
    for place, asset in enumerate(assets):
        outcome = judge_outcome(
            dice, beat.reported, asset, scaled[beat.bar - 31 : first, place], luck, mishap
        )
        beat.outcomes[place] = outcome
        ahead = returns[first : first + HORIZON, place]
        multiplier = outcome.volatility_multiplier
        if multiplier != 1.0:
            fade = np.exp2(-bars / 8.0)
            ahead *= np.sqrt(1.0 + (multiplier**2 - 1.0) * fade / fade.mean())
        if outcome.realised and beat.reported.event is not None:
            event = beat.reported.event
            landing = np.where(
                bars >= event.delay_bars, np.exp2(-(bars - event.delay_bars) / event.half_life_bars), 0.0
            )
            ahead += outcome.realised * sigma[place] * landing / landing.sum()
        elif outcome.realised:
            ahead[0] += outcome.realised * sigma[place]


# What is to be expected when nothing is: how sure one can be, by situation.
_FLAT_CONFIDENCE = {
    NewsSituation.PRICED: 0.87, NewsSituation.STALE: 0.92, NewsSituation.FORGED: 0.93, NewsSituation.DENIED_UNMOVED: 0.86,
    NewsSituation.EMPTY: 0.9, NewsSituation.IRRELEVANT: 0.95, NewsSituation.NO_NEWS: 0.96,
}  # fmt: skip


def judge_outcome(
    dice: Rng, plot: ReportedEvent, asset: SimulatedAsset, context: Floats, luck: float, mishap: float
) -> AssetOutcome:
    """What the plot means for the asset, given its recent scaled returns (oldest first)."""
    event = plot.event
    claim = event.effect_on(asset) if event else 0.0
    if event is None or not event.concerns(asset) or plot.pattern is ReportPattern.QUIET:
        situation = (
            NewsSituation.IRRELEVANT if plot.pattern is not ReportPattern.NO_NEWS else NewsSituation.NO_NEWS
        )
        return _flat_outcome(dice, situation, "", "none", "unmoved", 1.0, False)
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
        return _flat_outcome(dice, situation, event.why, cause, consistency, multiplier, indirect, sign)
    sure = event.credibility * (0.96 if situation is NewsSituation.AGAINST else 1.0)
    standing = (
        ClaimStatus.TRUE if luck < sure else (ClaimStatus.FALSE if mishap < 0.6 else ClaimStatus.REVERSED)
    )
    came = {ClaimStatus.TRUE: 1.0, ClaimStatus.FALSE: 0.0}.get(standing, -1.0)
    sign = 1 if size > 0 else -1
    words = rationale_sentence(dice, situation, event.why, sign, indirect)
    # what comes to nothing unsettles prices less
    multiplier = 1.0 + (event.volatility_multiplier - 1.0) * (1.0 if came else 0.6)
    return AssetOutcome(
        size, came * size, sure, consistency, cause, words, multiplier, situation, standing, True
    )


def _situation(
    plot: ReportedEvent, claim: float, consistency: str, jump: float
) -> tuple[NewsSituation, float]:
    """How the news stands, and the effect still to come."""
    if plot.pattern is ReportPattern.FORGED:
        return NewsSituation.FORGED, 0.0
    if not claim:
        return NewsSituation.EMPTY, 0.0
    if plot.pattern is ReportPattern.STALE:
        return NewsSituation.STALE, 0.0
    if plot.pattern is ReportPattern.DENIED:
        if consistency == "against":
            return NewsSituation.DENIED, math.copysign(0.75 * abs(jump), claim)
        return NewsSituation.DENIED_UNMOVED, 0.0
    if consistency == "with":
        return NewsSituation.PRICED, 0.0
    if plot.pattern is ReportPattern.CONFLICT:
        return NewsSituation.OFFICIAL, claim
    if consistency == "against":
        undone = 0.5 * abs(jump) if plot.pattern is ReportPattern.CORRECTED else 0.0
        return NewsSituation.AGAINST, claim + math.copysign(undone, claim)
    return NewsSituation.FRESH, claim


def _flat_outcome(
    dice: Rng, situation: NewsSituation, why: str, cause: str, consistency: str, multiplier: float,
    indirect: bool, sign: int = 0,
) -> AssetOutcome:  # fmt: skip
    sure = _FLAT_CONFIDENCE[situation]
    came = 0.0 if dice.chance(sure) else dice.sign() * dice.uniform_between(1.0, 4.0)
    standing = ClaimStatus.FORGED if situation is NewsSituation.FORGED else ClaimStatus.PRICED
    words = rationale_sentence(dice, situation, why, sign, indirect)
    return AssetOutcome(
        0.0, came, sure, consistency, cause, words, multiplier, situation, standing, cause != "none"
    )
