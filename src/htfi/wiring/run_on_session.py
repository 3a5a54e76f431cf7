"""What a run notes of its FIX session, which outlives it: what its ids begin with, where it began in the journal."""

from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

import msgspec

from htfi.domain.errors import DependencyUnavailable, IntegrityError, InvalidInput
from htfi.domain.files import write_atomically

if TYPE_CHECKING:  # a run on paper loads no sockets
    from htfi.adapters.fix.session_thread import JournalPlace, SessionThread

_PREFIX_BYTES = 3


class RunOnSession(msgspec.Struct, frozen=True):
    """The session, the run's prefix, and where the run began in the journal."""

    session: str
    journal: str
    prefix: str
    num_files: int
    next_out: int
    next_in: int


def read_noted(path: Path) -> RunOnSession:
    """Raises: DependencyUnavailable, IntegrityError."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=RunOnSession)
    except OSError as error:
        raise DependencyUnavailable(f"{path}: {error.strerror or error}") from error
    except msgspec.DecodeError as error:
        raise IntegrityError(f"{path} was altered: {error}: restore it from a copy") from error


def run_on(path: Path, session: "SessionThread") -> RunOnSession:
    """What the run has noted in a file of its folder, or notes now.

    Raises: DependencyUnavailable, IntegrityError, InvalidInput.
    """
    endpoint = session.endpoint
    name = f"{endpoint.session.sender}-{endpoint.session.target}"
    journal = str(Path(endpoint.journal).absolute())
    if path.exists():
        noted = read_noted(path)
        if (noted.session, noted.journal) != (name, journal):
            raise InvalidInput(
                f"{path.parent} trades by the FIX session {noted.session} with the journal {noted.journal}: "
                "give its file, or use a new folder"
            )
        return noted
    place: JournalPlace = session.place()
    noted = RunOnSession(name, journal, f"{token_hex(_PREFIX_BYTES)}-", *place)
    try:
        write_atomically(path, msgspec.json.encode(noted))
    except OSError as error:
        raise DependencyUnavailable(f"{path}: {error.strerror or error}") from error
    return noted
