"""What commands, files and a supervisor ask of runs: requests in folders, and the thread that looks for them.

A request is one JSON file `*.json` in a control folder, moved there whole. A file named STOP there, whatever it holds,
stops everything. Requests stay where they are: a run takes each once and logs it, so that a stopped run is stopped
after a restart too. A run watches its own folder's `control/` and the folder of this user on this machine.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from errno import EDQUOT, EFBIG, ENOSPC
from pathlib import Path
from typing import NamedTuple

import msgspec

from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.files import make_private, write_atomically
from htfi.domain.governance import FIRM, MAX_CAUSE_CHARS, SystemName, parse_scope
from htfi.governance.checkpoints.requests import ApprovalAnswer
from htfi.governance.control.entries import StopCause
from htfi.governance.control.requests import (
    BundleOffer,
    FolderRequest,
    ReenableRequest,
    StopRequest,
)
from htfi.pipeline.governance_ports import RequestQueue

CONTROL_FOLDER = "control"  # of a run
STOP_FILE = "STOP"
LOOK_S = 0.01  # how often a run looks; a fifth of a percent of a core
MAX_REQUEST_BYTES = 64 << 10
SETTLED_NS = 50_000_000  # more than the step of a file system's clock

_DECODER = msgspec.json.Decoder(FolderRequest)
PollBundle = Callable[[int], BundleOffer | None]


class DeadMansSwitch(NamedTuple):
    """A file that a supervisor touches at least every `timeout_s`; later than that everything is stopped."""

    path: Path
    timeout_s: float


def user_control_folder() -> Path:
    """The control folder that all runs of this user on this machine watch. Raises: RuntimeError without a home.

    Source: XDG Base Directory Specification.
    """
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    base = state if state.is_absolute() else Path.home() / ".local" / "state"
    return base / "htfi" / CONTROL_FOLDER


def write_request(folder: Path, request: FolderRequest) -> Path:
    """Leave a request in a control folder, whole and durable. Raises: DependencyUnavailable."""
    path = folder / f"{request.id}.json"
    try:
        make_private(folder)
        write_atomically(path, msgspec.json.encode(request))
    except OSError as error:
        raise _cannot_write(path, error) from error
    return path


def leave_stop_file(folder: Path) -> None:
    """An empty STOP in a control folder: it needs no room on a full disk. Raises: DependencyUnavailable."""
    try:
        make_private(folder)
        (folder / STOP_FILE).touch(0o600)
    except OSError as error:
        raise _cannot_write(folder / STOP_FILE, error) from error


def remove_stop_file(folder: Path) -> bool:
    """Remove a control folder's STOP; whether there was one. Raises: DependencyUnavailable."""
    try:
        (folder / STOP_FILE).unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _cannot_write(folder / STOP_FILE, error) from error
    return True


def _cannot_write(path: Path, error: OSError) -> DependencyUnavailable:
    advice = "free some space" if error.errno in (ENOSPC, EDQUOT, EFBIG) else "check its folder's permissions"
    return DependencyUnavailable(f"{path}: {error.strerror or error}: {advice}")


def read_requests(folder: Path) -> tuple[list[FolderRequest], list[str]]:
    """The requests in a control folder, oldest first, a STOP file last; and a line on each file that is none."""
    found: list[FolderRequest] = []
    wrong: list[str] = []
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == ".json")
    except OSError:
        return [], []
    for path in paths:
        try:
            found.append(_read_request(path))
        except (OSError, InvalidInput) as error:
            wrong.append(f"{path}: is no request ({error}): it was left aside")
    found.sort(key=lambda request: (request.at_ns, request.id))
    stop = _stop_file(folder)
    if stop is None:
        return found, wrong
    # Passed on to other nodes it must not seem older than what it follows here, whatever this machine's clock says.
    newest_ns = found[-1].at_ns if found else 0
    return [*found, msgspec.structs.replace(stop, at_ns=max(stop.at_ns, newest_ns + 1))], wrong


def still_asked(
    requests: Sequence[FolderRequest], counts: Callable[[ReenableRequest], bool]
) -> list[FolderRequest]:
    """Those that still count for a run that begins now: stops that nobody with the right has ended since.

    A request to re-enable that does not count by `counts` stays, for the run to judge and to log.
    """
    standing: list[FolderRequest] = []
    for request in requests:
        if isinstance(request, ReenableRequest) and counts(request):
            standing = [
                one
                for one in standing
                if isinstance(one, ApprovalAnswer) or one.scope != request.scope or request.breaker
            ]
        else:
            standing.append(request)
    return standing


def _read_request(path: Path) -> FolderRequest:
    with path.open("rb") as file:
        data = file.read(MAX_REQUEST_BYTES + 1)
    if len(data) > MAX_REQUEST_BYTES:
        raise InvalidInput(f"it is larger than {MAX_REQUEST_BYTES >> 10} kB")
    try:
        request = _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(str(error)) from error
    if not isinstance(request, ApprovalAnswer):
        parse_scope(request.scope)
    if request.id != path.stem:
        raise InvalidInput(f"it names itself {request.id[:40]}")
    return request


