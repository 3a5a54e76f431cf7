"""Decisions and forecasts as the service shows them. A forecast is what a decision says of the prices ahead."""

import math

from htfi.client.bodies import ExplanationSection, ForecastBody, Horizon
from htfi.domain.decision import BAND_LEVELS, Decision
from htfi.domain.time import format_ns
from htfi.library.ledgers import explain_entry
from htfi.wiring.service.record import RecordedLine, ServedRecordReader


def forecast_of(recorded: RecordedLine) -> ForecastBody:
    """The forecast of a released decision."""
    assert recorded.decision is not None
    return forecast_of_decision(recorded.decision, recorded.index)


def forecast_of_decision(decision: Decision, index: int | None) -> ForecastBody:
    """What a decision says of the prices ahead; `index` where it is recorded."""
    forecast, last = decision.forecast, decision.last_price
    low, high = (forecast.levels.index(level) for level in BAND_LEVELS)
    horizons: list[Horizon] = []
    for bars, quantiles in zip(forecast.horizons, forecast.quantiles, strict=True):
        prices = [last * math.exp(one) for one in quantiles]
        horizons.append(Horizon(bars, list(quantiles), prices, prices[low], prices[high]))
    return ForecastBody(
        series=decision.series,
        symbol=decision.symbol,
        interval=decision.interval,
        as_of=format_ns(decision.as_of_ns),
        as_of_ns=decision.as_of_ns,
        decision_id=decision.id,
        index=index,
        regime=decision.regime.value,
        rung=decision.plan.rung.value,
        verdict=decision.verdict.outcome.value,
        last_price=last,
        levels=list(forecast.levels),
        horizons=horizons,
        weights=forecast.first_shares,
        rationale=decision.rationale.text,
    )


def explanation_of(reader: ServedRecordReader, index: int) -> list[ExplanationSection]:
    """What became of the news in a decision. Raises: InvalidInput."""
    return [
        ExplanationSection(one.title, list(one.lines)) for one in explain_entry(reader.log, str(index))[1]
    ]
