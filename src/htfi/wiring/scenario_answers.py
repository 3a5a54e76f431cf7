"""Answers scenarios on a ground: each kind turned into an effect on the draws of today's forecast. The CLI asks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from htfi.domain.decision import View
from htfi.domain.errors import InvalidInput
from htfi.domain.events import News
from htfi.domain.time import NS_PER_DAY, parse_duration
from htfi.forecasting.scenarios.asked import Asked, Kind
from htfi.forecasting.scenarios.effects import Effect, Way, change_margins, move_known, spread
from htfi.forecasting.scenarios.measures import BookFigures, Change, book_figures, compare, simple_quantiles
from htfi.forecasting.scenarios.past import find_macro, macro_response, window_return
from htfi.forecasting.scenarios.positions import Positions
from htfi.forecasting.scenarios.shocks import (
    Shock,
    Unit,
    find_series,
    parse_shocks,
    require_series,
    resolve_names,
    to_log_return,
)
from htfi.forecasting.scenarios.stresses import factors, factors_of, find_stress, window_days
from htfi.forecasting.scenarios.today import NUM_DRAWS, Today, make_today
from htfi.narrative.text import quote
from htfi.wiring.scenario import Ground
from htfi.wiring.scenario_reading import Now, ask_reader, hypothetical, tilting

Array = NDArray[np.float64]

MAX_READ = 200  # series put to the reader for one headline: those with the largest positions


@dataclass(frozen=True, slots=True)
class Answer:
    """One scenario answered. `moves` say what is known to move and how, one line each.

    `views` are the reader's, by series, where it was asked: then `effect` and `change` are at the weight 0–1 that it
    has earned, `full_effect` and `full` as if it were right.
    """

    asked: Asked
    title: str
    effect: Effect
    change: Change
    full_effect: Effect | None = None
    full: Change | None = None
    moves: tuple[str, ...] = ()
    views: dict[str, View] | None = None
    weight: float = 0.0
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
    ground: Ground, now: Now, today: Today, asked: Sequence[Asked], positions: Positions, *, spreads: bool
) -> Answers:
    """Every scenario in turn; headlines are put to the reader together. Raises: InvalidInput, DependencyUnavailable."""
    before = simple_quantiles(today.returns)
    frame = Answers(today, positions, before, book_figures(positions.book, today.returns), (), ground.notes)
    headlines = [one for one in asked if one.kind is Kind.HEADLINE]
    read = iter(_read(ground, frame, headlines, now, spreads))
    told: list[Answer] = []
    for one in asked:
        match one.kind:
            case Kind.HEADLINE:
                told.append(next(read))
            case Kind.SHOCK:
                told.append(_shocked(frame, one, parse_shocks(one.text)))
            case Kind.MACRO:
                told.append(_macro(ground, frame, one))
            case Kind.STRESS:
                told.append(_stressed(ground, frame, one))
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
    return Answer(asked, title, effect, change, full_effect, full, moves)


def _shocked(frame: Answers, asked: Asked, shocks: Sequence[Shock]) -> Answer:
    today = frame.today
    places = resolve_names(shocks, today.series)
    moves = [_log_return(today, shock, place) for shock, place in zip(shocks, places, strict=True)]
    effect = move_known(today, places, moves, [Way.SHOCKED] * len(places))
    lines = tuple(_told(today, place, move, "as asked") for place, move in zip(places, moves, strict=True))
    return _answer(frame, asked, ", ".join(shock.text for shock in shocks), effect, moves=lines)


def _log_return(today: Today, shock: Shock, place: int) -> float:
    price, median, sigma = (float(row[place]) for row in (today.prices, today.median, today.sigma))
    return to_log_return(shock, price, median, sigma)


def _told(today: Today, place: int, move: float, why: str) -> str:
    moved = f"{100.0 * math.expm1(move):+.2f}%".replace("-", "−")
    return f"{today.series[place]} {moved} ({why})"


def _macro(ground: Ground, frame: Answers, asked: Asked) -> Answer:
    """A series of the run is shocked; a macro series that is only released is answered as it was before."""
    shocks = parse_shocks(asked.text)
    today = frame.today
    if all(find_series(shock.name, today.series) is not None for shock in shocks):
        return _shocked(frame, asked, shocks)
    if len(shocks) > 1:
        raise InvalidInput(f"--macro '{asked.text}': series that are only released are moved one at a time")
    (shock,) = shocks
    memory = ground.memory
    found = find_macro(shock.name, memory.macro)
    if found is None:
        known = ", ".join([*today.series[:8], *list(memory.macro)[:8]])
        raise InvalidInput(
            f"--macro '{asked.text}': {ground.origin} knows no '{shock.name}'; it knows {known}"
        )
    ends_ns, scores = _scores_by_instant(ground, today)
    response = macro_response(found, memory.macro[found], ends_ns, scores)
    match shock.unit:
        case Unit.SIGMAS:
            surprise = shock.amount * response.usual
        case Unit.PERCENT:
            surprise = shock.amount / 100.0 * response.newest
        case Unit.BASIS_POINTS:
            surprise = shock.amount / 100.0
        case Unit.POINTS:
            surprise = shock.amount
    shift = response.slope * (surprise / response.usual) * today.sigma
    effect = change_margins(today, today.quantiles + shift[:, None], [Way.RESPONSE] * len(shift))
    most = int(np.argmax(np.abs(response.t)))
    moves = (
        f"{found} {surprise:+g} from {response.newest:g}, a usual surprise being {response.usual:.3g}; "
        f"{int(response.num.max())} earlier ones, clearest in {today.series[most]} (t = {response.t[most]:+.1f})",
    )
    return _answer(frame, asked, f"{found} {surprise:+g}", effect, moves=moves)


def _scores_by_instant(ground: Ground, today: Today) -> tuple[NDArray[np.int64], Array]:
    """When the bars of the series ended, and returns in units of their own deviation [T, n], all that is remembered."""
    pasts = [ground.memory.past(series) for series in today.series]
    ends_ns = np.unique(np.concatenate([past.ends_ns for past in pasts]))
    scores = np.full((len(ends_ns), len(pasts)), np.nan)
    for place, past in enumerate(pasts):
        if len(past.closes) > 2:
            moves = np.diff(np.log(past.closes))
            local = _trailing_deviation(moves)
            scores[np.searchsorted(ends_ns, past.ends_ns[1:]), place] = np.clip(moves / local, -8.0, 8.0)
    return ends_ns, scores


def _trailing_deviation(moves: Array) -> Array:
    """The EWMA deviation [T] before each move; the first ones' own."""
    variance = float(np.mean(moves[:20] ** 2)) or 1e-12
    before = np.empty_like(moves)
    for place, move in enumerate(moves.tolist()):
        before[place] = variance
        variance += 0.06 * (move * move - variance)
    return np.sqrt(np.maximum(before, 1e-16))


