"""From recorded decisions to what tools give back."""

import math
from typing import Any

import msgspec

from htfi.apps.mcp.models import (
    DecisionDetail,
    DecisionGiven,
    Driver,
    Factors,
    ForecastGiven,
    HorizonForecast,
    ItemEffectGiven,
    NewsItem,
    View,
)
from htfi.apps.mcp.untrusted import from_outside, quoting
from htfi.client.bodies import ForecastBody
from htfi.domain.decision import BAND_LEVELS, Decision, NewsTilt
from htfi.domain.news import NewsItemAudit
from htfi.domain.time import format_ns
from htfi.library.serving.representations import forecast_of
from htfi.wiring.service.record import RecordedLine


def shown_forecast(body: ForecastBody) -> ForecastGiven:
    """A forecast with its rationale marked."""
    return ForecastGiven(
        series=body.series,
        symbol=body.symbol,
        interval=body.interval,
        as_of=body.as_of,
        decision_id=body.decision_id,
        index=body.index,
        regime=body.regime,
        rung=body.rung,
        verdict=body.verdict,
        last_price=body.last_price,
        levels=body.levels,
        horizons=[HorizonForecast(**msgspec.structs.asdict(one)) for one in body.horizons],
        weights=body.weights,
        rationale=quoting(body.rationale),
    )


def summary(recorded: RecordedLine) -> DecisionGiven:
    """A decision in one line; of what is withheld or deleted what decisions.jsonl shows of it."""
    one = recorded.decision
    if one is None:
        return _summary_of_line(recorded)
    low, high = one.forecast.central_band
    return DecisionGiven(
        index=recorded.index,
        id=one.id,
        series=one.series,
        as_of=format_ns(one.as_of_ns),
        outcome=one.verdict.outcome.value,
        reasons=list(one.verdict.reasons),
        last_price=one.last_price,
        low=one.last_price * math.exp(low),
        high=one.last_price * math.exp(high),
        regime=one.regime.value,
        has_news=one.view is not None,
        amends=one.amends,
    )


def _summary_of_line(recorded: RecordedLine) -> DecisionGiven:
    line: dict[str, Any] = msgspec.json.decode(recorded.line)
    is_deleted = "deleted" in line
    return DecisionGiven(
        index=recorded.index,
        id=line.get("id", ""),
        series=recorded.series,
        as_of="" if is_deleted else format_ns(line["as_of_ns"]),
        outcome="deleted" if is_deleted else "withhold",
        reasons=[line["deleted"]] if is_deleted else list(line["reasons"]),
        last_price=line.get("last_price"),
        low=None,
        high=None,
        regime=line.get("regime", ""),
        has_news=False,
        amends="",
    )


def detail(recorded: RecordedLine) -> DecisionDetail:
    """A decision with its forecast, where that may be shown."""
    line: dict[str, Any] = msgspec.json.decode(recorded.line)
    one = recorded.decision
    return DecisionDetail(
        decision=summary(recorded),
        leaf_hash=line["leaf_hash"],
        forecast=None if one is None else shown_forecast(forecast_of(recorded)),
        models={} if one is None else one.models,
        settings_digest="" if one is None else one.settings_digest,
    )


def factors(index: int, one: Decision, effects: list[ItemEffectGiven] | None) -> Factors:
    """What a forecast was made of."""
    context = one.news_context
    return Factors(
        index=index,
        series=one.series,
        weights=one.forecast.first_shares,
        drivers=[
            Driver(
                feature=driver.feature,
                value=_finite(driver.value),
                usual=_finite(driver.usual),
                ratio=_finite(driver.ratio),
            )
            for driver in one.rationale.drivers
        ],
        features={name: _finite(value) for name, value in one.features.items()},
        view=_view(one),
        considered=[] if context is None else [_item(item) for item in context.considered],
        set_aside=[] if context is None else [_item(item) for item in context.set_aside],
        suspicion=quoting("" if context is None else context.suspicion),
        effects=effects,
    )


def item_effects(figures: dict[str, Any]) -> list[ItemEffectGiven]:
    """Of the worker's answer to an `EffectsQuestion`."""
    levels, with_all = figures["levels"], figures["quantiles"][0]
    middle = levels.index(0.5) if 0.5 in levels else None
    band = tuple(levels.index(level) for level in BAND_LEVELS) if set(BAND_LEVELS) <= set(levels) else None
    found: list[ItemEffectGiven] = []
    for item in figures["items"]:
        without = item["quantiles_without"][0]
        widths = [] if band is None else [row[band[1]] - row[band[0]] for row in (with_all, without)]
        found.append(
            ItemEffectGiven(
                id=from_outside(item["id"]),
                headline=from_outside(item["headline"]),
                median_moved=None if middle is None else with_all[middle] - without[middle],
                band_moved=widths[0] - widths[1] if widths else None,
            )
        )
    return found


def _view(one: Decision) -> View | None:
    view = one.view
    if view is None:
        return None
    tilt = one.forecast.tilt
    return View(
        reader=view.reader,
        direction=view.direction,
        size_sigmas=view.size_sigmas,
        volatility_multiplier=view.volatility_multiplier,
        confidence=view.confidence,
        cause=view.cause,
        reason=from_outside(view.words),
        cited=[from_outside(name) for name in view.cited],
        **_weighed(tilt),
    )


def _weighed(tilt: NewsTilt | None) -> dict[str, float | None]:
    if tilt is None:
        return {"weight": None, "median_moved": None, "divergence": None}
    return {
        "weight": tilt.weight[0],
        "median_moved": tilt.weight[0] * tilt.shift[0],
        "divergence": _finite(tilt.divergence),
    }


def _item(one: NewsItemAudit) -> NewsItem:
    reading = one.reading if not isinstance(one.reading, msgspec.UnsetType) else None
    return NewsItem(
        id=from_outside(one.id),
        source=from_outside(one.source),
        screening=one.verdict.value,
        trust=one.trust,
        rules=[reason.partition(":")[0] for reason in one.reasons],
        route=one.route.value,
        event="" if reading is None else reading.event,
        direction=None if reading is None else reading.direction,
        size_sigmas=None if reading is None else reading.size_sigmas,
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
