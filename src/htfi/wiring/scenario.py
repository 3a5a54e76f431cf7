"""Opens the ground on which `htfi scenario` stands: a run's saved state, read only, or files read to their end."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from htfi.adapters.stores.snapshot import read_whole
from htfi.domain.decision import Decision, Regime, Rung
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.time import NS_PER_DAY
from htfi.narrative.ports import NewsReader
from htfi.pipeline.components import Components
from htfi.pipeline.run_state import check_ledger_size, decode_state
from htfi.wiring.in_memory_run import run_in_memory
from htfi.wiring.models.readers import open_readers
from htfi.wiring.outputs import open_recorded
from htfi.wiring.run import build_components
from htfi.wiring.run_folder import STATE
from htfi.wiring.scenario_past import RunHistory, bar_length_ns, read_history
from htfi.wiring.settings import SETTINGS_FILE, Settings, decode_settings, override, settings_digest

Array = NDArray[np.float64]

_MAX_TABLE_BYTES = 64 << 20
_STALE_BARS = 10
_READER_RUNGS = (Rung.SPECULATIVE, Rung.EDGE, Rung.TEMPLATE)


@dataclass(frozen=True)  # no slots: what only some scenarios need is worked out at their first question
class ScenarioBasis:
    """What is known now, of the series that share one interval and have a forecast.

    Shapes: prices [n], newest closes. `rooms` are this ground's own: nothing that happens to them reaches the run.
    """

    origin: str
    settings: Settings
    components: Components
    interval: str
    series: tuple[str, ...]
    symbols: tuple[str, ...]
    prices: Array
    as_of_ns: int
    folder: Path | None
    loaded_history: RunHistory | None  # of files; a run's is read from its journal
    notes: tuple[str, ...] = field(default=())

    @cached_property
    def history(self) -> RunHistory:
        """The past of the series. Raises: DependencyUnavailable, IntegrityError."""
        if self.loaded_history is not None or self.folder is None:
            return self.loaded_history or RunHistory()
        return read_history(self.folder, self.as_of_ns)

    @cached_property
    def reader(self) -> NewsReader:
        """The best reader there is. Raises: InvalidInput, IntegrityError."""
        settings = self.settings
        readers = open_readers(settings.models, settings.narrative, settings.decoding)
        return next(readers[rung] for rung in _READER_RUNGS if rung in readers)

    def regime(self, place: int) -> Regime:
        return self.components.market.regime(self.symbols[place], self.interval)


def open_basis(
    source: Sequence[str],
    settings: Settings,
    *,
    mapping: Path | None = None,
    interval: str | None = None,
) -> ScenarioBasis:
    """The ground of a run's folder, or of one or more files. Raises: InvalidInput, IntegrityError."""
    folders = [name for name in source if Path(name).is_dir()]
    if folders:
        if len(source) > 1:
            raise InvalidInput(f"{folders[0]} is a run's folder: name it alone, or files alone")
        return _basis_of_run(Path(folders[0]), settings, interval)
    memory = RunHistory()

    def watch(decision: Decision) -> None:
        memory.add(decision)

    readers = open_readers(settings.models, settings.narrative, settings.decoding)
    done = run_in_memory(settings, source, mapping, watch, interval=interval, readers=readers)
    names = ", ".join(Path(name).name for name in source)
    rooms = done.loop.components
    ground = _make_basis(names, done.settings, rooms, rooms.forecaster.state()["panel"], None, None, memory)
    if ground is None:
        raise InvalidInput(done.refusal_text(names))
    return ground


