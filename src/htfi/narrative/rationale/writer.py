"""Writes why a forecast is what it is: prepared sentences of a version, filled only from slots that code computed.

The main path calls `state_rationale` once per decision, which chooses the sentences; words are made for those who read
them (`slots_that_follow`). `amendment` and auditors use the parts.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from math import nan

from msgspec import UNSET, UnsetType

from htfi.domain.decision import (
    BAND_LEVELS,
    FeatureDriver,
    KnownEvents,
    NewsTilt,
    Rationale,
    Regime,
    series_id,
)
from htfi.domain.events import News
from htfi.domain.news_view import NewsView
from htfi.domain.plan import FidelityPlan, LadderInputs, PlanReason, Rung
from htfi.narrative.merging import find_contradictions
from htfi.narrative.rationale.choice import MAX_EQUAL_SPREAD, choose_opening, first_sentences, with_known
from htfi.narrative.rationale.phrasing import Phrasing, slots_in
from htfi.narrative.rationale.versions import CURRENT
from htfi.narrative.text import clean, quote

_COVERAGE = f"{100.0 * (BAND_LEVELS[1] - BAND_LEVELS[0]):.3g}%"
DRIVER_SLOTS = ("driver_a", "driver_b", "driver_c")
HEADLINE_SLOTS = (("headline_a", "age_a"), ("headline_b", "age_b"), ("headline_c", "age_c"))
# In the order in which a rationale has them. The list may grow at its end.
SLOT_ORDER = (
    "series", "state", "bar", "low_price", "high_price", "low", "high", "coverage", "width", "previous_width",
    "last_move", "last_sigmas", *DRIVER_SLOTS, "expert", "expert_weight",
    *(name for pair in HEADLINE_SLOTS for name in pair),
    "reader", "volatility", "confidence", "consistency", "direction", "size", "words", "settled", "tokens",
    "tilt_weight", "median_move", "band_change", "divergence", "prepared", "waiting", "time_left", "reader_rung",
    "next_bar", "known_factor",
)  # fmt: skip
_HEADLINES = ("", "one_headline", "two_headlines", "three_headlines")


def state_rationale(
    *,
    symbol: str,
    regime: Regime,
    width: float,
    as_of_ns: int,
    previous_width: float | None = None,
    last_return: float | None = None,
    last_sigmas: float | None = None,
    drivers: Sequence[FeatureDriver] = (),
    has_usual: bool = False,
    is_led: bool | None = None,
    headlines: Sequence[News] = (),
    view: NewsView | None = None,
    tilt: NewsTilt | None = None,
    deepening: bool = False,
    consulting: bool = False,
    suspected: bool = False,
    plan: FidelityPlan | None = None,
    known: KnownEvents | UnsetType = UNSET,
    phrasing: Phrasing = CURRENT,
) -> Rationale:
    """What one paragraph on one forecast says, from plain values: its sentences in `phrasing`, its drivers and cited
    items. It has no text yet, and of its slots those alone that nothing else in the decision gives: the width before
    and the headlines.

    Units: `width` is that of the central band of the next bar's log return, `previous_width` that of the band forecast
    one bar ago; `last_return` is the latest log return, and `last_sigmas` its size in the standard deviations then
    expected. `is_led`: one expert leads (`is_led_by_one`), None without experts. `headlines` are cleaned, newest first;
    `view` is what a reader made of them, and `tilt` what that changed in the forecast. A deeper reading follows because
    numbers and news disagree (`deepening`) or because of what the news is worth (`consulting`); `suspected` marks
    suspected manipulation; `plan` shows whether load lowered the rung; `known` is what was known of the next bar. At
    most three drivers and three headlines are stated; without a driver, `has_usual` says that there was something usual
    to compare with.
    """
    slots: dict[str, str] = {}
    unit = phrasing.unit(width)
    if previous_width is not None and last_return is not None:
        slots["previous_width"] = phrasing.width(previous_width, unit)
    before, moved, sigmas = (
        nan if value is None else value for value in (previous_width, last_return, last_sigmas)
    )
    opening = choose_opening(width, before, moved, sigmas, regime is Regime.SHOCK)
    if known is not UNSET and phrasing.states_known:
        opening = with_known(opening, known.factor)
    stated = drivers[:3]
    num_drivers = len(stated) if stated or has_usual else -1
    template = first_sentences(opening, num_drivers, is_led)
    cited = headlines[:3]
    if cited or view is not None:
        worded: dict[str, str] = {}
        parts = news_parts(
            cited,
            view,
            symbol,
            as_of_ns,
            worded,
            tilt=tilt,
            unit=unit,
            deepening=deepening,
            phrasing=phrasing,
        )
        template += "".join(f"+{part}" for part in parts)
        slots |= {name: worded[name] for pair in HEADLINE_SLOTS[: len(cited)] for name in pair}
    if consulting:
        template += "+consulting"
    if suspected:
        template += "+suspected"
    if plan is not None and PlanReason.HIGH_LOAD in plan.reasons and plan.inputs is not UNSET:
        template += "+loaded"
    return Rationale("", template, slots, list(stated), [item.id for item in cited])


def is_led_by_one(weights: Collection[float]) -> bool | None:
    """Whether one expert leads, by their weights at the first horizon; None without experts."""
    return max(weights) - min(weights) >= MAX_EQUAL_SPREAD if weights else None


def slots_that_follow(
    stated: Rationale,
    *,
    symbol: str,
    interval: str,
    regime: Regime,
    last_price: float,
    low: float,
    high: float,
    last_return: float | None,
    last_sigmas: float | None,
    weights: Mapping[str, float],
    view: NewsView | None,
    tilt: NewsTilt | None,
    plan: FidelityPlan | None,
    known: KnownEvents | UnsetType,
    phrasing: Phrasing,
) -> dict[str, str]:
    """The slots of a stated rationale that follow from plain values; of itself its sentences and drivers count, and
    whether it states the width before. Units as in `state_rationale`; `low` and `high` bound the band in log return.
    """
    wanted = slots_in(stated.template, phrasing)
    unit = phrasing.unit(high - low)
    slots = {
        "series": series_slot(symbol, interval),
        "state": phrasing.state(regime),
        "bar": phrasing.bar(interval),
        **phrasing.band_slots(last_price, low, high, unit),
        "coverage": _COVERAGE,
    }
    if "previous_width" in stated.slots:
        slots["width"] = phrasing.width(high - low, unit)
    if "last_move" in wanted and last_return is not None:
        slots |= phrasing.last_move_slots(last_return, last_sigmas or 0.0)
    for name, driver in zip(DRIVER_SLOTS, stated.drivers, strict=False):
        slots[name] = phrasing.driver(driver)
    if "expert" in wanted:
        leader = max(weights, key=weights.__getitem__)
        slots |= {"expert": phrasing.expert(leader), "expert_weight": f"{100.0 * weights[leader]:.0f}%"}
    if view is not None and "reader" in wanted:
        slots |= phrasing.view_slots(view, symbol)
    if tilt is not None and "tilt_weight" in wanted:
        slots |= phrasing.tilt_slots(tilt, unit)
    if tilt is not None and "divergence" in wanted:
        slots["divergence"] = phrasing.divergence(tilt)
    if view is not None and "prepared" in wanted:
        slots["prepared"] = phrasing.prepared(view)
    if plan is not None and "waiting" in wanted and plan.inputs is not UNSET:
        slots |= load_slots(plan.rung, plan.inputs)
    if known is not UNSET and "next_bar" in wanted:
        slots |= phrasing.known_slots(known, interval)
    return slots


def in_slot_order(slots: Mapping[str, str]) -> dict[str, str]:
    """The slots in the order in which every rationale has them."""
    return {name: slots[name] for name in SLOT_ORDER if name in slots}


def load_slots(rung: Rung, inputs: LadderInputs) -> dict[str, str]:
    """The slots of the sentence on high load: how many readings were due in which time, and who read instead."""
    reader = "draft model read alone" if rung is Rung.EDGE else "news was cited without a reading"
    left = f"{inputs.left_ms:,.0f} ms" if inputs.left_ms >= 0.5 else "no time"
    return {"waiting": f"{inputs.num_waiting:,}", "time_left": left, "reader_rung": reader}


def news_parts(
    cited: Sequence[News],
    view: NewsView | None,
    symbol: str,
    as_of_ns: int,
    slots: dict[str, str],
    *,
    tilt: NewsTilt | None,
    unit: str,
    phrasing: Phrasing,
    deepening: bool = False,
) -> list[str]:
    """The parts on the news, the opinion on it and what that was worth; their slots are put into `slots`."""
    parts: list[str] = []
    if cited:
        parts.append(_HEADLINES[len(cited)])
        for (name, age), item in zip(HEADLINE_SLOTS, cited, strict=False):
            slots[name] = quote(item.headline)
            slots[age] = phrasing.age(as_of_ns - item.available_at_ns)
    opinion = phrasing.view_slots(view, symbol) if view is not None else {}
    if cited:
        parts.append("read" if opinion else "unread")
    if opinion:
        parts.append("moving" if "size" in opinion else "flat")
        slots.update(opinion)
        parts += _weight_parts(tilt, phrasing, unit, slots, deepening=deepening)
    if view is not None and find_contradictions(view.parts, view.as_of_ns):
        parts.append("contested")
    if view is not None and view.provisional:
        if view.prepared and view.read_at_ns == as_of_ns:
            slots["prepared"] = phrasing.prepared(view)
            parts.append("prepared")
        else:
            parts.append("provisional" if "settled" in opinion else "still_provisional")
    return parts


def cited_headlines(rationale: Rationale) -> dict[str, str]:
    """The headlines that a rationale cites, quoted, by the id of their item."""
    slots = (rationale.slots.get(name, "") for name, _ in HEADLINE_SLOTS)
    return {item: headline for item, headline in zip(rationale.cited, slots, strict=False) if headline}


def _weight_parts(
    tilt: NewsTilt | None, phrasing: Phrasing, unit: str, slots: dict[str, str], *, deepening: bool
) -> list[str]:
    if tilt is None:
        return ["weightless"]
    slots.update(phrasing.tilt_slots(tilt, unit))
    if not deepening:
        return ["weighed"]
    slots["divergence"] = phrasing.divergence(tilt)
    return ["weighed", "deepening"]


@lru_cache(maxsize=4096)
def series_slot(symbol: str, interval: str) -> str:
    """What a series is called in a sentence."""
    return clean(series_id(symbol, interval), 80)
