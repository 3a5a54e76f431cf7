"""Narrators on the simulated market, where what news do is known: the readers, their placebos, and the ceiling."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from htfi.apps.eval import narrative_placebos as placebos
from htfi.apps.eval.narrative_moments import Moments, Truth
from htfi.apps.eval.narrative_tilts import Told, bell, changes, full, heeded, plain
from htfi.domain.decision import View
from htfi.domain.time import NS_PER_DAY
from htfi.forecasting.config import ForecastConfig
from htfi.narrative.meaning import Meaning
from htfi.narrative.model_reader import ModelReader
from htfi.narrative.question import Question

Tell = Callable[[int, int], None]
Stage = Callable[[str], Tell]

NEWS, WORD, BELL, CEILING = "with news", "at its word", "a bell, no words", "ceiling"
MISLABELLED, ELSEWHERE, OTHER_TIME, RANDOM = (
    "others' words, true tags",
    "others' news",
    "other times' news",
    "random",
)
CENTRAL = 1  # the place among the horizons by which most of an effect has landed: 5 bars


@dataclass(frozen=True, slots=True, eq=False)
class Market:
    """All narrators on the same moments. `events`: news with an effect still to come; `views` of the right news."""

    moments: Moments
    told: Mapping[str, Told]
    views: tuple[View, ...]
    events: NDArray[np.bool_]


def judge(
    moments: Moments,
    reader: ModelReader,
    ideal: Meaning,
    config: ForecastConfig,
    seed: int,
    stage: Stage,
) -> Market:
    """Let all narrators speak. `ideal` is what the views of one who understands all mean."""
    dice = np.random.Generator(np.random.PCG64(seed))
    questions = moments.questions
    wrong: dict[str, list[Question]] = {
        MISLABELLED: placebos.mislabelled(questions),
        ELSEWHERE: placebos.exchanged(questions, placebos.elsewhere(moments, dice)),
        OTHER_TIME: placebos.exchanged(questions, placebos.at_another_time(moments.cluster, moments.instant)),
    }
    views = placebos.read(questions, reader, stage("views of the news"))
    said = {NEWS: views}
    for name, asked in wrong.items():
        said[name] = placebos.read(asked, reader, stage(f"views of {name}"))
    said[RANDOM] = placebos.permuted(views, dice)
    told = {"price only": plain(moments, config), BELL: full(BELL, moments, bell(moments, config), config)}
    for name, heard in said.items():
        told[name] = heeded(name, moments, changes(heard, moments, config), config)
    word = [replace(view, meant=()) for view in views]
    told[WORD] = heeded(WORD, moments, changes(word, moments, config), config)
    best = [perfect(truth, question) for truth, question in zip(moments.truths, questions, strict=True)]
    best = [replace(view, meant=ideal.of(view)) for view in best]
    told[CEILING] = heeded(CEILING, moments, changes(best, moments, config), config)
    events = np.array([truth is not None and truth.expected != 0.0 for truth in moments.truths])
    return Market(moments, told, tuple(views), events)


def perfect(truth: Truth | None, question: Question) -> View:
    """What one who understands all that is shown would say; what dice decide later it cannot know."""
    assert truth is not None
    return ideal_view(truth.expected, truth.volatility_multiplier, question.as_of_ns)


def ideal_view(expected: float, volatility_multiplier: float, as_of_ns: int) -> View:
    """A view that expects so many sigmas, signed."""
    return View(
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
