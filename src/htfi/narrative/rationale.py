"""Writes why a forecast is what it is: prepared sentences, filled only from slots that code computed.

The loop calls it once per decision. The sentences hold no digit, so every figure in the text is a slot's, and
`fill(rationale.template, rationale.slots)` gives the same text again.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import exp

from htfi.domain.decision import Driver, Rationale, Regime, series_id
from htfi.domain.events import News
from htfi.narrative.text import clean, quote
from htfi.narrative.words import amount, bar_words, breadth, feature_words, move, move_unit, price, span

VERSION = "templates/1"

WIDER, NARROWER = 1.10, 1 / 1.10  # the band against the one before
JUMP_SIGMAS = 4.0
EQUAL_WITHIN = 0.01  # weights closer than this name no leader

SENTENCES = {
    "first": (
        "First forecast for {series}, which is {state}: the next {bar} closes between {low_price} and {high_price} "
        "({low} to {high}) with {coverage} probability."
    ),
    "steady": (
        "{series} is {state}: the next {bar} closes between {low_price} and {high_price} ({low} to {high}) with "
        "{coverage} probability, a band of {width} after {previous_width}."
    ),
    "widening": (
        "The band for {series} widens to {width} from {previous_width}: the next {bar} closes between {low_price} "
        "and {high_price} ({low} to {high}) with {coverage} probability. The market is {state}."
    ),
    "narrowing": (
        "The band for {series} narrows to {width} from {previous_width}: the next {bar} closes between {low_price} "
        "and {high_price} ({low} to {high}) with {coverage} probability. The market is {state}."
    ),
    "after_jump": (
        "{series} moved {last_move}, {last_sigmas} times the usual size: the next {bar} closes between {low_price} "
        "and {high_price} ({low} to {high}) with {coverage} probability, a band of {width} after {previous_width}."
    ),
    "shock": (
        "Shock in {series}, last move {last_move}. Provisional: the next {bar} closes between {low_price} and "
        "{high_price} ({low} to {high}) with {coverage} probability, a band of {width} after {previous_width}."
    ),
    "one_driver": " Out of line: {driver_a}.",
    "two_drivers": " Out of line: {driver_a}; {driver_b}.",
    "three_drivers": " Out of line: {driver_a}; {driver_b}; {driver_c}.",
    "no_drivers": " No feature is far from its usual value.",
    "leader": " {expert} leads the experts with {expert_weight} of the weight.",
    "equal_experts": " The experts still weigh the same.",
    "one_headline": " On the wire: {headline_a}, {age_a} ago. It is cited, not weighed.",
    "two_headlines": " On the wire: {headline_a}, {age_a} ago; {headline_b}, {age_b} ago. They are cited, not weighed.",
    "three_headlines": (
        " On the wire: {headline_a}, {age_a} ago; {headline_b}, {age_b} ago; {headline_c}, {age_c} ago. They are "
        "cited, not weighed."
    ),
}
_LETTERS = "abc"
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
    drivers: Sequence[Driver] = (),
    has_usual: bool = False,
    weights: Mapping[str, float] | None = None,
    headlines: Sequence[News] = (),
) -> Rationale:
    """One paragraph for one forecast, from plain values.

    Units: `low` and `high` bound the central `coverage` band of the next bar's log return; `previous_width` is the
    width of the band forecast one bar ago; `last_return` the latest log return, `last_sigmas` its size in the
    standard deviations then expected. `weights` are the experts' at the first horizon. `headlines` come cleaned by
    the wire, newest first. Of drivers and headlines the first three are told.
    """
    width = high - low
    unit = move_unit(width)
    slots = {
        "series": _series(symbol, interval),
        "state": _STATES[regime],
        "bar": bar_words(interval),
        "low_price": price(last_price * exp(low)),
        "high_price": price(last_price * exp(high)),
        "low": move(low, unit),
        "high": move(high, unit),
        "coverage": f"{100.0 * coverage:.3g}%",
    }
    if previous_width is None or last_return is None:
        parts = ["first"]
    else:
        slots["width"] = breadth(width, unit)
        slots["previous_width"] = breadth(previous_width, unit)
        parts = [_situation(regime, width / previous_width if previous_width > 0.0 else 1.0, last_sigmas)]
        if parts[0] in ("shock", "after_jump"):
            slots["last_move"] = move(last_return, unit)
            if last_sigmas is not None:
                slots["last_sigmas"] = f"{abs(last_sigmas):.1f}"
    told = drivers[:3]
    if told or has_usual:
        parts.append(_DRIVERS[len(told)])
        for driver, letter in zip(told, _LETTERS, strict=False):
            slots[f"driver_{letter}"] = driver_words(driver)
    if weights:
        parts.append(_fill_experts(weights, slots))
    cited = headlines[:3]
    if cited:
        parts.append(_HEADLINES[len(cited)])
        for item, letter in zip(cited, _LETTERS, strict=False):
            slots[f"headline_{letter}"] = quote(item.headline)
            slots[f"age_{letter}"] = span(as_of_ns - item.available_at_ns)
    template = "+".join(parts)
    return Rationale(fill(template, slots), template, slots, list(told), [item.id for item in cited])


def fill(template: str, slots: Mapping[str, str]) -> str:
    """The text of a rationale from its template's name and its slots. Raises: KeyError where they do not fit."""
    return _paragraph(template).format_map(slots)


def driver_words(driver: Driver) -> str:
    """'spread 3.1 bp, 2.4 times its usual 1.3 bp'."""
    name = driver.feature
    return (
        f"{feature_words(name)} {amount(name, driver.value)}, "
        f"{driver.ratio:.2g} times its usual {amount(name, driver.usual)}"
    )


def _situation(regime: Regime, widened: float, last_sigmas: float | None) -> str:
    if regime is Regime.SHOCK:
        return "shock"
    if last_sigmas is not None and abs(last_sigmas) >= JUMP_SIGMAS:
        return "after_jump"
    if widened >= WIDER:
        return "widening"
    return "narrowing" if widened <= NARROWER else "steady"


def _fill_experts(weights: Mapping[str, float], slots: dict[str, str]) -> str:
    leader = max(weights, key=weights.__getitem__)
    if weights[leader] - min(weights.values()) < EQUAL_WITHIN:
        return "equal_experts"
    slots["expert"] = leader
    slots["expert_weight"] = f"{100.0 * weights[leader]:.0f}%"
    return "leader"


@lru_cache(maxsize=256)
def _paragraph(template: str) -> str:
    return "".join(SENTENCES[part] for part in template.split("+"))


@lru_cache(maxsize=4096)
def _series(symbol: str, interval: str) -> str:
    return clean(series_id(symbol, interval), 80)
