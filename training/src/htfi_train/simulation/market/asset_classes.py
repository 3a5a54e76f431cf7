"""Ranges that real markets fall in, by kind; `MarketSpec.random` draws from them.

The figures were set by comparing stylised facts with daily panels of US stocks, indices and currencies.
"""

from dataclasses import dataclass

INTRADAY_BARS = (13, 26, 78, 390)  # half-hours, quarters, five minutes, minutes of a 6.5-hour session

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class AssetClass:
    """Low and high of each quantity of `AssetSpec` and `VolatilityComponent`. `tightness` scales all market loadings of
    one market.
    """

    annual_vol: Range
    market_loading: Range
    tightness: Range
    leverage: Range
    tail_index: Range
    jumps_per_year: Range
    vol_of_vol: Range
    common_vol: Range
    market_jump: Range
    overnight_share: Range
    log10_price: Range
    volume_response: Range
    factor_tail_index: Range = (4.0, 8.0)
    market_skew: Range = (-0.1, 0.1)
    sector_loading: Range = (0.0, 0.0)
    inverse_share: float = 0.0
    annual_drift: float = 0.0
    days_per_year: float = 252.0


ASSET_CLASSES = {
    "stock": AssetClass(
        annual_vol=(0.15, 0.8), market_loading=(0.4, 0.75), tightness=(0.6, 1.15), leverage=(0.15, 0.5),
        tail_index=(3.5, 9.0), jumps_per_year=(0.5, 4.0), vol_of_vol=(0.3, 0.55), common_vol=(0.2, 0.6),
        market_jump=(-2.0, 0.0), overnight_share=(0.15, 0.45), log10_price=(0.7, 2.8), volume_response=(0.2, 0.7),
        sector_loading=(0.15, 0.5), market_skew=(0.0, 0.25), annual_drift=0.06,
    ),
    "index": AssetClass(
        annual_vol=(0.1, 0.35), market_loading=(0.65, 0.95), tightness=(0.75, 1.0), leverage=(0.5, 0.9),
        tail_index=(6.0, 14.0), jumps_per_year=(0.0, 0.3), vol_of_vol=(0.3, 0.48), common_vol=(0.5, 0.9),
        market_jump=(-1.5, -0.5), overnight_share=(0.15, 0.5), log10_price=(2.0, 4.5), volume_response=(0.1, 0.5),
        factor_tail_index=(8.0, 16.0), market_skew=(0.1, 0.3), annual_drift=0.05,
    ),
    "fx": AssetClass(
        annual_vol=(0.05, 0.18), market_loading=(0.3, 0.85), tightness=(0.6, 1.1), leverage=(-0.1, 0.3),
        tail_index=(6.0, 14.0), jumps_per_year=(0.0, 0.8), vol_of_vol=(0.2, 0.4), common_vol=(0.3, 0.7),
        market_jump=(-1.0, 1.0), overnight_share=(0.0, 0.05), log10_price=(-0.3, 2.2), volume_response=(0.0, 0.3),
        factor_tail_index=(6.0, 14.0), inverse_share=0.4, days_per_year=260.0,
    ),
    "crypto": AssetClass(
        annual_vol=(0.35, 0.8), market_loading=(0.5, 0.9), tightness=(0.8, 1.05), leverage=(-0.15, 0.25),
        tail_index=(3.0, 6.0), jumps_per_year=(2.0, 8.0), vol_of_vol=(0.35, 0.6), common_vol=(0.4, 0.8),
        market_jump=(-2.0, 0.5), overnight_share=(0.0, 0.0), log10_price=(-2.0, 4.8), volume_response=(0.3, 0.8),
        days_per_year=365.0,
    ),
    "commodity": AssetClass(
        annual_vol=(0.12, 0.55), market_loading=(0.1, 0.6), tightness=(0.6, 1.1), leverage=(-0.3, 0.3),
        tail_index=(4.0, 9.0), jumps_per_year=(0.3, 2.5), vol_of_vol=(0.3, 0.5), common_vol=(0.1, 0.4),
        market_jump=(-1.5, 0.5), overnight_share=(0.1, 0.4), log10_price=(0.5, 3.3), volume_response=(0.1, 0.6),
        sector_loading=(0.1, 0.5),
    ),
}  # fmt: skip
