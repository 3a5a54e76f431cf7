"""Answers scenarios on a ground: each kind turned into an effect on the draws of today's forecast. The CLI asks."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from htfi.domain.decision import View
from htfi.domain.errors import InvalidInput
from htfi.forecasting.scenarios.asked import Asked, Kind
from htfi.forecasting.scenarios.chances import Chance
from htfi.forecasting.scenarios.effects import Effect, Way, change_margins, spread
from htfi.forecasting.scenarios.measures import (
    LEVELS,
    BookFigures,
    Change,
    book_figures,
    compare,
    prominent,
    simple_quantiles,
)
from htfi.forecasting.scenarios.positions import Positions
from htfi.forecasting.scenarios.shocks import parse_shocks, require_series
from htfi.forecasting.scenarios.today import NUM_DRAWS, Today, make_today
from htfi.narrative.role_rules import Role
from htfi.narrative.text import quote
from htfi.wiring.scenario import Ground
from htfi.wiring.scenario_after import After, forecast_after
from htfi.wiring.scenario_moves import no_stress, shocked, stressed, surprised
from htfi.wiring.scenario_reading import (
    Concerned,
    Now,
    as_role,
    ask_reader,
    hypothetical,
    tilting,
    whom_it_concerns,
)

Array = NDArray[np.float64]

MAX_DRAWN = 8  # series whose draws an answer keeps
MAX_THREADS = 8


@dataclass(frozen=True, slots=True)
class Answer:
    """One scenario answered. `moves` say what is known to move and how, one line each.

    `draws` are the log returns [S] of its most prominent series. `views` are the reader's, by series, where it was
    asked, as far as they are of the series' part in the headline; `roles` are the parts of those that are not its
    subject. Then `change` is at the weight 0–1 that it has earned, `full` and `draws` as if it were right.
    """

    asked: Asked
    title: str
    ways: tuple[Way, ...]
    chance: Chance | None
    change: Change
    full: Change | None
    draws: dict[int, Array]
    moves: tuple[str, ...] = ()
    views: dict[str, View] | None = None
    roles: Mapping[str, Role] = field(default_factory=dict[str, Role])
    weight: float = 0.0
    after: After | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answers:
    """All scenarios of one command beside the unchanged forecast."""

    today: Today
    positions: Positions
    before: Array  # [n, L] quantiles of simple returns
    book_before: BookFigures
    answers: tuple[Answer, ...]
    notes: tuple[str, ...]


def todays(ground: Ground, now: Now, horizon: int | None, seed: int, num_draws: int = NUM_DRAWS) -> Today:
    """The unchanged forecast at a horizon, the first of the run's where none is named. Raises: InvalidInput."""
    horizons = now.batch.horizons
    chosen = horizons[0] if horizon is None else horizon
    if chosen not in horizons:
        told = ", ".join(map(str, horizons))
        raise InvalidInput(f"--horizon {chosen}: this run forecasts {told} bars ahead; choose one of them")
    return make_today(
        ground.series,
        ground.prices,
        now.batch.quantiles[:, horizons.index(chosen)],
        now.batch.levels,
        chosen,
        ground.rooms.forecaster.surprises(ground.series).scores,
        seed=seed,
        num_draws=num_draws,
    )


def answer_all(
    ground: Ground,
    now: Now,
    today: Today,
    asked: Sequence[Asked],
    positions: Positions,
    *,
    spreads: bool,
    follows: bool = False,
) -> Answers:
    """Every scenario in turn; headlines are put to the reader together.

    `spreads` carries a reader's views on to series that it was not asked about; `follows` also forecasts from there.
    Raises: InvalidInput, DependencyUnavailable.
    """
    before = simple_quantiles(today.returns)
    frame = Answers(today, positions, before, book_figures(positions.book, today.returns), (), ground.notes)
    headlines = [one for one in asked if one.kind is Kind.HEADLINE]
    read = iter(_read(ground, frame, headlines, now, spreads))
    if any(one.kind is Kind.STRESS for one in asked):
        _ = ground.memory  # read once, before threads ask for it

    def answer(one: Asked) -> Answer | None:
        match one.kind:
            case Kind.SHOCK:
                moved = shocked(today, parse_shocks(one.text))
            case Kind.MACRO:
                moved = surprised(ground, today, one.text)
            case Kind.STRESS:
                moved = stressed(ground, today, one.text)
                if moved is None and one.is_of_all:
                    return None
                if moved is None:
                    raise InvalidInput(no_stress(ground, one.text))
            case Kind.HEADLINE:
                raise AssertionError("headlines are read together")
        return _answer(frame, one, moved.title, moved.effect, moves=moved.moves)

    others = [one for one in asked if one.kind is not Kind.HEADLINE]
    with ThreadPoolExecutor(
        min(MAX_THREADS, os.cpu_count() or 1)
    ) as pool:  # numpy lets go of the interpreter
        rest = iter(list(pool.map(answer, others)))
    found = [next(read if one.kind is Kind.HEADLINE else rest) for one in asked]
    told = [answer for answer in found if answer is not None]
    gone = [one.text for one, answer in zip(asked, found, strict=True) if answer is None]
    if not told:
        raise InvalidInput(no_stress(ground, gone[0]))
    if gone:
        left = (
            f"stresses left out, for no series reaches back to them or stands for a factor: {', '.join(gone)}"
        )
        frame = replace(frame, notes=(*frame.notes, left))
    if follows:
        moves = [np.log1p((one.full or one.change).after[:, LEVELS.index(0.5)]) for one in told]
        afters = forecast_after(ground, today, moves)
        told = [replace(one, after=after) for one, after in zip(told, afters, strict=True)]
    return replace(frame, answers=tuple(told))


