"""What governance on the main path stands on: the durable log of changes, and the requests from outside."""

from collections import deque
from collections.abc import Sequence
from typing import Protocol

from htfi.domain.decision import Receipt
from htfi.governance.control.requests import ControlRequest, StopRequest


class GovernanceLog(Protocol):
    """The durable log of what changed in a run's governance."""

    def recorded(self) -> Sequence[tuple[bytes, str]]:
        """The entries with their leaf hashes (hex), from the first on."""
        ...

    def append(self, entry: bytes) -> Receipt:
        """Make an entry durable. Raises: LedgerUnavailable."""
        ...

    def append_all(self, entries: Sequence[bytes]) -> Sequence[Receipt]:
        """The same of several, together. Raises: LedgerUnavailable."""
        ...


class ControlRequests(Protocol):
    """What is asked of the run from outside: by commands, files, signals, peers."""

    @property
    def has_new(self) -> bool:
        """Whether `take` would give something. Costs nothing: it is asked before every release."""
        ...

    def take(self) -> Sequence[ControlRequest]:
        """What was asked since the last call, oldest first."""
        ...

    def mark_stopped(self, request: StopRequest) -> None:
        """Leave a sign that outlasts the process, where the stop could not be logged."""
        ...

    def share(self, request: StopRequest) -> None:
        """Have the other nodes of the run's governance folder stop too, where there are any."""
        ...


class NoGovernanceLog:
    """Null log: keeps the entries in memory only. For evaluations, audits and tests."""

    def __init__(self, entries: Sequence[tuple[bytes, str]] = ()) -> None:
        self._entries = list(entries)

    def recorded(self) -> Sequence[tuple[bytes, str]]:
        return self._entries

    def append(self, entry: bytes) -> Receipt:
        self._entries.append((entry, ""))
        return Receipt(len(self._entries) - 1, "")

    def append_all(self, entries: Sequence[bytes]) -> Sequence[Receipt]:
        return [self.append(entry) for entry in entries]


class RequestQueue:
    """Requests in memory, also from signal handlers and other threads. The null source where nothing is pushed."""

    def __init__(self) -> None:
        self._waiting: deque[ControlRequest] = deque()

    @property
    def has_new(self) -> bool:
        return bool(self._waiting)

    def push(self, request: ControlRequest) -> None:
        self._waiting.append(request)

    def take(self) -> Sequence[ControlRequest]:
        return [self._waiting.popleft() for _ in range(len(self._waiting))]

    def mark_stopped(self, request: StopRequest) -> None:
        del request

    def share(self, request: StopRequest) -> None:
        del request
