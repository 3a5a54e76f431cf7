"""Learns the shipped weights that experts start from, by kind of series and horizon, on years or symbols not judged.

`python -m htfi_eval.eval.fusion_priors OUT.toml` walks streams of training data and finds for each kind and horizon
the fixed mix with the least mean CRPS, a tenth of it even. Training data: US equities, every eighth symbol from the
second that was listed throughout, 2006 to 2017 (streams of 1, 1, 1, 3, 9 and 20; at 5 bars four of 5, three of 14 and
one of all 42); currencies by the day, 2012 to 2015 (streams of 1, 1, 1, 3 and 6); the VIX to 2005 and natural gas
(Henry Hub) to 2010; currencies by the hour, 2014 (streams of 1, 1, 3 and 10). No other share, no ETF, not the sample
(2006 to 2009) and no later year is read.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from htfi.domain.time import NS_PER_S
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.kinds import EQUITY, EXPERTS_BY_KIND, KINDS
from htfi.forecasting.scores import crps, integration_weights
from htfi_eval.eval.price_grid import FIELDS, Prices, on_grid
from htfi_eval.eval.prices import STAGED, load_prices, read_rows
from htfi_eval.eval.walk import Walk, measure_outcomes

Array = NDArray[np.float64]

EVEN_SHARE = 0.1  # of the weights: no expert starts from nothing
SEVERAL_BARS = 5  # the horizon at which shares are learnt from in streams of several
_WARM_INSTANTS = 250  # of a stream, before its forecasts count
_MAX_FORECASTS = 5_000  # of a stream and horizon, evenly taken
_STEPS, _RATE = 120, 6.0  # of exponentiated gradients
_EVERY, _FIRST_PLACE, _LISTED = 8, 1, 0.95  # of the shares: which, and in how many of the instants
_MIN_WIDTH = 1e-9
_CLOSE_NS = 21 * 3600 * NS_PER_S
_HEADER = """\
# Weights that experts start from, by kind of series and horizon: of the best fixed mix of each on training years and
# symbols, a tenth of it even. Written by python -m htfi_eval.eval.fusion_priors (docs/decisions/d05-fusion.md).
"""


@dataclass(frozen=True, slots=True, eq=False)
class CapturedForecasts:
    """What experts forecast at one horizon of a stream, and what came: quantiles [M, K, Q], outcomes [M].

    Both are in units of the even mix's own width, as losses are when weights are learnt online: 2008 counts as much as
    any other year.
    """

    quantiles: Array
    outcomes: Array


def capture(prices: Prices, config: ForecastConfig) -> list[CapturedForecasts]:
    """Of each horizon, in the order of `config.horizons`: forecasts that all experts gave and that have an outcome."""
    walk = Walk(prices, config)
    outcomes = measure_outcomes(prices, config).outcomes
    last = 1 + len(walk.experts)
    instants = [(one.quantiles[1:last], one.places, one.t) for one in walk.instants(_WARM_INSTANTS)]
    found: list[CapturedForecasts] = []
    for j in range(len(config.horizons)):
        given = np.concatenate([quantiles[:, :, j].swapaxes(0, 1) for quantiles, _, _ in instants])
        came = np.concatenate([outcomes[t, places, j] for _, places, t in instants])
        known = np.flatnonzero(np.isfinite(given).all(axis=(1, 2)) & np.isfinite(came))
        taken = known[:: -(-len(known) // _MAX_FORECASTS) or 1]
        even = given[taken].mean(axis=1)
        width = np.maximum(even[:, -1] - even[:, 0], _MIN_WIDTH)
        found.append(CapturedForecasts(given[taken] / width[:, None, None], came[taken] / width))
    return found


def best_mix(streams: Sequence[CapturedForecasts], levels: Sequence[float]) -> Array:
    """Weights [K], summing to 1, of the fixed mix whose CRPS is least on the mean of all streams, each in units of the
    even mix's: by exponentiated gradients of a convex loss, the rate halved at each step that would raise it."""
    units = [_mean_loss(one, one.quantiles.mean(axis=1), np.array(levels)) for one in streams]
    num = streams[0].quantiles.shape[1]
    weights = np.full(num, 1.0 / num)
    loss, slope = _loss_and_slope(weights, streams, units, levels)
    rate = _RATE * num
    for _ in range(_STEPS):
        moved = weights * np.exp(-rate * (slope - slope.min()))
        moved /= moved.sum()
        next_loss, next_slope = _loss_and_slope(moved, streams, units, levels)
        if next_loss > loss:
            rate /= 2.0
        else:
            weights, loss, slope = moved, next_loss, next_slope
    return weights


def _loss_and_slope(
    weights: Array, streams: Sequence[CapturedForecasts], units: Sequence[float], levels: Sequence[float]
) -> tuple[float, Array]:
    at, cells = np.array(levels), 2.0 * integration_weights(levels)
    loss, slope = 0.0, np.zeros_like(weights)
    for one, unit in zip(streams, units, strict=True):
        mixed = np.tensordot(one.quantiles, weights, axes=(1, 0))  # [M, Q]
        of_quantiles = cells * ((one.outcomes[:, None] < mixed) - at)
        scale = unit * len(streams)
        slope += np.einsum("mq,mkq->k", of_quantiles, one.quantiles) / len(mixed) / scale
        loss += _mean_loss(one, mixed, at) / scale
    return loss, slope


