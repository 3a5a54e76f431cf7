"""What scenarios are answered on: the state of a run now, of the series that share one interval."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from htfi.domain.decision import Regime
from htfi.domain.time import NS_PER_DAY
from htfi.narrative.config import NarrativeConfig
from htfi.narrative.ports import NewsReader
from htfi.pipeline.components import Components
from htfi.pipeline.intake.bar_spacing import read_interval
from htfi.pipeline.scenarios.history import RunHistory, bar_length_ns

Array = NDArray[np.float64]

_STALE_BARS = 10


@dataclass(frozen=True, slots=True)
class ScenarioSource:
    """Where the parts of a basis come from: `components` are its own, so nothing that happens to them reaches the run.

    The rest is opened when a scenario first needs it.
    """

    origin: str
    components: Components
    narrative: NarrativeConfig
    max_moved_alone: float  # by news of one source, in widths of the band
    open_reader: Callable[[], NewsReader]
    load_history: Callable[[int], RunHistory]  # until a time
    fresh_components: Callable[[], Components]


@dataclass(frozen=True)  # no slots: what only some scenarios need is made at their first question
class ScenarioBasis:
    """What is known now, of the series that share one interval and have a forecast.

    Shapes: prices [n], newest closes.
    """

    source: ScenarioSource
    interval: str
    series: tuple[str, ...]
    symbols: tuple[str, ...]
    prices: Array
    as_of_ns: int
    notes: tuple[str, ...] = field(default=())

    @property
    def origin(self) -> str:
        return self.source.origin

    @property
    def components(self) -> Components:
        return self.source.components

    @cached_property
    def history(self) -> RunHistory:
        """The past of the series. Raises: DependencyUnavailable, IntegrityError."""
        return self.source.load_history(self.as_of_ns)

    @cached_property
    def reader(self) -> NewsReader:
        """The best reader there is. Raises: InvalidInput, IntegrityError."""
        return self.source.open_reader()

    def regime(self, place: int) -> Regime:
        return self.components.market.regime(self.symbols[place], self.interval)


def _named_as_in(clocks: Sequence[str], interval: str) -> str:
    """An interval as the series name it: '1m' is '60s' where they are of 60s. Raises: InvalidInput."""
    same = (clock for clock in clocks if read_interval(clock) == read_interval(interval))
    return interval if interval in clocks else next(same, interval)


def make_basis(source: ScenarioSource, interval: str | None = None) -> ScenarioBasis | None:
    """Of all series that have a forecast, those of one interval whose newest bar is not stale; None for none."""
    forecaster = source.components.forecaster
    panel = forecaster.state()["panel"]
    names = [(str(symbol), str(clock)) for symbol, clock in panel["series"]]
    closes = np.exp(np.array(panel["columns"]["log_close"][: len(names)], np.float64))
    ends_ns = np.array(panel["columns"]["end_ns"][: len(names)], np.int64)
    all_series = [f"{symbol}/{clock}" for symbol, clock in names]
    ready = forecaster.forecast(all_series).ready if names else np.zeros(0, np.bool_)
    clocks = [clock for (_, clock), is_ready in zip(names, ready, strict=True) if is_ready]
    if interval is not None:
        chosen = _named_as_in(clocks, interval)
    else:
        chosen = max(clocks, key=lambda clock: (clocks.count(clock), bar_length_ns(clock)), default="")
    of_clock = [k for k, (_, clock) in enumerate(names) if clock == chosen and ready[k]]
    if not of_clock:
        return None
    newest_ns = int(ends_ns[of_clock].max())
    oldest_ns = newest_ns - _STALE_BARS * bar_length_ns(chosen) - 7 * NS_PER_DAY
    kept = [k for k in of_clock if ends_ns[k] >= oldest_ns]
    notes: list[str] = []
    others = sorted({clock for clock in clocks if clock != chosen})
    if others:
        notes.append(f"series of {', '.join(others)} are left out: scenarios join series of one interval")
    if len(kept) < len(of_clock):
        gone = [all_series[k] for k in of_clock if k not in kept]
        notes.append(f"{len(gone)} series whose newest bar is old are left out: {', '.join(gone[:5])}")
    return ScenarioBasis(
        source=source,
        interval=chosen,
        series=tuple(all_series[k] for k in kept),
        symbols=tuple(names[k][0] for k in kept),
        prices=closes[kept],
        as_of_ns=newest_ns,
        notes=tuple(notes),
    )
