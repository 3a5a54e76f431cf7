"""Version 5 of the rationale's words, `templates/5`: natural sentences, figures rounded to what a person can use.

Once a ledger names this version, a sentence or a figure is changed by a new version only.
"""

from collections.abc import Mapping, Sequence
from math import exp

from htfi.domain.decision import FeatureDriver, KnownEvents, NewsTilt, Regime
from htfi.domain.news_view import NewsView
from htfi.narrative.rationale.phrasing import SLOT, load_sentences
from htfi.narrative.rationale.units import (
    bar_name,
    driver_words,
    duration_words,
    expert_words,
    percent,
    price_words,
    reader_name,
    return_words,
    sigmas_words,
    two_digits,
    volatility_words,
)
from htfi.narrative.text import clean, quote

_MAX_WORDS_CHARS = 200
_STATES = {
    Regime.CALM: "calm",
    Regime.NORMAL: "trading normally",
    Regime.STRESSED: "under stress",
    Regime.SHOCK: "in shock",
}
_CONSISTENCIES = {
    "unmoved": "prices had not moved on it yet",
    "with": "prices had already moved that way",
    "against": "prices had moved the other way",
}


class PhrasingV5:
    """See `Phrasing`. Returns and widths are in percent, each with the digits that its size needs."""

    version = "templates/5"
    sentences = load_sentences("templates_5.toml")
    states_known = False

    def bar(self, interval: str) -> str:
        return bar_name(interval)

    def state(self, regime: Regime) -> str:
        return _STATES[regime]

    def unit(self, width: float) -> str:
        del width
        return "%"

    def recorded_unit(self, slots: Mapping[str, str]) -> str:
        del slots
        return "%"

    def band_slots(self, last_price: float, low: float, high: float, unit: str) -> dict[str, str]:
        del unit
        return {
            "low_price": price_words(last_price * exp(low)),
            "high_price": price_words(last_price * exp(high)),
            "low": return_words(low),
            "high": return_words(high),
        }

    def width(self, width: float, unit: str) -> str:
        del unit
        return percent(width)

    def widths(self, widths: Sequence[float]) -> list[str]:
        """What `width` gives for each, whatever its unit."""
        return [percent(width) for width in widths]

    def last_move_slots(self, last_return: float, last_sigmas: float) -> dict[str, str]:
        return {"last_move": return_words(last_return), "last_sigmas": two_digits(abs(last_sigmas))}

    def driver(self, driver: FeatureDriver) -> str:
        return driver_words(driver)

    def expert(self, name: str) -> str:
        return expert_words(name)

    def age(self, age_ns: int) -> str:
        return duration_words(age_ns)

    def view_slots(self, view: NewsView, symbol: str) -> dict[str, str]:
        if view.confidence <= 0.0:
            return {}
        slots = {
            "reader": reader_name(view.reader) or "a model",
            "volatility": volatility_words(view.volatility_multiplier),
            "confidence": f"{100.0 * view.confidence:.0f}%",
            "consistency": _CONSISTENCIES.get(view.consistency, "recent prices were not considered"),
        }
        known = {**slots, "symbol": symbol, "direction": "sideways", "size": "nothing"}
        if view.direction:
            moving = {
                "direction": "up" if view.direction > 0.0 else "down",
                "size": sigmas_words(view.size_sigmas),
            }
            slots.update(moving)
            known.update(moving)
        words = SLOT.sub(lambda slot: known.get(slot[1], slot[0]), view.words)
        slots["words"] = quote(clean(words, _MAX_WORDS_CHARS)) if words else "none"
        if view.provisional and view.trace is not None and not view.prepared:
            slots["settled"] = str(view.trace.num_verified)
            slots["tokens"] = str(len(view.trace.tokens))
        return slots

    def tilt_slots(self, tilt: NewsTilt, unit: str) -> dict[str, str]:
        del unit
        weight = tilt.weight[0]
        moved = weight * tilt.shift[0]
        wider = weight * (tilt.stretch[0] - 1.0)
        change = f"{'widens' if wider > 0.0 else 'narrows'} the band by {100.0 * abs(wider):,.0f}%"
        return {
            "tilt_weight": f"{100.0 * weight:.0f}%",
            "median_move": return_words(moved) if abs(moved) >= 1e-6 else "less than 0.0001%",
            "band_change": change if abs(wider) >= 0.005 else "leaves the width of the band unchanged",
        }

    def divergence(self, tilt: NewsTilt) -> str:
        return f"{int(100.0 * tilt.divergence_rank + 1e-9)}%"

    def prepared(self, view: NewsView) -> str:
        return clean(view.prepared, _MAX_WORDS_CHARS)

    def known_slots(self, known: KnownEvents, interval: str) -> dict[str, str]:
        del known, interval
        return {}
