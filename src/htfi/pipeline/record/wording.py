"""A rationale as what is needed to word it again: its template, and of its slots what the decision does not give.

A slot that follows from the decision is left out, as long as the phrasing of the recorded version gives just what the
rationale holds; what differs is spelled. So the words come out exactly as they were, whatever made them.
"""

from collections.abc import Sequence
from functools import cache

import msgspec
from msgspec import UNSET

from htfi.domain.decision import BAND_LEVELS, Decision, FeatureDriver, Rationale
from htfi.narrative.rationale.phrasing import Phrasing, fill, slots_in
from htfi.narrative.rationale.versions import MODEL_KEY, PHRASINGS, phrasing_of
from htfi.narrative.rationale.writer import DRIVER_SLOTS, HEADLINE_SLOTS, load_slots, series_slot
from htfi.narrative.text import quote

_COVERAGE = f"{100.0 * (BAND_LEVELS[1] - BAND_LEVELS[0]):.3g}%"
_PREVIOUS_WIDTH = "previous_width"

# In the order in which a rationale has them. The list may grow at its end.
SLOT_ORDER = (
    "series", "state", "bar", "low_price", "high_price", "low", "high", "coverage", "width", _PREVIOUS_WIDTH,
    "last_move", "last_sigmas", *DRIVER_SLOTS, "expert", "expert_weight",
    *(name for pair in HEADLINE_SLOTS for name in pair),
    "reader", "volatility", "confidence", "consistency", "direction", "size", "words", "settled", "tokens",
    "tilt_weight", "median_move", "band_change", "divergence", "prepared", "waiting", "time_left", "reader_rung",
)  # fmt: skip
_PLACES = {name: place for place, name in enumerate(SLOT_ORDER)}


class DriverFacts(msgspec.Struct, frozen=True):
    """A feature that stands out: its place among the decision's features, and what is usual for it."""

    feature: int
    usual: float


class RationaleFacts(msgspec.Struct, frozen=True):
    """What words a rationale again. `template` are places among the openings and parts of the version; `spelled` are
    slots by their place in `SLOT_ORDER`, `absent` those that would follow and are not there. `whole` is a rationale
    that no version of the program wrote for this decision; all else is then empty.
    """

    template: tuple[int, ...] = ()
    drivers: tuple[DriverFacts, ...] = ()
    cited: tuple[str, ...] = ()
    spelled: dict[int, str] = {}
    absent: tuple[int, ...] = ()
    whole: Rationale | None = None


def facts_of(decision: Decision) -> RationaleFacts:
    """What words the decision's rationale again."""
    rationale, slots = decision.rationale, decision.rationale.slots
    phrasing = PHRASINGS.get(decision.models.get(MODEL_KEY, ""))
    places = None if phrasing is None else _places_of(rationale.template, phrasing)
    drivers = _driver_facts(decision)
    if phrasing is None or places is None or drivers is None or not _PLACES.keys() >= slots.keys():
        return RationaleFacts(whole=rationale)
    given = _following(decision, rationale, phrasing)
    facts = RationaleFacts(
        places,
        drivers,
        tuple(rationale.cited),
        {_PLACES[name]: words for name, words in slots.items() if given.get(name) != words},
        tuple(_PLACES[name] for name in given if name not in slots),
    )
    in_order = sorted(slots, key=_PLACES.__getitem__) == [*slots]
    if not in_order or fill(rationale.template, slots, phrasing) != rationale.text:
        return RationaleFacts(whole=rationale)
    return facts


def worded(facts: RationaleFacts, decision: Decision) -> Rationale:
    """The rationale of a decision that is complete but for it.

    Raises: InvalidInput for a version that is not known; IndexError, KeyError where the facts are not of it.
    """
    if facts.whole is not None:
        return facts.whole
    phrasing = phrasing_of(decision.models)
    names, features = _part_names(phrasing), list(decision.features.items())
    drivers: list[FeatureDriver] = []
    for one in facts.drivers:
        name, value = features[one.feature]
        drivers.append(FeatureDriver(name, value, one.usual, abs(value) / one.usual))
    template = "+".join(names[place] for place in facts.template)
    spelled = {SLOT_ORDER[place]: words for place, words in facts.spelled.items()}
    known = Rationale("", template, spelled, drivers, list(facts.cited))
    slots = _following(decision, known, phrasing) | spelled
    for place in facts.absent:
        del slots[SLOT_ORDER[place]]
    slots = {name: slots[name] for name in SLOT_ORDER if name in slots}
    return Rationale(fill(template, slots, phrasing), template, slots, drivers, known.cited)


