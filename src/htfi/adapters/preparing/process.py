"""A child process that prepares news items, as the run sees it: started, sent requests, ended.

Both directions carry frames: length and CRC-32 in 4 bytes each, little-endian, then so many bytes. The run sends first
what the child is to be, then requests; it answers with one frame when it is ready, then with one for each request, in
order. It ends when its input ends, however the run ended. What is no frame of its ends the child, and the run goes on
without it.
"""

import os
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import BinaryIO
from zlib import crc32

from htfi.domain.errors import DependencyUnavailable

_HEAD = struct.Struct("<II")  # length, CRC-32
_MAX_FRAME_BYTES = 64 << 20
_END_S = 2.0


def read_frame(stream: BinaryIO) -> bytes | None:
    """The next frame; None at the end. Raises: DependencyUnavailable, for what is no frame."""
    head = stream.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    length, checksum = _HEAD.unpack(head)
    if length > _MAX_FRAME_BYTES:
        raise DependencyUnavailable(f"sent a frame of {length:,} bytes")
    frame = stream.read(length)
    if len(frame) < length:
        return None
    if crc32(frame) != checksum:
        raise DependencyUnavailable("sent a frame that does not match its checksum")
    return frame


def write_frame(stream: BinaryIO, frame: bytes) -> None:
    """Raises: OSError, where the other end is gone."""
    stream.write(_HEAD.pack(len(frame), crc32(frame)) + frame)
    stream.flush()


class PreparingProcess:
    """Sends requests, and hands on what comes back as it comes.

    `on_answer` receives each frame, the first of which says that the child is ready; `on_end` receives once why the
    child failed, unless it was ended here. Threads that read from the child and write to it call them.
    """

    def __init__(
        self,
        command: Sequence[str],
        start: bytes,
        on_answer: Callable[[bytes], None],
        on_end: Callable[[str], None],
    ) -> None:
        """`start` is the first frame."""
        self._command, self._start = list(command), start
        self._on_answer, self._on_end = on_answer, on_end
        self._child: subprocess.Popen[bytes] | None = None
        self._has_ended = False
        self._ending = threading.Lock()
        self._outbox: SimpleQueue[bytes | None] = SimpleQueue()

    def start(self) -> None:
        """Raises: nothing; a child that does not start has ended."""
        try:
            self._child = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                process_group=0,  # a person interrupts the run; the child ends when its input does
            )
        except OSError as error:
            self.give_up(f"does not start: {error.strerror}")
            return
        self._outbox.put(self._start)
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        streams = ((self._write, self._child.stdin), (self._read, self._child.stdout))
        for work, stream in streams:
            threading.Thread(target=work, args=(stream,), name="preparing", daemon=True).start()

    def send(self, request: bytes) -> None:
        """Ask for the answer to a request."""
        self._outbox.put(request)

    def close(self) -> None:
        """End the child."""
        with self._ending:
            self._has_ended = True
        self._outbox.put(None)
        if self._child is None:
            return
        try:
            self._child.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    def give_up(self, why: str) -> None:
        """End a child that failed."""
        with self._ending:
            is_first, self._has_ended = not self._has_ended, True
        if is_first:
            if self._child is not None:
                self._child.kill()
                with suppress(subprocess.TimeoutExpired):
                    self._child.wait(_END_S)
            self._on_end(why)

    def _write(self, stream: BinaryIO) -> None:
        try:
            with stream:
                while (request := self._outbox.get()) is not None:
                    write_frame(stream, request)
        except OSError:
            self.give_up("ended")

    def _read(self, stream: BinaryIO) -> None:
        why = "ended"
        try:
            with stream:
                for frame in frames(stream):
                    self._on_answer(frame)
        except DependencyUnavailable as error:
            why = str(error)
        self.give_up(why)


def frames(stream: BinaryIO) -> Iterator[bytes]:
    """The frames of a stream until it ends."""
    while (frame := read_frame(stream)) is not None:
        yield frame


def serve(open_work: Callable[[bytes], Callable[[bytes], bytes]]) -> None:
    """The child: `open_work` makes of the first frame what answers requests."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints, in whatever language, is no answer
    requests = frames(sys.stdin.buffer)
    first = next(requests, None)
    if first is None:
        return
    work = open_work(first)
    write_frame(answers, b"")
    for request in requests:
        write_frame(answers, work(request))
