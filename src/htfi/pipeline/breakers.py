"""What circuit breakers observe of a decision point, from the main path's columns. `DecisionLoop.decide` calls it."""

from collections.abc import Sequence

import numpy as np

from htfi.governance.breakers.observations import PointObservation, ViewObservation, observe_view
from htfi.pipeline.components import Components, RunContext
from htfi.pipeline.point import PointColumns
from htfi.pipeline.series import SeriesContext


def observe_point(
    columns: PointColumns, contexts: Sequence[SeriesContext], components: Components, context: RunContext
) -> PointObservation:
    """The observation of the series of one point, before they are judged; `contexts` are those that have one."""
    forecasts, market = columns.forecasts, columns.market
    prices = np.array(columns.last_prices())
    views = {one.row: _view(one, columns.as_of_ns, components) for one in contexts}
    return PointObservation(
        as_of_ns=columns.as_of_ns,
        series=columns.series,
        levels=forecasts.levels,
        horizons=forecasts.horizons,
        expert_names=tuple(forecasts.names),
        quantiles=forecasts.quantiles,
        experts=forecasts.experts,
        bar_start_ns=np.array([bar.start_ns for bar in columns.bars], np.int64),
        bar_end_ns=np.array([bar.end_ns for bar in columns.bars], np.int64),
        price=prices,
        log_return=market.feature("return_last"),
        return_sigmas=market.feature("return_sigmas"),
        range_last=market.feature("range_last"),
        volume_ratio=market.feature("volume_ratio"),
        quote_age_ns=np.where(market.quote_age_ns < 0, np.nan, market.quote_age_ns.astype(np.float64)),
        quote_gap=(prices - market.quote_mid) / market.quote_mid,
        quarantine_share=columns.quarantine_share,
        models=context.models,
        views={row: view for row, view in views.items() if view is not None},
        bundle=components.governance.state_now.bundle_digest,
        is_between_bars=bool(columns.answered),
    )


def _view(one: SeriesContext, as_of_ns: int, components: Components) -> ViewObservation | None:
    """What breakers see of a series' view, and how far it moved the median as a share of the 90% band."""
    if one.view is None:
        return None
    request = one.request
    news = components.news.contents.news_context(request.news, request.plan, request.budget)
    if one.forecast is None or one.forecast.tilt is None:
        return observe_view(one.view, as_of_ns, news=news)
    low, high = one.forecast.central_band
    tilt = one.forecast.tilt
    moved = abs(tilt.weight[0] * tilt.shift[0]) / (high - low) if high > low else 0.0
    return observe_view(one.view, as_of_ns, min(moved, 1.0), news)
