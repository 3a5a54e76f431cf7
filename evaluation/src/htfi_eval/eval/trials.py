"""The ledger of trials: every configuration ever evaluated, in a transparency log; every evaluation adds its own.

`htfi eval trials` lists them. The best of N tries looks good by chance; how good depends on N, so nothing is left out.
"""

import hashlib
import json
import os
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec
import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import DependencyUnavailable, InvalidInput, LedgerUnavailable
from htfi.domain.files import write_atomically
from htfi.governance.ledger.log import TransparencyLog
from htfi.wiring.ledger import DATABASE, open_ledger, open_ledger_readonly
from htfi_eval.commands import json_option
from htfi_eval.report import write_outputs
from htfi_eval.results import Evaluation, commit

FOLDER = Path("build/trials")
ORIGIN = "htfi.local/trials"
MAX_WAIT_S = 20.0
_LATE = "late-*.json"


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One configuration of one command on one data set, and its scores.

    `configuration` is the digest of command and settings, `data` that of the data; scores by name.
    """

    command: str  # 'returns', 'portfolio rules'
    data: str
    settings: dict[str, Any]
    scores: dict[str, float | None]
    configuration: str
    commit: str
    noted_at: str  # ISO 8601, UTC


def record_trial(
    command: str,
    data: str,
    settings: Mapping[str, Any],
    scores: Mapping[str, float],
    *,
    folder: Path | None = None,
    wait_s: float = MAX_WAIT_S,
) -> int:
    """Record one configuration that was evaluated; the number of distinct ones ever recorded.

    `data` is a digest such as `digest_of(prices.close)`; `settings` is every choice, in JSON's types;
    `folder` is build/trials by default. Waits at most `wait_s` for another process that writes; then leaves the
    trial in a file there, which the next one adds: see `record_trials`.
    """
    return record_trials(command, data, [(settings, scores)], folder=folder, wait_s=wait_s)


def record_trials(
    command: str,
    data: str,
    tried: Sequence[tuple[Mapping[str, Any], Mapping[str, float]]],
    *,
    folder: Path | None = None,
    wait_s: float = MAX_WAIT_S,
) -> int:
    """Record several configurations at once, as (settings, scores); the number of distinct ones ever recorded.

    Raises: InvalidInput, IntegrityError where the ledger does not hold, DependencyUnavailable where the folder
    cannot be written.
    """
    folder = folder or FOLDER
    now, code = datetime.now(UTC).isoformat(timespec="seconds"), commit()
    trials = [_trial(command, data, settings, scores, code, now) for settings, scores in tried]
    log = _open(folder, wait_s)
    if log is None:
        late = _write_late(folder, trials)
        click.echo(f"another process writes the trials in {folder}; these wait in {late}", err=True)
        return num_configurations(list_trials(folder))
    try:
        waiting = sorted(folder.glob(_LATE))
        log.append([entry for path in waiting for entry in _read_late(path)] + _encoded(trials))
        for path in waiting:
            path.unlink()
        return num_configurations(map(_decode, log.entries()))
    finally:
        log.close()


def list_trials(folder: Path | None = None) -> list[Trial]:
    """All trials, oldest first, with those still in files; none if there is no ledger.

    Raises: IntegrityError, DependencyUnavailable.
    """
    folder = folder or FOLDER
    late = [_decode(entry) for path in sorted(folder.glob(_LATE)) for entry in _read_late(path)]
    if not (folder / DATABASE).exists():
        return late
    log = open_ledger_readonly(folder)
    try:
        return [_decode(entry) for entry in log.entries()] + late
    finally:
        log.close()


def num_configurations(trials: Iterable[Trial]) -> int:
    """Distinct configurations among them: repeats, on the same data or others, count once."""
    return len({trial.configuration for trial in trials})


def digest_of(*parts: str | bytes | Sequence[str] | NDArray[Any]) -> str:
    """A digest of data, 16 hex digits: arrays by dtype, shape and bytes."""
    total = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            total.update(f"{part.dtype.str}{part.shape}".encode())
            total.update(np.ascontiguousarray(part).tobytes())
        elif isinstance(part, bytes):
            total.update(part)
        else:
            total.update(json.dumps(part if isinstance(part, str) else list(part)).encode())
        total.update(b"\x00")
    return total.hexdigest()[:16]


def _trial(
    command: str, data: str, settings: Mapping[str, Any], scores: Mapping[str, float], code: str, now: str
) -> Trial:
    try:
        canonical = json.dumps([command, dict(settings)], sort_keys=True)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"settings of a trial must be plain values: {error}") from error
    finite = {key: float(value) if np.isfinite(value) else None for key, value in scores.items()}
    return Trial(
        command=command,
        data=data,
        settings=json.loads(canonical)[1],
        scores=finite,
        configuration=hashlib.sha256(canonical.encode()).hexdigest()[:16],
        commit=code,
        noted_at=now,
    )


def _open(folder: Path, wait_s: float) -> TransparencyLog | None:
    """The ledger for appending, None if other processes keep it locked."""
    until_s = time.monotonic() + wait_s
    while True:
        try:
            return open_ledger(folder, origin=ORIGIN)
        except LedgerUnavailable:
            if time.monotonic() >= until_s:
                return None
        time.sleep(random.uniform(0.02, 0.1))


def _write_late(folder: Path, trials: Sequence[Trial]) -> Path:
    late = folder / f"late-{time.time_ns()}-{os.getpid()}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(late, b"\n".join(_encoded(trials)), private=False)
    except OSError as error:
        raise DependencyUnavailable(
            f"cannot write trials to {folder}: {error.strerror}: name a folder with --trials"
        ) from error
    return late


def _read_late(path: Path) -> list[bytes]:
    try:
        return [line for line in path.read_bytes().split(b"\n") if line]
    except FileNotFoundError:  # added meanwhile
        return []
    except OSError as error:
        raise DependencyUnavailable(f"cannot read {path}: {error.strerror}") from error


def _encoded(trials: Sequence[Trial]) -> list[bytes]:
    return [msgspec.json.encode(trial) for trial in trials]


def _decode(entry: bytes) -> Trial:
    try:
        return msgspec.json.decode(entry, type=Trial)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the ledger of trials has an entry that is not a trial: {error}") from error


def trials_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--trials DIR`, as `trials`."""
    return click.option(
        "--trials",
        type=click.Path(path_type=Path, file_okay=False),
        default=FOLDER,
        show_default=True,
        help="Folder of the ledger that records every configuration.",
    )(command)


