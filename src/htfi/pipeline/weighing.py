"""From a view to a changed forecast, the same way for the loop, which decides, and an auditor, who derives again."""

from msgspec.structs import replace

from htfi.domain.decision import Decision, Forecast, Quantiles, View
from htfi.forecasting.fusion import combine
from htfi.forecasting.narrator import UNBOUNDED, Opinion, derive_tilt, tilted
from htfi.narrative.leverage import may_move, shares_in
from htfi.narrative.leverage import problems as leverage_problems
from htfi.narrative.merging import derived


def opinion_of(
    view: View, as_of_ns: int, bar_ns: int, last_return: float | None, max_moved: float | None
) -> Opinion:
    """What a view says at an instant, of a series whose last bar was so long and returned so much.

    It may move `max_moved` of the forecast's 90% band; None where nothing bounds it but `narrator.MOST_SIGMAS`.
    """
    half_life_ns = max(view.half_life_ns, 1)
    return Opinion(
        narrator=view.reader,
        direction=view.direction,
        size_sigmas=view.size_sigmas,
        volatility_multiplier=view.volatility_multiplier,
        confidence=view.confidence,
        age=max(as_of_ns - view.as_of_ns, 0) / half_life_ns,
        bar=max(bar_ns, 0) / half_life_ns,
        drift=last_return or 0.0,
        meant=tuple((one.horizon, one.shift_sigmas, one.stretch) for one in view.meant),
        max_moved=max_moved,
    )


def opinion_in(decision: Decision, view: View) -> Opinion:
    """What a view says in the place of a decision's own."""
    bar = decision.circumstances
    return opinion_of(
        view,
        decision.as_of_ns,
        bar.bar_end_ns - bar.bar_start_ns,
        decision.features.get("return_last"),
        may_move(view, shares_in(decision.hearing)) if is_bounded(decision) else None,
    )


def is_bounded(decision: Decision) -> bool:
    """Whether the version that made a decision bounded what its view may move."""
    return decision.models.get("narrator") != UNBOUNDED


def numbers(forecast: Forecast) -> Quantiles:
    """The mix of the numbers alone, before any view."""
    return combine(forecast.experts, forecast.weights, forecast.calibration, forecast.levels)


def problems(decision: Decision) -> list[str]:
    """What of its forecast does not follow from the experts, their weights and the view as far as it is weighed."""
    forecast, tilt = decision.forecast, decision.forecast.tilt
    plain, found = numbers(forecast), list[str]()
    weight = tilt.weight if tilt is not None else [0.0] * len(forecast.horizons)
    if not all(0.0 <= share <= 1.0 for share in weight):
        found.append("the view's weight is not between 0 and 1")
    rank = tilt.divergence_rank if tilt is not None else 0.0
    if not 0.0 <= rank < 1.0:
        found.append("the rank of the view's divergence is not between 0 and 1")
    expected = None
    if decision.view is not None and derived(decision.view) != decision.view:
        found.append("the view does not follow from the readings that went into it")
    if decision.view is not None:
        opinion = opinion_in(decision, decision.view)
        found += leverage_problems(decision.view, decision.hearing) if is_bounded(decision) else []
        expected = derive_tilt(opinion, plain, forecast.horizons, forecast.levels, weight, rank)
    if tilt != expected:
        found.append("what the view changes in the forecast does not follow from it")
    if forecast.quantiles != (tilted(plain, tilt, forecast.levels) if tilt is not None else plain):
        found.append("the quantiles do not follow from the experts', their weights and the view's")
    return found


def untold(forecast: Forecast) -> Forecast:
    """The forecast without what a view leads to: the same in every amendment."""
    return replace(forecast, quantiles=[], tilt=None)
