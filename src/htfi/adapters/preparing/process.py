"""A child process that prepares news items, as the run sees it: started, sent items, waited for, given up.

Both directions carry frames: length and CRC-32 in 4 bytes each, little-endian, then so many bytes. The run sends first
what the child is to be, then items; it answers with one frame when it is ready, then with one per item, in order. It
ends when its input ends, however the run ended. What is no frame of its ends the child, and the run goes on without it.
"""

import os
import struct
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from queue import SimpleQueue
from typing import BinaryIO
from zlib import crc32

from htfi.domain.errors import DependencyUnavailable

_HEAD = struct.Struct("<II")  # length, CRC-32
_MAX_FRAME_BYTES = 64 << 20
_ANSWER_S = 20.0  # for one item, before the child is given up
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
    """Sends items and takes their answers in the same order. Without the child, answers are None: it only saves time.

    `notify` receives one line where the child fails.
    """

    def __init__(self, command: Sequence[str], start: bytes, notify: Callable[[str], None]) -> None:
        """`start` is the first frame. Raises: nothing; a child that does not start has failed."""
        self._notify = notify
        self._changed = threading.Condition()
        self._answers: deque[bytes] = deque()
        self._is_ready, self._is_closed, self._why = False, False, ""
        self._outbox: SimpleQueue[bytes | None] = SimpleQueue()
        try:
            self._child = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                process_group=0,  # a person interrupts the run; the child ends when its input does
            )
        except OSError as error:
            self._child = None
            self._fail(f"does not start: {error.strerror}")
            return
        self._outbox.put(start)
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        streams = ((self._write, self._child.stdin), (self._read, self._child.stdout))
        for work, stream in streams:
            threading.Thread(target=work, args=(stream,), name="preparing", daemon=True).start()

    @property
    def is_ready(self) -> bool:
        """Whether the child has opened what it needs and lives."""
        return self._is_ready and not self._why

    @property
    def has_failed(self) -> bool:
        return bool(self._why)

    def send(self, item: bytes) -> None:
        """Ask for the answer to an item."""
        self._outbox.put(item)

    def take(self) -> bytes | None:
        """The answer to the oldest item whose answer was not taken; waits for it. None where the child has failed."""
        with self._changed:
            arrived = self._changed.wait_for(lambda: self._answers or self._why, _ANSWER_S)
            if self._answers:
                return self._answers.popleft()
        if not arrived:
            self._fail(f"did not answer within {_ANSWER_S:.0f} s")
        return None

    def close(self) -> None:
        """End the child."""
        self._is_closed = True
        self._outbox.put(None)
        if self._child is None:
            return
        try:
            self._child.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    def _fail(self, why: str) -> None:
        with self._changed:
            is_first = not self._why and not self._is_closed
            self._why = self._why or why
            self._changed.notify_all()
        if is_first:
            self._notify(f"the process that reads news ahead {why}; news is read in the run's own process")
            if self._child is not None:
                self._child.kill()

    def _write(self, stream: BinaryIO) -> None:
        try:
            with stream:
                while (item := self._outbox.get()) is not None:
                    write_frame(stream, item)
        except OSError:
            self._fail("ended")

    def _read(self, stream: BinaryIO) -> None:
        why = "ended"
        try:
            with stream:
                for frame in frames(stream):
                    with self._changed:
                        if self._is_ready:
                            self._answers.append(frame)
                        self._is_ready = True
                        self._changed.notify_all()
        except DependencyUnavailable as error:
            why = str(error)
        self._fail(why)


def frames(stream: BinaryIO) -> Iterator[bytes]:
    """The frames of a stream until it ends."""
    while (frame := read_frame(stream)) is not None:
        yield frame


def serve(open_work: Callable[[bytes], Callable[[Sequence[bytes]], Iterable[bytes]]], most: int) -> None:
    """The child: `open_work` makes of the first frame what answers items, at most `most` at once; an answer is sent as
    soon as it is there.
    """
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints, in whatever language, is no answer
    arrived: SimpleQueue[bytes | None] = SimpleQueue()

    def receive() -> None:
        for frame in frames(sys.stdin.buffer):
            arrived.put(frame)
        arrived.put(None)

    threading.Thread(target=receive, daemon=True).start()
    first = arrived.get()
    if first is None:
        return
    work = open_work(first)
    write_frame(answers, b"")
    while (item := arrived.get()) is not None:
        items = [item]
        while len(items) < most and not arrived.empty():
            item = arrived.get()
            if item is None:
                arrived.put(None)
                break
            items.append(item)
        for answer in work(items):
            write_frame(answers, answer)
