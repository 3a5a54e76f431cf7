"""What a ResendRequest is answered with: stored messages flagged as possible duplicates, and gap fills between them."""

from collections.abc import Callable

from htfi.execution.fix.config import FixSession
from htfi.execution.fix.dictionary import Dictionary
from htfi.execution.fix.messages import encode
from htfi.execution.fix.timestamps import format_timestamp


def resend_frames(
    settings: FixSession,
    dictionary: Dictionary,
    stored: Callable[[int], bytes | None],
    begin: int,
    end: int,
    at_ns: int,
) -> list[bytes]:
    """Frames for the numbers `begin` to `end`, both included.

    `stored` gives the frame of an application message; None: a session message, which a gap fill stands for.
    """
    frames: list[bytes] = []
    gap_begin = 0
    for number in range(begin, end + 1):
        frame = stored(number)
        if frame is None:
            gap_begin = gap_begin or number
            continue
        if gap_begin:
            frames.append(_gap_fill(settings, gap_begin, number, at_ns))
            gap_begin = 0
        frames.append(_flagged(frame, dictionary, at_ns))
    if gap_begin:
        frames.append(_gap_fill(settings, gap_begin, end + 1, at_ns))
    return frames


def _gap_fill(settings: FixSession, number: int, new_number: int, at_ns: int) -> bytes:
    now = format_timestamp(at_ns)
    header = [
        (34, str(number)),
        (43, "Y"),
        (49, settings.sender),
        (52, now),
        (56, settings.target),
        (122, now),
    ]
    return encode(settings.begin_string, "4", header, [(36, str(new_number)), (123, "Y")])


def _flagged(frame: bytes, dictionary: Dictionary, at_ns: int) -> bytes:
    """The message with PossDupFlag (43), a new SendingTime (52) and the first one as OrigSendingTime (122)."""
    parts = frame.decode("latin-1").split("\x01")
    begin_string, kind = parts[0].partition("=")[2], parts[2]
    header: list[tuple[int, str]] = []
    at = 3
    while at < len(parts):
        name, _, value = parts[at].partition("=")
        if not name.isdigit() or int(name) not in dictionary.header_tags:
            break
        header.append((int(name), value))
        at += 1
    values = dict(header)
    flagged = {**values, 43: "Y", 52: format_timestamp(at_ns), 122: values.get(122, values.get(52, ""))}
    body = "\x01".join(parts[at:-2])
    text = f"{kind}\x01" + "".join(f"{tag}={flagged[tag]}\x01" for tag in sorted(flagged)) + body + "\x01"
    head = f"8={begin_string}\x019={len(text)}\x01{text}".encode("latin-1")
    return head + b"10=%03d\x01" % (sum(head) & 255)
