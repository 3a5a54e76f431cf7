"""Merges several readings, and readings that are not fully trusted, into one view. The main path merges, an auditor
repeats it.

Readings are of different items, so the moves that they expect add up: each counts by w = trust · confidence · its
remaining share. Moves that contradict each other cancel, and the contradiction widens the view: opposite moves x and y
add 2·w·v·|x·y| of variance. Nothing is averaged away: every reading stays in `NewsView.parts`.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

from msgspec import UNSET
from msgspec.structs import replace

from htfi.domain import portable_math as exact
from htfi.domain.news import ItemReading, NewsContext
from htfi.domain.news_view import CalibratedEffect, NewsView, ViewPart

READER_SEPARATOR = ", with "  # between the readers of a merged view
MAX_AGE_HALF_LIVES = 3.0  # an older reading has no weight
MIN_CONTRADICTION_WEIGHT = 0.05  # a reading that weighs less contradicts none
MAX_CITED = 3
_DECIMALS = 6
_LN2 = math.log(2.0)


def to_part(view: NewsView, trust: float) -> ViewPart:
    """A model's view as one reading among others."""
    return ViewPart(
        reader=view.reader,
        direction=view.direction,
        size_sigmas=view.size_sigmas,
        volatility_multiplier=view.volatility_multiplier,
        confidence=view.confidence,
        cited=view.cited,
        as_of_ns=view.as_of_ns,
        half_life_ns=view.half_life_ns,
        trust=trust,
        cause=view.cause,
        calibrated_effects=view.calibrated_effects,
        is_worded=True,
    )


def merge_views(
    read: NewsView | None, trust: float, noted: Sequence[ViewPart], as_of_ns: int
) -> NewsView | None:
    """A model's view, weighted by the trust in its items, and the readings of other items, as one view.

    A single, fully trusted view stays as it is.
    """
    if read is None:
        return _merge_parts(noted, None, as_of_ns) if noted else None
    if not noted and (trust >= 1.0 or read.confidence <= 0.0):
        return read
    return _merge_parts([to_part(read, trust), *noted], read, as_of_ns)


def unmerged(view: NewsView) -> NewsView | None:
    """The model's view before it was merged; None if no model read."""
    if not view.parts:
        return view
    part = next((part for part in view.parts if part.is_worded), None)
    if part is None:
        return None
    return replace(
        view,
        direction=part.direction,
        size_sigmas=part.size_sigmas,
        volatility_multiplier=part.volatility_multiplier,
        confidence=part.confidence,
        cited=part.cited,
        as_of_ns=part.as_of_ns,
        half_life_ns=part.half_life_ns,
        cause=part.cause,
        reader=part.reader,
        calibrated_effects=part.calibrated_effects,
        parts=(),
    )


def remerge(
    read: NewsView, first: NewsView | None, news_context: NewsContext | None, as_of_ns: int
) -> NewsView:
    """A new view merged with everything else that went into `first`, at an instant.

    Each reading has the trust in its items as recorded: what it had beside the first view may have been cut to that
    one's influence.
    """
    trusts = {item.id: item.trust for item in news_context.considered} if news_context is not None else {}
    noted = [
        replace(part, trust=trusts.get(part.cited[0], part.trust)) if part.cited else part
        for part in (first.parts if first is not None else ())
        if not part.is_worded
    ]
    merged = merge_views(read, recorded_trust(news_context, read), noted, as_of_ns)
    return read if merged is None else merged


_UNSUPPORTED = 0.25  # of a view's direction that no cited item states


def agreement(view: NewsView | ViewPart, readings: Mapping[str, ItemReading]) -> float:
    """How far the facts of the items that a model cites support the direction that it states, 0–1.

    1 where one of them states the same or the model states none, 0 where they state the opposite, a quarter where they
    state nothing; 1 where no facts were read.
    """
    known = [readings[name] for name in view.cited if name in readings]
    if not view.direction or not known:
        return 1.0
    signs = {one.direction for one in known if one.direction}
    if not signs:
        return _UNSUPPORTED
    return 1.0 if any(sign * view.direction > 0.0 for sign in signs) else 0.0


def supported_trust(trust: float, view: NewsView | ViewPart, readings: Mapping[str, ItemReading]) -> float:
    """The trust in a view's items, 0–1, as far as their facts support what it states."""
    return round(trust * agreement(view, readings), 3)


def recorded_trust(news_context: NewsContext | None, view: NewsView | ViewPart) -> float:
    """The trust, 0–1, in a model's view, as a decision recorded what it rests on: the mean of that in the items that it
    cites, as far as their facts support it. 1 where it recorded none.
    """
    considered = news_context.considered if news_context is not None else ()
    known = {item.id: item.trust for item in considered}
    trusts = [known[name] for name in view.cited if name in known]
    readings = {item.id: item.reading for item in considered if item.reading is not UNSET}
    trust = round(sum(trusts) / len(trusts), 3) if trusts else 1.0
    return supported_trust(trust, view, readings)


def rederive(view: NewsView) -> NewsView:
    """The view with the numbers that follow from its parts."""
    if not view.parts:
        return view
    read = view if any(part.is_worded for part in view.parts) else None
    return _merge_parts(view.parts, read, view.as_of_ns)


def find_contradictions(parts: Sequence[ViewPart], as_of_ns: int) -> list[tuple[int, int]]:
    """The places of readings that state opposite directions and weigh enough."""
    weights = [part_weight(part, as_of_ns) for part in parts]
    return [
        (i, j)
        for i, j in combinations(range(len(parts)), 2)
        if parts[i].direction * parts[j].direction < 0.0
        and min(weights[i], weights[j]) >= MIN_CONTRADICTION_WEIGHT
    ]


