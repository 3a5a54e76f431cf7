"""Writes and reads `statements.jsonl`: what changed in the newest documents of central banks of a run, a line each."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from htfi.domain.errors import DependencyUnavailable
from htfi.domain.files import add_checksum, checksum_holds, write_atomically
from htfi.narrative.facts.statements.compared import ComparedDocument
from htfi.wiring.outputs import STATEMENTS

_DECODER = msgspec.json.Decoder(ComparedDocument)


def write_statements(folder: Path, documents: Sequence[ComparedDocument]) -> Path | None:
    """Write the file anew, each line with its checksum; None where there is no document. Raises:
    DependencyUnavailable.
    """
    if not documents:
        return None
    path, whole = folder / STATEMENTS, b""
    for one in documents:
        whole += add_checksum(msgspec.json.encode(one), len(whole)) + b"\n"
    try:
        write_atomically(path, whole)
    except OSError as error:
        raise DependencyUnavailable(
            f"{path}: cannot be written: {error.strerror}; free some disk space and run the same command again"
        ) from error
    return path


def read_statements(folder: Path) -> list[ComparedDocument]:
    """The documents in the file, oldest first; lines that were changed are left out, and a missing file is empty."""
    found: list[ComparedDocument] = []
    place = 0
    try:
        with (folder / STATEMENTS).open("rb") as file:
            for line in file:
                is_held, place = checksum_holds(line, place), place + len(line)
                if is_held:
                    found.append(_DECODER.decode(line))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        pass
    return found
