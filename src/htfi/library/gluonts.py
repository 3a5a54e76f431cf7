"""Forecasts as those of GluonTS (extra [gluonts]), which is imported when they are asked for."""

import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from htfi.domain.decision import Decision
from htfi.domain.errors import InvalidInput, require_extra
from htfi.library.bar_stamps import bar_stamps

_PANDAS_UNITS = {"d": "D", "h": "h", "m": "min", "s": "s", "ms": "ms"}


def quantile_forecasts(made: Sequence[tuple[Decision, Sequence[int]]], freq: str | None) -> list[Any]:
    """A gluonts.model.forecast.QuantileForecast of prices for each decision with the ends of its bars, in their order.

    Raises: InvalidInput unless their horizons are 1, 2, … and where no `freq` follows from the bars, MissingExtra.
    """
    require_extra("to_gluonts", "gluonts", "gluonts", "pandas")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the JSON library that it would rather have
        kind: Any = import_module("gluonts.model.forecast").QuantileForecast
    found: list[Any] = []
    for decision, ends_ns in made:
        forecast = decision.forecast
        horizons = tuple(forecast.horizons)
        if horizons != tuple(range(1, len(horizons) + 1)):
            raise InvalidInput(
                f"GluonTS has a forecast of every bar ahead, and this one has {', '.join(map(str, horizons))}: give "
                f"htfi.forecast horizons=range(1, {min(max(horizons), 16) + 1})"
            )
        prices = decision.last_price * np.exp(np.array(forecast.quantiles))  # [H, Q]
        interval = decision.series.rpartition("/")[2]
        start = _next_period(interval, ends_ns, freq)
        keys = [f"{level:g}" for level in forecast.levels]
        found.append(kind(prices.T.copy(), start, keys, item_id=decision.symbol))
    return found


def _next_period(interval: str, ends_ns: Sequence[int], freq: str | None) -> Any:
    """The pandas.Period of the first bar ahead."""
    pandas: Any = import_module("pandas")
    stamps = bar_stamps(interval, ends_ns)
    if freq is None:
        number = interval.rstrip("dhms")
        unit = _PANDAS_UNITS.get(interval[len(number) :])
        if unit is None or not number.isdigit():
            raise InvalidInput(f"bars of {interval} have no frequency in pandas: give to_gluonts(freq=…)")
        on_weekdays = interval == "1d" and bool(np.is_busday(stamps.astype("datetime64[D]")).all())
        freq = "B" if on_weekdays else f"{number}{unit}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", FutureWarning
            )  # periods of business days, which GluonTS has no other of
            return pandas.Period(pandas.Timestamp(stamps[-1]), freq) + 1
    except ValueError as error:
        raise InvalidInput(
            f"freq='{freq}': {error}: give a frequency of pandas, such as 'B' or '5min'"
        ) from error
