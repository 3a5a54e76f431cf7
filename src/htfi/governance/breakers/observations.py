"""What breakers observe: the decisions of one instant as columns, and items of news. All follows from records.

The pipeline fills `PointObservation` from its own columns; `observe_decisions` makes the same of recorded decisions.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import msgspec
import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from htfi.domain.decision import Decision
from htfi.domain.errors import InvalidInput
from htfi.domain.generation_trace import GenerationTrace
from htfi.domain.news import NewsContext, ScreenedItem, Screening
from htfi.domain.news_view import NewsView

Array = NDArray[np.float64]


class AnswerObservation(msgspec.Struct, frozen=True, gc=False):
    """One answer of a language model, from its trace.

    `num_drafted` and `num_accepted` count tokens of chains, and of trees the depth. `entropy_nats` is of the
    distribution of its distinct tokens: an answer that repeats itself has little.
    """

    target: str  # name and version of who decided
    draft: str  # name and version of the draft model; empty without one
    num_tokens: int
    num_drafted: int
    num_accepted: int
    entropy_nats: float


class ViewObservation(msgspec.Struct, frozen=True, gc=False):
    """The view in a decision. Units as in `NewsView`; `shift_sigmas` is signed, in standard deviations of one bar.

    `moved` 0–1: how far the view moved the median, as a share of the 90% band at the first horizon; 0 for an untracked
    one. `contradiction` 0–1: of what the items considered say up and down, the smaller over the larger. `is_new`: read
    for this very decision; `answer` is set where a model wrote it. `reader` is who worded it, where several read.
    """

    reader: str
    direction: float
    shift_sigmas: float
    confidence: float
    volatility_multiplier: float
    cited: tuple[str, ...]
    moved: float = 0.0
    contradiction: float = 0.0
    is_new: bool = True
    answer: AnswerObservation | None = None


@dataclass(frozen=True, slots=True)
class PointObservation:
    """The decisions on n series at one instant, before they are released.

    Shapes: all columns [n], NaN where unknown, but quantiles [n, H, Q] and experts [n, K, H, Q] (NaN for an expert
    without a forecast). Units: log returns; ages and lengths in ns. `log_return`, `return_sigmas`, `range_last` and
    `volume_ratio` are the features of the decision; `quote_gap` is (price − mid) / mid of its quotes. `views` has
    those of the series with one, by place. Each series comes once. `is_between_bars`: no bar closed, or a view
    came late, so that there is no outcome. `models` are names and versions of what decided (`Decision.models`),
    `bundle` the digest in force.
    """

    as_of_ns: int
    series: Sequence[str]
    levels: tuple[float, ...]
    horizons: tuple[int, ...]
    expert_names: tuple[str, ...]
    quantiles: Array
    experts: Array
    bar_start_ns: NDArray[np.int64]
    bar_end_ns: NDArray[np.int64]
    price: Array
    log_return: Array
    return_sigmas: Array
    range_last: Array
    volume_ratio: Array
    quote_age_ns: Array
    quote_gap: Array
    quarantine_share: float  # of the sources' latest rows, 0–1
    models: Mapping[str, str]
    views: Mapping[int, ViewObservation]
    bundle: str = ""
    is_between_bars: bool = False


class NewsObservation(msgspec.Struct, frozen=True, gc=False):
    """An item of the news as it was screened. `source` is the publisher where one is named.

    `cluster` is the id of the first item that reported the same. No symbols: it concerns the whole market.
    """

    at_ns: int
    id: str
    source: str
    symbols: tuple[str, ...]
    is_quarantined: bool
    trust: float
    cluster: str
    num_alike: int = 1


BreakerObservation = PointObservation | NewsObservation


def observe_item(screened: ScreenedItem) -> NewsObservation:
    """What breakers see of an item that was screened."""
    item = screened.item
    return NewsObservation(
        at_ns=item.available_at_ns,
        id=item.id,
        source=item.publisher or item.source,
        symbols=item.symbols,
        is_quarantined=screened.verdict is Screening.QUARANTINE,
        trust=screened.trust,
        cluster=screened.cluster,
        num_alike=screened.num_alike,
    )


def observe_answer(trace: GenerationTrace) -> AnswerObservation:
    """What breakers see of an answer."""
    drafted = accepted = 0
    for one in trace.rounds:
        drafted += _depth(one.parents) if one.parents else len(one.drafted)
        accepted += len(one.accepted)
    return AnswerObservation(
        target=trace.target,
        draft=trace.draft,
        num_tokens=len(trace.tokens),
        num_drafted=drafted,
        num_accepted=accepted,
        entropy_nats=_token_entropy(trace.tokens),
    )


def observe_view(
    view: NewsView, as_of_ns: int, moved: float = 0.0, news: NewsContext | None = None
) -> ViewObservation:
    """What breakers see of the view in a decision of this instant; `moved` as in `ViewObservation`."""
    is_new = view.read_at_ns == as_of_ns
    answer = observe_answer(view.trace) if view.trace is not None and is_new else None
    return ViewObservation(
        reader=next((part.reader for part in view.parts if part.is_worded), view.reader),
        direction=view.direction,
        shift_sigmas=view.direction * view.size_sigmas,
        confidence=view.confidence,
        volatility_multiplier=view.volatility_multiplier,
        cited=view.cited,
        moved=moved,
        contradiction=_contradiction(news) if news is not None else 0.0,
        is_new=is_new,
        answer=answer,
    )


def observe_decisions(decisions: Sequence[Decision], bundle: str = "") -> PointObservation:
    """The observation of decisions of one instant with the same horizons, levels and models.

    Raises: InvalidInput for none, for other instants, or for a series that comes twice.
    """
    kinds = {(one.as_of_ns, one.is_between_bars, bool(one.amends)) for one in decisions}
    if len(kinds) != 1:
        raise InvalidInput(
            "breakers observe the decisions of one instant together: pass one or more of one instant"
        )
    if len({one.series for one in decisions}) < len(decisions):
        raise InvalidInput("breakers observe each series of an instant once: pass its newest decision")
    first = decisions[0]
    names = tuple(sorted({name for one in decisions for name in one.forecast.expert_ticks}))
    shape = (len(first.forecast.horizons), len(first.forecast.levels))
    absent = np.full(shape, np.nan).tolist()
    experts = [[one.forecast.experts.get(name, absent) for name in names] for one in decisions]
    bars = [one.circumstances for one in decisions]
    mids = [math.nan if one.quote_mid is UNSET else one.quote_mid for one in bars]
    prices = np.array([one.last_price for one in decisions])
    mid = np.array(mids)
    return PointObservation(
        as_of_ns=first.as_of_ns,
        series=[one.series for one in decisions],
        levels=first.forecast.levels,
        horizons=first.forecast.horizons,
        expert_names=names,
        quantiles=np.array([one.forecast.quantiles for one in decisions]),
        experts=np.array(experts),
        bar_start_ns=np.array([one.bar_start_ns for one in bars], np.int64),
        bar_end_ns=np.array([one.bar_end_ns for one in bars], np.int64),
        price=prices,
        log_return=feature_column([one.features for one in decisions], "return_last"),
        return_sigmas=feature_column([one.features for one in decisions], "return_sigmas"),
        range_last=feature_column([one.features for one in decisions], "range_last"),
        volume_ratio=feature_column([one.features for one in decisions], "volume_ratio"),
        quote_age_ns=np.array(
            [math.nan if one.quote_age_ns is None else float(one.quote_age_ns) for one in bars]
        ),
        quote_gap=(prices - mid) / mid,
        quarantine_share=bars[0].quarantine_share,
        models=first.models,
        views={
            place: observe_view(one.view, one.as_of_ns, _moved(one), one.news_context)
            for place, one in enumerate(decisions)
            if one.view is not None
        },
        bundle=bundle,
        is_between_bars=first.is_between_bars or bool(first.amends),
    )


def feature_column(features: Sequence[Mapping[str, float]], name: str) -> Array:
    """A feature [n] of n decisions, NaN where it is undefined."""
    return np.array([one.get(name, math.nan) for one in features])


def _moved(decision: Decision) -> float:
    """The share of the 90% band at the first horizon by which news moved the median, 0 where it did not."""
    tilt = decision.forecast.tilt
    low, high = decision.forecast.central_band
    if tilt is None or not high > low:
        return 0.0
    return min(abs(tilt.weight[0] * tilt.shift[0]) / (high - low), 1.0)


def _contradiction(news: NewsContext) -> float:
    """How evenly items of different sources pull up and down, by what their facts state: 0 where all agree."""
    weights = {1: 0.0, -1: 0.0}
    for item in news.considered:
        if item.reading is not UNSET and item.reading.direction:
            weights[item.reading.direction] += item.trust * item.reading.confidence
    smaller, larger = sorted(weights.values())
    return smaller / larger if larger > 0.0 else 0.0


def _depth(parents: Sequence[int]) -> int:
    depths: list[int] = []
    for parent in parents:
        depths.append(1 if parent < 0 else depths[parent] + 1)
    return max(depths, default=0)


@lru_cache(maxsize=256)
def _token_entropy(tokens: tuple[int, ...]) -> float:
    if not tokens:
        return 0.0
    counts: dict[int, int] = {}
    for token in tokens:
        counts[token] = counts.get(token, 0) + 1
    return -sum(num / len(tokens) * math.log(num / len(tokens)) for num in counts.values())
