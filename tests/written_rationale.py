"""A rationale with its words, from plain values: as the main path states it and readers get it."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET, UnsetType

from htfi.domain.decision import FeatureDriver, KnownEvents, NewsTilt, Rationale, Regime
from htfi.domain.news_view import NewsView
from htfi.narrative.rationale.phrasing import Phrasing, fill
from htfi.narrative.rationale.versions import CURRENT
from htfi.narrative.rationale.writer import in_slot_order, is_led_by_one, slots_that_follow, state_rationale


def write_rationale(
    *,
    symbol: str,
    interval: str,
    regime: Regime,
    last_price: float,
    low: float,
    high: float,
    last_return: float | None = None,
    last_sigmas: float | None = None,
    drivers: Sequence[FeatureDriver] = (),
    weights: Mapping[str, float] | None = None,
    view: NewsView | None = None,
    tilt: NewsTilt | None = None,
    known: KnownEvents | UnsetType = UNSET,
    phrasing: Phrasing = CURRENT,
    **stated_by: Any,
) -> Rationale:
    stated = state_rationale(
        symbol=symbol, regime=regime, width=high - low, last_return=last_return, last_sigmas=last_sigmas,
        drivers=drivers, is_led=is_led_by_one((weights or {}).values()), view=view, tilt=tilt, known=known,
        phrasing=phrasing, **stated_by,
    )  # fmt: skip
    slots = stated.slots | slots_that_follow(
        stated, symbol=symbol, interval=interval, regime=regime, last_price=last_price, low=low, high=high,
        last_return=last_return, last_sigmas=last_sigmas, weights=weights or {}, view=view, tilt=tilt,
        plan=stated_by.get("plan"), known=known, phrasing=phrasing,
    )  # fmt: skip
    slots = in_slot_order(slots)
    text = fill(stated.template, slots, phrasing)
    return Rationale(text, stated.template, slots, stated.drivers, stated.cited)
