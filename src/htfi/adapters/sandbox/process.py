"""A confined process that answers frames: started with nothing but what it may read, and stopped at the first misdeed.

Outside it are the clock, the watch over the bait, the reports of the system-call filter and what it prints. One frame
goes in, one comes out; a frame is its length (4 bytes, big-endian) and its bytes.
"""

import contextlib
import os
import selectors
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import msgspec

from htfi.adapters.sandbox import bubblewrap
from htfi.adapters.sandbox.bait import BaitedHome
from htfi.adapters.sandbox.control_group import ControlGroup
from htfi.adapters.sandbox.launching import Launch, launch_alone, launch_wrapped
from htfi.adapters.sandbox.seccomp import refuse_reported_call
from htfi.adapters.sandbox.syscalls import system_calls
from htfi.domain.errors import DependencyUnavailable
from htfi.governance.sandbox.results import Bounds, Enforcement, TrialEnding, TrialStopped

MAX_FRAME_BYTES = 1 << 26
_END_S = 2.0
_LENGTH = struct.Struct(">I")


class ConfinedProcess:
    """One process, from its start to `close`. `exchange` gives its answer, or why there is none."""

    def __init__(
        self,
        program: str,
        readable: Sequence[Path],
        masked: Sequence[Path],
        bounds: Bounds,
        *,
        with_bubblewrap: bool | None = None,
    ) -> None:
        """Start Python with `program`, which finds `CONTROL` (a descriptor) and `LOCKS_FILES` in its environment.

        It can read what is beneath `readable`, without the `masked` files. `with_bubblewrap` is asked where it is None.
        Raises: DependencyUnavailable where no process can be started.
        """
        self.bounds = bounds
        self._until_s = time.monotonic() + bounds.wall_s
        self._folder = tempfile.TemporaryDirectory(prefix="htfi-sandbox-", ignore_cleanup_errors=True)
        root = Path(self._folder.name)
        self._bait = BaitedHome()
        self._group = ControlGroup(bounds.memory_bytes, bounds.max_threads)
        self._missing = bubblewrap.why_not() if with_bubblewrap is not False else "bubblewrap is switched off"
        self._is_wrapped = not self._missing
        self._info, writer = os.pipe()
        self._ours, theirs = socket.socketpair()
        self._listener: int | None = None
        self._printed = bytearray()
        self._received = bytearray()
        self._stopped: TrialStopped | None = None
        self._is_locked = self._is_watched = self._has_stopped_printing = False
        place = Launch(program, readable, masked, root, self._bait, self._group.entry_files)
        how = launch_wrapped(place, writer) if self._is_wrapped else launch_alone(place)
        self._home = how.home
        try:
            self._process = subprocess.Popen(
                how.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
                env=how.environment | {"CONTROL": str(theirs.fileno())}, cwd="/", start_new_session=True,
                pass_fds=[theirs.fileno(), writer, *how.descriptors],
            )  # fmt: skip
        except OSError as error:
            raise DependencyUnavailable(f"no process can be started for a trial: {error.strerror}") from error
        finally:
            theirs.close()
            for descriptor in (writer, *how.descriptors):
                os.close(descriptor)
        for stream in self._streams:
            os.set_blocking(stream.fileno(), False)
        self._ours.setblocking(False)

    def exchange(self, frame: bytes, limit_s: float) -> bytes | TrialStopped:
        """Send a frame and wait for the answer, at most so long. After a `TrialStopped` every answer is that one."""
        if self._stopped is not None:
            return self._stopped
        until_s = min(self._until_s, time.monotonic() + limit_s)
        found = self._send(_LENGTH.pack(len(frame)) + frame, until_s)
        return self._receive(until_s) if found is None else self._stop(found)

    def _receive(self, until_s: float) -> bytes | TrialStopped:
        found: TrialStopped | None = None
        while found is None:
            if (answer := self._take_frame()) is not None:
                found = self._found_misdeed()
                if found is None:
                    return answer
            else:
                found = self._stopped or self._wait(until_s)
        return self._stop(found)

    def _stop(self, found: TrialStopped) -> TrialStopped:
        self._stopped = found
        self._kill()
        return found

    def locked(self) -> None:
        """From now on it runs what is not trusted: the bait is watched, and reports come from the filter."""
        with contextlib.suppress(OSError):
            _, found, _, _ = socket.recv_fds(self._ours, 1, 1)
            self._listener = found[0] if found else None
        self._is_watched = self._watch_bait()
        self._is_locked = True

    def enforcement(self, inside: Sequence[str]) -> Enforcement:
        """What holds it, by the process's own account of what it could set (`inside`) and by ours."""
        held, open_ = ["an environment without variables of this machine", "a limit on time"], list[str]()

        def note(holds: bool, what: str, otherwise: str) -> None:
            (held if holds else open_).append(what if holds else otherwise)

        calls, files = "seccomp" in inside, "landlock" in inside or self._is_wrapped
        note(self._is_wrapped, "namespaces of its own for network, processes, users and files (bubblewrap)",
             f"no namespaces: {self._missing}")  # fmt: skip
        note(calls, "no new process, socket or file to write (seccomp)",
             "forbidden system calls are not filtered: no seccomp for this processor or kernel")  # fmt: skip
        note(calls or self._is_wrapped or "network" in inside, "no network", "the network can be reached")
        note(files, "files of the home folder cannot be read", "files of the home folder can be read")
        note(
            self._is_watched, "bait in place of the home folder is watched", "bait is not watched: no inotify"
        )
        note("memory" in self._group.bounded, f"{self.bounds.memory_bytes >> 20} MB of memory (cgroup)",
             "no control group for memory: the address space alone is bounded")  # fmt: skip
        note("limits" in inside, "bounds on address space, processor time and file size (rlimits)",
             "address space and processor time are not bounded")  # fmt: skip
        return Enforcement(tuple(held), tuple(open_))

    @property
    def control_files(self) -> list[str]:
        """Those through which it entered its control groups; none where this machine gave it none."""
        return self._group.entry_files

    @property
    def printed(self) -> str:
        """The end of what it printed."""
        return self._printed[-2_000:].decode(errors="replace")

    def close(self) -> None:
        """End it, however it is, and remove what was made for it."""
        self._kill()
        for stream in self._streams:
            with contextlib.suppress(OSError):
                stream.close()
        if self._listener is not None:
            os.close(self._listener)
            self._listener = None
        self._ours.close()
        os.close(self._info)
        self._bait.close()
        self._group.remove()
        self._folder.cleanup()

    def _watch_bait(self) -> bool:
        """Watch it where the process finds it: in its own mounts nobody else can touch it."""
        if not self._is_wrapped:
            return self._bait.watch(self._home, is_private=False)
        try:
            process = int(msgspec.json.decode(os.read(self._info, 4096))["child-pid"])
        except (OSError, ValueError, KeyError, TypeError):
            return False
        return self._bait.watch(Path(f"/proc/{process}/root{self._home}"), is_private=True)

    @property
    def _streams(self) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
        """What it reads, what it answers, what it prints."""
        process = self._process
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise AssertionError("all three are pipes")
        return process.stdin, process.stdout, process.stderr

    def _send(self, data: bytes, until_s: float) -> TrialStopped | None:
        requests, _, _ = self._streams
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(requests.fileno(), rest) :]
            except BlockingIOError:
                if (found := self._wait(until_s, writes=True)) is not None:
                    return found
            except BrokenPipeError:
                return self._ended()
        return None

    def _wait(self, until_s: float, *, writes: bool = False) -> TrialStopped | None:
        """Wait for something to happen; why it is to be stopped, if it is."""
        requests, replies, printed = self._streams
        with selectors.DefaultSelector() as chosen:
            chosen.register(replies, selectors.EVENT_READ)
            if not self._has_stopped_printing:
                chosen.register(printed, selectors.EVENT_READ)
            if writes:
                chosen.register(requests, selectors.EVENT_WRITE)
            if self._listener is not None:
                chosen.register(self._listener, selectors.EVENT_READ)
            if self._bait.descriptor >= 0:
                chosen.register(self._bait.descriptor, selectors.EVENT_READ)
            ready = chosen.select(max(until_s - time.monotonic(), 0.0))
        if not ready:
            over = "the whole trial took too long" if until_s >= self._until_s else "no answer came in time"
            return TrialStopped(TrialEnding.TIMED_OUT, over)
        if (found := self._found_misdeed()) is not None:
            return found
        try:
            part = os.read(replies.fileno(), 1 << 16)
        except BlockingIOError:
            return None
        if not part:
            return self._ended()
        self._received += part
        return None

    def _take_frame(self) -> bytes | None:
        if len(self._received) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._received)
        if length > MAX_FRAME_BYTES:
            self._stopped = TrialStopped(TrialEnding.MALFORMED, f"an answer of {length:,} bytes")
            return None
        if len(self._received) < _LENGTH.size + length:
            return None
        frame = bytes(self._received[_LENGTH.size : _LENGTH.size + length])
        del self._received[: _LENGTH.size + length]
        return frame

    def _found_misdeed(self) -> TrialStopped | None:
        if self._listener is not None and _is_readable(self._listener):
            calls = system_calls()
            assert calls is not None, "a filter was made of them"
            with contextlib.suppress(OSError):
                refused = refuse_reported_call(self._listener, calls)
                what = f"{calls.name_of(refused.number)}{f' {refused.path}' if refused.path else ''}"
                return TrialStopped(TrialEnding.FORBIDDEN_CALL, f"it asked the system for {what}")
        if self._is_locked and (name := self._bait.opened()):
            return TrialStopped(TrialEnding.READ_SECRETS, f"it opened {name}")
        self._read_printed()
        if self._bait.mark.encode() in self._printed:
            return TrialStopped(TrialEnding.PRINTED_SECRETS, "it printed a secret")
        return None

    def _read_printed(self) -> None:
        _, _, printed = self._streams
        with contextlib.suppress(BlockingIOError):
            while part := os.read(printed.fileno(), 1 << 16):
                self._printed += part
                if len(self._printed) > self.bounds.max_output_bytes:
                    # The end is kept: a mark that stands across two parts is still found.
                    if self._bait.mark.encode() in self._printed:
                        return
                    del self._printed[: -self.bounds.max_output_bytes // 2]
            self._has_stopped_printing = True

    def _ended(self) -> TrialStopped:
        """Why it ended by itself."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
        if (found := self._found_misdeed()) is not None:
            return found
        if self._group.ran_out():
            return TrialStopped(
                TrialEnding.OUT_OF_MEMORY, f"it used more than {self.bounds.memory_bytes >> 20} MB"
            )
        status = self._process.returncode
        number = -status if status is not None and status < 0 else (status or 0) - 128
        if number == signal.SIGSYS:
            return TrialStopped(TrialEnding.FORBIDDEN_CALL, "it made a forbidden system call")
        name = signal.Signals(number).name if number in set(signal.Signals) else f"status {status}"
        last = self.printed.strip().splitlines()
        return TrialStopped(
            TrialEnding.CRASHED, f"it ended ({name})" + (f": {last[-1][:200]}" if last else "")
        )

    def _kill(self) -> None:
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)


def _is_readable(descriptor: int) -> bool:
    with selectors.DefaultSelector() as chosen:
        chosen.register(descriptor, selectors.EVENT_READ)
        return bool(chosen.select(0))
