"""The forecast of an entry: its axes, tables of whole numbers and tilt, as docs/record.md says."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from htfi.domain.decision import TICKS_PER_UNIT, Forecast, NewsTilt
from htfi.pipeline.record.fields import packer_of
from htfi.pipeline.record.plain import Plain, SpelledTexts, TextPlaces, floats, whole_numbers
from htfi.pipeline.record.ticks import WEIGHT_SCALE, pack_rows, pack_scaled, unpack_rows, unpack_scaled

_Table = Sequence[Sequence[float]]
_TILT, FLOATS = packer_of(NewsTilt), packer_of(list[float])
_TABLE = packer_of(list[list[float]])


def pack_forecast(forecast: Forecast, texts: TextPlaces, version: int) -> Plain:
    """[horizons, levels, expert names, ticks, fused quantiles, weighed names, zones, weights, calibration, tilt].

    `ticks` are the rows of each expert; of quantiles and weights the rows are floats instead of bytes where they are no
    whole ticks or millionths.
    """
    names = list(forecast.expert_ticks)
    width = len(forecast.levels)
    weight_names = list(forecast.weights)
    tables = list(forecast.weights.values())
    zones = len(tables[0][0]) if tables else 1
    return [
        list(forecast.horizons),
        packed_levels(forecast.levels),
        [texts.pack(name) for name in names],
        pack_rows(whole_numbers(forecast.expert_ticks.values()), width, version),
        _pack_whole([forecast.quantiles], TICKS_PER_UNIT, width, texts, version),
        None if weight_names == names else [texts.pack(name) for name in weight_names],
        zones,
        _pack_whole(tables, WEIGHT_SCALE, zones, texts, version),
        FLOATS.pack(forecast.calibration, texts),
        None if forecast.tilt is None else _TILT.pack(forecast.tilt, texts),
    ]


@lru_cache(maxsize=64)
def packed_levels(levels: tuple[float, ...]) -> Plain:
    """The levels of a run's quantiles, the same in all of its entries."""
    return FLOATS.pack(levels, TextPlaces({}))


def _pack_whole(tables: Sequence[_Table], scale: float, width: int, texts: TextPlaces, version: int) -> Plain:
    """The rows of tables as whole numbers of 1/`scale`; as floats where a value is no such number exactly."""
    packed = pack_scaled(floats(tables), scale, width, version)
    return _TABLE.pack([row for table in tables for row in table], texts) if packed is None else packed


def unpack_forecast(packed: Plain, texts: SpelledTexts, version: int) -> Forecast:
    horizons, levels, experts, ticks, fused, weight_names, zones, weights, calibration, tilt = packed
    num, width = len(horizons), len(levels)
    levels = tuple(FLOATS.unpack(levels, texts))
    names = [texts.unpack(name) for name in experts]
    rows = unpack_rows(ticks, width, version)
    quantiles = _unpack_whole(fused, TICKS_PER_UNIT, width, texts, version)
    weighed = names if weight_names is None else [texts.unpack(name) for name in weight_names]
    shares = _unpack_whole(weights, WEIGHT_SCALE, zones, texts, version)
    if len(rows) != num * len(names) or len(shares) != num * len(weighed) or len(quantiles) != num:
        raise ValueError(f"{len(rows)} rows of quantiles for {len(names)} experts")
    return Forecast(
        horizons=tuple(horizons),
        levels=levels,
        quantiles=quantiles,
        expert_ticks=_by_name(names, rows, num),
        weights=_by_name(weighed, shares, num),
        calibration=FLOATS.unpack(calibration, texts),
        tilt=None if tilt is None else _TILT.unpack(tilt, texts),
    )


def _unpack_whole(
    packed: Plain, scale: float, width: int, texts: SpelledTexts, version: int
) -> list[list[float]]:
    if isinstance(packed, bytes):
        return unpack_scaled(packed, scale, width, version)
    return _TABLE.unpack(packed, texts)


def _by_name(names: Sequence[str], rows: Sequence[Any], num: int) -> dict[str, Any]:
    """Rows of several tables, `num` each, by name."""
    return {name: list(rows[place * num : (place + 1) * num]) for place, name in enumerate(names)}
