"""Answers scenarios on a basis: each kind turned into an effect on the draws of today's forecast. The CLI asks."""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.domain.news_view import NewsView
from htfi.forecasting.scenarios.baseline import NUM_DRAWS, BaselineForecast, make_baseline
from htfi.forecasting.scenarios.effects import (
    EventProbability,
    ScenarioEffect,
    TransmissionChannel,
    apply_quantiles,
    spread_shift,
)
from htfi.forecasting.scenarios.measures import (
    LEVELS,
    PortfolioFigures,
    ScenarioComparison,
    compare_with_baseline,
    portfolio_figures,
    rank_positions,
    simple_quantiles,
)
from htfi.forecasting.scenarios.positions import Positions
from htfi.forecasting.scenarios.requests import ScenarioKind, ScenarioRequest, parse_shocks, require_series
from htfi.narrative.config import MAX_HEADLINE_CHARS
from htfi.narrative.headline_roles import CompanyRole
from htfi.narrative.text import quote
from htfi.pipeline.scenarios.basis import ScenarioBasis
from htfi.pipeline.scenarios.moves import apply_macro_surprise, apply_shocks, apply_stress, stress_refusal
from htfi.pipeline.scenarios.next_forecast import NextForecast, forecast_next
from htfi.pipeline.scenarios.reading import (
    AffectedSeries,
    CurrentForecast,
    find_affected,
    hypothetical_news,
    read_hypothetical,
    view_effect,
)

Array = NDArray[np.float64]

MAX_SERIES_WITH_DRAWS = 8  # series whose draws an answer keeps
MAX_THREADS = 8


@dataclass(frozen=True, slots=True)
class ScenarioAnswer:
    """One scenario answered. `moves` say what is known to move and how, one line each.

    `draws` are the log returns [S] of its most prominent series. `views` are the reader's, by series, where it was
    asked, as far as they are of the series' part in the headline; `roles` are the parts of those that are not its
    subject. Then `change` is at the weight 0–1 that it has earned, `full` and `draws` as if it were right.
    """

    asked: ScenarioRequest
    title: str
    ways: tuple[TransmissionChannel, ...]
    chance: EventProbability | None
    change: ScenarioComparison
    full: ScenarioComparison | None
    draws: dict[int, Array]
    moves: tuple[str, ...] = ()
    views: dict[str, NewsView] | None = None
    roles: Mapping[str, CompanyRole] = field(default_factory=dict[str, CompanyRole])
    weight: float = 0.0
    next_forecast: NextForecast | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScenarioAnswers:
    """All scenarios of one command beside the unchanged forecast."""

    today: BaselineForecast
    positions: Positions
    before: Array  # [n, L] quantiles of simple returns
    book_before: PortfolioFigures
    answers: tuple[ScenarioAnswer, ...]
    notes: tuple[str, ...]


def forecast_today(
    basis: ScenarioBasis, now: CurrentForecast, horizon: int | None, seed: int, num_draws: int = NUM_DRAWS
) -> BaselineForecast:
    """The unchanged forecast at a horizon, the first of the run's where none is named. Raises: InvalidInput."""
    horizons = now.batch.horizons
    chosen = horizons[0] if horizon is None else horizon
    if chosen not in horizons:
        names = ", ".join(map(str, horizons))
        raise InvalidInput(f"horizon {chosen}: this run forecasts {names} bars ahead; choose one of them")
    return make_baseline(
        basis.series,
        basis.prices,
        now.batch.quantiles[:, horizons.index(chosen)],
        now.batch.levels,
        chosen,
        basis.components.forecaster.surprises(basis.series).scores,
        seed=seed,
        num_draws=num_draws,
    )


def answer_scenarios(
    basis: ScenarioBasis,
    now: CurrentForecast,
    today: BaselineForecast,
    asked: Sequence[ScenarioRequest],
    positions: Positions,
    *,
    spreads: bool,
    follows: bool = False,
    advance: Callable[[float], None] = lambda _: None,
) -> ScenarioAnswers:
    """Every scenario in turn; headlines are put to the reader together.

    `spreads` carries a reader's views on to series that it was not asked about; `follows` also forecasts from there;
    `advance` is given the share answered, 0–1. Raises: InvalidInput, DependencyUnavailable.
    """
    before = simple_quantiles(today.returns)
    frame = ScenarioAnswers(
        today, positions, before, portfolio_figures(positions.portfolio, today.returns), (), basis.notes
    )
    headlines = [one for one in asked if one.kind is ScenarioKind.HEADLINE]
    read = iter(_read_headlines(basis, frame, headlines, now, spreads))
    if any(one.kind is ScenarioKind.STRESS for one in asked):
        _ = basis.history  # read once, before threads ask for it

    def answer(one: ScenarioRequest) -> ScenarioAnswer | None:
        match one.kind:
            case ScenarioKind.SHOCK:
                moved = apply_shocks(today, parse_shocks(one.text))
            case ScenarioKind.MACRO:
                moved = apply_macro_surprise(basis, today, one.text)
            case ScenarioKind.STRESS:
                moved = apply_stress(basis, today, one.text)
                if moved is None and one.is_of_all:
                    return None
                if moved is None:
                    raise InvalidInput(stress_refusal(basis, one.text))
            case ScenarioKind.HEADLINE:
                raise AssertionError("headlines are read together")
        return _answer(frame, one, moved.title, moved.effect, moves=moved.moves)

    others = [one for one in asked if one.kind is not ScenarioKind.HEADLINE]
    with ThreadPoolExecutor(
        min(MAX_THREADS, os.cpu_count() or 1)
    ) as pool:  # numpy lets go of the interpreter
        answered: list[ScenarioAnswer | None] = []
        for found in pool.map(answer, others):
            answered.append(found)
            advance((len(headlines) + len(answered)) / len(asked))
    rest = iter(answered)
    in_order = [next(read if one.kind is ScenarioKind.HEADLINE else rest) for one in asked]
    answers = [answer for answer in in_order if answer is not None]
    gone = [one.text for one, answer in zip(asked, in_order, strict=True) if answer is None]
    if not answers:
        raise InvalidInput(stress_refusal(basis, gone[0]))
    if gone:
        left = (
            f"stresses left out, for no series reaches back to them or stands for a factor: {', '.join(gone)}"
        )
        frame = replace(frame, notes=(*frame.notes, left))
    if follows:
        moves = [np.log1p((one.full or one.change).after[:, LEVELS.index(0.5)]) for one in answers]
        afters = forecast_next(basis, today, moves)
        answers = [replace(one, next_forecast=after) for one, after in zip(answers, afters, strict=True)]
    return replace(frame, answers=tuple(answers))


