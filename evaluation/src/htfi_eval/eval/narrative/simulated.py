"""Narrators on the simulated market, where the effect of news is known: readers, placebos and the upper limit.

Three placebos read wrong news: other headlines under the true tags, the news of another question, and news of another
time. A simulated world states returns in sigmas; the first sigma is arbitrary, so its prices are known up to a unit.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.domain.events import News
from htfi.domain.news_view import NewsView
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.forecasting.config import ForecastConfig
from htfi.narrative.question import MAX_CONTEXT_RETURNS, Question, shown_items
from htfi.narrative.readers import ModelReader
from htfi.narrative.view_calibration import ViewCalibration
from htfi_eval.commands import ProgressCallback
from htfi_eval.eval.narrative.moments import (
    NarratorForecasts,
    NewsMoments,
    NewsQuestion,
    NewsTruth,
    concatenated,
    full_weight,
    gather,
    news_arrival,
    price_only,
    tilt_effects,
    track_record_weighted,
)
from htfi_eval.eval.prices import Prices
from htfi_train.simulation.reader_calibration import SEED, fit_meaning
from htfi_train.simulation.simulated_market import DECAY, SimulatedMarket, simulate_market
from htfi_train.simulation.stories import FIRST_EVALUATION_SEED, report_news, stories

Array = NDArray[np.float64]

Generator = np.random.Generator
Whole = NDArray[np.int64]

_BATCH = 64
_DEADLINE_MS = 60_000.0


def read_views(
    questions: Sequence[Question], reader: ModelReader, progress: ProgressCallback
) -> list[NewsView]:
    """The reader's views, with the requests of `htfi run`."""
    views: list[NewsView] = []
    for begin in range(0, len(questions), _BATCH):
        views += reader.read(questions[begin : begin + _BATCH], _DEADLINE_MS)
        progress(len(views), len(questions))
    return views


def mislabelled(questions: Sequence[Question]) -> list[Question]:
    """Others' headlines under the true tags and ages, where another question has as many items; else no news.

    A remaining gain does not come from the words but from when there is news, and for which symbol.
    """
    by_size: dict[int, list[int]] = {}
    for place, question in enumerate(questions):
        by_size.setdefault(len(shown_items(question)), []).append(place)
    found = [replace(question, items=()) for question in questions]
    for size, places in by_size.items():
        away = len(places) // 2  # by half of them: neighbours may be about one event
        if not size or not away:
            continue
        for place, other in zip(places, [*places[away:], *places[:away]], strict=True):
            items = tuple(
                replace(item, headline=instead.headline, body=instead.body)
                for item, instead in zip(
                    shown_items(questions[place]), shown_items(questions[other]), strict=True
                )
            )
            found[place] = replace(questions[place], items=items)
    return found


def with_news_of(questions: Sequence[Question], others: Sequence[int]) -> list[Question]:
    """Each question with the news, tags and ages of the question that `others` names; −1: without news."""
    return [
        replace(question, items=() if other < 0 else _moved(question, questions[other]))
        for question, other in zip(questions, others, strict=True)
    ]


def from_other_cluster(moments: NewsMoments, rng: Generator) -> list[int]:
    """For each moment one of another cluster, each used once; −1 where none is left."""
    found: list[int] = rng.permutation(len(moments)).tolist()
    num, cluster = len(moments), moments.cluster.tolist()
    for place in range(num):
        for step in range(1, num):
            if cluster[place] != cluster[found[place]]:
                break
            other = (place + step) % num
            found[place], found[other] = found[other], found[place]
    return [other if cluster[place] != cluster[other] else -1 for place, other in enumerate(found)]


def at_another_time(group: Whole, instant: Whole) -> list[int]:
    """For each moment one of its group [n], half the group's instants [n] away, cyclic; −1 if it is alone."""
    found = np.full(len(group), -1)
    for one in np.unique(group).tolist():
        mine = np.flatnonzero(group == one)
        instants: list[int] = np.unique(instant[mine]).tolist()
        if len(instants) < 2:
            continue
        at = {when: mine[instant[mine] == when] for when in instants}
        away = len(instants) // 2
        for when, other in zip(instants, [*instants[away:], *instants[:away]], strict=True):
            found[at[when]] = at[other][np.arange(len(at[when])) % len(at[other])]
    return found.tolist()