def _following(decision: Decision, rationale: Rationale, phrasing: Phrasing) -> dict[str, str]:
    """The slots that follow from a decision; of the rationale, template, drivers and cited items count, and whether it
    states the band's width before.
    """
    wanted = slots_in(rationale.template, phrasing)
    low, high = decision.forecast.central_band
    unit = phrasing.unit(high - low)
    slots = {
        "series": series_slot(decision.symbol, decision.interval),
        "state": phrasing.state(decision.regime),
        "bar": phrasing.bar(decision.interval),
        **phrasing.band_slots(decision.last_price, low, high, unit),
        "coverage": _COVERAGE,
    }
    if _PREVIOUS_WIDTH in rationale.slots:
        slots["width"] = phrasing.width(high - low, unit)
    if "last_move" in wanted and "return_last" in decision.features:
        sigmas = decision.features.get("return_sigmas") or 0.0
        slots |= phrasing.last_move_slots(decision.features["return_last"], sigmas)
    for name, driver in zip(DRIVER_SLOTS, rationale.drivers, strict=False):
        slots[name] = phrasing.driver(driver)
    if "expert" in wanted:
        slots |= _leader(decision, phrasing)
    if rationale.cited:
        slots |= _headlines(decision, rationale.cited, phrasing)
    view, tilt = decision.view, decision.forecast.tilt
    if view is not None and "reader" in wanted:
        slots |= phrasing.view_slots(view, decision.symbol)
    if tilt is not None and "tilt_weight" in wanted:
        slots |= phrasing.tilt_slots(tilt, unit)
    if tilt is not None and "divergence" in wanted:
        slots["divergence"] = phrasing.divergence(tilt)
    if view is not None and "prepared" in wanted:
        slots["prepared"] = phrasing.prepared(view)
    if "waiting" in wanted and decision.plan.inputs is not UNSET:
        slots |= load_slots(decision.plan.rung, decision.plan.inputs)
    return slots


def _leader(decision: Decision, phrasing: Phrasing) -> dict[str, str]:
    zones = {name: by_horizon[0] for name, by_horizon in decision.forecast.weights.items()}
    shares = {name: sum(weights) / len(weights) for name, weights in zones.items()}
    leader = max(shares, key=shares.__getitem__)
    return {"expert": phrasing.expert(leader), "expert_weight": f"{100.0 * shares[leader]:.0f}%"}


def _headlines(decision: Decision, cited: Sequence[str], phrasing: Phrasing) -> dict[str, str]:
    """Ages of the cited items, which the record of the news holds, and the headlines that a model was shown."""
    context, view = decision.news_context, decision.view
    considered = () if context is None else (*context.considered, *context.set_aside)
    available_ns = {one.id: one.available_at_ns for one in considered}
    trace = None if view is None else view.trace
    shown = () if trace is None or trace.shown is UNSET else trace.shown
    headlines = {one.id: one.headline for one in shown}
    found: dict[str, str] = {}
    for (headline, age), name in zip(HEADLINE_SLOTS, cited, strict=False):
        if name in headlines:
            found[headline] = quote(headlines[name])
        if name in available_ns:
            found[age] = phrasing.age(decision.as_of_ns - available_ns[name])
    return found


def _driver_facts(decision: Decision) -> tuple[DriverFacts, ...] | None:
    """None where a driver does not follow from the features."""
    names, found = list(decision.features), list[DriverFacts]()
    for one in decision.rationale.drivers:
        follows = decision.features.get(one.feature) == one.value and one.usual > 0.0
        if not follows or one.ratio != abs(one.value) / one.usual:
            return None
        found.append(DriverFacts(names.index(one.feature), one.usual))
    return tuple(found)


@cache
def _part_names(phrasing: Phrasing) -> tuple[str, ...]:
    return (*phrasing.sentences.openings, *phrasing.sentences.parts)


@cache
def _part_places(phrasing: Phrasing) -> dict[str, int]:
    return {name: place for place, name in enumerate(_part_names(phrasing))}


def _places_of(template: str, phrasing: Phrasing) -> tuple[int, ...] | None:
    """None where the version has no such opening or part."""
    opening, *parts = template.split("+")
    if opening not in phrasing.sentences.openings or not phrasing.sentences.parts.keys() >= set(parts):
        return None
    places = _part_places(phrasing)
    return tuple(places[name] for name in (opening, *parts))
