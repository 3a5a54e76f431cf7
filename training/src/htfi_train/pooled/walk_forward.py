"""Walk-forward fits: each year's model knows only what was known before that year, less an embargo."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_DAY
from htfi.forecasting.experts.pooled.models import EncodedModel, encode_model
from htfi_train.pooled.boosting import BoostedFit, BoostingConfig, fit_trees
from htfi_train.pooled.samples import PooledSamples

MIN_SAMPLES = 2_000
MIN_DAYS = 365
EMBARGO_DAYS = 10


@dataclass(frozen=True, slots=True)
class DatedFit:
    """The fit that forecasts from `from_ns` on. `year` is that which it is judged on, 0 for the newest."""

    year: int
    from_ns: int
    num_samples: int
    fit: BoostedFit

    def encoded(self) -> EncodedModel:
        return encode_model(self.fit.trees, self.from_ns, self.num_samples)


def fit_by_year(
    samples: PooledSamples, horizons: tuple[int, ...], config: BoostingConfig, seed: int, first_year: int | None = None,
    embargo_days: int = EMBARGO_DAYS, progress: Callable[[str], Callable[[int, int], None]] | None = None,
) -> list[DatedFit]:  # fmt: skip
    """A fit for each calendar year (UTC) that has enough before it, and the newest, on everything.

    Raises: InvalidInput where there is too little to fit.
    """
    known = samples.take(np.flatnonzero(np.isfinite(samples.y).all(axis=1)))
    days = (int(known.made_ns[-1]) - int(known.made_ns[0])) / NS_PER_DAY if len(known) else 0.0
    if len(known) < MIN_SAMPLES or days < MIN_DAYS:
        raise InvalidInput(
            f"{len(known):,} forecasts over {days:.0f} days have an outcome: a fit needs {MIN_SAMPLES:,} over "
            f"{MIN_DAYS} days; give more series, or longer ones"
        )
    fits: list[DatedFit] = []
    for year in _years(known, first_year):
        begin_ns = _begin_ns(year)
        limit_ns = begin_ns - embargo_days * NS_PER_DAY
        before = np.flatnonzero(known.known_ns <= limit_ns)
        if len(before) < MIN_SAMPLES or limit_ns - int(known.made_ns[0]) < MIN_DAYS * NS_PER_DAY:
            continue
        report = None if progress is None else progress(f"fit for {year}, {len(before):,} forecasts")
        fits.append(
            DatedFit(
                year, begin_ns, len(before), fit_trees(known.take(before), horizons, config, seed, report)
            )
        )
    from_ns = int(known.known_ns.max()) + embargo_days * NS_PER_DAY
    report = None if progress is None else progress(f"fit on all, {len(known):,} forecasts")
    fits.append(DatedFit(0, from_ns, len(known), fit_trees(known, horizons, config, seed, report)))
    return fits


def _years(samples: PooledSamples, first_year: int | None) -> Sequence[int]:
    first, last = (int(str(np.datetime64(int(ns), "ns"))[:4]) for ns in samples.made_ns[[0, -1]])
    return range(max(first + 1, first_year or 0), last + 1)


def _begin_ns(year: int) -> int:
    return int(np.datetime64(f"{year:04d}-01-01", "ns").astype(np.int64))
