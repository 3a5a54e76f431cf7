"""A rationale as what is needed to word it again: its template, and of its slots what the decision does not give.

A slot that follows from the decision is left out, as long as the phrasing of the recorded version gives just what the
rationale holds; what differs is spelled. So the words come out exactly as they were, whatever made them. A rationale
that was stated (`narrative.rationale.writer.state_rationale`) has no words until somebody reads them: `with_words`.
"""

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache

import msgspec
from msgspec import UNSET

from htfi.domain.decision import Decision, FeatureDriver, Rationale
from htfi.narrative.rationale.phrasing import Phrasing, fill
from htfi.narrative.rationale.versions import MODEL_KEY, PHRASINGS, phrasing_of
from htfi.narrative.rationale.writer import HEADLINE_SLOTS, SLOT_ORDER, in_slot_order, slots_that_follow
from htfi.narrative.text import quote

SLOT_PLACES = {name: place for place, name in enumerate(SLOT_ORDER)}


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
    """What words the decision's rationale again, whether it has its words or was stated only."""
    rationale, slots = decision.rationale, decision.rationale.slots
    phrasing = PHRASINGS.get(decision.models.get(MODEL_KEY, ""))
    places = None if phrasing is None else template_places(rationale.template, phrasing)
    drivers = _driver_facts(decision)
    if phrasing is None or places is None or drivers is None or not SLOT_PLACES.keys() >= slots.keys():
        return RationaleFacts(whole=with_words(decision).rationale)
    cited = tuple(rationale.cited)
    if not rationale.text:
        given = _headlines(decision, cited, phrasing) if cited else {}
        return RationaleFacts(places, drivers, cited, _spelled(slots, given))
    is_in_order = [*in_slot_order(slots)] == [*slots]
    if not is_in_order or fill(rationale.template, slots, phrasing) != rationale.text:
        return RationaleFacts(whole=rationale)
    given = _following(decision, rationale, phrasing)
    absent = tuple(SLOT_PLACES[name] for name in given if name not in slots)
    return RationaleFacts(places, drivers, cited, _spelled(slots, given), absent)


def with_words(decision: Decision) -> Decision:
    """The decision with the words of its rationale, where that was stated only."""
    stated = decision.rationale
    if stated.text:
        return decision
    phrasing = phrasing_of(decision.models)
    slots = _following(decision, stated, phrasing) | stated.slots
    return msgspec.structs.replace(decision, rationale=_filled(stated, slots, phrasing))


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
    stated = Rationale("", template, spelled, drivers, list(facts.cited))
    slots = _following(decision, stated, phrasing) | spelled
    for place in facts.absent:
        del slots[SLOT_ORDER[place]]
    return _filled(stated, slots, phrasing)


def _spelled(slots: Mapping[str, str], given: Mapping[str, str]) -> dict[int, str]:
    return {SLOT_PLACES[name]: words for name, words in slots.items() if given.get(name) != words}


def _filled(stated: Rationale, slots: Mapping[str, str], phrasing: Phrasing) -> Rationale:
    slots = in_slot_order(slots)
    text = fill(stated.template, slots, phrasing)
    return Rationale(text, stated.template, slots, stated.drivers, stated.cited)


def _following(decision: Decision, rationale: Rationale, phrasing: Phrasing) -> dict[str, str]:
    """The slots of a rationale that follow from its decision."""
    low, high = decision.forecast.central_band
    slots = slots_that_follow(
        rationale,
        symbol=decision.symbol,
        interval=decision.interval,
        regime=decision.regime,
        last_price=decision.last_price,
        low=low,
        high=high,
        last_return=decision.features.get("return_last"),
        last_sigmas=decision.features.get("return_sigmas"),
        weights=decision.forecast.first_shares,
        view=decision.view,
        tilt=decision.forecast.tilt,
        plan=decision.plan,
        known=decision.known_events,
        phrasing=phrasing,
    )
    return slots | _headlines(decision, rationale.cited, phrasing) if rationale.cited else slots


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


@lru_cache(maxsize=512)
def template_places(template: str, phrasing: Phrasing) -> tuple[int, ...] | None:
    """The places of an opening and parts among those of a version; None where it does not have one of them."""
    opening, *parts = template.split("+")
    if opening not in phrasing.sentences.openings or not phrasing.sentences.parts.keys() >= set(parts):
        return None
    places = _part_places(phrasing)
    return tuple(places[name] for name in (opening, *parts))
