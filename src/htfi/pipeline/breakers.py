"""What circuit breakers observe of a decision point, from the main path's columns. `DecisionLoop.decide` calls it."""

import math
from collections.abc import Sequence

import numpy as np
from msgspec import UNSET

from htfi.forecasting.batch import ForecastBatch
from htfi.governance.breakers.observations import (
    PointObservation,
    ViewObservation,
    feature_column,
    observe_view,
)
from htfi.pipeline.components import Components, RunContext
from htfi.pipeline.numeric import circumstances_of
from htfi.pipeline.series import SeriesContext


def observe_point(
    series: Sequence[SeriesContext], forecasts: ForecastBatch, components: Components, context: RunContext
) -> PointObservation:
    """The observation of the series of one point, before they are judged."""
    as_of_ns = series[0].request.question.as_of_ns
    together = forecasts.take([one.row for one in series])
    known = [circumstances_of(one.bar, as_of_ns, components) for one in series]
    features = [one.features for one in series]
    prices = np.array([one.last_price for one in series])
    mid = np.array([math.nan if one.quote_mid is UNSET else one.quote_mid for one in known])
    ages = [math.nan if one.quote_age_ns is None else float(one.quote_age_ns) for one in known]
    return PointObservation(
        as_of_ns=as_of_ns,
        series=[one.request.series for one in series],
        levels=forecasts.levels,
        horizons=forecasts.horizons,
        expert_names=tuple(forecasts.names),
        quantiles=together.quantiles,
        experts=together.experts,
        bar_start_ns=np.array([one.bar_start_ns for one in known], np.int64),
        bar_end_ns=np.array([one.bar_end_ns for one in known], np.int64),
        price=prices,
        log_return=feature_column(features, "return_last"),
        return_sigmas=feature_column(features, "return_sigmas"),
        range_last=feature_column(features, "range_last"),
        volume_ratio=feature_column(features, "volume_ratio"),
        quote_age_ns=np.array(ages),
        quote_gap=(prices - mid) / mid,
        quarantine_share=known[0].quarantine_share,
        models=context.models,
        views={
            place: view
            for place, one in enumerate(series)
            if (view := _view(one, as_of_ns, components)) is not None
        },
        bundle=components.governance.state_now.bundle_digest,
        is_between_bars=series[0].answered is not None,
    )


def _view(one: SeriesContext, as_of_ns: int, components: Components) -> ViewObservation | None:
    """What breakers see of a series' view, and how far it moved the median as a share of the 90% band."""
    if one.view is None:
        return None
    request = one.request
    news = components.news.news_context(request.news, request.plan, request.budget)
    if one.forecast is None or one.forecast.tilt is None:
        return observe_view(one.view, as_of_ns, news=news)
    low, high = one.forecast.central_band
    tilt = one.forecast.tilt
    moved = abs(tilt.weight[0] * tilt.shift[0]) / (high - low) if high > low else 0.0
    return observe_view(one.view, as_of_ns, min(moved, 1.0), news)
