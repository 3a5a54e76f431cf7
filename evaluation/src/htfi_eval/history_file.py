"""The file of a benchmark's history: its lines are read, compared with the result, printed, and one is appended."""

import fcntl
import os
import stat
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import click
from click.core import ParameterSource

from htfi.apps.display.tables import print_table
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi_eval.history import (
    MAX_WORSE,
    NUM_USUAL,
    BadLine,
    HistoryLine,
    MetricChange,
    change_rows,
    comparable,
    compare,
    encode_line,
    finite_metrics,
    is_regression,
    parse_history,
)
from htfi_eval.results import Evaluation, commit, format_cell, processor, processor_facts

MAX_BAD_LINES = 5  # named one by one; further ones are counted
_OUTPUTS = frozenset({"json_file", "html_file", "history_file"})  # parameters that do not change a figure


def record_result(file: Path, result: Evaluation) -> None:
    """Append the result's line and print it beside earlier figures, with a warning for each metric that got worse.

    Raises: InvalidInput where `file` is not a plain file, DependencyUnavailable where it cannot be written.
    """
    now = HistoryLine(
        date=datetime.now(UTC).replace(microsecond=0),
        commit=commit() + ("+" if _is_modified(file) else ""),
        bench=result.name,
        machine=machine(),
        seed=result.seed,
        workload=", ".join(part for part in (result.data, _options()) if part),
        metrics=finite_metrics(result.metrics),
    )
    with _locked(file) as descriptor:
        content = _content(file, descriptor)
        lines, bad = parse_history(content)
        _append(file, descriptor, content, encode_line(now))
    earlier = comparable(now, lines)
    _print_changes(file, now, compare(now, earlier), len(earlier), len(lines) - len(earlier))
    _print_bad_lines(file, bad)


def machine() -> str:
    """Kind and number of the processors: figures of another machine are not compared.

    Family and model tell apart what virtual machines give one name.
    """
    facts = processor_facts()
    kind = ", ".join(f"{name} {facts[name]}" for name in ("cpu family", "model") if name in facts)
    return f"{processor()}{f' ({kind})' if kind else ''}, {os.cpu_count() or 1} cores"


def _options() -> str:
    """The running command's options that change what is measured and are not the default; paths by their name."""
    context = click.get_current_context(silent=True)
    if context is None:
        return ""
    chosen = {
        str(parameter.name): context.params.get(str(parameter.name))
        for parameter in context.command.params
        if parameter.name not in _OUTPUTS
        and context.get_parameter_source(str(parameter.name)) is not ParameterSource.DEFAULT
        and context.params.get(str(parameter.name)) != parameter.get_default(context)
    }
    return ", ".join(
        f"{name} {value.name if isinstance(value, Path) else value}" for name, value in chosen.items()
    )


def _is_modified(history: Path) -> bool:
    """Whether the checkout differs from its commit in anything but the history."""
    try:
        done = subprocess.run(
            ["git", "status", "--porcelain", "--untracked-files=no", "--", ".", f":(exclude,glob)**/{history.name}"],
            capture_output=True, text=True, check=True, timeout=10,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return False
    return bool(done.stdout.strip())


@contextmanager
def _locked(file: Path) -> Generator[int]:
    """A descriptor of the file, made where it is missing; another process that appends waits."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
    except OSError as error:
        raise DependencyUnavailable(f"{file}: cannot be opened: {error.strerror}") from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise InvalidInput(f"{file}: not a plain file: name one for the history")
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _content(file: Path, descriptor: int) -> bytes:
    try:
        with os.fdopen(os.dup(descriptor), "rb") as reader:
            return reader.read()
    except OSError as error:
        raise DependencyUnavailable(f"{file}: cannot be read: {error.strerror}") from error


def _append(file: Path, descriptor: int, content: bytes, line: bytes) -> None:
    """The whole line or nothing. A last line without its end, which a killed writer left, keeps its own line."""
    data = line if not content or content.endswith(b"\n") else b"\n" + line
    try:
        written = os.write(descriptor, data)
        if written == len(data):
            os.fsync(descriptor)
            return
        os.ftruncate(descriptor, len(content))
    except OSError as error:
        raise DependencyUnavailable(f"{file}: cannot be written: {error.strerror}") from error
    raise DependencyUnavailable(f"{file}: cannot be written: the disk is full")


def _print_changes(
    file: Path, now: HistoryLine, changes: Sequence[MetricChange], num_earlier: int, num_others: int
) -> None:
    notes = [f"{now.machine}; {now.workload or 'usual workload'}; appended to {file}"]
    if num_others:
        notes.append(f"not compared: {num_others:,} of other benchmarks, machines, seeds or workloads")
    if num_earlier == 0:
        notes.append("no earlier figures to compare with: these are the first")
    rows = change_rows(changes)
    columns = list(
        dict.fromkeys(column for row in rows for column, value in row.items() if value is not None)
    )
    cells = [[format_cell(row[column]) for column in columns] for row in rows]
    print_table(columns, cells, title=f"history of htfi bench {now.bench}", notes=notes)
    for change in changes:
        if is_regression(now.bench, change):
            click.echo(
                f"warning: {change.metric} got worse by more than {MAX_WORSE:.0%}: {format_cell(change.now)}, and the "
                f"median of the last {NUM_USUAL} was {format_cell(change.usual)}",
                err=True,
            )


def _print_bad_lines(file: Path, bad: Sequence[BadLine]) -> None:
    for one in bad[:MAX_BAD_LINES]:
        click.echo(f"{file} line {one.number}: left as it is and not compared: {one.reason}", err=True)
    if len(bad) > MAX_BAD_LINES:
        click.echo(f"{file}: {len(bad) - MAX_BAD_LINES:,} further lines cannot be read either", err=True)
