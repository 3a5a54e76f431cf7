"""From a view to a changed forecast, the same way for the loop, which decides, and an auditor, who derives again.

Under suspicion a view weighs no more than `suspicion.max_view_weight`, whatever its reader's track record. A view that
diverges as few ever did, and rests on items of little trust, is an incident, which raises the suspicion that follows.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from htfi.domain.decision import Decision, Forecast, Quantiles
from htfi.domain.governance import SwapFacts
from htfi.domain.news import ItemReading
from htfi.domain.news_view import NewsView, ViewPart
from htfi.forecasting.fusion import combine
from htfi.forecasting.tilts import VERSION_WITHOUT_BOUND, Opinion, derive_tilt, tilt_record
from htfi.narrative.config import EXTREME_DIVERGENCE, SuspicionConfig
from htfi.narrative.influence import influence_problems, max_view_influence, recorded_limits
from htfi.narrative.merging import merge_views, part_weight, rederive, supported_trust
from htfi.narrative.suspicion import divergence_incident

if TYPE_CHECKING:  # who reads a record weighs nothing, and needs none of what reads the news
    from htfi.narrative.processor import NewsProcessor
    from htfi.pipeline.series import SeriesContext
    from htfi.pipeline.view_cache import ReadRequest


def join_parts(
    view: NewsView | None,
    parts: Sequence[ViewPart],
    readings: Mapping[str, ItemReading],
    news: "NewsProcessor",
    as_of_ns: int,
) -> NewsView | None:
    """A model's view, trusted as far as its items are and as their `readings` by facts support it, with other parts."""
    trust = 1.0 if view is None else supported_trust(news.held.mean_trust(view.cited), view, readings)
    return merge_views(view, trust, parts, as_of_ns)


def opinion_of(
    view: NewsView, as_of_ns: int, bar_ns: int, last_return: float | None, max_moved: float | None
) -> Opinion:
    """The opinion of a view at an instant, on a series whose last bar lasted `bar_ns` and returned `last_return`.

    It may move `max_moved` of the forecast's 90% band; None where only `MAX_SHIFT_SIGMAS` bounds it.
    """
    half_life_ns = max(view.half_life_ns, 1)
    return Opinion(
        narrator=view.reader,
        direction=view.direction,
        size_sigmas=view.size_sigmas,
        volatility_multiplier=view.volatility_multiplier,
        confidence=view.confidence,
        age_half_lives=max(as_of_ns - view.as_of_ns, 0) / half_life_ns,
        bar_half_lives=max(bar_ns, 0) / half_life_ns,
        last_return=last_return or 0.0,
        calibrated_effects=tuple(
            (effect.horizon, effect.shift_sigmas, effect.stretch) for effect in view.calibrated_effects
        ),
        max_moved=max_moved,
    )


def recorded_opinion(decision: Decision, view: NewsView) -> Opinion:
    """The opinion of a view in the place of a decision's own."""
    bar = decision.circumstances
    opinion = opinion_of(
        view,
        decision.as_of_ns,
        bar.bar_end_ns - bar.bar_start_ns,
        decision.features.get("return_last"),
        max_view_influence(view, recorded_limits(decision.news_context))
        if is_influence_bounded(decision)
        else None,
    )
    return fair_opinion(opinion, UNSET if decision.governance is UNSET else decision.governance.swaps)


def fair_opinion(opinion: Opinion, swaps: SwapFacts | UnsetType) -> Opinion:
    """What of an opinion stands under the swaps of names that its view was put to."""
    if swaps is UNSET or swaps.weight >= 1.0:
        return opinion
    left = swaps.weight
    return opinion._replace(
        size_sigmas=left * opinion.size_sigmas,
        volatility_multiplier=1.0 + left * (opinion.volatility_multiplier - 1.0),
        calibrated_effects=tuple(
            (horizon, left * shift, 1.0 + left * (stretch - 1.0))
            for horizon, shift, stretch in opinion.calibrated_effects
        ),
    )


def no_opinion(opinion: Opinion) -> Opinion:
    """What changes no forecast, in the place of an opinion that does not count."""
    return opinion._replace(
        direction=0.0, size_sigmas=0.0, volatility_multiplier=1.0, confidence=0.0, calibrated_effects=()
    )


