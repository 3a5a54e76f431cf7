"""Server-Sent Events of the service's stream, line by line; and where a client goes on after a break."""

from dataclasses import dataclass
from typing import Any

import msgspec

from htfi.client.calls import ServiceProblem
from htfi.domain.errors import DependencyUnavailable


@dataclass(frozen=True, slots=True)
class StreamedDecision:
    """One line of decisions.jsonl with its index in the ledger."""

    index: int
    line: dict[str, Any]


class EventReader:
    """Takes the lines of one stream after another; knows the index of the decision that comes next."""

    def __init__(self, first: int) -> None:
        self.next_index = first
        self._kind = ""
        self._id = ""

    @property
    def query(self) -> dict[str, str | int]:
        """Where the next stream begins."""
        return {"from": self.next_index}

    def take(self, line: str) -> StreamedDecision | None:
        """The decision that a line completes. Raises: ServiceProblem where the service can read no further."""
        name, _, text = line.partition(": ")
        if name == "event":
            self._kind = text
        elif name == "id":
            self._id = text
        elif name == "data" and self._kind == "problem":
            raise ServiceProblem(500, text)
        elif name == "data":
            return self._decided(text)
        return None

    def _decided(self, text: str) -> StreamedDecision | None:
        if not self._id.isdecimal():
            raise DependencyUnavailable("the stream is not the service's: an event has no index")
        index = int(self._id)
        if index < self.next_index:
            return None
        try:
            line = msgspec.json.decode(text, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise DependencyUnavailable(f"the stream is not the service's: {error}") from None
        self.next_index = index + 1
        return StreamedDecision(index, line)