def part_weight(part: ViewPart, as_of_ns: int) -> float:
    """Trust · confidence · 2^−age: 0 for a stale reading."""
    return part.trust * part.confidence * remaining_share(part.as_of_ns, part.half_life_ns, as_of_ns)


def remaining_share(made_ns: int, half_life_ns: int, as_of_ns: int) -> float:
    """What remains, 0–1, of an opinion's weight after its age: 0 for a stale one, or for one from the future."""
    age = (as_of_ns - made_ns) / max(half_life_ns, 1)
    if not 0.0 <= age <= MAX_AGE_HALF_LIVES:
        return 0.0
    return exact.scalar_exp(-_LN2 * age)


def _merge_parts(parts: Sequence[ViewPart], read: NewsView | None, as_of_ns: int) -> NewsView:
    view = _view_of_one(parts[0]) if len(parts) == 1 else _view_of_several(parts, as_of_ns)
    view = replace(view, parts=tuple(parts))
    if read is None:
        return view
    return replace(
        view,
        consistency=read.consistency,
        words=read.words,
        trace=read.trace,
        provisional=read.provisional,
        prepared=read.prepared,
    )


def _view_of_one(part: ViewPart) -> NewsView:
    """A single reading, scaled by the trust in its items; it keeps its age."""
    return NewsView(
        direction=part.direction,
        size_sigmas=part.size_sigmas,
        volatility_multiplier=part.volatility_multiplier,
        confidence=round(part.trust * part.confidence, _DECIMALS),
        cited=part.cited,
        as_of_ns=part.as_of_ns,
        half_life_ns=part.half_life_ns,
        cause=part.cause,
        reader=part.reader,
        calibrated_effects=tuple(
            CalibratedEffect(
                one.horizon,
                round(part.trust * one.shift_sigmas, _DECIMALS),
                round(1.0 + part.trust * (one.stretch - 1.0), _DECIMALS),
            )
            for one in part.calibrated_effects
        ),
    )


def _view_of_several(parts: Sequence[ViewPart], as_of_ns: int) -> NewsView:
    weights = [part_weight(part, as_of_ns) for part in parts]
    moves = [part.direction * part.size_sigmas for part in parts]
    net = sum(w * x for w, x in zip(weights, moves, strict=True))
    sure = 1.0 - math.prod(1.0 - w for w in weights)
    dissent = sum(
        2.0 * weights[i] * weights[j] * abs(moves[i] * moves[j])
        for i, j in combinations(range(len(parts)), 2)
        if moves[i] * moves[j] < 0.0
    )
    wider = 1.0 + sum(w * (part.volatility_multiplier - 1.0) for w, part in zip(weights, parts, strict=True))
    wide = math.sqrt(max(wider, 0.0) ** 2 + dissent)
    direction = float((net > 0.0) - (net < 0.0)) if sure > 0.0 else 0.0
    confident = [part for part in parts if part.confidence > 0.0] or parts
    order = sorted(range(len(parts)), key=lambda i: (-weights[i] * (abs(moves[i]) + 1e-3), i))
    cited = dict.fromkeys(name for i in order if weights[i] > 0.0 for name in parts[i].cited)
    return NewsView(
        direction=direction,
        size_sigmas=round(abs(net) / sure, _DECIMALS) if direction else 0.0,
        volatility_multiplier=round(1.0 + (wide - 1.0) / sure, _DECIMALS) if sure > 0.0 else 1.0,
        confidence=round(sure, _DECIMALS),
        cited=tuple(cited)[:MAX_CITED],
        as_of_ns=as_of_ns,
        half_life_ns=max(part.half_life_ns for part in confident),
        cause=parts[order[0]].cause,
        reader=READER_SEPARATOR.join(dict.fromkeys(part.reader for part in confident)),
        calibrated_effects=_merge_meanings(parts, weights, moves, dissent, as_of_ns),
    )


def _merge_meanings(
    parts: Sequence[ViewPart], weights: Sequence[float], moves: Sequence[float], dissent: float, as_of_ns: int
) -> tuple[CalibratedEffect, ...]:
    """What the parts mean together, where any was calibrated; another part's move happens once and lasts, and widens
    one bar.
    """
    anchors = next((part.calibrated_effects for part in parts if part.calibrated_effects), ())
    found: list[CalibratedEffect] = []
    for place, anchor in enumerate(anchors):
        shift, wider, horizon = 0.0, 1.0, anchor.horizon
        for part, weight, move in zip(parts, weights, moves, strict=True):
            if len(part.calibrated_effects) == len(anchors):
                left = part.trust * remaining_share(part.as_of_ns, part.half_life_ns, as_of_ns)
                shift += left * part.calibrated_effects[place].shift_sigmas
                wider += left * (part.calibrated_effects[place].stretch - 1.0)
            else:
                bar = max(1.0 + weight * (part.volatility_multiplier - 1.0), 0.0)
                shift += weight * move
                wider += math.sqrt(1.0 + (bar * bar - 1.0) / horizon) - 1.0
        stretch = math.sqrt(max(wider, 0.0) ** 2 + dissent / horizon)
        found.append(CalibratedEffect(horizon, round(shift, _DECIMALS), round(stretch, _DECIMALS)))
    return tuple(found)
