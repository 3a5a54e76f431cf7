"""Narrators on the simulated market, where what news do is known: the readers, their placebos, and the ceiling."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from htfi.domain.decision import NewsView
from htfi.domain.time import NS_PER_DAY
from htfi.forecasting.config import ForecastConfig
from htfi.narrative.question import Question
from htfi.narrative.readers import ModelReader
from htfi.narrative.view_calibration import ViewCalibration
from htfi_eval.eval.narrative import placebos
from htfi_eval.eval.narrative.moments import NewsMoments, NewsTruth
from htfi_eval.eval.narrative.tilts import (
    NarratorForecasts,
    full_weight,
    news_arrival,
    price_only,
    tilt_effects,
    track_record_weighted,
)

Tell = Callable[[int, int], None]
Stage = Callable[[str], Tell]

NEWS, AT_FACE_VALUE, NEWS_ARRIVAL, CEILING = "with news", "at its word", "a bell, no words", "ceiling"
MISLABELLED, ELSEWHERE, OTHER_TIME, RANDOM = (
    "others' words, true tags",
    "others' news",
    "other times' news",
    "random",
)
CENTRAL = 1  # the place among the horizons by which most of an effect has landed: 5 bars


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
    """Let all narrators speak. `ideal` is what the views of one who understands all mean."""
    dice = np.random.Generator(np.random.PCG64(seed))
    questions = moments.questions
    wrong: dict[str, list[Question]] = {
        MISLABELLED: placebos.mislabelled(questions),
        ELSEWHERE: placebos.with_news_of(questions, placebos.from_other_cluster(moments, dice)),
        OTHER_TIME: placebos.with_news_of(
            questions, placebos.at_another_time(moments.cluster, moments.instant)
        ),
    }
    views = placebos.read_views(questions, reader, stage("views of the news"))
    said = {NEWS: views}
    for name, asked in wrong.items():
        said[name] = placebos.read_views(asked, reader, stage(f"views of {name}"))
    said[RANDOM] = placebos.permuted(views, dice)
    told = {
        "price only": price_only(moments, config),
        NEWS_ARRIVAL: full_weight(NEWS_ARRIVAL, moments, news_arrival(moments, config), config),
    }
    for name, heard in said.items():
        told[name] = track_record_weighted(name, moments, tilt_effects(heard, moments, config), config)
    word = [replace(view, meant=()) for view in views]
    told[AT_FACE_VALUE] = track_record_weighted(
        AT_FACE_VALUE, moments, tilt_effects(word, moments, config), config
    )
    best = [
        ideal_understanding(truth, question)
        for truth, question in zip(moments.truths, questions, strict=True)
    ]
    best = [replace(view, meant=ideal.meanings(view)) for view in best]
    told[CEILING] = track_record_weighted(CEILING, moments, tilt_effects(best, moments, config), config)
    events = np.array([truth is not None and truth.expected != 0.0 for truth in moments.truths])
    return NarratorResults(moments, told, tuple(views), events)


def ideal_understanding(truth: NewsTruth | None, question: Question) -> NewsView:
    """What one who understands all that is shown would say; what dice decide later it cannot know."""
    assert truth is not None
    return ideal_view(truth.expected, truth.volatility_multiplier, question.as_of_ns)


def ideal_view(expected: float, volatility_multiplier: float, as_of_ns: int) -> NewsView:
    """A view that expects so many sigmas, signed."""
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
