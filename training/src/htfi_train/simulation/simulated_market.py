"""A simulated market: its assets, what happens and when, and the prices that follow. `stories` runs it.

Prices come from the simulated market; events are laid over them bar by bar, because what an event still does depends
on what prices have shown before it.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from htfi_train.simulation.companies import SimulatedAsset, draw_assets
from htfi_train.simulation.events import ClaimStatus, EventSource, NewsEvent
from htfi_train.simulation.market.process import simulate
from htfi_train.simulation.market.spec import MarketSpec
from htfi_train.simulation.rationale import NewsSituation, rationale_sentence
from htfi_train.simulation.reported_events import ReportedEvent, ReportPattern, draw_reported_event
from htfi_train.simulation.rng import Rng

DECAY = 0.94
FIRST_BAR = 64
HORIZON = 24
JUMP_SIGMAS = 3.1  # a move that a reader sees as an answer to news

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class AssetOutcome:
    """What one moment means for one asset: the expected and the realised effect (sigmas, signed), and why."""

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
    """One moment of a market: what is reported, which assets are asked about, and what it meant for each."""

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
    lines: EventSource | None = None


_NS = 1_000_000_000
_BARS_NS = (300 * _NS, 1800 * _NS, 3600 * _NS, 86400 * _NS, 86400 * _NS)
_FIRST_NS = 1_104_537_600 * _NS  # 2005
_YEARS_NS = 20 * 365 * 86400 * _NS


def simulate_market(seed: int, number: int, lines: EventSource | None = None) -> SimulatedMarket:
    """The market of this number: about 80 moments with news over some 600 bars; of `lines`, where they are given."""
    rng = Rng(seed, number)
    assets = draw_assets(rng, 4 + rng.integer(5), 2 + rng.integer(4))
    num_bars = 420 + rng.integer(300)
    base = _base_returns(rng, len(assets), num_bars)
    moments: list[NewsMoment] = []
    bar = FIRST_BAR + rng.integer(8)
    while bar + HORIZON + 1 < num_bars:
        moments.append(_draw_moment(rng, assets, bar, lines))
        bar += HORIZON + 6 + rng.integer(10)
    scaled = _apply_moments(rng, assets, moments, base)
    return SimulatedMarket(
        number, assets, {asset.symbol: asset for asset in assets}, tuple(moments), scaled,
        rng.choice(_BARS_NS), _FIRST_NS + rng.integer(_YEARS_NS // (3600 * _NS)) * 3600 * _NS, rng, lines,
    )  # fmt: skip


def _base_returns(rng: Rng, num_assets: int, num_bars: int) -> Floats:
    generator = np.random.Generator(np.random.PCG64(rng.integer(2**52)))
    spec = MarketSpec.random(generator, num_assets=num_assets, intraday=rng.chance(0.15))
    return simulate(spec, (), num_bars, rng.integer(2**52)).log_returns


def _draw_moment(
    rng: Rng, assets: tuple[SimulatedAsset, ...], bar: int, lines: EventSource | None
) -> NewsMoment:
    reported = draw_reported_event(rng, assets, lines)
    touched: list[int] = []
    others: list[int] = []
    for place, asset in enumerate(assets):
        (touched if reported.event is not None and reported.event.concerns(asset) else others).append(place)
    asked = rng.sample(touched, 3)
    if others and (not asked or rng.chance(0.27)):
        asked.append(rng.choice(others))
    return NewsMoment(bar, reported, tuple(asked))


def _apply_moments(
    rng: Rng, assets: tuple[SimulatedAsset, ...], moments: list[NewsMoment], base: Floats
) -> Floats:
    """Add the effects of the moments to the base returns, fill in their outcomes, return the scaled returns [T, N]."""
    returns = base.copy()
    leaks: dict[int, list[tuple[int, float]]] = {}  # bar: asset, move in sigmas
    for moment in moments:
        for lag, sign in moment.reported.leaks:
            for place, asset in enumerate(assets):
                claim = moment.reported.leaked_effect(asset)
                if claim:
                    size = math.copysign(rng.uniform_between(3.8, 7.0), claim) * sign
                    leaks.setdefault(moment.bar - lag, []).append((place, size))
    by_bar = {moment.bar: moment for moment in moments}
    variance = np.mean(np.square(base[:40]), axis=0)
    scaled = np.empty_like(base)
    for bar in range(len(base)):
        sigma = np.sqrt(variance)
        for place, size in leaks.get(bar, ()):
            returns[bar, place] = 0.3 * returns[bar, place] + size * sigma[place]
        now = returns[bar]
        scaled[bar] = now / sigma
        variance = DECAY * variance + (1.0 - DECAY) * np.square(now)
        moment = by_bar.get(bar)
        if moment is not None:
            _apply_moment(rng, assets, moment, scaled, np.sqrt(variance), returns)
    return scaled


def _apply_moment(
    rng: Rng,
    assets: tuple[SimulatedAsset, ...],
    moment: NewsMoment,
    scaled: Floats,
    sigma: Floats,
    returns: Floats,
) -> None:
    """Decide what the moment does to each asset and add it to the returns that follow."""
    luck, mishap = rng.uniform(), rng.uniform()
    first = moment.bar + 1
    bars = np.arange(HORIZON)
    for place, asset in enumerate(assets):
        outcome = judge_outcome(
            rng, moment.reported, asset, scaled[moment.bar - 31 : first, place], luck, mishap
        )
        moment.outcomes[place] = outcome
        ahead = returns[first : first + HORIZON, place]
        multiplier = outcome.volatility_multiplier
        if multiplier != 1.0:
            fade = np.exp2(-bars / 8.0)
            ahead *= np.sqrt(1.0 + (multiplier**2 - 1.0) * fade / fade.mean())
        if outcome.realised and moment.reported.event is not None:
            event = moment.reported.event
            landing = np.where(
                bars >= event.delay_bars, np.exp2(-(bars - event.delay_bars) / event.half_life_bars), 0.0
            )
            ahead += outcome.realised * sigma[place] * landing / landing.sum()
        elif outcome.realised:
            ahead[0] += outcome.realised * sigma[place]


# What is to be expected when nothing is: how sure one can be, by situation.
_FLAT_CONFIDENCE = {
    NewsSituation.PRICED: 0.87, NewsSituation.STALE: 0.92, NewsSituation.FORGED: 0.93,
    NewsSituation.DENIED_UNMOVED: 0.86,
    NewsSituation.EMPTY: 0.9, NewsSituation.IRRELEVANT: 0.95, NewsSituation.NO_NEWS: 0.96,
}  # fmt: skip


def judge_outcome(
    rng: Rng, reported: ReportedEvent, asset: SimulatedAsset, context: Floats, luck: float, mishap: float
) -> AssetOutcome:
    """What the news means for the asset, given its recent scaled returns (oldest first)."""
    event = reported.event
    claim = event.effect_on(asset) if event else 0.0
    if event is None or not event.concerns(asset) or reported.pattern is ReportPattern.QUIET:
        situation = (
            NewsSituation.IRRELEVANT
            if reported.pattern is not ReportPattern.NO_NEWS
            else NewsSituation.NO_NEWS
        )
        return _flat_outcome(rng, situation, "", "none", "unmoved", 1.0, False)
    window = context[-reported.window :]
    jump = float(window[np.argmax(np.abs(window))])
    consistency = "unmoved"
    if claim and abs(jump) > JUMP_SIGMAS:
        consistency = "with" if jump * claim > 0 else "against"
    situation, size = _situation(reported, claim, consistency, jump)
    cause, indirect = str(event.kind), event.subject != asset.symbol
    if not size:
        multiplier = 1.0 + 0.3 * (event.volatility_multiplier - 1.0)
        sign = (claim > 0) - (claim < 0)
        return _flat_outcome(rng, situation, event.why, cause, consistency, multiplier, indirect, sign)
    sure = event.credibility * (0.96 if situation is NewsSituation.AGAINST else 1.0)
    status = (
        ClaimStatus.TRUE if luck < sure else (ClaimStatus.FALSE if mishap < 0.6 else ClaimStatus.REVERSED)
    )
    came = {ClaimStatus.TRUE: 1.0, ClaimStatus.FALSE: 0.0}.get(status, -1.0)
    sign = 1 if size > 0 else -1
    words = rationale_sentence(rng, situation, event.why, sign, indirect)
    # what comes to nothing unsettles prices less
    multiplier = 1.0 + (event.volatility_multiplier - 1.0) * (1.0 if came else 0.6)
    return AssetOutcome(
        size, came * size, sure, consistency, cause, words, multiplier, situation, status, True
    )


def _situation(
    reported: ReportedEvent, claim: float, consistency: str, jump: float
) -> tuple[NewsSituation, float]:
    """How the news stands, and the effect still to come."""
    if reported.pattern is ReportPattern.FORGED:
        return NewsSituation.FORGED, 0.0
    if not claim:
        return NewsSituation.EMPTY, 0.0
    if reported.pattern is ReportPattern.STALE:
        return NewsSituation.STALE, 0.0
    if reported.pattern is ReportPattern.DENIED:
        if consistency == "against":
            return NewsSituation.DENIED, math.copysign(0.75 * abs(jump), claim)
        return NewsSituation.DENIED_UNMOVED, 0.0
    if consistency == "with":
        return NewsSituation.PRICED, 0.0
    if reported.pattern is ReportPattern.CONFLICT:
        return NewsSituation.OFFICIAL, claim
    if consistency == "against":
        undone = 0.5 * abs(jump) if reported.pattern is ReportPattern.CORRECTED else 0.0
        return NewsSituation.AGAINST, claim + math.copysign(undone, claim)
    return NewsSituation.FRESH, claim


def _flat_outcome(
    rng: Rng, situation: NewsSituation, why: str, cause: str, consistency: str, multiplier: float,
    indirect: bool, sign: int = 0,
) -> AssetOutcome:  # fmt: skip
    sure = _FLAT_CONFIDENCE[situation]
    came = 0.0 if rng.chance(sure) else rng.sign() * rng.uniform_between(1.0, 4.0)
    status = ClaimStatus.FORGED if situation is NewsSituation.FORGED else ClaimStatus.PRICED
    words = rationale_sentence(rng, situation, why, sign, indirect)
    return AssetOutcome(
        0.0, came, sure, consistency, cause, words, multiplier, situation, status, cause != "none"
    )
