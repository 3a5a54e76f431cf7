"""What readings could move of a forecast: what their items may move, times the weight that the reader has earned.

The ladder records it and chooses by it who reads; news that nothing could move a forecast by waits for the next bar.
"""

from collections.abc import Collection

from msgspec import UNSET

from htfi.domain.news import Route, ScreenedItem
from htfi.domain.plan import Rung
from htfi.pipeline.components import Components
from htfi.pipeline.view_cache import ReadRequest
from htfi.scheduling.config import FidelityConfig
from htfi.scheduling.fidelity import Influences, is_trial

DEEP_FACTOR = 2.0  # a reading in depth, of many answers, must be able to move so many times as much
_RUNGS = (Rung.EDGE, Rung.SPECULATIVE)


def reading_influences(
    request: ReadRequest, components: Components, left_out: Collection[Rung] = ()
) -> Influences:
    """What a reading of a series' news could move of its 90% band.

    Where the draft suffices, what the target could move is the draft's. Readings at rungs that are `left_out` do not
    count as made.
    """
    news, views, potential = components.news, components.views, components.forecaster.potential_weight
    limit = news.contents.influence_limits(request.news).reading
    edge, speculative = (
        round(limit * potential(news.contents.narrator(views.version(rung), request.news)), 6)
        if rung in views.rungs
        else 0.0
        for rung in _RUNGS
    )
    known = UNSET if views.has(request.series, request.question, Rung.EDGE, left_out) else edge
    is_capped = all(route is Route.DRAFT for route in news.max_routes(request.news.items))
    opinion = news.contents.encoder_opinion(request.news)
    return Influences(
        known,
        known if is_capped and Rung.EDGE in views.rungs else speculative,
        UNSET if opinion is None else round(opinion[1] * potential(opinion[0]), 6),
    )


def is_worth_reading(request: ReadRequest, influences: Influences, config: FidelityConfig) -> bool:
    """Whether any model's reading could move enough of the forecast, is suspected, or is made on trial."""
    return (
        bool(request.news.suspicion)
        or any(one is UNSET or one >= config.min_influence for one in influences[:2])
        or is_trial(request.question.items[0].id)
    )


def is_worth_depth(request: ReadRequest, components: Components, config: FidelityConfig) -> bool:
    """Whether a reading in depth could move enough of the forecast, or is made on trial."""
    items = request.question.items
    if not items:
        return False
    narrator = components.news.contents.narrator(components.views.version(Rung.DEEP), request.news)
    limit = components.news.contents.influence_limits(request.news).reading
    influence = limit * components.forecaster.potential_weight(narrator) / DEEP_FACTOR
    return influence >= config.min_influence or is_trial(items[0].id)


def can_move_forecasts(screened: ScreenedItem, components: Components, config: FidelityConfig) -> bool:
    """Whether a reading of an item, by whoever has earned most, could move enough of a forecast."""
    news, views = components.news, components.views
    readers = [news.contents.encoder_reader, *(views.version(rung) for rung in _RUNGS if rung in views.rungs)]
    most = max(map(components.forecaster.potential_weight, readers))
    return news.sanitiser.max_influence(screened) * most >= config.min_influence