def _answer(
    frame: Answers,
    asked: Asked,
    title: str,
    effect: Effect,
    full_effect: Effect | None = None,
    moves: tuple[str, ...] = (),
) -> Answer:
    book, before, book_before = frame.positions.book, frame.before, frame.book_before
    change = compare(frame.today, effect, book, before, book_before)
    full = compare(frame.today, full_effect, book, before, book_before) if full_effect else None
    shown = prominent(full or change, effect.ways, book.notionals != 0.0)[:MAX_DRAWN]
    drawn = full_effect or effect
    draws = {place: drawn.returns[:, place].copy() for place in shown}
    return Answer(asked, title, effect.ways, effect.chance, change, full, draws, moves)


def _read(ground: Ground, frame: Answers, asked: Sequence[Asked], now: Now, spreads: bool) -> list[Answer]:
    """Headlines, put to the reader in one batch: other quantiles for every series that they are read for."""
    today = frame.today
    most = ground.settings.narrative.max_headline_chars
    sizes = np.abs(frame.positions.book.notionals)
    held = [int(place) for place in np.argsort(-sizes, kind="stable") if sizes[place] > 0.0]
    concerned: list[Concerned] = []
    for one in asked:
        on = [require_series(symbol, today.series, f"--on for '{one.text[:40]}'") for symbol in one.on]
        concerned.append(whom_it_concerns(ground, one.text, on, held))
    items = [
        hypothetical(one.text, about.symbols, ground.as_of_ns, number, most)
        for number, (one, about) in enumerate(zip(asked, concerned, strict=True), 1)
    ]
    all_views = ask_reader(ground, items, [about.places for about in concerned])
    told: list[Answer] = []
    for one, item, about, read in zip(asked, items, concerned, all_views, strict=True):
        at, parts = about.places, about.roles
        views = [as_role(view, role) for view, role in zip(read, parts, strict=True)]
        ways = [Way.UNTOUCHED] * len(today.series)
        for place, view in zip(at, views, strict=True):
            ways[place] = Way.READ if view.confidence > 0.0 else Way.SILENT
        found, h = tilting(ground, now, at, views), now.batch.horizons.index(today.horizon)
        weights, shift = found.weight[:, h], found.shift[:, h]
        carries = spreads and len(at) < len(ways)
        if carries:
            ways = [Way.CARRIED if way is Way.UNTOUCHED else way for way in ways]
        effect, full_effect = (
            change_margins(today, _margins(today, at, quantiles[:, h], moved if carries else None), ways)
            for quantiles, moved in ((found.earned, weights * shift), (found.full, shift))
        )
        answer = _answer(frame, one, quote(item.headline), effect, full_effect)
        told.append(
            replace(
                answer,
                views=dict(zip([today.series[place] for place in at], views, strict=True)),
                roles={
                    today.series[place]: role
                    for place, role in zip(at, parts, strict=True)
                    if role is not Role.SUBJECT
                },
                weight=_weight(views, weights),
                notes=about.notes,
            )
        )
    return told


def _margins(today: Today, at: Sequence[int], quantiles: Array, carried: Array | None) -> Array:
    """All series' quantiles, those at `at` changed; `carried` [A] are their shifts, where these move the others."""
    changed = today.quantiles.copy()
    if carried is not None:
        shift = np.zeros(len(today.series))
        shift[list(at)] = carried
        changed += spread(today, at, shift)[:, None]
    changed[list(at)] = quantiles
    return changed


def _weight(views: Sequence[View], weights: Array) -> float:
    """What the readers that had something to say have earned, 0–1, in the mean."""
    heard = [weight for view, weight in zip(views, weights.tolist(), strict=True) if view.confidence > 0.0]
    return sum(heard) / len(heard) if heard else 0.0
