"""Which session of an acceptor a connection belongs to, by its first frame."""

import re
from typing import NamedTuple

_IDENTITY = re.compile(
    rb"8=([^\x01]+)\x01(?=.*?\x0149=([^\x01]+)\x01)(?=.*?\x0156=([^\x01]+)\x01)", re.DOTALL
)


class SessionKey(NamedTuple):
    """BeginString (8), and the CompIDs as we have them: ours, then the counterparty's."""

    begin_string: str
    sender: str
    target: str


def session_key_of(frame: bytes) -> SessionKey | None:
    """The session that a first frame names; None where it names none. The session itself checks the frame."""
    found = _IDENTITY.match(frame[:4096])
    if found is None:
        return None
    begin_string, sender, target = (part.decode("latin-1") for part in found.groups())
    return SessionKey(begin_string, target, sender)
