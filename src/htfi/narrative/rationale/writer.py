"""Writes why a forecast is what it is: prepared sentences, filled only from slots that code computed.

The loop calls it once per decision. The sentences hold no digit, so every figure in the text is a slot's, and
`fill(rationale.template, rationale.slots)` gives the same text again.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import exp
from operator import itemgetter

from htfi.domain.decision import FeatureDriver, NewsTilt, NewsView, Rationale, Regime, series_id
from htfi.domain.errors import InvalidInput
from htfi.domain.events import News
from htfi.narrative.merging import READER_SEPARATOR, find_contradictions
from htfi.narrative.rationale.sentences import CLAIM, OPENINGS, SENTENCES
from htfi.narrative.rationale.units import (
    band_width,
    bar_name,
    duration_words,
    feature_comparison,
    move_unit,
    move_words,
    price_words,
    significant,
)
from htfi.narrative.text import clean, quote

VERSION = "templates/4"

MIN_WIDER_RATIO, MAX_NARROWER_RATIO = 1.10, 1.0 / 1.10  # the band against the one before it
MIN_JUMP_SIGMAS = 4.0
MAX_EQUAL_SPREAD = 0.01  # weights closer together than this name no leader

MAX_WORDS_CHARS = 200
MAX_READER_CHARS = 40
_MAX_FULL_NAME_CHARS = 200
HANDOVER = ", then "  # where one model went on with what another began
_CONSISTENCIES = {
    "unmoved": "prices unmoved so far",
    "with": "prices already moved that way",
    "against": "prices moved against it",
}
SLOT = re.compile(r"\{(\w+)\}")
_OPENINGS_WITH_MOVE = ("shock", "after_jump")
_DRIVER_SLOTS = ("driver_a", "driver_b", "driver_c")
_HEADLINE_SLOTS = (("headline_a", "age_a"), ("headline_b", "age_b"), ("headline_c", "age_c"))
_DRIVERS = ("no_drivers", "one_driver", "two_drivers", "three_drivers")
_HEADLINES = ("", "one_headline", "two_headlines", "three_headlines")
_STATES = {
    Regime.CALM: "calm",
    Regime.NORMAL: "trading normally",
    Regime.STRESSED: "under stress",
    Regime.SHOCK: "in shock",
}


def write_rationale(
    *,
    symbol: str,
    interval: str,
    regime: Regime,
    last_price: float,
    low: float,
    high: float,
    as_of_ns: int,
    coverage: float = 0.9,
    previous_width: float | None = None,
    last_return: float | None = None,
    last_sigmas: float | None = None,
    drivers: Sequence[FeatureDriver] = (),
    has_usual: bool = False,
    weights: Mapping[str, float] | None = None,
    headlines: Sequence[News] = (),
    view: NewsView | None = None,
    tilt: NewsTilt | None = None,
    deepening: bool = False,
    consulting: bool = False,
    suspected: bool = False,
) -> Rationale:
    """One paragraph for one forecast, from plain values.

    Units: `low` and `high` bound the central `coverage` band of the next bar's log return; `previous_width`
    is the width of the band forecast one bar ago; `last_return` the latest log return, and `last_sigmas` its
    size in the standard deviations then expected. `weights` are the experts' at the first horizon.
    `headlines` come cleaned by the wire, newest first, `view` is what a reader made of them, and `tilt` what that
    has changed in the forecast, before it is read again in depth where it is `deepening`, or, for what
    the news are worth, `consulting`; `suspected` where the secure
    mode is on. Of drivers and headlines
    three are told; where there is no driver, `has_usual` says that there was something usual to compare with.
    """
    width = high - low
    unit = move_unit(width)
    slots = {
        "series": _series(symbol, interval),
        "state": _STATES[regime],
        "bar": bar_name(interval),
        **band_slots(last_price, low, high, unit),
        "coverage": f"{100.0 * coverage:.3g}%",
    }
    if previous_width is None or last_return is None:
        template = "first"
    else:
        slots["width"] = band_width(width, unit)
        slots["previous_width"] = band_width(previous_width, unit)
        template = _opening(regime, width, previous_width, last_sigmas)
        if template in _OPENINGS_WITH_MOVE:
            slots["last_move"] = move_words(last_return, move_unit(abs(last_return)))
            slots["last_sigmas"] = significant(abs(last_sigmas or 0.0))
    told = drivers[:3]
    if told or has_usual:
        template += "+" + _DRIVERS[len(told)]
        for name, driver in zip(_DRIVER_SLOTS, told, strict=False):
            slots[name] = feature_comparison(driver.feature, driver.value, driver.usual, driver.ratio)
    if weights:
        template += "+" + _expert_part(weights, slots)
    cited = headlines[:3]
    told_news = news_parts(cited, view, symbol, as_of_ns, slots, tilt=tilt, unit=unit, deepening=deepening)
    template += "".join(f"+{part}" for part in told_news)
    if consulting:
        template += "+consulting"
    if suspected:
        template += "+suspected"
    return Rationale(fill(template, slots), template, slots, list(told), [item.id for item in cited])


def news_parts(
    cited: Sequence[News],
    view: NewsView | None,
    symbol: str,
    as_of_ns: int,
    slots: dict[str, str],
    *,
    tilt: NewsTilt | None,
    unit: str,
    deepening: bool = False,
) -> list[str]:
    """The parts that tell the news, the opinion on them and what it was worth; their slots are put into `slots`."""
    parts: list[str] = []
    if cited:
        parts.append(_HEADLINES[len(cited)])
        for (name, age), item in zip(_HEADLINE_SLOTS, cited, strict=False):
            slots[name] = quote(item.headline)
            slots[age] = duration_words(as_of_ns - item.available_at_ns)
    opinion = view_slots(view, symbol) if view is not None else {}
    if cited:
        parts.append("read" if opinion else "unread")
    if opinion:
        parts.append("moving" if "size" in opinion else "flat")
        slots.update(opinion)
        parts += _weight_parts(tilt, unit, slots, deepening=deepening)
    if view is not None and find_contradictions(view.parts, view.as_of_ns):
        parts.append("contested")
    if view is not None and view.provisional:
        if view.prepared and view.read_at_ns == as_of_ns:
            slots["prepared"] = prepared_words(view)
            parts.append("prepared")
        else:
            parts.append("provisional" if "settled" in opinion else "still_provisional")
    return parts


def cited_headlines(rationale: Rationale) -> dict[str, str]:
    """The headlines that a rationale tells, quoted, by the id of their item."""
    slots = (rationale.slots.get(name, "") for name, _ in _HEADLINE_SLOTS)
    return {item: headline for item, headline in zip(rationale.cited, slots, strict=False) if headline}


def band_slots(last_price: float, low: float, high: float, unit: str) -> dict[str, str]:
    """The slots of the claim: the ends of the band as prices and as returns."""
    return {
        "low_price": price_words(last_price * exp(low)),
        "high_price": price_words(last_price * exp(high)),
        "low": move_words(low, unit),
        "high": move_words(high, unit),
    }


def band_unit(slots: Mapping[str, str]) -> str:
    """The unit that a rationale tells its band in."""
    return "bp" if slots["low"].endswith("bp") else "%"


def _weight_parts(tilt: NewsTilt | None, unit: str, slots: dict[str, str], *, deepening: bool) -> list[str]:
    if tilt is None:
        return ["weightless"]
    slots.update(tilt_slots(tilt, unit))
    if not deepening:
        return ["weighed"]
    slots["divergence"] = divergence_words(tilt)
    return ["weighed", "deepening"]


def tilt_slots(tilt: NewsTilt, unit: str) -> dict[str, str]:
    """The slots of what a tilt does at the first horizon."""
    weight = tilt.weight[0]
    wider = 100.0 * weight * (tilt.stretch[0] - 1.0)
    change = f"{'widens' if wider > 0.0 else 'narrows'} the band by {abs(wider):.0f}%"
    return {
        "tilt_weight": f"{100.0 * weight:.0f}%",
        "median_move": move_words(weight * tilt.shift[0], unit),
        "band_change": change if abs(wider) >= 0.5 else "leaves the band as wide",
    }


def prepared_words(view: NewsView) -> str:
    """The release and the outcome that a view was prepared for."""
    return clean(view.prepared, MAX_WORDS_CHARS)


def divergence_words(tilt: NewsTilt) -> str:
    """In how many of its narrator's tilts before there was less divergence; rounded down."""
    return f"{int(100.0 * tilt.divergence_rank + 1e-9)}%"


