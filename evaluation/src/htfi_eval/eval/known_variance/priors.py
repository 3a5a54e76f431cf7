"""Fits the shipped priors of what events do to variance, on years before those that are judged.

`python -m htfi_eval.eval.known_variance.priors OUT.json` walks the staged panels up to the end of 2013 and finds, for
each kind of event, the log factors of scale that make returns in units of the forecast band likeliest (a Student-t),
with a ridge: a factor that few events speak for is drawn to none.
"""

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from htfi.domain.scheduled_event import ScheduledEvent
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.known_variance.event_effects import SHARED_EXCESS, BarWithEvents, EventEffects, combine
from htfi_eval.eval.known_variance.data import euro_dollar
from htfi_eval.eval.prices import STAGED, Prices, load_prices
from htfi_eval.eval.scheduled_events import earnings_events, staged_events
from htfi_eval.eval.walk import Walk

Array = NDArray[np.float64]

LAST = "2013-12-31"
_FREEDOM, _BAND_SCORE = 4.0, 2.13184679
_RIDGE_SD = 0.3  # of a log factor before anything is seen
_TOGETHER_POWER = 0.7  # n series of one instant count as n to the power of 1 − this, each
_STEPS = 60
_MAX_STRENGTH, _OWN_STRENGTH = 40.0, 6.0
_MIN_SIZE = 0.04  # log factors below it are none
_FIRST = "2007-06-01"
_EQUITY_FIRST, _EVERY = "2009-01-01", 8  # staged shares: from when, and which of them
# Of figures that always come together these bear the effect.
_LEADING = (
    "us_payrolls", "fomc_decision", "ecb_decision", "ecb_press_conference", "boe_decision", "boj_decision",
    "boc_decision", "rba_decision", "rbnz_decision", "snb_decision", "us_cpi", "us_gdp", "us_retail_sales",
    "us_ism_manufacturing", "us_ism_services", "uk_cpi", "uk_gdp", "uk_employment", "uk_retail_sales", "ca_employment",
    "ca_cpi", "au_employment", "au_cpi", "nz_cpi", "de_ifo", "de_zew", "ea_cpi", "earnings",
)  # fmt: skip
_LEAD = 0.05
# Scale against other days, of daily bars after a weekend (currencies) and a long one (shares), on the same years.
_GAPS = {"fx": {"gap_weekend": -0.18}, "other": {"gap_long": 0.13}}
_QUIET_DAYS = {
    "fx": {},
    "other": {
        "half_day": -0.40,
        "year_end": -0.40,
        "before_year_end": -0.18,
        "before_holiday": -0.12,
        "two_before_holiday": -0.09,
    },
}
# Of hours of a holiday in New York, on ten pairs to the end of 2013; those of other countries' holidays gained nothing.
_QUIET_HOURS = {"fx": {"market_closed": -0.4}, "other": {}}


@dataclass(frozen=True, slots=True)
class _Seen:
    """A return with its events: parameters [m] (kind, relation, lag) and its size as if there had been no event."""

    parameters: tuple[tuple[str, int, int], ...]
    size: float
    weight: float


def observe(prices: Prices, events: list[ScheduledEvent]) -> list[_Seen]:
    """Every bar with events of every series, once it can be said what was forecast."""
    walk = Walk(prices, ForecastConfig(), events=events)
    effects: EventEffects = walk.forecaster.event_effects
    seen: list[_Seen] = []

    def keep(bars: BarWithEvents) -> None:
        concerned = (bars.variances > 0.0) & np.isfinite(bars.ratio)[:, None]
        weight = float(max(concerned.any(axis=1).sum(), 1)) ** -_TOGETHER_POWER
        for place in range(len(bars.rows)):
            size, there = float(bars.ratio[place]), concerned[place]
            if not there.any():
                continue
            relations = effects.relations(bars.rows[[place]], bars.sources)[0]
            parameters = tuple(
                (effects.kind(int(source)), int(relation), int(lag))
                for source, relation, lag, used in zip(bars.sources, relations, bars.lags, there, strict=True)
                if used
            )
            total = float(combine(bars.variances[[place]][:, there])[0])
            seen.append(_Seen(parameters, size * total**0.5, weight))

    effects.watch = keep
    for _ in walk.instants():
        pass
    return seen


