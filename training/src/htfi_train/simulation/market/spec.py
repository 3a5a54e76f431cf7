"""What a simulated market is made of: assets, factors, regimes, volatility, shocks. `process` runs it.

Every size is relative: an asset has a volatility per year, and everything that moves it is in its own sigmas.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from htfi.domain.errors import InvalidInput
from htfi_train.simulation.market.asset_classes import ASSET_CLASSES, INTRADAY_BARS, AssetClass

MARKET = 0  # the factor that every asset may load on; sector s is factor 1 + s
MAX_COMMON_SHARE = 0.92  # share of an asset's variance that factors may explain, whatever the regime


def _require_between(what: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:  # also refuses nan
        raise InvalidInput(f"{what} is {value}; it must be within {low:g}–{high:g}")


class RegimeState(IntEnum):
    """The state of the whole market; it moves volatility and correlation together."""

    CALM = 0
    NORMAL = 1
    STRESSED = 2
    CRISIS = 3


@dataclass(frozen=True, slots=True)
class JumpSpec:
    """Rare moves inside an innovation: rate per year in the normal regime, mean and deviation in sigmas."""

    per_year: float = 0.0
    mean_sigmas: float = 0.0
    deviation_sigmas: float = 4.0

    def __post_init__(self) -> None:
        _require_between("jumps per year", self.per_year, 0.0, 1e6)
        _require_between("mean jump in sigmas", self.mean_sigmas, -20.0, 20.0)
        _require_between("deviation of jumps in sigmas", self.deviation_sigmas, 0.0, 20.0)


@dataclass(frozen=True, slots=True)
class AssetSpec:
    """One asset. Loadings are correlations with the factors in the normal regime; leverage is the correlation
    between a fall and the next change of log volatility (negative: rises raise it, as in some commodities)."""

    annual_vol: float
    market_loading: float = 0.5
    sector: int | None = None
    sector_loading: float = 0.0
    tail_index: float = 5.0
    leverage: float = 0.3
    regime_response: float = 1.0
    jumps: JumpSpec = JumpSpec()
    annual_drift: float = 0.0
    overnight_share: float = 0.0
    start_price: float = 100.0
    bar_volume: float = 1e6
    volume_response: float = 0.45

    def __post_init__(self) -> None:
        _require_between("volatility per year", self.annual_vol, 1e-4, 10.0)
        _require_between("market loading", self.market_loading, -0.99, 0.99)
        _require_between("sector loading", self.sector_loading, -0.99, 0.99)
        _require_between("tail index", self.tail_index, 2.05, 1e4)
        _require_between("leverage", self.leverage, -0.95, 0.95)
        _require_between("response to regimes", self.regime_response, 0.0, 3.0)
        _require_between("drift per year", self.annual_drift, -5.0, 5.0)
        _require_between("overnight share", self.overnight_share, 0.0, 0.95)
        _require_between("start price", self.start_price, 1e-9, 1e12)
        _require_between("response of volume to a move", self.volume_response, 0.0, 3.0)
        _require_between("volume of a bar", self.bar_volume, 1e-9, 1e18)
        if self.sector is not None and self.sector < 0:
            raise InvalidInput(f"an asset's sector is {self.sector}; sectors count from 0")


@dataclass(frozen=True, slots=True)
class VolatilityComponent:
    """One mean-reverting part of log volatility: its half-life, its deviation, and the share (0–1, of variance)
    that all assets have in common. A few waves of different length give the slow decay that one cannot."""

    half_life_bars: float
    deviation: float
    common_share: float = 0.3

    def __post_init__(self) -> None:
        _require_between("half-life of a volatility wave in bars", self.half_life_bars, 0.1, 1e7)
        _require_between("deviation of a volatility wave", self.deviation, 0.0, 1.0)
        _require_between("common share of a volatility wave", self.common_share, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class RegimeChain:
    """A Markov chain over `Regime`: transitions [4, 4] per bar, and what each regime does to volatility, to loadings
    and to the rate of jumps, all as multiples of the normal one."""

    transitions: tuple[tuple[float, ...], ...]
    volatility: tuple[float, float, float, float] = (0.72, 1.0, 1.55, 2.4)
    loading: tuple[float, float, float, float] = (0.85, 1.0, 1.15, 1.3)
    jump_rate: tuple[float, float, float, float] = (0.6, 1.0, 1.8, 3.0)

    def __post_init__(self) -> None:
        table = np.asarray(self.transitions, dtype=np.float64)
        if table.shape != (4, 4) or (table < 0).any() or not np.allclose(table.sum(axis=1), 1.0, atol=1e-9):
            raise InvalidInput("regime transitions must be 4 rows of 4 chances that add up to 1")
        for multiple in (*self.volatility, *self.loading, *self.jump_rate):
            _require_between("multiple of a regime", multiple, 0.0, 20.0)

    @classmethod
    def of_durations(cls, calm: float, normal: float, stressed: float, shock: float) -> "RegimeChain":
        """A chain whose regimes last so many bars on average. Stress comes mostly from normal times and passes by."""
        leave = [min(1.0 / max(mean_bars, 1.0), 1.0) for mean_bars in (calm, normal, stressed, shock)]
        to = ((0.0, 0.92, 0.08, 0.0), (0.55, 0.0, 0.4, 0.05), (0.05, 0.75, 0.0, 0.2), (0.0, 0.2, 0.8, 0.0))
        rows = [[chance * leave[i] for chance in to[i]] for i in range(4)]
        for i in range(4):
            rows[i][i] = 1.0 - sum(rows[i])
        return cls(tuple(tuple(row) for row in rows))

    def long_run(self) -> np.ndarray:
        """Share of time in each regime [4]."""
        table = np.asarray(self.transitions, dtype=np.float64)
        system = np.vstack([table.T - np.eye(4), np.ones(4)])
        share = np.linalg.lstsq(system, np.array([0.0, 0.0, 0.0, 0.0, 1.0]), rcond=None)[0]
        return np.clip(share, 0.0, 1.0) / np.clip(share, 0.0, 1.0).sum()


@dataclass(frozen=True, slots=True)
class SimulatedShock:
    """What an event does from `bar` on, to one asset or to one factor (0 the market, 1 + s sector s).

    `size_sigmas` is signed, in the sigmas that stood before the event, and lands by `shares` on that bar and
    those after it. On a factor it reaches each asset by its loading. Volatility is multiplied by `volatility` at
    the bar itself, and the logarithm of that multiple halves every `half_life_bars`.
    """

    bar: int
    size_sigmas: float
    asset: int | None = None
    factor: int | None = None
    shares: tuple[float, ...] = (1.0,)
    volatility: float = 1.0
    half_life_bars: float = 5.0

    def __post_init__(self) -> None:
        if (self.asset is None) == (self.factor is None):
            raise InvalidInput(f"the shock at bar {self.bar} must name one asset or one factor, and not both")
        if not self.shares:
            raise InvalidInput(
                f"the shock at bar {self.bar} has no shares; (1.0,) lands all of it on its bar"
            )
        for share in self.shares:
            _require_between("share of a shock", share, -5.0, 5.0)
        _require_between("size of a shock in sigmas", self.size_sigmas, -100.0, 100.0)
        _require_between("volatility multiple of a shock", self.volatility, 0.05, 50.0)
        _require_between("half-life of a shock in bars", self.half_life_bars, 0.05, 1e7)


@dataclass(frozen=True, slots=True)
class MarketSpec:
    """A market of N assets. `bars_per_day` above 1 gives each day a U-shape of volatility of depth `day_shape`.
    `market_skew` stretches the falls of the market factor by 1 + skew and shrinks its rises by 1 - skew."""

    assets: tuple[AssetSpec, ...]
    regimes: RegimeChain
    volatility_components: tuple[VolatilityComponent, ...]
    bars_per_year: float = 252.0
    bars_per_day: int = 1
    day_shape: float = 0.0
    factor_tail_index: float = 5.0
    market_skew: float = 0.1
    market_jumps: JumpSpec = JumpSpec(1.0, -1.0, 3.5)
    sector_jumps: JumpSpec = JumpSpec(1.0, 0.0, 3.0)
    family: str = ""

    def __post_init__(self) -> None:
        if not self.assets:
            raise InvalidInput("a market needs at least one asset")
        _require_between("bars per year", self.bars_per_year, 0.5, 1e8)
        _require_between("bars per day", self.bars_per_day, 1, 1_000_000)
        _require_between("depth of the day's shape", self.day_shape, 0.0, 0.9)
        _require_between("skew of the market", self.market_skew, -0.6, 0.6)
        _require_between("tail index of factors", self.factor_tail_index, 2.05, 1e4)

    @property
    def num_factors(self) -> int:
        return 1 + max((asset.sector + 1 for asset in self.assets if asset.sector is not None), default=0)

    def loadings(self) -> np.ndarray:
        """Loadings of each asset on each factor in each regime [4, N, F]; `MAX_COMMON_SHARE` bounds them."""
        normal = np.zeros((len(self.assets), self.num_factors))
        for i, asset in enumerate(self.assets):
            normal[i, MARKET] = asset.market_loading
            if asset.sector is not None:
                normal[i, 1 + asset.sector] = asset.sector_loading
        by_regime = np.asarray(self.regimes.loading)[:, None, None] * normal  # [4, N, F]
        common = np.square(by_regime).sum(axis=2, keepdims=True)
        return by_regime * np.minimum(1.0, np.sqrt(MAX_COMMON_SHARE / np.maximum(common, 1e-12)))

    @classmethod
    def random(
        cls,
        rng: np.random.Generator,
        num_assets: int | None = None,
        family: str | None = None,
        intraday: bool | None = None,
    ) -> "MarketSpec":
        """A market drawn from what real ones look like: FX, indices, stocks, crypto, commodities; daily or finer.

        What is named is kept, the rest is drawn: 2–16 assets, one of `ASSET_CLASSES`, intraday in a quarter of cases.
        """
        name = family if family is not None else str(rng.choice(list(ASSET_CLASSES)))
        if name not in ASSET_CLASSES:
            raise InvalidInput(
                f"there is no family of markets {name!r}; choose from {', '.join(ASSET_CLASSES)}"
            )
        kind = ASSET_CLASSES[name]
        count = num_assets if num_assets is not None else int(rng.integers(2, 17))
        by_minutes = rng.random() < 0.25 if intraday is None else intraday
        bars_per_day = int(rng.choice(INTRADAY_BARS)) if by_minutes else 1
        num_sectors = max(1, count // 4) if kind.sector_loading[1] > 0 else 0
        beta = float(rng.uniform(*kind.tightness))
        assets = tuple(_random_asset(rng, kind, num_sectors, beta, bars_per_day) for _ in range(count))
        lasting = [
            float(mean_days * np.exp(rng.normal(0.0, 0.3)) * bars_per_day) for mean_days in (60, 90, 30, 20)
        ]
        scale, common = float(rng.uniform(*kind.vol_of_vol)), float(rng.uniform(*kind.common_vol))
        split = rng.dirichlet((6.0, 3.0, 1.0))
        halves = [float(rng.uniform(*days)) * bars_per_day for days in ((60, 200), (8, 25), (1, 4))]
        waves = tuple(
            VolatilityComponent(half, scale * math.sqrt(float(part)), common)
            for half, part in zip(halves, split, strict=True)
        )
        if bars_per_day > 1:  # bursts of a few bars, which the days between daily bars average out
            waves += (
                VolatilityComponent(float(rng.uniform(2.0, 12.0)), float(rng.uniform(0.15, 0.45)), common),
            )
        return cls(
            assets,
            RegimeChain.of_durations(*lasting),
            waves,
            bars_per_year=kind.days_per_year * bars_per_day,
            bars_per_day=bars_per_day,
            day_shape=float(rng.uniform(0.2, 0.8)) if bars_per_day > 1 else 0.0,
            factor_tail_index=float(rng.uniform(*kind.factor_tail_index)),
            market_jumps=JumpSpec(
                float(rng.uniform(0.3, 1.5)),
                float(rng.uniform(*kind.market_jump)),
                float(rng.uniform(1.5, 3.0)),
            ),
            family=name,
        )


def _random_asset(
    rng: np.random.Generator, kind: AssetClass, num_sectors: int, tightness: float, bars_per_day: int
) -> AssetSpec:
    low, high = kind.annual_vol
    intraday = bars_per_day > 1
    sign = -1.0 if rng.random() < kind.inverse_share else 1.0
    return AssetSpec(
        annual_vol=float(low * (high / low) ** rng.random()),
        market_loading=sign * float(np.clip(tightness * rng.uniform(*kind.market_loading), 0.0, 0.95)),
        sector=int(rng.integers(num_sectors)) if num_sectors else None,
        sector_loading=float(rng.uniform(*kind.sector_loading)),
        tail_index=max(3.0, float(rng.uniform(*kind.tail_index)) * (0.65 if intraday else 1.0)),
        leverage=float(rng.uniform(*kind.leverage)),
        regime_response=float(rng.uniform(0.7, 1.2)),
        jumps=JumpSpec(
            float(rng.uniform(*kind.jumps_per_year)) * (6.0 if intraday else 1.0),
            0.0,
            float(rng.uniform(2.5, 5.0)),
        ),
        annual_drift=float(rng.normal(kind.annual_drift, 0.05)),
        # no return of ours spans a night between intraday bars, so those drawn have none either
        overnight_share=0.0 if intraday else float(rng.uniform(*kind.overnight_share)),
        start_price=float(10.0 ** rng.uniform(*kind.log10_price)),
        volume_response=float(rng.uniform(*kind.volume_response)),
        bar_volume=float(10.0 ** rng.uniform(4.5, 7.5)) / bars_per_day,
    )


def check_shocks(spec: MarketSpec, shocks: Sequence[SimulatedShock], num_bars: int) -> None:
    """Raises InvalidInput where a shock lies outside the path or names what the market does not have."""
    for shock in shocks:
        if not 0 <= shock.bar < num_bars:
            raise InvalidInput(f"a shock at bar {shock.bar} lies outside a path of {num_bars} bars")
        if shock.asset is not None and not 0 <= shock.asset < len(spec.assets):
            raise InvalidInput(f"a shock names asset {shock.asset}; the market has {len(spec.assets)}")
        if shock.factor is not None and not 0 <= shock.factor < spec.num_factors:
            raise InvalidInput(f"a shock names factor {shock.factor}; the market has {spec.num_factors}")