def permuted(views: Sequence[NewsView], rng: Generator) -> list[NewsView]:
    """A random narrator: the views of other moments with random signs."""
    coins: list[float] = rng.choice((-1.0, 1.0), len(views)).tolist()
    places: list[int] = rng.permutation(len(views)).tolist()
    return [
        replace(views[place], direction=views[place].direction * coin)
        for place, coin in zip(places, coins, strict=True)
    ]


def _moved(question: Question, other: Question) -> tuple[News, ...]:
    """The other's items at the same ages in bars."""
    items: list[News] = []
    for item in shown_items(other):
        age_bars = (other.as_of_ns - item.available_at_ns) / max(other.bar_ns, 1)
        at_ns = question.as_of_ns - round(age_bars * question.bar_ns)
        items.append(replace(item, available_at_ns=at_ns, event_time_ns=at_ns))
    return tuple(items)


Stage = Callable[[str], ProgressCallback]

NEWS, AT_FACE_VALUE, NEWS_ARRIVAL, CEILING = "with news", "at face value", "arrival of news only", "ceiling"
MISLABELLED, ELSEWHERE, OTHER_TIME, RANDOM = (
    "other words, true tags",
    "other news",
    "news of another time",
    "random",
)
CENTRAL = 1  # the horizon that contains most of an effect: 5 bars


@dataclass(frozen=True, slots=True, eq=False)
class NarratorResults:
    """All narrators on the same moments. `events`: news with an effect still to come; `views` of the right news."""

    moments: NewsMoments
    forecasts: Mapping[str, NarratorForecasts]
    views: tuple[NewsView, ...]
    events: NDArray[np.bool_]


def judge_narrators(
    moments: NewsMoments,
    reader: ModelReader,
    ideal: ViewCalibration,
    config: ForecastConfig,
    seed: int,
    stage: Stage,
) -> NarratorResults:
    """Forecasts of all narrators. `ideal` is the calibration of views with full understanding."""
    rng = np.random.Generator(np.random.PCG64(seed))
    questions = moments.questions
    wrong: dict[str, list[Question]] = {
        MISLABELLED: mislabelled(questions),
        ELSEWHERE: with_news_of(questions, from_other_cluster(moments, rng)),
        OTHER_TIME: with_news_of(questions, at_another_time(moments.cluster, moments.instant)),
    }
    views = read_views(questions, reader, stage("views of the news"))
    views_by_narrator = {NEWS: views}
    for name, wrong_questions in wrong.items():
        views_by_narrator[name] = read_views(wrong_questions, reader, stage(f"views of {name}"))
    views_by_narrator[RANDOM] = permuted(views, rng)
    forecasts = {
        "price only": price_only(moments, config),
        NEWS_ARRIVAL: full_weight(NEWS_ARRIVAL, moments, news_arrival(moments, config), config),
    }
    for name, narrator_views in views_by_narrator.items():
        forecasts[name] = track_record_weighted(
            name, moments, tilt_effects(narrator_views, moments, config), config
        )
    word = [replace(view, calibrated_effects=()) for view in views]
    forecasts[AT_FACE_VALUE] = track_record_weighted(
        AT_FACE_VALUE, moments, tilt_effects(word, moments, config), config
    )
    best = [
        ideal_understanding(truth, question)
        for truth, question in zip(moments.truths, questions, strict=True)
    ]
    best = [replace(view, calibrated_effects=ideal.meanings(view)) for view in best]
    forecasts[CEILING] = track_record_weighted(CEILING, moments, tilt_effects(best, moments, config), config)
    events = np.array([truth is not None and truth.expected != 0.0 for truth in moments.truths])
    return NarratorResults(moments, forecasts, tuple(views), events)


def ideal_understanding(truth: NewsTruth | None, question: Question) -> NewsView:
    """The view with full understanding of what is shown; later random outcomes stay unknown."""
    assert truth is not None
    return ideal_view(truth.expected, truth.volatility_multiplier, question.as_of_ns)


def ideal_view(expected: float, volatility_multiplier: float, as_of_ns: int) -> NewsView:
    """A view that expects this many sigmas, signed."""
    return NewsView(
        direction=float(np.sign(expected)),
        size_sigmas=abs(expected),
        volatility_multiplier=volatility_multiplier,
        confidence=1.0,
        cited=(),
        as_of_ns=as_of_ns,
        half_life_ns=NS_PER_DAY,
        cause="none",
        consistency="unmoved",
        reader=CEILING,
    )


_FIRST_SIGMA = 0.01
_FIRST_PRICE = 100.0
_NUM_PARALLEL_WORLDS = 10