def _stop_file(folder: Path) -> StopRequest | None:
    """A STOP file as a request: one that is touched again is another request."""
    path = folder / STOP_FILE
    try:
        about = path.stat()
        why = path.read_bytes()[:MAX_CAUSE_CHARS].decode(errors="replace").strip() if about.st_size else ""
    except OSError:
        return None
    return StopRequest(
        f"{STOP_FILE}-{about.st_mtime_ns}", about.st_mtime_ns, str(FIRM), SystemName.STOP_FILE,
        why or f"{path} is there", StopCause.FILE,
    )  # fmt: skip


def no_bundle(now_ns: int) -> BundleOffer | None:
    """Of a run without a governance folder."""
    del now_ns
    return None


class ControlWatcher(RequestQueue):
    """Looks into control folders and at a supervisor's file, in a thread of its own, every `LOOK_S`.

    Implements the port `ControlRequests`: a queue that the thread fills, and `push` with what comes another way, also
    from a signal handler. `own` is the run's control folder; of `shared` ones a new run takes only what still counts.
    `poll_bundle` gives the policy bundle to go by, where that changed.
    """

    def __init__(
        self,
        own: Path,
        shared: Sequence[Path] = (),
        switch: DeadMansSwitch | None = None,
        *,
        poll_bundle: PollBundle = no_bundle,
        is_new: bool = True,
        counts: Callable[[ReenableRequest], bool] = lambda _: True,
        told: Path | None = None,
    ) -> None:
        """`counts`: whether a request in a shared folder, made before this run, ended a stop: by who had the right.

        `told` is the control folder of several nodes, which a stop of this run's own is left in for the others.
        """
        super().__init__()
        self._own, self._folders, self._switch, self._told = own, (own, *shared), switch, told
        self._seen: set[str] = set()
        self._marks: dict[Path, tuple[int, int]] = {}
        self._is_dead = False
        self._poll_bundle = poll_bundle
        self._ended = threading.Event()
        self.warnings: deque[str] = deque(maxlen=100)
        for folder in shared if is_new else ():
            asked, _ = read_requests(folder)
            self._seen |= {one.id for one in asked} - {one.id for one in still_asked(asked, counts)}
        self._look()
        self._thread = threading.Thread(target=self._watch, name="control", daemon=True)
        self._thread.start()

    def mark_stopped(self, request: StopRequest) -> None:
        """An empty STOP file, which needs no room on a full disk, and the reason where there is room."""
        path = self._own / STOP_FILE
        with suppress(OSError):
            make_private(self._own)
            path.touch(0o600)
            path.write_text(f"{request.by}: {request.why}")

    def share(self, request: StopRequest) -> None:
        """Leave a firm-wide stop in the folder of several nodes; an empty STOP file where it has no room for it."""
        folder = self._told
        if folder is None:
            return
        # Newer than all that is there, whatever clock gave it its time: what was asked before does not end it.
        newest_ns = max((one.at_ns for one in read_requests(folder)[0]), default=0)
        request = msgspec.structs.replace(request, at_ns=max(request.at_ns, time.time_ns(), newest_ns + 1))
        try:
            write_request(folder, request)
        except DependencyUnavailable as error:
            self.warnings.append(f"{error}; an empty file {STOP_FILE} is to stop the other nodes")
            try:
                leave_stop_file(folder)
            except DependencyUnavailable as no_file:
                self.warnings.append(f"the stop did not reach the other nodes: {no_file}")

    def close(self) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(LOOK_S):
            try:
                self._look()
            except Exception as error:  # noqa: BLE001 - whatever it is, nobody could stop the run any more
                self._waiting.append(
                    StopRequest(
                        "watch-failed", time.time_ns(), str(FIRM), SystemName.RUN,
                        f"requests can no longer be read: {error!r}"[:MAX_CAUSE_CHARS], StopCause.FILE,
                    )
                )  # fmt: skip
                return

    def _look(self) -> None:
        offer = self._poll_bundle(time.time_ns())
        if offer is not None:
            self._waiting.append(offer)
        for folder in self._folders:
            mark = mark_of(folder)
            if mark == self._marks.get(folder):
                continue
            requests, wrong = read_requests(folder)
            self.warnings.extend(wrong)
            for request in requests:
                if request.id not in self._seen:
                    self._seen.add(request.id)
                    self._waiting.append(request)
            if time.time_ns() - mark[0] > SETTLED_NS:  # else a file of the same instant may yet come
                self._marks[folder] = mark
        if self._switch is not None and not self._is_dead:
            self._check_switch(self._switch)

    def _check_switch(self, switch: DeadMansSwitch) -> None:
        try:
            last_ns = switch.path.stat().st_mtime_ns
        except OSError:
            last_ns = 0
        now_ns = time.time_ns()
        if now_ns - last_ns <= switch.timeout_s * 1e9:
            return
        self._is_dead = True
        since = f"for {switch.timeout_s:g} s" if last_ns else "at all"
        why = f"{switch.path} was not touched {since}"
        self._waiting.append(
            StopRequest(f"dead-man-{now_ns}", now_ns, str(FIRM), SystemName.DEAD_MAN, why, StopCause.DEAD_MAN)
        )


def mark_of(folder: Path) -> tuple[int, int]:
    """What changes when a file is added to a folder, or its STOP is touched; zeros where there is none."""
    try:
        changed_ns = folder.stat().st_mtime_ns
    except OSError:
        return 0, 0
    try:
        return changed_ns, (folder / STOP_FILE).stat().st_mtime_ns
    except OSError:
        return changed_ns, 0
