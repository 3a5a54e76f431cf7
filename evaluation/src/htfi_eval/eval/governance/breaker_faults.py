"""The kinds of failure that breakers must find: each changes bars, forecasts or views from an instant on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from msgspec.structs import replace as replace_struct

from htfi.domain.events import Bar
from htfi.governance.breakers.observations import AnswerObservation, PointObservation, ViewObservation

Rng = np.random.Generator
Views = Mapping[int, ViewObservation]


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of failure. `finders` are the breakers of which one must trip; what is not changed is None.

    `bars` changes the bars of an instant, `point` a finished observation; both get the number of instants since the
    fault began. A fault counts as found when a finder trips within `deadline` instants.
    """

    name: str
    finders: frozenset[str]
    deadline: int
    bars: Callable[[int, list[Bar], Rng], list[Bar]] | None = None
    point: Callable[[int, PointObservation, Rng], PointObservation] | None = None


def _freeze(number: int, bars: list[Bar], frozen: dict[str, Bar]) -> list[Bar]:
    del number
    return [
        replace_struct(bar, open=old.open, high=old.high, low=old.low, close=old.close, volume=old.volume)
        for bar in bars
        for old in (frozen.setdefault(bar.symbol, bar),)
    ]


def _frozen_feed() -> Fault:
    """All series repeat the first bar that comes."""
    frozen: dict[str, Bar] = {}

    def change(number: int, bars: list[Bar], rng: Rng) -> list[Bar]:
        del rng
        if number == 0:
            frozen.clear()
        return _freeze(number, bars, frozen)

    return Fault("frozen feed", frozenset({"frozen_feed"}), 10, bars=change)


def _narrow_bands(number: int, point: PointObservation, rng: Rng) -> PointObservation:
    """Forecasts a fifth as wide as they should be: a wrong unit or a broken calibration."""
    del number, rng
    median = point.quantiles[:, :, len(point.levels) // 2, None]
    return replace(point, quantiles=median + 0.2 * (point.quantiles - median))


def _worse_draft(number: int, point: PointObservation, rng: Rng) -> PointObservation:
    """A draft whose proposals are mostly rejected."""
    del number

    def worse(answer: AnswerObservation) -> AnswerObservation:
        return replace_struct(answer, num_accepted=int(rng.binomial(answer.num_accepted, 0.3)))

    return _with_answers(point, worse)


def _with_answers(
    point: PointObservation, change: Callable[[AnswerObservation], AnswerObservation]
) -> PointObservation:
    views = {
        place: view if view.answer is None else replace_struct(view, answer=change(view.answer))
        for place, view in point.views.items()
    }
    return replace(point, views=views)


FAULTS: tuple[Fault, ...] = (
    _frozen_feed(),
    Fault("forecasts too narrow", frozenset({"bands_left"}), 20, point=_narrow_bands),
    Fault("draft mostly rejected", frozenset({"draft_acceptance"}), 60, point=_worse_draft),
)
