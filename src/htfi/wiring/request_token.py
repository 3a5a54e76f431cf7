"""The name of what a person asks for once: repeated under the same token, it is done once."""

from secrets import token_hex
from typing import NamedTuple

from htfi.domain.time import Clock, SystemClock


class RequestToken(NamedTuple):
    """When something was first asked for, UTC, and a text that no other request has.

    `is_again`: it may have been done already, by a process that ended before it could answer.
    """

    at_ns: int
    text: str
    is_again: bool = False

    def named(self, kind: str) -> str:
        """The id of a request of a kind, such as 'stop-1700000000000000000-3f9a02c4'."""
        return f"{kind}-{self.at_ns}-{self.text}"


def new_token(clock: Clock | None = None) -> RequestToken:
    """Of a request that was not made before."""
    return RequestToken((clock or SystemClock()).now_ns(), token_hex(4))
