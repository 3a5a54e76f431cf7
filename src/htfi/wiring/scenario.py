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
from htfi.narrative.ports import Reader
from htfi.pipeline.resume import check_ledger
from htfi.pipeline.rooms import Rooms
from htfi.pipeline.snapshot import decode_state
from htfi.wiring.engine import build_rooms
from htfi.wiring.models import open_readers
from htfi.wiring.outputs import open_recorded
from htfi.wiring.run_folder import STATE
from htfi.wiring.scenario_past import Memory, bar_ns, read_memory
from htfi.wiring.settings import SETTINGS, Settings, decode_settings, override, settings_digest
from htfi.wiring.unrecorded import run_unrecorded

Array = NDArray[np.float64]

_MAX_TABLE_BYTES = 64 << 20
_STALE_BARS = 10
_RUNGS = (Rung.SPECULATIVE, Rung.EDGE, Rung.TEMPLATE)


@dataclass(frozen=True)  # no slots: what only some scenarios need is worked out at their first question
class Ground:
    """What is known now, of the series that share one interval and have a forecast.

    Shapes: prices [n], newest closes. `rooms` are this ground's own: nothing that happens to them reaches the run.
    """

    origin: str
    settings: Settings
    rooms: Rooms
    interval: str
    series: tuple[str, ...]
    symbols: tuple[str, ...]
    prices: Array
    as_of_ns: int
    folder: Path | None
    heard: Memory | None  # of files; a run's is read from its journal
    notes: tuple[str, ...] = field(default=())

    @cached_property
    def memory(self) -> Memory:
        """The past of the series. Raises: DependencyUnavailable, IntegrityError."""
        if self.heard is not None or self.folder is None:
            return self.heard or Memory()
        return read_memory(self.folder, self.as_of_ns)

    @cached_property
    def reader(self) -> Reader:
        """The best reader there is. Raises: InvalidInput, IntegrityError."""
        settings = self.settings
        readers = open_readers(settings.models, settings.narrative, settings.decoding)
        return next(readers[rung] for rung in _RUNGS if rung in readers)

    def regime(self, place: int) -> Regime:
        return self.rooms.market.regime(self.symbols[place], self.interval)


def open_ground(
    source: Sequence[str],
    settings: Settings,
    *,
    mapping: Path | None = None,
    interval: str | None = None,
) -> Ground:
    """The ground of a run's folder, or of one or more files. Raises: InvalidInput, IntegrityError."""
    folders = [name for name in source if Path(name).is_dir()]
    if folders:
        if len(source) > 1:
            raise InvalidInput(f"{folders[0]} is a run's folder: name it alone, or files alone")
        return _saved(Path(folders[0]), settings, interval)
    memory = Memory()

    def watch(decision: Decision) -> None:
        memory.note(decision)

    readers = open_readers(settings.models, settings.narrative, settings.decoding)
    done = run_unrecorded(settings, source, mapping, watch, interval=interval, readers=readers)
    names = ", ".join(Path(name).name for name in source)
    rooms = done.loop.rooms
    ground = _ground(names, done.settings, rooms, rooms.forecaster.state()["panel"], None, None, memory)
    if ground is None:
        raise InvalidInput(done.too_short(names))
    return ground


def _saved(folder: Path, settings: Settings, interval: str | None) -> Ground:
    data, told = read_whole(folder / STATE), read_whole(folder / SETTINGS)
    if data is None or told is None:
        missing = STATE if data is None else SETTINGS
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
                f"{folder}: its state was saved under other settings than {SETTINGS} tells, or by another version: "
                "give the run's command with a new --out"
            )
        with open_recorded(folder) as recorded:
            log = recorded.log
            check_ledger(state, str(folder), recorded.size, lambda size: log.root(size).hex())
        rooms = build_rooms(saved)
        rooms.restore(state["loop"]["rooms"])
        panel = state["loop"]["rooms"]["forecaster"]["panel"]
    except (KeyError, TypeError, ValueError, msgspec.ValidationError) as error:
        raise IntegrityError(
            f"{folder / STATE} was saved by another version ({type(error).__name__}: {error}): delete it and give the "
            "run's command again"
        ) from error
    ground = _ground(str(folder), saved, rooms, panel, interval, folder, None)
    if ground is None:
        needed = saved.forecasting.history_bars
        wanted = f" of interval {interval}" if interval else ""
        raise InvalidInput(
            f"{folder} has no series{wanted} with {needed} bars yet: there is no forecast to change"
        )
    return ground


def _ground(
    origin: str,
    settings: Settings,
    rooms: Rooms,
    panel: dict[str, Any],
    interval: str | None,
    folder: Path | None,
    memory: Memory | None,
) -> Ground | None:
    """Of all series that have a forecast, those of one interval whose newest bar is not stale; None for none."""
    names = [(str(symbol), str(clock)) for symbol, clock in panel["series"]]
    closes = np.exp(np.array(panel["columns"]["log_close"][: len(names)], np.float64))
    ends_ns = np.array(panel["columns"]["end_ns"][: len(names)], np.int64)
    all_series = [f"{symbol}/{clock}" for symbol, clock in names]
    ready = rooms.forecaster.forecast(all_series).ready if names else np.zeros(0, np.bool_)
    clocks = [clock for (_, clock), is_ready in zip(names, ready, strict=True) if is_ready]
    chosen = interval or (
        max(clocks, key=lambda clock: (clocks.count(clock), bar_ns(clock))) if clocks else ""
    )
    of_clock = [k for k, (_, clock) in enumerate(names) if clock == chosen and ready[k]]
    if not of_clock:
        return None
    newest_ns = int(ends_ns[of_clock].max())
    oldest_ns = newest_ns - _STALE_BARS * bar_ns(chosen) - 7 * NS_PER_DAY
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
    return Ground(
        origin=origin,
        settings=settings,
        rooms=rooms,
        interval=chosen,
        series=tuple(all_series[k] for k in kept),
        symbols=tuple(names[k][0] for k in kept),
        prices=closes[kept],
        as_of_ns=newest_ns,
        folder=folder,
        heard=memory,
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