def is_influence_bounded(decision: Decision) -> bool:
    """Whether the version that made a decision bounded what its view may move."""
    return decision.models.get("narrator") != VERSION_WITHOUT_BOUND


def numeric_quantiles(forecast: Forecast) -> Quantiles:
    """The mix of the numbers alone, before any view."""
    return combine(forecast.experts, forecast.weights, forecast.calibration, forecast.levels)


def forecast_problems(decision: Decision) -> list[str]:
    """What of its forecast does not follow from the experts, their weights and the view as far as it is weighed."""
    forecast, tilt = decision.forecast, decision.forecast.tilt
    plain, found = numeric_quantiles(forecast), list[str]()
    weight = tilt.weight if tilt is not None else [0.0] * len(forecast.horizons)
    if not all(0.0 <= share <= 1.0 for share in weight):
        found.append("the view's weight is not between 0 and 1")
    rank = tilt.divergence_rank if tilt is not None else 0.0
    if not 0.0 <= rank < 1.0:
        found.append("the rank of the view's divergence is not between 0 and 1")
    expected = None
    if decision.view is not None and rederive(decision.view) != decision.view:
        found.append("the view does not follow from its readings")
    if decision.view is not None:
        opinion = recorded_opinion(decision, decision.view)
        found += (
            influence_problems(decision.view, decision.news_context) if is_influence_bounded(decision) else []
        )
        is_set_aside = decision.governance is not UNSET and decision.governance.is_view_set_aside
        if not is_set_aside:
            expected = derive_tilt(opinion, plain, forecast.horizons, forecast.levels, weight, rank)
    if tilt != expected:
        found.append("the change of the forecast does not follow from the view")
    if forecast.quantiles != (tilt_record(plain, tilt, forecast.levels) if tilt is not None else plain):
        found.append("the quantiles do not follow from the experts', their weights and the view's")
    return found


def without_view(forecast: Forecast) -> Forecast:
    """The forecast without what a view leads to: the same in every amendment."""
    return replace(forecast, quantiles=[], tilt=None)


def max_view_weight(request: "ReadRequest", config: SuspicionConfig) -> float:
    """How much a view may weigh at most, 0–1."""
    return config.max_view_weight if request.news.suspicion else 1.0


def report_divergence(series: "Sequence[SeriesContext]", news: "NewsProcessor") -> None:
    """Report to the suspicion monitor which views diverge as few ever did and rest on items of little trust."""
    monitor = news.suspicion_monitor
    for one in series:
        tilt, view = one.forecast.tilt if one.forecast is not None else None, one.view
        if tilt is None or view is None or tilt.divergence_rank < EXTREME_DIVERGENCE:
            continue
        symbol, now_ns = one.bar.symbol, one.request.question.as_of_ns
        sources = _supporting_sources(view, now_ns, news)
        incident = divergence_incident(symbol, now_ns, tilt.divergence_rank, sources)
        if incident is not None:
            monitor.observe_once(incident, view.cited, now_ns)


def _supporting_sources(view: NewsView, now_ns: int, news: "NewsProcessor") -> list[tuple[str, float, float]]:
    """Source, trust and weight of what a view rests on."""
    if not view.parts:
        return [(_least_trusted_source(view.cited, news), news.held.mean_trust(view.cited), view.confidence)]
    return [
        (_least_trusted_source(part.cited, news), part.trust, part_weight(part, now_ns))
        for part in view.parts
    ]


def _least_trusted_source(cited: Sequence[str], news: "NewsProcessor") -> str:
    """Where the least trusted of these items came from."""
    least = min(news.held.items(cited), key=lambda item: news.held.mean_trust((item.id,)), default=None)
    return least.source if least is not None else ""


def suspicion_problems(decision: Decision, config: SuspicionConfig) -> list[str]:
    """Where a recorded decision goes further than suspicion allows."""
    tilt, news_context = decision.forecast.tilt, decision.news_context
    if tilt is None or news_context is None or not news_context.suspicion:
        return []
    if max(tilt.weight) > config.max_view_weight:
        return ["under suspicion its view has more weight than allowed"]
    return []
