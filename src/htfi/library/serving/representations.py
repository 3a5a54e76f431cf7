"""Decisions and forecasts as the service shows them. A forecast is what a decision says of the prices ahead."""

import math

import msgspec

from htfi.domain.decision import BAND_LEVELS, Decision
from htfi.domain.time import format_ns
from htfi.library.ledgers import explain_entry
from htfi.wiring.service.record import RecordedLine, ServedRecordReader


class Horizon(msgspec.Struct, frozen=True):
    """A horizon's distribution: quantiles of the log return, and of the price, at the forecast's levels."""

    bars: int
    log_returns: list[float]
    prices: list[float]
    low: float  # ends of the 90% band, prices
    high: float


class ForecastBody(msgspec.Struct, frozen=True):
    """The newest forecast of a series. Prices in the units of the feed."""

    series: str
    symbol: str
    interval: str
    as_of: str
    as_of_ns: int
    decision_id: str
    index: int | None  # of its entry in the ledger; None of what is not recorded
    regime: str
    rung: str
    verdict: str
    last_price: float
    levels: list[float]
    horizons: list[Horizon]
    weights: dict[str, float]  # of the experts at the first horizon
    rationale: str


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


class SeriesBody(msgspec.Struct, frozen=True):
    """A series of the run."""

    series: str
    symbol: str
    interval: str
    num_decisions: int  # as far as the service has read
    newest_index: int
    newest_released: int | None


class ExplanationSection(msgspec.Struct, frozen=True):
    """A part of an explanation."""

    title: str
    lines: list[str]


def explanation_of(reader: ServedRecordReader, index: int) -> list[ExplanationSection]:
    """What became of the news in a decision. Raises: InvalidInput."""
    return [
        ExplanationSection(one.title, list(one.lines)) for one in explain_entry(reader.log, str(index))[1]
    ]


class SeriesPage(msgspec.Struct, frozen=True):
    """The series of a run."""

    items: list[SeriesBody]


class ForecastPage(msgspec.Struct, frozen=True):
    """Forecasts, and what to ask for the next page with: None on the last."""

    items: list[ForecastBody]
    next: str | int | None


class PostedForecasts(msgspec.Struct, frozen=True):
    """Forecasts of bars that a client posted; of what policy withholds the reasons, by series."""

    items: list[ForecastBody]
    withheld: dict[str, list[str]]
    notes: list[str]  # rows set aside, and why


class ExplanationBody(msgspec.Struct, frozen=True):
    """Why a decision is as it is."""

    index: int
    sections: list[ExplanationSection]


class Health(msgspec.Struct, frozen=True):
    """Whether the service and its run are well."""

    status: str
    reason: str
    is_running: bool
    num_entries: int
    num_series: int


SHAPES = (SeriesPage, ForecastPage, PostedForecasts, ExplanationBody, Health)