def fill(template: str, slots: Mapping[str, str]) -> str:
    """The text that a template's name and its slots make. Raises: InvalidInput if they do not fit."""
    try:
        words, pick = _compose(template)
        return words % pick(slots)
    except KeyError as missing:
        raise InvalidInput(f"rationale template '{template[:80]}': there is no {missing}") from None


def view_slots(view: NewsView, symbol: str) -> dict[str, str]:
    """The slots of an opinion; none where the reader had none. A flat one has no direction and no size."""
    if view.confidence <= 0.0:
        return {}
    told = {
        "reader": reader_name(view.reader) or "a model",
        "volatility": f"{view.volatility_multiplier:g}x",
        "confidence": f"{100.0 * view.confidence:.0f}%",
        "consistency": _CONSISTENCIES.get(view.consistency, "prices not considered"),
    }
    known = {**told, "symbol": symbol, "direction": "sideways", "size": "nothing"}
    if view.direction:
        moving = {
            "direction": "up" if view.direction > 0.0 else "down",
            "size": f"{view.size_sigmas:g} sigma",
        }
        told.update(moving)
        known.update(moving)
    words = SLOT.sub(lambda slot: known.get(slot[1], slot[0]), view.words)
    told["words"] = quote(clean(words, MAX_WORDS_CHARS)) if words else "no reason given"
    if view.provisional and view.wording is not None and not view.prepared:
        told["settled"] = str(view.wording.num_settled)
        told["tokens"] = str(len(view.wording.tokens))
    return told


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


