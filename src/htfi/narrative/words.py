"""How features, amounts and spans are put into words: one place for units and rounding. The rationale uses it."""

from functools import lru_cache
from math import expm1, floor, log10

# Unit suffix of a feature's name → how its value reads. The longest suffix wins.
_UNITS = {
    "bps": "bp",
    "fraction": "share",
    "share": "share",
    "ratio": "plain",
    "sigmas": "sigmas",
    "ns": "span",
    "vol": "percent",
    "volatility": "percent",
    "return": "percent",
    "range": "percent",
    "usd": "plain",
    "units": "plain",
}
# Levels and tallies: their distance from usual says nothing of risk.
_LEVELS = frozenset({"mid", "microprice", "last_price", "close", "bid", "ask", "price"})


@lru_cache(maxsize=4096)
def feature_words(name: str) -> str:
    """'realised_vol_5m' → 'realised volatility 5m'."""
    words = [_LONG.get(word, word) for word in name.split("_") if word not in _SILENT]
    return " ".join(words) or name


_LONG = {
    "vol": "volatility",
    "ofi": "order-flow imbalance",
    "rv": "realised variance",
    "bv": "bipower variance",
}
_SILENT = frozenset({"bps", "fraction", "ns", "sigmas"})


@lru_cache(maxsize=4096)
def family(name: str) -> str | None:
    """Features that tell one story share a family, so that a rationale tells it once; None is never told."""
    if name in _LEVELS or name.startswith("num_"):
        return None
    words = [word for word in name.split("_") if not any(char.isdigit() for char in word)]
    return words[0] if words else name


@lru_cache(maxsize=4096)
def _unit(name: str) -> str:
    for word in reversed(name.split("_")):
        if word in _UNITS:
            return _UNITS[word]
    return "plain"


def amount(name: str, value: float) -> str:
    """A feature's value with its unit, rounded for reading."""
    unit = _unit(name)
    if unit == "bp":
        return f"{value:.3g} bp"
    if unit in ("percent", "share"):
        return f"{100.0 * value:.3g}%"
    if unit == "sigmas":
        return f"{value:.3g} sigma"
    if unit == "span":
        return span(int(value))
    return f"{value:.3g}"


def move(log_return: float, unit: str) -> str:
    """A log return as a simple one, signed: in percent, or in basis points where `unit` is 'bp'."""
    simple = expm1(log_return)
    return f"{1e4 * simple:+.1f} bp" if unit == "bp" else f"{100.0 * simple:+.2f}%"


def move_unit(width: float) -> str:
    """Basis points for bands narrower than half a percent, percent for the rest."""
    return "bp" if width < 0.005 else "%"


def breadth(width: float, unit: str) -> str:
    """The width of a band, from its log returns, unsigned."""
    return f"{1e4 * width:.1f} bp" if unit == "bp" else f"{100.0 * width:.2f}%"


def price(value: float) -> str:
    """At least two decimals, and five significant digits for small prices."""
    if value >= 1000.0:
        return f"{value:,.2f}"
    decimals = 2 if value >= 100.0 else min(12, 4 - floor(log10(value))) if value > 0.0 else 2
    return f"{value:.{decimals}f}"


@lru_cache(maxsize=256)
def bar_words(interval: str) -> str:
    """'1d' → 'day', '60s' → 'minute', '30s' → '30s bar', 'volume:5000' → 'bar of volume 5000'."""
    named = {
        "1d": "day",
        "60s": "minute",
        "1m": "minute",
        "1h": "hour",
        "60m": "hour",
        "3600s": "hour",
        "1s": "second",
    }
    if interval in named:
        return named[interval]
    clock, found, size = interval.partition(":")
    return f"{clock} bar of {size}" if found else f"{interval} bar"


def span(duration_ns: int) -> str:
    """A span in the one unit that suits it: '35 s', '12 min', '3 h', '2 d'."""
    seconds = duration_ns / 1e9
    if seconds < 90:
        return f"{seconds:.3g} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    if seconds < 129_600:
        return f"{seconds / 3600:.0f} h"
    return f"{seconds / 86_400:.0f} d"
