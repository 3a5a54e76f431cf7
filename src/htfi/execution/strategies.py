"""Two simple strategies for whoever has none: which way to be positioned, and how strongly, by past prices alone. Pure.

Sizing turns a direction into a weight of constant risk by the forecast's deviation, so that both are timed by
forecast volatility. `htfi eval strategies` says what they earned after costs.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from htfi.execution.config import Strategy

MIN_CROSS_SECTION = 3  # instruments with a history, of which the highest and the lowest third are held
_EVENLY_MOVED = 1e-12  # moves closer than this are alike


def directions(
    strategy: Strategy, closes: Mapping[str, Sequence[float]], sigmas: Mapping[str, float], lookback: int
) -> dict[str, float]:
    """−1 to 1 of each instrument whose `closes` reach `lookback` bars back; empty under 'forecast'.

    trend: the sign of the move over the lookback (Moskowitz, Ooi and Pedersen 2012, one asset at a time).
    reversal: 1 for the third of instruments that fell most, −1 for the third that rose most, in deviations `sigmas` of
    their own forecasts (Lehmann 1990); nothing with fewer than three.
    """
    if strategy == "forecast":
        return {}
    moves = {
        symbol: float(np.log(path[-1] / path[-1 - lookback]))
        for symbol, path in closes.items()
        if len(path) > lookback and min(path[-1], path[-1 - lookback]) > 0
    }
    if strategy == "trend":
        return {symbol: float(np.sign(move)) for symbol, move in moves.items()}
    scaled = {symbol: moves[symbol] / sigmas[symbol] for symbol in moves if sigmas.get(symbol, 0.0) > 0.0}
    third = len(scaled) // MIN_CROSS_SECTION
    if not third or max(scaled.values()) - min(scaled.values()) < _EVENLY_MOVED:
        return dict.fromkeys(moves, 0.0)
    ranked = sorted(scaled, key=lambda symbol: (scaled[symbol], symbol))
    return (
        dict.fromkeys(moves, 0.0) | dict.fromkeys(ranked[:third], 1.0) | dict.fromkeys(ranked[-third:], -1.0)
    )