@click.command("trials", short_help="All configurations ever evaluated.")
@trials_option
@click.option("--all", "every", is_flag=True, help="One line per trial instead of one per command and data.")
@json_option
def command(trials: Path, every: bool, json_file: Path | None) -> None:
    """List what was tried, and verify the ledger that holds it.

    The number of distinct configurations is the N by which Sharpe ratios are deflated.

    \b
    Examples:
      htfi eval trials
      htfi eval trials --all --json build/trials.json
    """
    found = list_trials(trials)
    notes = [f"{trials} has no ledger of trials yet; evaluations create it"]
    if (trials / DATABASE).exists():
        log = open_ledger_readonly(trials)
        try:
            audit = log.verify()
        finally:
            log.close()
        notes = [f"the ledger at {trials} verifies: {audit.size:,} entries, root {audit.root.hex()}"]
    rows = _each(found) if every else _by_command(found)
    metrics = {"num_trials": len(found), "num_configurations": num_configurations(found)}
    result = Evaluation(name="trials", metrics=dict(metrics), rows=rows, notes=notes)
    write_outputs(result, json_file=json_file)


def _each(trials: Sequence[Trial]) -> list[dict[str, Any]]:
    return [
        {
            "recorded at": trial.noted_at,
            "command": trial.command,
            "data": trial.data,
            "configuration": trial.configuration,
            "commit": trial.commit,
            "settings": ", ".join(f"{key}={value}" for key, value in trial.settings.items()),
            "scores": ", ".join(
                f"{key} {'–' if value is None else format(value, '.4g')}"
                for key, value in trial.scores.items()
            ),
        }
        for trial in trials
    ]


def _by_command(trials: Sequence[Trial]) -> list[dict[str, Any]]:
    groups: dict[tuple[str, str], list[Trial]] = {}
    for trial in trials:
        groups.setdefault((trial.command, trial.data), []).append(trial)
    return [
        {
            "command": command,
            "data": data,
            "configurations": num_configurations(group),
            "trials": len(group),
            "first": group[0].noted_at,
            "last": group[-1].noted_at,
        }
        for (command, data), group in groups.items()
    ]