def unseen_moments(
    seed: int, num_worlds: int, config: ForecastConfig, progress: ProgressCallback | None = None
) -> NewsMoments:
    """Moments of new simulated markets. Raises: InvalidInput for a seed that may be in the training data."""
    if seed < FIRST_EVALUATION_SEED:
        raise InvalidInput(
            f"--seed {seed}: training may have used it; choose {FIRST_EVALUATION_SEED} or more"
        )
    return moments(seed, range(num_worlds), config, progress)


def moments(
    seed: int, numbers: Sequence[int], config: ForecastConfig, progress: ProgressCallback | None = None
) -> NewsMoments:
    """The questions of these markets, some on one clock, as one feed may contain several markets."""
    by_bar: dict[int, list[SimulatedMarket]] = {}
    groups: list[list[SimulatedMarket]] = []
    for number in numbers:
        world = simulate_market(seed, number)
        beside = by_bar.setdefault(world.bar_ns, [])
        beside.append(world)
        if len(beside) == _NUM_PARALLEL_WORLDS:
            groups.append(by_bar.pop(world.bar_ns))
    groups += by_bar.values()
    parts: list[NewsMoments] = []
    done = 0
    for worlds in groups:
        parts.append(gather(world_prices(worlds), questions(worlds), config))
        done += len(worlds)
        if progress is not None:
            progress(done, len(numbers))
    return concatenated(parts)


def world_prices(worlds: Sequence[SimulatedMarket]) -> Prices:
    """The worlds' closes; a bar opens at the previous close; nothing is known between them."""
    num_bars = max(len(world.scaled) for world in worlds)
    closes, opens = (
        np.full((num_bars, sum(len(world.assets) for world in worlds)), np.nan) for _ in range(2)
    )
    begin = 0
    for world in worlds:
        returns = log_returns(world.scaled)
        place = np.s_[: len(returns), begin : begin + len(world.assets)]
        closes[place] = _FIRST_PRICE * np.exp(np.cumsum(returns, axis=0))
        opens[place] = closes[place] * np.exp(-returns)
        begin += len(world.assets)
    bar_ns = worlds[0].bar_ns
    ends_ns = worlds[0].first_ns + (np.arange(num_bars) + 1) * bar_ns
    names = tuple(f"{world.number}.{asset.symbol}" for world in worlds for asset in world.assets)
    interval = f"{bar_ns // NS_PER_S}s"
    high, low = np.maximum(opens, closes), np.minimum(opens, closes)
    return Prices(f"world {worlds[0].number}", names, interval, ends_ns, ends_ns, opens, high, low, closes)


def log_returns(scaled: Array) -> Array:
    """Returns [T, N] whose ratio to the EWMA volatility before each is `scaled`, as the simulation scales."""
    returns = np.empty_like(scaled)
    variance = np.full(scaled.shape[1], _FIRST_SIGMA**2)
    for bar, now in enumerate(scaled):
        returns[bar] = now * np.sqrt(variance)
        variance = DECAY * variance + (1.0 - DECAY) * np.square(returns[bar])
    return returns


def questions(worlds: Sequence[SimulatedMarket]) -> list[NewsQuestion]:
    """The requests at the markets' moments, in the words of their news, with the truth."""
    asked: list[NewsQuestion] = []
    begin = 0
    for world in worlds:
        for moment in world.moments:
            as_of_ns = world.first_ns + (moment.bar + 1) * world.bar_ns
            for place in moment.assets:
                asset, outcome = world.assets[place], moment.outcomes[place]
                told = report_news(world, moment, asset)
                context = tuple(
                    world.scaled[moment.bar + 1 - MAX_CONTEXT_RETURNS : moment.bar + 1, place].tolist()
                )
                question = Question(asset.symbol, as_of_ns, world.bar_ns, told.items, context, told.name)
                truth = NewsTruth(outcome.expected, outcome.volatility_multiplier)
                asked.append(NewsQuestion(question, moment.bar, begin + place, world.number, truth))
        begin += len(world.assets)
    return asked


def ideal_meaning(num_stories: int = 3_000) -> ViewCalibration:
    """The calibration of views with full understanding, on the same stories as a model's."""
    drawn = list(islice(stories(SEED), num_stories))
    views = [
        ideal_view(one.truth.likeliest * one.truth.likely_sigmas, one.truth.volatility_multiplier, 0)
        for one in drawn
    ]
    return fit_meaning(drawn, views)
