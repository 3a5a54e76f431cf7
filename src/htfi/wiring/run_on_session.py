"""What a run notes of its FIX sessions, which outlive it: what its ids begin with, where it began in the journal."""

from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, cast

import msgspec

from htfi.domain.errors import DependencyUnavailable, IntegrityError, InvalidInput
from htfi.domain.files import write_atomically

if TYPE_CHECKING:  # a run on paper loads no sockets
    from htfi.adapters.fix.session_thread import SessionThread

_PREFIX_BYTES = 3


class RunOnSession(msgspec.Struct, frozen=True):
    """The session, the run's prefix, and where the run began in the journal."""

    session: str
    journal: str
    prefix: str
    num_files: int
    next_out: int
    next_in: int


_NOTED: "msgspec.json.Decoder[RunOnSession | list[RunOnSession]]" = msgspec.json.Decoder(
    cast("type[RunOnSession | list[RunOnSession]]", RunOnSession | list[RunOnSession])
)


def read_noted(path: Path) -> list[RunOnSession]:
    """Of each session. Raises: DependencyUnavailable, IntegrityError."""
    try:
        noted = _NOTED.decode(path.read_bytes())
    except OSError as error:
        raise DependencyUnavailable(f"{path}: {error.strerror or error}") from error
    except msgspec.DecodeError as error:
        raise IntegrityError(f"{path} was altered: {error}: restore it from a copy") from error
    return [noted] if isinstance(noted, RunOnSession) else noted


def run_on(path: Path, *sessions: "SessionThread") -> list[RunOnSession]:
    """What the run has noted of its sessions in a file of its folder, or notes now: all have one prefix.

    Raises: DependencyUnavailable, IntegrityError, InvalidInput.
    """
    names = [f"{one.endpoint.session.sender}-{one.endpoint.session.target}" for one in sessions]
    journals = [str(Path(one.endpoint.journal).absolute()) for one in sessions]
    if path.exists():
        noted = read_noted(path)
        if [(one.session, one.journal) for one in noted] != list(zip(names, journals, strict=True)):
            words = ", and ".join(
                f"the FIX session {one.session} with the journal {one.journal}" for one in noted
            )
            raise InvalidInput(f"{path.parent} trades by {words}: give its file, or use a new folder")
        return noted
    prefix = f"{token_hex(_PREFIX_BYTES)}-"
    noted = [
        RunOnSession(name, journal, prefix, *session.place())
        for name, journal, session in zip(names, journals, sessions, strict=True)
    ]
    try:
        write_atomically(path, msgspec.json.encode(noted if len(noted) > 1 else noted[0]))
    except OSError as error:
        raise DependencyUnavailable(f"{path}: {error.strerror or error}") from error
    return noted