def _mean_loss(one: CapturedForecasts, mixed: Array, levels: Array) -> float:
    return float(crps(mixed, one.outcomes, levels).mean())


def shipped_weights(mix: Array) -> list[float]:
    """Weights [K], part of them even, to three places."""
    return np.round((1.0 - EVEN_SHARE) * mix + EVEN_SHARE / len(mix), 3).tolist()


def learn_kind(
    kind: int, streams: Iterable[Prices], of_several: Iterable[Prices] = ()
) -> dict[str, list[float]]:
    """Weights by expert, at each of the default horizons; at SEVERAL_BARS from streams `of_several`, where given."""
    config = ForecastConfig(experts=tuple(sorted(EXPERTS_BY_KIND[kind])))
    captured = [capture(prices, config) for prices in streams]
    several = [capture(prices, config) for prices in of_several] or captured
    by_horizon = [
        shipped_weights(
            best_mix([one[j] for one in (several if bars == SEVERAL_BARS else captured)], config.levels)
        )
        for j, bars in enumerate(config.horizons)
    ]
    return {name: [weights[k] for weights in by_horizon] for k, name in enumerate(config.experts)}


def table_text(horizons: Sequence[int], weights: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """The table as `htfi.forecasting.kinds` reads it."""
    lines = [_HEADER + f"horizons = {list(horizons)}"]
    for kind, experts in weights.items():
        lines += ["", f"[weights.{kind}]"]
        lines += [f"{name} = [{', '.join(f'{w:.3f}' for w in of)}]" for name, of in experts.items()]
    return "\n".join(lines) + "\n"


def streams_of_shares(symbols: Sequence[str]) -> tuple[list[Sequence[str]], list[Sequence[str]]]:
    """Streams of 1 to 20; and of several alone: four of 5, three of 15 or fewer, one of all.

    Which expert is best 5 bars ahead on one share in some years says little about other years
    (docs/decisions/d05-fusion.md).
    """
    mixed = [
        symbols[3:4],
        symbols[20:21],
        symbols[30:31],
        symbols[10:31:10],
        symbols[::4][:9],
        symbols[1::2][:20],
    ]
    fives, thirds = [symbols[k::8][:5] for k in range(4)], [symbols[k::3][:15] for k in range(3)]
    return mixed, [*fives, *thirds, symbols]


def _shares(data: Path) -> tuple[list[Prices], list[Prices]]:
    prices = load_prices("us_equities", data)
    listed = np.isfinite(prices.close[:, _FIRST_PLACE::_EVERY]).mean(axis=0) > _LISTED
    mixed, of_several = streams_of_shares(np.array(prices.symbols[_FIRST_PLACE::_EVERY])[listed].tolist())
    return [prices.cut(chosen) for chosen in mixed], [prices.cut(chosen) for chosen in of_several]


def _currencies(data: Path) -> Iterator[Prices]:
    prices = load_prices("fx_daily", data).cut(None, None, "2015-12-31")
    for chosen in (
        ("EURUSD",),
        ("XAUUSD",),
        ("USDJPY",),
        ("EURUSD", "GBPUSD", "USDJPY"),
        prices.symbols[::2],
    ):
        yield prices.cut(chosen)


def _wild(data: Path) -> Iterator[Prices]:
    yield load_prices("vix", data).cut(None, None, "2005-12-31")
    rows = read_rows(data / "macro" / "macro_daily_monthly.parquet")
    chosen = (rows["series"] == "HENRYHUB") & (rows["value"] > 0.0)
    days = rows["date"][chosen].astype("datetime64[D]")
    ends_ns = days.astype("datetime64[ns]").astype(np.int64) + _CLOSE_NS
    fields = {key: rows["value"][chosen].astype(np.float64) for key in FIELDS}
    gas = on_grid("gas", rows["series"][chosen], ends_ns, ends_ns, fields, ())
    yield gas.cut(None, None, "2010-12-31")


def _hours(data: Path) -> Iterator[Prices]:
    prices = load_prices("fx_hourly", data).cut(None, "2014-01-01", "2014-12-31")
    for chosen in (("GBPUSD",), ("USDJPY",), prices.symbols[::4][:3], prices.symbols):
        yield prices.cut(chosen)


def main(out: Path, data: Path = STAGED) -> None:
    weights: dict[str, dict[str, list[float]]] = {}
    mixed, of_several = _shares(data)
    for kind, streams in enumerate((mixed, _currencies(data), _wild(data), _hours(data))):
        weights[KINDS[kind]] = learn_kind(kind, streams, of_several if kind == EQUITY else ())
        click.echo(f"{KINDS[kind]}: {weights[KINDS[kind]]}")
    out.write_text(table_text(ForecastConfig().horizons, weights), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