def _basis_of_run(folder: Path, settings: Settings, interval: str | None) -> ScenarioBasis:
    data, told = read_whole(folder / STATE), read_whole(folder / SETTINGS_FILE)
    if data is None or told is None:
        missing = STATE if data is None else SETTINGS_FILE
        raise InvalidInput(
            f"{folder} holds no saved state ({missing} is missing): name a folder that `htfi run --out` has filled"
        )
    saved = decode_settings(told)
    models = {"target": settings.models.target, "draft": settings.models.draft}
    saved = override(saved, "models", **models)
    try:
        state = decode_state(data)
    except IntegrityError as error:
        raise IntegrityError(
            f"{folder / STATE}: {error}: give the run's command again, which rebuilds it"
        ) from error
    try:
        if state["identity"]["settings"] != settings_digest(saved):
            raise InvalidInput(
                f"{folder}: its state was saved under other settings than {SETTINGS_FILE} tells, or by another version: "
                "give the run's command with a new --out"
            )
        with open_recorded(folder) as recorded:
            log = recorded.log
            check_ledger_size(state, str(folder), recorded.size, lambda size: log.root(size).hex())
        rooms = build_components(saved)
        rooms.restore(state["loop"]["rooms"])
        panel = state["loop"]["rooms"]["forecaster"]["panel"]
    except (KeyError, TypeError, ValueError, msgspec.ValidationError) as error:
        raise IntegrityError(
            f"{folder / STATE} was saved by another version ({type(error).__name__}: {error}): delete it and give the "
            "run's command again"
        ) from error
    ground = _make_basis(str(folder), saved, rooms, panel, interval, folder, None)
    if ground is None:
        needed = saved.forecasting.history_bars
        wanted = f" of interval {interval}" if interval else ""
        raise InvalidInput(
            f"{folder} has no series{wanted} with {needed} bars yet: there is no forecast to change"
        )
    return ground


def _make_basis(
    origin: str,
    settings: Settings,
    rooms: Components,
    panel: dict[str, Any],
    interval: str | None,
    folder: Path | None,
    memory: RunHistory | None,
) -> ScenarioBasis | None:
    """Of all series that have a forecast, those of one interval whose newest bar is not stale; None for none."""
    names = [(str(symbol), str(clock)) for symbol, clock in panel["series"]]
    closes = np.exp(np.array(panel["columns"]["log_close"][: len(names)], np.float64))
    ends_ns = np.array(panel["columns"]["end_ns"][: len(names)], np.int64)
    all_series = [f"{symbol}/{clock}" for symbol, clock in names]
    ready = rooms.forecaster.forecast(all_series).ready if names else np.zeros(0, np.bool_)
    clocks = [clock for (_, clock), is_ready in zip(names, ready, strict=True) if is_ready]
    chosen = interval or (
        max(clocks, key=lambda clock: (clocks.count(clock), bar_length_ns(clock))) if clocks else ""
    )
    of_clock = [k for k, (_, clock) in enumerate(names) if clock == chosen and ready[k]]
    if not of_clock:
        return None
    newest_ns = int(ends_ns[of_clock].max())
    oldest_ns = newest_ns - _STALE_BARS * bar_length_ns(chosen) - 7 * NS_PER_DAY
    kept = [k for k in of_clock if ends_ns[k] >= oldest_ns]
    notes: list[str] = []
    others = sorted({clock for clock in clocks if clock != chosen})
    if others:
        notes.append(
            f"series of {', '.join(others)} are left out: scenarios join series of one interval (--interval)"
        )
    if len(kept) < len(of_clock):
        gone = [all_series[k] for k in of_clock if k not in kept]
        notes.append(f"{len(gone)} series whose newest bar is old are left out: {', '.join(gone[:5])}")
    return ScenarioBasis(
        origin=origin,
        settings=settings,
        components=rooms,
        interval=chosen,
        series=tuple(all_series[k] for k in kept),
        symbols=tuple(names[k][0] for k in kept),
        prices=closes[kept],
        as_of_ns=newest_ns,
        folder=folder,
        loaded_history=memory,
        notes=tuple(notes),
    )


def read_table(file: Path) -> list[list[str]]:
    """The rows of a CSV file, separated by comma, semicolon or tab. Raises: InvalidInput."""
    try:
        if file.stat().st_size > _MAX_TABLE_BYTES:
            raise InvalidInput(f"{file} is larger than 64 MiB: no table of positions")
        text = file.read_text(encoding="utf-8-sig")
        head = text.partition("\n")[0]
        return list(csv.reader(io.StringIO(text), delimiter=max(",;\t", key=head.count)))
    except OSError as error:
        raise InvalidInput(f"{file}: cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(f"{file}: is no table in CSV: {error}") from error
