"""Shocks, macro surprises and named stresses of a basis, as effects on the draws of today's forecast."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_DAY, parse_duration
from htfi.forecasting.scenarios.baseline import BaselineForecast
from htfi.forecasting.scenarios.effects import (
    ScenarioEffect,
    TransmissionChannel,
    apply_moves,
    apply_quantiles,
)
from htfi.forecasting.scenarios.history import find_macro_series, macro_response, return_over_window
from htfi.forecasting.scenarios.requests import (
    PriceShock,
    ShockUnit,
    find_series,
    parse_shocks,
    resolve_names,
    to_log_return,
)
from htfi.forecasting.scenarios.stresses import factors_by_symbol, find_stress, stress_factors, window_days
from htfi.pipeline.scenarios.basis import ScenarioBasis

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ResolvedScenario:
    """A scenario's title, what it does, and what is known to move, one line each."""

    title: str
    effect: ScenarioEffect
    moves: tuple[str, ...]


def apply_shocks(today: BaselineForecast, shocks: Sequence[PriceShock]) -> ResolvedScenario:
    """Series of the run move as the scenario states. Raises: InvalidInput."""
    places = resolve_names(shocks, today.series)
    moves = [_log_return(today, shock, place) for shock, place in zip(shocks, places, strict=True)]
    effect = apply_moves(today, places, moves, [TransmissionChannel.SHOCKED] * len(places))
    lines = tuple(
        _move_text(today, place, move, "as asked") for place, move in zip(places, moves, strict=True)
    )
    return ResolvedScenario(", ".join(shock.text for shock in shocks), effect, lines)


def _log_return(today: BaselineForecast, shock: PriceShock, place: int) -> float:
    price, median, sigma = (float(row[place]) for row in (today.prices, today.median, today.sigma))
    return to_log_return(shock, price, median, sigma)


def _move_text(today: BaselineForecast, place: int, move: float, why: str) -> str:
    moved = f"{100.0 * math.expm1(move):+.2f}%".replace("-", "−")
    return f"{today.series[place]} {moved} ({why})"


def apply_macro_surprise(basis: ScenarioBasis, today: BaselineForecast, text: str) -> ResolvedScenario:
    """A series of the run is shocked; a macro series that is only released is answered as it was before.

    Raises: InvalidInput.
    """
    shocks = parse_shocks(text)
    if all(find_series(shock.name, today.series) is not None for shock in shocks):
        return apply_shocks(today, shocks)
    if len(shocks) > 1:
        raise InvalidInput(f"--macro '{text}': macro series are moved one at a time")
    (shock,) = shocks
    memory = basis.history
    found = find_macro_series(shock.name, memory.macro)
    if found is None:
        known = ", ".join([*today.series[:8], *list(memory.macro)[:8]])
        raise InvalidInput(f"--macro '{text}': {basis.origin} knows no '{shock.name}'; it knows {known}")
    ends_ns, scores = _scores_by_instant(basis, today)
    response = macro_response(found, memory.macro[found], ends_ns, scores)
    match shock.unit:
        case ShockUnit.SIGMAS:
            surprise = shock.amount * response.surprise_std
        case ShockUnit.PERCENT:
            surprise = shock.amount / 100.0 * response.newest
        case ShockUnit.BASIS_POINTS:
            surprise = shock.amount / 100.0
        case ShockUnit.POINTS:
            surprise = shock.amount
    shift = response.slope * (surprise / response.surprise_std) * today.sigma
    effect = apply_quantiles(
        today, today.quantiles + shift[:, None], [TransmissionChannel.RESPONSE] * len(shift)
    )
    most = int(np.argmax(np.abs(response.t)))
    moves = (
        f"{found} {surprise:+g} from {response.newest:g}, a usual surprise being {response.surprise_std:.3g}; "
        f"{int(response.num.max())} earlier ones, clearest in {today.series[most]} (t = {response.t[most]:+.1f})",
    )
    return ResolvedScenario(f"{found} {surprise:+g}", effect, moves)


def _scores_by_instant(basis: ScenarioBasis, today: BaselineForecast) -> tuple[NDArray[np.int64], Array]:
    """When the bars of the series ended, and returns in units of their own deviation [T, n], all that is remembered."""
    pasts = [basis.history.past(series) for series in today.series]
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


def stress_refusal(basis: ScenarioBasis, text: str) -> str:
    """Why a named stress does not apply. Raises: InvalidInput for one that is not in the library."""
    stress = find_stress(text)
    return (
        f"--stress {stress.id}: no series of {basis.origin} reaches back to {stress.before} or stands for one of "
        f"its factors ({', '.join(stress_factors()[name].name for name in stress.moves)}): name the shock with --shock"
    )


def apply_stress(basis: ScenarioBasis, today: BaselineForecast, text: str) -> ResolvedScenario | None:
    """A named stress: by a series' own history, else as a factor, else carried by those that are known.

    None where no series is known to move. Raises: InvalidInput for a name that is not in the library.
    """
    stress = find_stress(text)
    days = window_days(max(_horizon_days(basis, today.horizon), 1.0))
    known: dict[int, tuple[float, TransmissionChannel]] = {}
    lines: dict[int, str] = {}
    for place, series in enumerate(today.series):
        found = return_over_window(basis.history.past(series), stress.before, days)
        if found is not None:
            move, first, last = found
            known[place] = (move, TransmissionChannel.OWN_HISTORY)
            lines[place] = _move_text(today, place, move, f"its own history, {first} to {last}")
    for name, places in factors_by_symbol(basis.symbols).items():
        for place in places if name in stress.moves else ():
            if place not in known:
                shock = stress.shock(stress_factors()[name], days)
                move = _log_return(today, shock, place)
                known[place] = (move, TransmissionChannel.FACTOR)
                lines[place] = _move_text(today, place, move, f"as {shock.text} then")
    if not known:
        return None
    places = sorted(known)
    ways = [known[place][1] for place in places]
    effect = apply_moves(today, places, [known[place][0] for place in places], ways)
    title = f"{stress.title} ({stress.before}, {days} day{'s' if days > 1 else ''})"
    return ResolvedScenario(title, effect, tuple(lines[place] for place in places))


def _horizon_days(basis: ScenarioBasis, horizon: int) -> float:
    try:
        return horizon * parse_duration(basis.interval) / NS_PER_DAY
    except InvalidInput:
        return 1.0
