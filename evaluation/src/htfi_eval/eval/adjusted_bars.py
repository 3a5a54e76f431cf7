"""Bars of a person's own file under the names and in the units that the settings of a run state, and what that did."""

from collections import Counter
from collections.abc import Sequence

from htfi.domain.events import Bar
from htfi.market.config import MarketConfig
from htfi.pipeline.intake.adjusting import SeriesAdjustments


def adjust_bars(name: str, bars: Sequence[Bar], market: MarketConfig) -> tuple[list[Bar], list[str]]:
    """The bars as a run under these settings reads them, and a line that says which of them changed.

    A bar of a renamed symbol gives way to one of its later name at the same instant.
    """
    adjustments = SeriesAdjustments(market.renames, market.splits)
    if not adjustments:
        return list(bars), []
    found: list[Bar] = []
    renamed, divided = Counter[tuple[str, str]](), Counter[str]()
    for bar in bars:
        changed = adjustments.adjusted(bar)
        assert isinstance(changed, Bar)
        renamed[bar.symbol, changed.symbol] += 1
        divided[changed.symbol] += changed.close != bar.close
        found.append(changed)
    own = {(bar.symbol, bar.interval, bar.end_ns) for bar in bars}
    kept = [
        changed
        for bar, changed in zip(bars, found, strict=True)
        if bar.symbol == changed.symbol or (changed.symbol, bar.interval, bar.end_ns) not in own
    ]
    said = [f"{num:,} bars of {old} count as {new}" for (old, new), num in renamed.items() if old != new]
    if len(kept) < len(bars):
        said.append(f"{len(bars) - len(kept):,} of them left out, where the later name has its own")
    said += [
        f"{divided[symbol]:,} bars of {symbol} adjusted for "
        + ", ".join(f"{ratio:g} to 1 on {day}" for day, ratio in sorted(ratios.items()))
        for symbol, ratios in market.splits.items()
        if divided[symbol]
    ]
    seen = {symbol for pair in renamed for symbol in pair}
    unseen = sorted({*market.renames, *market.splits} - seen)
    said += [f"no bar of {symbol}" for symbol in unseen]
    said += [
        f"{symbol} has no bar before its splits"
        for symbol in market.splits
        if symbol in seen and not divided[symbol]
    ]
    return kept, [f"{name}: as market.renames and market.splits say, {'; '.join(said)}"]