def fit(seen: list[_Seen]) -> tuple[dict[tuple[str, int, int], float], dict[tuple[str, int, int], float]]:
    """Log factors by parameter, and the number of events that spoke for each."""
    names = sorted({name for one in seen for name in one.parameters})
    place = {name: number for number, name in enumerate(names)}
    longest = max(len(one.parameters) for one in seen)
    at = np.full((len(seen), longest), len(names))
    for row, one in enumerate(seen):
        at[row, : len(one.parameters)] = [place[name] for name in one.parameters]
    size = np.array([one.size for one in seen])
    weight = np.array([one.weight for one in seen])
    logs = np.array([_LEAD if kind in _LEADING and lag == 0 else 0.0 for kind, _, lag in names] + [0.0])
    num = np.zeros(len(names) + 1)
    for _ in range(_STEPS):
        variances = np.exp(2.0 * logs[at])
        variances[at == len(names)] = 0.0
        largest = variances.max(axis=1)
        added = np.maximum(variances - 1.0, 0.0).sum(axis=1) - np.maximum(largest - 1.0, 0.0)
        total = largest + SHARED_EXCESS * added
        first = np.arange(longest) == variances.argmax(axis=1)[:, None]
        slope = (
            np.where(first, 1.0, np.where(variances >= 1.0, SHARED_EXCESS, 0.0)) * variances / total[:, None]
        )
        score = _score(size / np.sqrt(total))
        pull, num = np.zeros_like(logs), np.zeros_like(logs)
        np.add.at(pull, at, slope * (weight * score)[:, None])
        np.add.at(num, at, slope * weight[:, None])
        information = num * 2.0 * _FREEDOM / (_FREEDOM + 3.0) + 1.0 / _RIDGE_SD**2
        logs += 0.5 * (pull - logs / _RIDGE_SD**2) / information
        logs[-1] = 0.0
    return dict(zip(names, logs.tolist(), strict=False)), dict(zip(names, num.tolist(), strict=False))


def table(
    logs: dict[tuple[str, int, int], float], num: dict[tuple[str, int, int], float]
) -> dict[str, object]:
    """By kind, in the form that `htfi.forecasting.known_variance.priors` reads."""
    kinds = sorted({kind for kind, _, _ in logs})
    found: dict[str, object] = {}
    for kind in kinds:
        cells = {
            name: round(logs.get((kind, relation, lag), 0.0), 2)
            for name, relation, lag in (
                ("own", 0, 0),
                ("own_next", 0, 1),
                ("other", 1, 0),
                ("other_next", 1, 1),
            )
        }
        cells = {name: size if abs(size) >= _MIN_SIZE else 0.0 for name, size in cells.items()}
        if not any(cells.values()):
            continue
        spoke = max(num.get((kind, relation, 0), 0.0) for relation in (0, 1))
        found[kind] = {**cells, "strength": round(min(_OWN_STRENGTH + spoke, _MAX_STRENGTH), 1)}
    return found


def _score(size: Array) -> Array:
    x = (_BAND_SCORE * size) ** 2
    return (_FREEDOM + 1.0) * x / (_FREEDOM + x) - 1.0


def _gap(size: float) -> dict[str, float]:
    return {"own": size, "own_next": 0.0, "other": 0.0, "other_next": 0.0, "strength": _MAX_STRENGTH}


def _currencies(data: Path) -> Iterable[Prices]:
    yield euro_dollar(data).cut(None, _FIRST, LAST)
    yield load_prices("fx_hourly", data).cut(None, None, LAST)


def _shares(data: Path) -> Iterable[Prices]:
    prices = load_prices("us_equities", data)
    yield prices.cut(prices.symbols[::_EVERY], _EQUITY_FIRST, LAST)


def main(out: Path, data: Path = STAGED) -> None:
    classes: dict[str, object] = {}
    for assets, hours, panels, known in (
        ("fx", 1.0, _currencies(data), staged_events(data)),
        ("other", 24.0, _shares(data), earnings_events(data)),
    ):
        seen = [one for prices in panels for one in observe(prices, known)]
        kinds = table(*fit(seen)) | {gap: _gap(size) for gap, size in _GAPS[assets].items()}
        classes[assets] = {
            "bar_hours": hours,
            "quiet_days": _QUIET_DAYS[assets],
            "quiet_hours": _QUIET_HOURS[assets],
            "kinds": kinds,
        }
        click.echo(f"{assets}: {len(seen):,} bars with events, {len(kinds)} kinds with an effect")
    shipped = {
        "version": "1",
        "learnt": f"currencies by the hour from 2007, shares by the day from 2009, to {LAST}",
    }
    out.write_text(json.dumps({**shipped, **classes}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
