"""Version 4 of the rationale's words, `templates/4`: ledgers that name it are verified by it. It is never changed."""

from collections.abc import Mapping
from functools import lru_cache
from math import exp, expm1, floor, log10

from htfi.domain.decision import FeatureDriver, KnownEvents, NewsTilt, Regime
from htfi.domain.news_view import NewsView
from htfi.narrative.rationale.phrasing import SLOT, load_sentences
from htfi.narrative.rationale.units import reader_name
from htfi.narrative.text import clean, quote

_MAX_WORDS_CHARS = 200
_MIN_LARGE = 999.5  # from here on, three significant digits would need an exponent
_STATES = {
    Regime.CALM: "calm",
    Regime.NORMAL: "trading normally",
    Regime.STRESSED: "under stress",
    Regime.SHOCK: "in shock",
}
_CONSISTENCIES = {
    "unmoved": "prices unmoved so far",
    "with": "prices already moved that way",
    "against": "prices moved against it",
}
_BARS = {
    "1d": "day",
    "1h": "hour",
    "60m": "hour",
    "3600s": "hour",
    "1m": "minute",
    "60s": "minute",
    "1s": "second",
}
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
_UNSPOKEN_UNITS = frozenset({"bps", "fraction", "sigmas"})


class PhrasingV4:
    """See `Phrasing`."""

    version = "templates/4"
    sentences = load_sentences("templates_4.toml")
    states_known = False

    def bar(self, interval: str) -> str:
        clock, found, size = interval.partition(":")
        return f"{clock} bar of {size}" if found else _BARS.get(interval, f"{interval} bar")

    def state(self, regime: Regime) -> str:
        return _STATES[regime]

    def unit(self, width: float) -> str:
        return "bp" if width < 0.005 else "%"

    def recorded_unit(self, slots: Mapping[str, str]) -> str:
        return "bp" if slots["low"].endswith("bp") else "%"

    def band_slots(self, last_price: float, low: float, high: float, unit: str) -> dict[str, str]:
        return {
            "low_price": _price(last_price * exp(low)),
            "high_price": _price(last_price * exp(high)),
            "low": _move(low, unit),
            "high": _move(high, unit),
        }

    def width(self, width: float, unit: str) -> str:
        return f"{1e4 * width:.1f} bp" if unit == "bp" else f"{100.0 * width:.2f}%"

    def last_move_slots(self, last_return: float, last_sigmas: float) -> dict[str, str]:
        unit = self.unit(abs(last_return))
        return {"last_move": _move(last_return, unit), "last_sigmas": _figure(abs(last_sigmas))}

    def driver(self, driver: FeatureDriver) -> str:
        pattern, rounded, factor = _comparison(driver.feature)
        value, usual, ratio = factor * driver.value, factor * driver.usual, driver.ratio
        if -_MIN_LARGE < value < _MIN_LARGE and usual < _MIN_LARGE and ratio < _MIN_LARGE:
            return rounded % (value, usual, ratio)
        return pattern % (_figure(value), _figure(usual), _figure(ratio))

    def expert(self, name: str) -> str:
        return name.replace("_", " ")

    def age(self, age_ns: int) -> str:
        seconds = age_ns * 1e-9
        if seconds < 90.0:
            return f"{seconds:.0f} s"
        if seconds < 5_400.0:
            return f"{seconds / 60.0:.0f} min"
        return f"{seconds / 3_600.0:.0f} h" if seconds < 129_600.0 else f"{seconds / 86_400.0:.0f} d"

    def view_slots(self, view: NewsView, symbol: str) -> dict[str, str]:
        if view.confidence <= 0.0:
            return {}
        slots = {
            "reader": reader_name(view.reader) or "a model",
            "volatility": f"{view.volatility_multiplier:g}x",
            "confidence": f"{100.0 * view.confidence:.0f}%",
            "consistency": _CONSISTENCIES.get(view.consistency, "prices not considered"),
        }
        known = {**slots, "symbol": symbol, "direction": "sideways", "size": "nothing"}
        if view.direction:
            moving = {
                "direction": "up" if view.direction > 0.0 else "down",
                "size": f"{view.size_sigmas:g} sigma",
            }
            slots.update(moving)
            known.update(moving)
        words = SLOT.sub(lambda slot: known.get(slot[1], slot[0]), view.words)
        slots["words"] = quote(clean(words, _MAX_WORDS_CHARS)) if words else "no reason given"
        if view.provisional and view.trace is not None and not view.prepared:
            slots["settled"] = str(view.trace.num_verified)
            slots["tokens"] = str(len(view.trace.tokens))
        return slots

    def tilt_slots(self, tilt: NewsTilt, unit: str) -> dict[str, str]:
        weight = tilt.weight[0]
        wider = 100.0 * weight * (tilt.stretch[0] - 1.0)
        change = f"{'widens' if wider > 0.0 else 'narrows'} the band by {abs(wider):.0f}%"
        return {
            "tilt_weight": f"{100.0 * weight:.0f}%",
            "median_move": _move(weight * tilt.shift[0], unit),
            "band_change": change if abs(wider) >= 0.5 else "leaves the band as wide",
        }

    def divergence(self, tilt: NewsTilt) -> str:
        return f"{int(100.0 * tilt.divergence_rank + 1e-9)}%"

    def prepared(self, view: NewsView) -> str:
        return clean(view.prepared, _MAX_WORDS_CHARS)

    def known_slots(self, known: KnownEvents, interval: str) -> dict[str, str]:
        del known, interval
        return {}


@lru_cache(maxsize=4096)
def _comparison(feature: str) -> tuple[str, str, float]:
    words = feature.split("_")
    sign, factor = next((_UNITS[word] for word in reversed(words) if word in _UNITS), ("", 1.0))
    name = " ".join(_EXPANSIONS.get(word, word) for word in words if word not in _UNSPOKEN_UNITS) or feature
    amount = "%s" + sign.replace("%", "%%")
    pattern = f"{name.replace('%', '%%')} {amount} against a usual {amount} (%sx)"
    return pattern, pattern.replace("%s", "%.3g"), factor


def _figure(value: float) -> str:
    return f"{value:.3g}" if -_MIN_LARGE < value < _MIN_LARGE else f"{value:,.0f}"


def _move(log_return: float, unit: str) -> str:
    return f"{1e4 * expm1(log_return):+.1f} bp" if unit == "bp" else f"{100.0 * expm1(log_return):+.2f}%"


def _price(value: float) -> str:
    if value >= 10.0:
        return f"{value:,.2f}"
    return f"{value:.{min(12, 4 - floor(log10(value)))}f}" if value > 0.0 else f"{value:.2f}"
