"""Figures and names as a person reads them: rounding, units, bars, spans of time, features, experts and readers.

Version 5 of the rationale is written with these, so what they give for a recorded value may not change: a version
with other figures brings its own.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import expm1, floor, log10

from htfi.domain.decision import FeatureDriver
from htfi.narrative.merging import READER_SEPARATOR
from htfi.narrative.text import clean

_MIN_LARGE = 999.5  # from here on, three significant digits would need an exponent
_MIN_SHOWN = 5e-7  # smaller amounts are no figure for a person
_MAX_COMPARABLE_RATIO = 10.0  # beyond it either way, what is usual is not a measure

# A feature's name ends in its unit, perhaps before a scale such as '5m': unit → how it reads, and the factor.
_UNITS = {
    "bps": (" bp", 1.0),
    "fraction": ("%", 100.0),
    "share": ("%", 100.0),
    "return": ("%", 100.0),
    "vol": ("%", 100.0),
    "volatility": ("%", 100.0),
    "range": ("%", 100.0),
    "sigmas": (" standard deviations", 1.0),
    "s": (" s", 1.0),
    "ms": (" ms", 1.0),
}
_UNSPOKEN_WORDS = frozenset({"bps", "fraction", "macro"})
_FEATURE_NAMES = {
    "return_last": "last return",
    "return_sigmas": "last return",
    "range_last": "range of the last bar",
    "range_vol": "volatility by ranges",
    "ewma_vol": "volatility by returns",
    "vol_ratio": "short-term volatility over its norm",
    "volume_ratio": "volume over its average",
    "ofi": "order-flow imbalance",
    "ofi_bar": "order-flow imbalance of the bar",
    "ofi_open_bar": "order-flow imbalance of the open bar",
    "jump_z": "jump statistic",
    "microprice_gap_bps": "gap between microprice and mid",
}
_EXPANSIONS = {
    "vol": "volatility",
    "ofi": "order-flow imbalance",
    "rv": "realised variance",
    "bv": "bipower variance",
    "vix": "VIX",
    "us": "U.S.",
    "uk": "UK",
    "cpi": "CPI",
    "ppi": "PPI",
    "pce": "PCE",
    "pmi": "PMI",
    "gdp": "GDP",
    "ecb": "ECB",
    "yoy": "year on year",
    "qoq": "quarter on quarter",
    "mom": "month on month",
}
_PERIODS = {"y y": "year on year", "q q": "quarter on quarter", "m m": "month on month"}
_SAME_FAMILY = {"bv": "rv"}  # two measures of one quantity: stated once
# Prices and tallies: how far they are from usual says nothing of risk.
_LEVELS = frozenset({"mid", "microprice", "price", "close", "bid", "ask", "count"})
_EXPERT_NAMES = {
    "ewma": "EWMA",
    "garch_t": "GARCH",
    "gjr_t": "GJR-GARCH",
    "har": "HAR",
    "historical_simulation": "historical simulation",
    "log_range_har": "log-range HAR",
    "market_har": "market HAR",
    "pooled": "pooled learner",
    "random_walk": "random walk",
    "chronos": "Chronos",
    "arch:figarch_t": "FIGARCH of arch",
    "arch:garch_skewt": "GARCH with skewed tails of arch",
    "arch:garch_t": "GARCH of arch",
    "arch:gjr_t": "GJR-GARCH of arch",
}
_CLOCKS = {"s": "second", "m": "minute", "h": "hour", "d": "day"}
_SAME_CLOCK = {"60s": "1m", "3600s": "1h", "60m": "1h"}


@lru_cache(maxsize=4096)
def feature_family(feature: str) -> str | None:
    """Features that measure one quantity share a family and are stated once; one without a family is never stated."""
    if feature.startswith("num_") or not _LEVELS.isdisjoint(feature.split("_")):
        return None
    words = [word for word in feature.split("_") if not any(char.isdigit() for char in word)]
    return _SAME_FAMILY.get(words[0], words[0]) if words else feature


def driver_words(driver: FeatureDriver) -> str:
    """'spread at 3.1 bp (usually 1.3 bp)'; where the two cannot be compared, 'far above usual'."""
    name, unit, factor = _feature(driver.feature)
    value, usual = factor * driver.value, factor * driver.usual
    if driver.ratio > _MAX_COMPARABLE_RATIO:
        compared = "far above usual"
    elif driver.ratio < 1.0 / _MAX_COMPARABLE_RATIO:
        compared = "far below usual"
    else:
        compared = f"usually {'±' if value < 0.0 else ''}{two_digits(usual)}{unit}"
    return f"{name} at {two_digits(value)}{unit} ({compared})"


@lru_cache(maxsize=4096)
def _feature(feature: str) -> tuple[str, str, float]:
    """A feature's name in words, its unit, and the factor to that unit."""
    words = [word for word in feature.split("_") if word]
    unit, factor = next((_UNITS[word] for word in reversed(words) if word in _UNITS), ("", 1.0))
    if feature in _FEATURE_NAMES:
        return _FEATURE_NAMES[feature], unit, factor
    kept = [word for word in words if word not in _UNSPOKEN_WORDS]
    ending = _PERIODS.get(" ".join(kept[-2:]))
    if ending is not None and len(kept) > 2:
        kept = [*kept[:-2], ending]
    return " ".join(map(_word, kept)) or feature, unit, factor


