"""A checksum in each line of a file that a run appends to and reads back: a line that is not as written is found.

It stands last in the line's JSON object, `"sum":"16 hexadecimal digits"`, and covers what stands before it and the
line's place in the file, so that lines that were lost, repeated or swapped are found too. It shows damage and careless
edits; who edits on purpose can make new sums. Lines from before there were sums have none and pass.
"""

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

_MARK = b',"sum":"'
_SUM_BYTES = 8
_TAIL_BYTES = len(_MARK) + 2 * _SUM_BYTES + 2


def with_sum(line: bytes, place: int) -> bytes:
    """A JSON object, without a line's end, with its sum. `place` is where the line begins, or its number."""
    return b'%s%s%s"}' % (line[:-1], _MARK, _sum(line, place))


def sum_holds(line: bytes, place: int) -> bool:
    """Whether a line, with or without its end, is as it was written there."""
    line = line.removesuffix(b"\n")
    at = len(line) - _TAIL_BYTES
    if at < 0 or not line.startswith(_MARK, at):
        return True
    return line[at + len(_MARK) : -2] == _sum(line[:at] + b"}", place)


def changed_lines(path: Path, num_bytes: int) -> Iterator[int]:
    """The numbers, from 1, of the lines in the file's first bytes that are not as written; the next if it is shorter.

    Places are byte offsets. Raises: OSError.
    """
    offset = number = 0
    with path.open("rb") as file:
        while offset < num_bytes:
            line = file.readline(num_bytes - offset)
            number += 1
            if not line.endswith(b"\n") or not sum_holds(line, offset):
                yield number
            if not line:
                return
            offset += len(line)


def _sum(line: bytes, place: int) -> bytes:
    return blake2b(place.to_bytes(8, "little") + line, digest_size=_SUM_BYTES).hexdigest().encode()