def _answer(
    frame: ScenarioAnswers,
    asked: ScenarioRequest,
    title: str,
    effect: ScenarioEffect,
    full_effect: ScenarioEffect | None = None,
    moves: tuple[str, ...] = (),
) -> ScenarioAnswer:
    book, before, book_before = frame.positions.portfolio, frame.before, frame.book_before
    change = compare_with_baseline(frame.today, effect, book, before, book_before)
    full = compare_with_baseline(frame.today, full_effect, book, before, book_before) if full_effect else None
    shown = rank_positions(full or change, effect.channels, book.notionals != 0.0)[:MAX_SERIES_WITH_DRAWS]
    drawn = full_effect or effect
    draws = {place: drawn.returns[:, place].copy() for place in shown}
    return ScenarioAnswer(asked, title, effect.channels, effect.probability, change, full, draws, moves)


def _read_headlines(
    basis: ScenarioBasis,
    frame: ScenarioAnswers,
    asked: Sequence[ScenarioRequest],
    now: CurrentForecast,
    spreads: bool,
) -> list[ScenarioAnswer]:
    """Headlines, put to the reader in one batch: other quantiles for every series that they are read for."""
    today = frame.today
    most = MAX_HEADLINE_CHARS
    sizes = np.abs(frame.positions.portfolio.notionals)
    held = [int(place) for place in np.argsort(-sizes, kind="stable") if sizes[place] > 0.0]
    concerned: list[AffectedSeries] = []
    for one in asked:
        on = [require_series(symbol, today.series, f"--on for '{one.text[:40]}'") for symbol in one.on]
        concerned.append(find_affected(basis, one.text, on, held))
    items = [
        hypothetical_news(one.text, about.symbols, basis.as_of_ns, number, most)
        for number, (one, about) in enumerate(zip(asked, concerned, strict=True), 1)
    ]
    all_views = read_hypothetical(basis, items, concerned)
    answers: list[ScenarioAnswer] = []
    for one, item, about, views in zip(asked, items, concerned, all_views, strict=True):
        at, parts = about.places, about.roles
        ways = [TransmissionChannel.UNTOUCHED] * len(today.series)
        for place, view in zip(at, views, strict=True):
            ways[place] = TransmissionChannel.VIEW if view.confidence > 0.0 else TransmissionChannel.NO_VIEW
        found, h = view_effect(basis, now, at, views), now.batch.horizons.index(today.horizon)
        weights, shift = found.weight[:, h], found.shift[:, h]
        carries = spreads and len(at) < len(ways)
        if carries:
            ways = [
                TransmissionChannel.DEPENDENCE if way is TransmissionChannel.UNTOUCHED else way
                for way in ways
            ]
        effect, full_effect = (
            apply_quantiles(today, _margins(today, at, quantiles[:, h], moved if carries else None), ways)
            for quantiles, moved in ((found.weighted, weights * shift), (found.full, shift))
        )
        answer = _answer(frame, one, quote(item.headline), effect, full_effect)
        answers.append(
            replace(
                answer,
                views=dict(zip([today.series[place] for place in at], views, strict=True)),
                roles={
                    today.series[place]: role
                    for place, role in zip(at, parts, strict=True)
                    if role is not CompanyRole.SUBJECT
                },
                weight=_weight(views, weights),
                notes=about.notes,
            )
        )
    return answers


def _margins(today: BaselineForecast, at: Sequence[int], quantiles: Array, carried: Array | None) -> Array:
    """All series' quantiles, those at `at` changed; `carried` [A] are their shifts, where these move the others."""
    changed = today.quantiles.copy()
    if carried is not None:
        shift = np.zeros(len(today.series))
        shift[list(at)] = carried
        changed += spread_shift(today, at, shift)[:, None]
    changed[list(at)] = quantiles
    return changed


def _weight(views: Sequence[NewsView], weights: Array) -> float:
    """What the readers that had something to say have earned, 0–1, in the mean."""
    speaking = [weight for view, weight in zip(views, weights.tolist(), strict=True) if view.confidence > 0.0]
    return sum(speaking) / len(speaking) if speaking else 0.0
