"""A node's part in sharing what people ask of runs: the requests of its governance folder reach every other node's.

A stop that is asked of one node's folder (`htfi stop --governance G`) lies in the folders of all linked nodes soon
after, where their runs take it; a node that was away gets it when it is linked again. Nodes pass on what they are told,
so that edges reach each other through clouds. The end of a stop travels the same way, signed where there are people.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from htfi.adapters.stores.adoption_folder import read_nodes
from htfi.adapters.stores.control_folder import (
    CONTROL_FOLDER,
    SETTLED_NS,
    STOP_FILE,
    leave_stop_file,
    mark_of,
    read_requests,
    write_request,
)
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.governance import FIRM, MAX_CAUSE_CHARS, parse_scope
from htfi.governance.control.entries import StopCause
from htfi.governance.control.requests import ReenableRequest, StopRequest
from htfi.governance.control.sharing import (
    MAX_IN_MESSAGE,
    MAX_SHARED,
    KnownRequests,
    MissingRequests,
    SharedRequest,
    decode_control,
    encode_control,
    lacking,
)
from htfi.wiring.cluster.bundles import Bodies, ClusterBundles

KNOWN_S = 1.0  # how often a node says what it knows


class SharedRequests:
    """The requests of a governance folder, shared with its other nodes. All calls from one thread."""

    def __init__(self, folder: Path, node: str, running_s: Callable[[], float] = time.monotonic) -> None:
        """Raises: InvalidInput where the folder names no nodes, or not this one."""
        self._control, self._node, self._running_s = folder / CONTROL_FOLDER, node, running_s
        nodes = read_nodes(folder)
        if node not in nodes:
            raise InvalidInput(
                f"{folder} does not name the node '{node}': it names {', '.join(nodes) or 'none'}"
            )
        self._peers = [one for one in nodes if one != node]
        self._requests: dict[str, SharedRequest] = {}  # the newest, which are told
        self._seen: set[str] = set()
        self._unwritten: dict[str, str] = {}  # why, by the name of the stop
        self._mark: tuple[int, int] | None = None
        self._said_s = -KNOWN_S

    def due(self) -> Bodies:
        """New requests at once, and now and then what is known."""
        found = self._look()
        sent = [body for peer in self._peers for body in _as_messages(peer, found)]
        now_s = self._running_s()
        if now_s - self._said_s >= KNOWN_S:
            self._said_s = now_s
            known = encode_control(KnownRequests(tuple(self._requests)))
            sent += [(peer, known) for peer in self._peers]
        return sent

    def received(self, peer: str, body: bytes) -> Bodies | None:
        """What a peer's message calls for; None where it is about something else."""
        try:
            message = decode_control(body)
        except InvalidInput:
            return None
        if peer not in self._peers:
            return ()
        if isinstance(message, KnownRequests):
            return _as_messages(peer, lacking(list(self._requests.values()), message))
        for request in message.requests:
            if request.id not in self._seen and _is_sound(request):
                self._keep(request)
        return ()

    def _look(self) -> list[SharedRequest]:
        """Requests that have come into the folder since the last look."""
        mark = mark_of(self._control)
        if mark == self._mark:
            return []
        if time.time_ns() - mark[0] > SETTLED_NS:  # else a file of the same instant may yet come
            self._mark = mark
        found = [
            one
            for one in read_requests(self._control)[0]
            if isinstance(one, StopRequest | ReenableRequest) and one.id not in self._seen
        ]
        for one in found:
            self._note(one)
        return found

    def _keep(self, request: SharedRequest) -> None:
        """Lay a request that a peer told into the own folder, where the runs of this node take it."""
        if isinstance(request, StopRequest):
            request = msgspec.structs.replace(request, cause=StopCause.PEER)
        try:
            write_request(self._control, request)
        except DependencyUnavailable as error:  # it is told again
            if isinstance(request, StopRequest):
                self._stop_unwritten(request, str(error))
            return
        self._unwritten.pop(request.id, None)
        # It is not noted here: the next look finds it and passes it on.

    def _stop_unwritten(self, request: StopRequest, why: str) -> None:
        """Hold everything back, whatever the stop's scope; a firm-wide one leaves an empty STOP file at once."""
        self._unwritten[request.id] = f"a stop of {request.scope} by a peer cannot be recorded: {why}"
        if parse_scope(request.scope) == FIRM and not (self._control / STOP_FILE).exists():
            with suppress(DependencyUnavailable):
                leave_stop_file(self._control)

    @property
    def failure(self) -> str:
        """Why nothing may be released: a stop that a peer told and that could not be written; else empty."""
        return next(iter(self._unwritten.values()), "")

    def _note(self, request: SharedRequest) -> None:
        self._requests[request.id] = request
        self._seen.add(request.id)
        while len(self._requests) > MAX_SHARED:
            del self._requests[next(iter(self._requests))]


class ClusterGovernance:
    """Implements `BundleExchange`: the agreement on bundles and the sharing of requests, on one governance folder."""

    def __init__(self, folder: Path, node: str) -> None:
        """Raises: InvalidInput where the folder does not name this node; IntegrityError, DependencyUnavailable."""
        self.bundles = ClusterBundles(folder, node)
        self._requests = SharedRequests(folder, node)

    def received(self, peer: str, body: bytes) -> Sequence[tuple[str, bytes]]:
        answered = self._requests.received(peer, body)
        return self.bundles.received(peer, body) if answered is None else answered

    def due(self) -> Sequence[tuple[str, bytes]]:
        sent = self._requests.due()
        self.bundles.unwritten_stop = self._requests.failure
        return [*sent, *self.bundles.due()]


def open_cluster_governance(folder: Path | None, node: str) -> ClusterGovernance | None:
    """A node's part in the governance of several; None where its folder is its own alone, or there is none.

    Raises: InvalidInput, IntegrityError, DependencyUnavailable.
    """
    if folder is None or not read_nodes(folder):
        return None
    return ClusterGovernance(folder, node)


def _as_messages(peer: str, requests: Sequence[SharedRequest]) -> Bodies:
    return [
        (peer, encode_control(MissingRequests(tuple(requests[first : first + MAX_IN_MESSAGE]))))
        for first in range(0, len(requests), MAX_IN_MESSAGE)
    ]


def _is_sound(request: SharedRequest) -> bool:
    """Whether a request that a peer told can be a file of that name, with words fit for the record."""
    try:
        parse_scope(request.scope)
    except InvalidInput:
        return False
    is_name = request.id.replace("-", "").replace("_", "").isalnum() and request.id.isascii()
    texts = (request.by, request.why)
    return (
        is_name
        and len(request.id) <= 120
        and all(one.isprintable() and len(one) <= MAX_CAUSE_CHARS for one in texts)
    )
