"""Bytes of a connection into frames, by BeginString, BodyLength and CheckSum. What is no frame comes out as it is.

A message whose BodyLength is too long takes in what follows, up to the next CheckSum; `decode` finds it garbled.
"""

import re

_START = b"8=FIX"
_HEAD = re.compile(rb"8=FIX[^\x01]{1,8}\x019=(\d{1,9})\x01")
_MAX_HEAD_BYTES = 32
_MAX_TRAILER_BYTES = 16


def split_frames(data: bytes, max_body_bytes: int) -> tuple[list[bytes], bytes]:
    """The frames that are complete, in order, and the bytes that wait for more.

    Bytes between frames come out as a frame of their own, which does not decode, so that the session sees them.
    """
    frames: list[bytes] = []
    start, size = 0, len(data)
    while start < size:
        if not data.startswith(_START, start):
            end = _next_start(data, start)
            if end > start:
                frames.append(data[start:end])
            if not data.startswith(_START, end):
                return frames, data[end:]
            start = end
        head = _HEAD.match(data, start)
        if head is None:
            if size - start < _MAX_HEAD_BYTES:
                break
            end = _next_start(data, start + 1)
            frames.append(data[start:end])
            start = end
            continue
        body_bytes = int(head[1])
        if body_bytes > max_body_bytes:
            end = _next_start(data, start + 1)
            frames.append(data[start:end])
            start = end
            continue
        end = _frame_end(data, head.end() + body_bytes)
        if end is None:
            if size - start <= max_body_bytes + _MAX_HEAD_BYTES + _MAX_TRAILER_BYTES:
                break
            end = _next_start(data, start + 1)
        frames.append(data[start:end])
        start = end
    return frames, data[start:]


def _frame_end(data: bytes, body_end: int) -> int | None:
    trailer = data.find(b"\x0110=", body_end - 1)
    if trailer < 0:
        return None
    end = data.find(b"\x01", trailer + 4)
    return None if end < 0 else end + 1


def _next_start(data: bytes, begin: int) -> int:
    """Where the next message may begin, which may be cut off at the end of what has come."""
    found = data.find(_START, begin)
    if found >= 0:
        return found
    for size in range(min(len(_START) - 1, len(data) - begin), 0, -1):
        if data.endswith(_START[:size]):
            return len(data) - size
    return len(data)
