"""approvals.jsonl of a run's folder: what people are asked about decisions, and what happened to each question.

The run alone appends to it, each line with a checksum and safe on the disk before anything follows from it. Answers
come back as files in the run's control folder, moved there whole.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from htfi.domain.errors import DependencyUnavailable, IntegrityError
from htfi.domain.files import (
    add_checksum,
    checksum_holds,
    make_private,
    open_private,
    sync_folder,
    write_atomically,
)
from htfi.governance.checkpoints.requests import ApprovalAnswer, ApprovalQuestion
from htfi.governance.checkpoints.state import CheckpointState, CheckpointStep, apply_step

APPROVALS_FILE = "approvals.jsonl"
CONTROL_FOLDER = "control"
_ENCODER = msgspec.json.Encoder()
_ANSWER_DECODER = msgspec.json.Decoder(ApprovalAnswer)
_DECODER = msgspec.json.Decoder(ApprovalQuestion | CheckpointStep)


class RecordedQuestion(NamedTuple):
    """A question, where it stands, and its steps in order."""

    state: CheckpointState
    steps: tuple[CheckpointStep, ...]


class ApprovalsFile:
    """The file, for the run that appends to it."""

    def __init__(self, folder: Path) -> None:
        """Raises: IntegrityError, DependencyUnavailable."""
        self._path = folder / APPROVALS_FILE
        lines = _read_lines(self._path, mend=True)
        self._num_lines = len(lines)
        self.recorded = _fold(lines, self._path)

    def append(self, lines: Sequence[ApprovalQuestion | CheckpointStep]) -> None:
        """Write lines down for good. Raises: DependencyUnavailable."""
        encoded = [
            add_checksum(_ENCODER.encode(line), self._num_lines + place) for place, line in enumerate(lines)
        ]
        _append(self._path, b"".join(line + b"\n" for line in encoded))
        self._num_lines += len(lines)


def read_approvals(folder: Path) -> dict[str, RecordedQuestion]:
    """The questions of a run's folder by the id of their decision, oldest first.

    Raises: IntegrityError, DependencyUnavailable.
    """
    return _fold(_read_lines(folder / APPROVALS_FILE), folder / APPROVALS_FILE)


def write_answer(folder: Path, answer: ApprovalAnswer) -> Path:
    """Leave an answer in the control folder of a run's folder, whole and durable. Raises: DependencyUnavailable."""
    path = folder / CONTROL_FOLDER / f"{answer.id}.json"
    try:
        make_private(path.parent)
        write_atomically(path, _ENCODER.encode(answer))
    except OSError as error:
        raise _unavailable(path, error) from error
    return path


def waiting_answers(folder: Path) -> list[ApprovalAnswer]:
    """The answers that lie in a run's control folder, taken or not, oldest first; what is none is left out."""
    found: list[ApprovalAnswer] = []
    for path in sorted((folder / CONTROL_FOLDER).glob("answer-*.json")):
        with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
            found.append(_ANSWER_DECODER.decode(path.read_bytes()))
    return sorted(found, key=lambda answer: (answer.at_ns, answer.id))


def _fold(lines: Sequence[ApprovalQuestion | CheckpointStep], path: Path) -> dict[str, RecordedQuestion]:
    found: dict[str, RecordedQuestion] = {}
    for number, line in enumerate(lines, 1):
        if isinstance(line, ApprovalQuestion):
            found[line.decision] = RecordedQuestion(CheckpointState(line), ())
            continue
        known = found.get(line.decision)
        if known is None:
            raise IntegrityError(f"{path}, line {number}: is about a question that was never asked")
        found[line.decision] = RecordedQuestion(apply_step(known.state, line), (*known.steps, line))
    return found


def _read_lines(path: Path, *, mend: bool = False) -> list[ApprovalQuestion | CheckpointStep]:
    """The whole lines of the file; what a crash left of one is cut off where its writer may `mend` it."""
    try:
        content = path.read_bytes()
        end = content.rfind(b"\n") + 1
        if mend and end < len(content):
            os.truncate(path, end)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unavailable(path, error) from error
    lines: list[ApprovalQuestion | CheckpointStep] = []
    for number, line in enumerate(content[:end].splitlines()):
        if not checksum_holds(line, number):
            raise IntegrityError(
                f"{path}, line {number + 1}: is not as it was written: restore it from a copy"
            )
        try:
            lines.append(_DECODER.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise IntegrityError(
                f"{path}, line {number + 1}: is no question and no step: restore it from a copy"
            ) from error
    return lines


def _append(path: Path, data: bytes) -> None:
    try:
        is_new = not path.exists()
        file = open_private(path, os.O_WRONLY | os.O_APPEND)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(file, rest) :]
            os.fsync(file)
        finally:
            os.close(file)
        if is_new:
            sync_folder(path.parent)
    except OSError as error:
        raise _unavailable(path, error) from error


def _unavailable(path: Path, error: OSError) -> DependencyUnavailable:
    return DependencyUnavailable(
        f"{path}: {error.strerror or error}: free some disk space, or check its permissions"
    )