def _stressed(ground: Ground, frame: Answers, asked: Asked) -> Answer:
    """A named stress: by a series' own history, else as a factor, else carried by those that are known."""
    today, stress = frame.today, find_stress(asked.text)
    days = window_days(max(_horizon_days(ground, today.horizon), 1.0))
    known: dict[int, tuple[float, Way]] = {}
    lines: dict[int, str] = {}
    for place, series in enumerate(today.series):
        found = window_return(ground.memory.past(series), stress.before, days)
        if found is not None:
            move, first, last = found
            known[place] = (move, Way.OWN_HISTORY)
            lines[place] = _told(today, place, move, f"its own history, {first} to {last}")
    for name, place in factors_of(ground.symbols).items():
        if place not in known and name in stress.moves:
            shock = stress.shock(factors()[name], days)
            move = _log_return(today, shock, place)
            known[place] = (move, Way.FACTOR)
            lines[place] = _told(today, place, move, f"as {shock.text} then")
    if not known:
        raise InvalidInput(
            f"--stress {stress.id}: no series of {ground.origin} reaches back to {stress.before} or stands for one of "
            f"its factors ({', '.join(factors()[name].name for name in stress.moves)}): name the shock with --shock"
        )
    places = sorted(known)
    ways = [known[place][1] for place in places]
    leader = next(iter(factors_of(ground.symbols).values()), places[0])
    first = places.index(leader) if leader in known else 0
    effect = move_known(today, places, [known[place][0] for place in places], ways, first)
    title = f"{stress.title} ({stress.before}, {days} day{'s' if days > 1 else ''})"
    return _answer(frame, asked, title, effect, moves=tuple(lines[place] for place in places))


def _horizon_days(ground: Ground, horizon: int) -> float:
    try:
        return horizon * parse_duration(ground.interval) / NS_PER_DAY
    except InvalidInput:
        return 1.0


def _read(ground: Ground, frame: Answers, asked: Sequence[Asked], now: Now, spreads: bool) -> list[Answer]:
    """Headlines, put to the reader in one batch: other quantiles for every series that they are read for."""
    today = frame.today
    most = ground.settings.narrative.max_headline_chars
    sizes = np.abs(frame.positions.book.notionals)
    held = [int(place) for place in np.argsort(-sizes, kind="stable") if sizes[place] > 0.0]
    notes = (
        (f"read for the {MAX_READ} largest positions of {len(held)}: name --on",)
        if len(held) > MAX_READ
        else ()
    )
    items: list[News] = []
    places: list[list[int]] = []
    for number, one in enumerate(asked, 1):
        on = [require_series(symbol, today.series, f"--on for '{one.text[:40]}'") for symbol in one.on]
        symbols = [ground.symbols[place] for place in on]
        items.append(hypothetical(one.text, symbols, ground.as_of_ns, number, most))
        places.append(list(dict.fromkeys(on)) or held[:MAX_READ])
    all_views = ask_reader(ground, items, places)
    told: list[Answer] = []
    for one, item, at, views in zip(asked, items, places, all_views, strict=True):
        ways = [Way.UNTOUCHED] * len(today.series)
        for place, view in zip(at, views, strict=True):
            ways[place] = Way.READ if view.confidence > 0.0 else Way.SILENT
        found, h = tilting(ground, now, at, views), now.batch.horizons.index(today.horizon)
        carried = np.zeros(len(today.series))
        if spreads and len(at) < len(ways):
            shift = np.zeros(len(today.series))
            shift[at] = found.shift[:, h]
            carried = spread(today, at, shift)
            ways = [Way.CARRIED if way is Way.UNTOUCHED else way for way in ways]
        weight = float(found.weight[h])
        effect, full_effect = (
            change_margins(today, _margins(today, at, quantiles[:, h], share * carried), ways)
            for quantiles, share in ((found.earned, weight), (found.full, 1.0))
        )
        answer = _answer(frame, one, quote(item.headline), effect, full_effect)
        told.append(
            replace(
                answer,
                views=dict(zip([today.series[place] for place in at], views, strict=True)),
                weight=weight,
                notes=notes if not one.on else (),
            )
        )
    return told


def _margins(today: Today, at: Sequence[int], quantiles: Array, carried: Array) -> Array:
    changed = today.quantiles + carried[:, None]
    changed[list(at)] = quantiles
    return changed