def _opening(regime: Regime, width: float, previous_width: float, last_sigmas: float | None) -> str:
    if regime is Regime.SHOCK:
        return "shock"
    if last_sigmas is not None and abs(last_sigmas) >= MIN_JUMP_SIGMAS:
        return "after_jump"
    if width >= MIN_WIDER_RATIO * previous_width:
        return "widening"
    return "narrowing" if width <= MAX_NARROWER_RATIO * previous_width else "steady"


def _expert_part(weights: Mapping[str, float], slots: dict[str, str]) -> str:
    leader, most, least = "", -1.0, 2.0
    for name, weight in weights.items():
        if weight > most:
            leader, most = name, weight
        if weight < least:
            least = weight
    if most - least < MAX_EQUAL_SPREAD:
        return "equal_experts"
    slots["expert"] = leader.replace("_", " ")
    slots["expert_weight"] = f"{100.0 * most:.0f}%"
    return "leader"


@lru_cache(maxsize=512)
def _compose(template: str) -> tuple[str, Callable[[Mapping[str, str]], tuple[str, ...]]]:
    """A template's sentences as one %s pattern and the getter of its slots: half the time of `format_map`."""
    opening, *rest = template.split("+")
    paragraph = "".join([OPENINGS[opening], *(SENTENCES[part] for part in rest)]).replace("{claim}", CLAIM)
    return SLOT.sub("%s", paragraph), itemgetter(*SLOT.findall(paragraph))


@lru_cache(maxsize=4096)
def _series(symbol: str, interval: str) -> str:
    return clean(series_id(symbol, interval), 80)
