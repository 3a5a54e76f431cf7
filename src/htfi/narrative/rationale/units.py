"""Puts features, amounts and spans into words: one place for units and rounding. The rationale uses it."""

from functools import lru_cache
from math import expm1, floor, log10

# A feature's name ends in its unit, perhaps before a scale such as '5m': unit → how it reads, and the factor.
_UNITS = {
    "bps": (" bp", 1.0),
    "fraction": ("%", 100.0),
    "share": ("%", 100.0),
    "return": ("%", 100.0),
    "vol": ("%", 100.0),
    "volatility": ("%", 100.0),
    "range": ("%", 100.0),
    "sigmas": (" sigma", 1.0),
    "s": (" s", 1.0),
    "ms": (" ms", 1.0),
}
_EXPANSIONS = {
    "vol": "volatility",
    "ofi": "order-flow imbalance",
    "rv": "realised variance",
    "bv": "bipower variance",
    "vix": "VIX",
}
_SAME = {"bv": "rv"}  # two measures of one thing: told once
_UNSPOKEN_UNITS = frozenset({"bps", "fraction", "sigmas"})
# Prices and tallies: how far they are from usual says nothing of risk.
_LEVELS = frozenset({"mid", "microprice", "price", "close", "bid", "ask", "count"})


_MIN_LARGE = 999.5  # from here on, three significant digits would need an exponent


@lru_cache(maxsize=4096)
def feature_family(feature: str) -> str | None:
    """Features that tell one story share a family and are told once; one without a family is never told."""
    if feature.startswith("num_") or not _LEVELS.isdisjoint(feature.split("_")):
        return None
    words = [word for word in feature.split("_") if not any(char.isdigit() for char in word)]
    return _SAME.get(words[0], words[0]) if words else feature


def feature_comparison(feature: str, value: float, usual: float, ratio: float) -> str:
    """'spread 3.1 bp against a usual 1.3 bp (2.4x)'."""
    pattern, rounded, factor = _comparison(feature)
    value, usual = factor * value, factor * usual
    if -_MIN_LARGE < value < _MIN_LARGE and usual < _MIN_LARGE and ratio < _MIN_LARGE:
        return rounded % (value, usual, ratio)
    return pattern % (significant(value), significant(usual), significant(ratio))


@lru_cache(maxsize=4096)
def _comparison(feature: str) -> tuple[str, str, float]:
    words = feature.split("_")
    sign, factor = next((_UNITS[word] for word in reversed(words) if word in _UNITS), ("", 1.0))
    name = " ".join(_EXPANSIONS.get(word, word) for word in words if word not in _UNSPOKEN_UNITS) or feature
    amount = "%s" + sign.replace("%", "%%")
    pattern = f"{name.replace('%', '%%')} {amount} against a usual {amount} (%sx)"
    return pattern, pattern.replace("%s", "%.3g"), factor


def significant(value: float) -> str:
    """Three significant digits, or all digits before the point of a large number."""
    return f"{value:.3g}" if -_MIN_LARGE < value < _MIN_LARGE else f"{value:,.0f}"


def move_words(log_return: float, unit: str) -> str:
    """A log return as a simple one, signed, in the unit of `move_unit`."""
    return f"{1e4 * expm1(log_return):+.1f} bp" if unit == "bp" else f"{100.0 * expm1(log_return):+.2f}%"


def move_unit(size: float) -> str:
    """Basis points for what is smaller than half a percent, percent for the rest."""
    return "bp" if size < 0.005 else "%"


def band_width(width: float, unit: str) -> str:
    """The width of a band of log returns, in the unit of `move_unit`."""
    return f"{1e4 * width:.1f} bp" if unit == "bp" else f"{100.0 * width:.2f}%"


def price_words(value: float) -> str:
    """Two decimals from 10 up, as shares trade; five significant digits below, as currencies do."""
    if value >= 10.0:
        return f"{value:,.2f}"
    return f"{value:.{min(12, 4 - floor(log10(value)))}f}" if value > 0.0 else f"{value:.2f}"


_BAR_NAMES = {
    "1d": "day",
    "1h": "hour",
    "60m": "hour",
    "3600s": "hour",
    "1m": "minute",
    "60s": "minute",
    "1s": "second",
}


@lru_cache(maxsize=1024)
def bar_name(interval: str) -> str:
    """'1d' → 'day', '60s' → 'minute', '5m' → '5m bar', 'volume:5000' → 'volume bar of 5000'."""
    clock, found, size = interval.partition(":")
    return f"{clock} bar of {size}" if found else _BAR_NAMES.get(interval, f"{interval} bar")


def duration_words(duration_ns: int) -> str:
    """A span in the one unit that suits it: '35 s', '12 min', '3 h', '2 d'."""
    seconds = duration_ns * 1e-9
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    if seconds < 5_400.0:
        return f"{seconds / 60.0:.0f} min"
    if seconds < 129_600.0:
        return f"{seconds / 3_600.0:.0f} h"
    return f"{seconds / 86_400.0:.0f} d"
