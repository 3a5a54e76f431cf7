"""Opens what `htfi scenario` answers on: a run's saved state, read only, or files read to their end."""

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from htfi.adapters.stores.decisions import is_withheld
from htfi.adapters.stores.snapshot import read_whole
from htfi.domain.decision import Rung
from htfi.domain.errors import DependencyUnavailable, IntegrityError, InvalidInput
from htfi.narrative.ports import NewsReader
from htfi.pipeline.components import Components
from htfi.pipeline.decided import DecidedSeries
from htfi.pipeline.run_state import check_ledger_size, decode_state
from htfi.pipeline.scenarios.basis import ScenarioBasis, ScenarioSource, make_basis
from htfi.pipeline.scenarios.history import DecisionSummary, RunHistory
from htfi.wiring.in_memory_run import run_in_memory
from htfi.wiring.ledger import DATABASE
from htfi.wiring.loop import build_components
from htfi.wiring.models.readers import open_readers
from htfi.wiring.outputs import STATE, open_recorded
from htfi.wiring.settings import SETTINGS_FILE, Settings, decode_settings, digest_of, override

MAX_LEDGER_BYTES = 2 << 30
_MAX_TABLE_BYTES = 64 << 20
_READER_RUNGS = (Rung.SPECULATIVE, Rung.EDGE, Rung.TEMPLATE)


class _ReleasedSummary(msgspec.Struct):
    decision: DecisionSummary


_RELEASED = msgspec.json.Decoder(_ReleasedSummary)
_WITHHELD = msgspec.json.Decoder(DecisionSummary)


def open_basis(
    source: Sequence[str],
    settings: Settings,
    *,
    mapping: Path | None = None,
    interval: str | None = None,
) -> ScenarioBasis:
    """The basis of a run's folder, or of one or more files. Raises: InvalidInput, IntegrityError."""
    folders = [name for name in source if Path(name).is_dir()]
    if folders:
        if len(source) > 1:
            raise InvalidInput(f"{folders[0]} is a run's folder: name it alone, or files alone")
        return _basis_of_run(Path(folders[0]), settings, interval)
    history = RunHistory()
    readers = open_readers(settings.models, settings.narrative, settings.decoding)

    def keep(decided: DecidedSeries) -> None:
        history.add(decided.decision)

    done = run_in_memory(settings, source, mapping, keep, interval=interval, readers=readers)
    names = ", ".join(Path(name).name for name in source)
    basis = make_basis(scenario_source(names, done.settings, done.loop.components, lambda _until_ns: history))
    if basis is None:
        raise InvalidInput(done.refusal_text(names))
    return basis


def _basis_of_run(folder: Path, settings: Settings, interval: str | None) -> ScenarioBasis:
    data, saved_settings = read_whole(folder / STATE), read_whole(folder / SETTINGS_FILE)
    if data is None or saved_settings is None:
        missing = STATE if data is None else SETTINGS_FILE
        raise InvalidInput(
            f"{folder} holds no saved state ({missing} is missing): name a folder that `htfi run --out` has filled"
        )
    saved = decode_settings(saved_settings)
    models = {"target": settings.models.target, "draft": settings.models.draft}
    saved = override(saved, "models", **models)
    try:
        state = decode_state(data)
    except IntegrityError as error:
        raise IntegrityError(
            f"{folder / STATE}: {error}: repeat the run's command, which rebuilds it"
        ) from error
    try:
        if state["identity"]["settings"] != digest_of(saved_settings):
            raise InvalidInput(
                f"{folder}: its state was saved under other settings than {SETTINGS_FILE} states, or by another "
                "version: repeat the run's command with a new --out"
            )
        with open_recorded(folder) as recorded:
            log = recorded.log
            check_ledger_size(state, str(folder), recorded.size, lambda size: log.root(size).hex())
        components = build_components(saved)
        components.restore(state["loop"]["rooms"])
    except (KeyError, TypeError, ValueError, msgspec.ValidationError) as error:
        raise IntegrityError(
            f"{folder / STATE} was saved by another version ({type(error).__name__}: {error}): delete it and repeat "
            "the run's command"
        ) from error
    source = scenario_source(str(folder), saved, components, lambda until_ns: read_history(folder, until_ns))
    basis = make_basis(source, interval)
    if basis is None:
        needed = saved.forecasting.history_bars
        wanted = f" of interval {interval}" if interval else ""
        raise InvalidInput(
            f"{folder} has no series{wanted} with {needed} bars yet: there is no forecast to change"
        )
    return basis


def scenario_source(
    origin: str, settings: Settings, components: Components, load_history: Callable[[int], RunHistory]
) -> ScenarioSource:
    """What scenarios are answered from, its readers opened when a headline is first read."""

    def open_reader() -> NewsReader:
        readers = open_readers(settings.models, settings.narrative, settings.decoding)
        return next(readers[rung] for rung in _READER_RUNGS if rung in readers)

    return ScenarioSource(
        origin,
        components,
        settings.narrative,
        settings.sanitiser.max_influence_unconfirmed,
        open_reader,
        load_history,
        lambda: build_components(settings),
    )


def read_history(folder: Path, until_ns: int) -> RunHistory:
    """From a run's ledger, as far as its saved state goes.

    Raises: InvalidInput, DependencyUnavailable, IntegrityError.
    """
    history, path = RunHistory(), folder / DATABASE
    if path.is_file() and path.stat().st_size > MAX_LEDGER_BYTES:
        raise DependencyUnavailable(
            f"{path} is larger than 2 GB: its past is not read; shocks do not need it"
        )
    with open_recorded(folder) as recorded:
        for index, line in enumerate(recorded.entries.lines()):
            try:
                found = _WITHHELD.decode(line) if is_withheld(line) else _RELEASED.decode(line).decision
            except msgspec.DecodeError as error:
                raise IntegrityError(
                    f"{path}, entry {index}: is not a decision ({error}): run again in a new folder"
                ) from error
            if found.as_of_ns <= until_ns:
                history.add(found)
    return history


def read_table(file: Path) -> list[list[str]]:
    """The rows of a CSV file, separated by comma, semicolon or tab. Raises: InvalidInput."""
    try:
        if file.stat().st_size > _MAX_TABLE_BYTES:
            raise InvalidInput(f"{file} is larger than 64 MiB: not a table of positions")
        text = file.read_text(encoding="utf-8-sig")
        head = text.partition("\n")[0]
        return list(csv.reader(io.StringIO(text), delimiter=max(",;\t", key=head.count)))
    except OSError as error:
        raise InvalidInput(f"{file}: cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(f"{file}: is not a table in CSV: {error}") from error