def _word(word: str) -> str:
    number, clock = word[:-1], _CLOCKS.get(word[-1], "")
    if number.isdigit() and clock:
        return f"over {number} {clock}{'s' * (number != '1')}"
    return _EXPANSIONS.get(word, word)


def expert_words(name: str) -> str:
    return _EXPERT_NAMES.get(name, name.replace("_", " "))


def two_digits(value: float) -> str:
    """Two significant digits, or all digits before the point of a larger number; never an exponent."""
    size = abs(value)
    if size < _MIN_SHOWN:
        return "0"
    if size >= 9.95:
        return f"{value:,.0f}"
    return f"{value:.{max(1 - floor(log10(size)), 1)}f}".rstrip("0").rstrip(".")


def significant(value: float) -> str:
    """Three significant digits, or all digits before the point of a large number."""
    return f"{value:.3g}" if -_MIN_LARGE < value < _MIN_LARGE else f"{value:,.0f}"


def percent(fraction: float, *, signed: bool = False) -> str:
    """A fraction in percent: two significant digits, whole numbers from ten on."""
    size = abs(100.0 * fraction)
    decimals = (
        0 if size >= 9.95 else 1 if size >= 0.995 else 2 if size >= 0.0995 else 3 if size >= 0.00995 else 4
    )
    sign = "+" if signed else ""
    return f"{100.0 * fraction:{sign},.{decimals}f}%" if size >= 0.00005 else "0%"


def return_words(log_return: float) -> str:
    """A log return as a simple one, signed, in percent."""
    return percent(expm1(log_return), signed=True)


def price_words(value: float) -> str:
    """Two decimals from 10 up, as shares trade; five significant digits below, as currencies do."""
    if value >= 10.0:
        return f"{value:,.2f}"
    return f"{value:.{min(12, 4 - floor(log10(value)))}f}" if value > 0.0 else f"{value:.2f}"


def sigmas_words(size: float) -> str:
    """A size in standard deviations of one bar's return."""
    if size < 0.05:
        return "less than 0.1 standard deviations"
    return f"{two_digits(size)} standard deviation{'s' * (two_digits(size) != '1')}"


def volatility_words(multiplier: float) -> str:
    """A multiplier of volatility: '25% above usual', 'as usual'."""
    change = percent(abs(multiplier - 1.0))
    if abs(multiplier - 1.0) < 0.005:
        return "as usual"
    return f"{change} {'above' if multiplier > 1.0 else 'below'} usual"


@lru_cache(maxsize=1024)
def bar_name(interval: str) -> str:
    """'1d' → 'day', '60s' → 'minute', '5m' → '5-minute bar', 'volume:5000' → 'volume bar of 5,000'."""
    kind, found, size = interval.partition(":")
    if found:
        return f"{kind} bar of {int(size):,}" if size.isdigit() else f"{kind} bar of {size}"
    interval = _SAME_CLOCK.get(interval, interval)
    number, clock = interval[:-1], _CLOCKS.get(interval[-1:], "")
    if not (number.isdigit() and clock):
        return f"{interval} bar"
    return clock if number == "1" else f"{number}-{clock} bar"


def duration_words(duration_ns: int) -> str:
    """A span in the one unit that suits it: '35 seconds', '1 minute', '3 hours', '2 days'."""
    seconds = duration_ns * 1e-9
    if seconds < 90.0:
        number, unit = seconds, "second"
    elif seconds < 5_400.0:
        number, unit = seconds / 60.0, "minute"
    elif seconds < 129_600.0:
        number, unit = seconds / 3_600.0, "hour"
    else:
        number, unit = seconds / 86_400.0, "day"
    return f"{number:.0f} {unit}{'s' * (round(number) != 1)}"


HANDOVER = ", then "  # where one model continued what another began
MAX_READER_CHARS = 40
_MAX_FULL_NAME_CHARS = 200


def reader_name(reader: str) -> str:
    """Who read, without digests."""
    return READER_SEPARATOR.join(
        HANDOVER.join(
            name
            for model in one.split(HANDOVER)
            if (name := clean(model.partition("@")[0], MAX_READER_CHARS))
        )
        for one in reader.split(READER_SEPARATOR)
    )


def reader_names(readers: Sequence[str]) -> dict[str, str]:
    """A name for each reader, without digests; with them where two would have the same."""
    short = {reader: reader_name(reader) or "a model" for reader in readers}
    shared = {name for name in short.values() if sum(other == name for other in short.values()) > 1}
    return {
        reader: clean(reader, _MAX_FULL_NAME_CHARS) if name in shared else name
        for reader, name in short.items()
    }
