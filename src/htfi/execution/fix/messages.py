"""FIX messages: bytes to fields in order and back, with BodyLength and CheckSum. Text is ASCII where we write it.

What a message may contain is checked in `checking`; here only what makes it a message at all.
"""

from collections.abc import Iterable, Sequence

import msgspec

from htfi.domain.errors import InvalidInput
from htfi.execution.fix.dictionary import Dictionary

Fields = Sequence[tuple[int, str]]

_SOH = "\x01"
_TAGS = {str(tag): tag for tag in range(10_000)}
_MAX_TAG_DIGITS = 9


class FixMessage(msgspec.Struct, frozen=True, gc=False):
    """A message as it came: all fields in order, and each one's last value by tag. Bytes beyond ASCII are Latin-1."""

    begin_string: str
    msg_type: str
    fields: list[tuple[int, str]]
    by_tag: dict[int, str]
    frame: bytes = b""

    def get(self, tag: int, default: str = "") -> str:
        return self.by_tag.get(tag, default)

    @property
    def sequence(self) -> int | None:
        """MsgSeqNum (34); None where it is missing or no number."""
        text = self.by_tag.get(34, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None

    @property
    def is_flagged_duplicate(self) -> bool:
        """PossDupFlag (43)."""
        return self.by_tag.get(43) == "Y"


class Garbled(msgspec.Struct, frozen=True):
    """Bytes that are no FIX message: they are ignored, and their sequence number is not counted."""

    why: str


def decode(frame: bytes, dictionary: Dictionary) -> FixMessage | Garbled:
    """The message of one frame."""
    if frame[-8:-4] != b"\x0110=" or frame[-1:] != b"\x01" or not frame[-4:-1].isdigit():
        return Garbled("it does not end in a CheckSum (10) of three digits")
    if sum(frame[:-7]) & 255 != int(frame[-4:-1]):
        return Garbled(f"its CheckSum (10) is {frame[-4:-1].decode()}, not {sum(frame[:-7]) & 255:03d}")
    text = frame.decode("latin-1")
    parts = text.split(_SOH)
    begin, length = parts[0], parts[1]
    if (
        len(parts) < 4
        or not begin.startswith("8=FIX")
        or not length.startswith("9=")
        or not parts[2].startswith("35=")
    ):
        return Garbled("it does not begin with BeginString (8), BodyLength (9) and MsgType (35)")
    body_begin = len(begin) + len(length) + 2
    if not (length[2:].isascii() and length[2:].isdigit()) or int(length[2:]) != len(frame) - 7 - body_begin:
        return Garbled(f"its BodyLength (9) is {length[2:][:20]}, not {len(frame) - 7 - body_begin}")
    fields: list[tuple[int, str]] = []
    known = _TAGS
    lengths = dictionary.data_lengths
    for part in parts[:-1]:
        name, equals, value = part.partition("=")
        tag = known.get(name)
        if tag is None or not equals or tag in lengths:
            return _decode_slowly(text, dictionary)
        fields.append((tag, value))
    return FixMessage(begin[2:], fields[2][1], fields, dict(fields), frame)


def _decode_slowly(text: str, dictionary: Dictionary) -> FixMessage | Garbled:
    """Field by field, for data fields, whose values may contain SOH and whose lengths stand in the field before."""
    fields: list[tuple[int, str]] = []
    at, end = 0, len(text)
    while at < end:
        equals = text.find("=", at)
        tag = _tag(text[at:equals]) if equals > at else None
        if tag is None:
            return Garbled(f"a field begins with {text[at : at + 20]!r}, which is no tag")
        stop = text.find(_SOH, equals)
        data_bytes = _data_length(fields, tag, dictionary)
        if data_bytes is not None:
            stop = equals + 1 + data_bytes
            if text[stop : stop + 1] != _SOH:
                return Garbled(f"field {tag} is not {data_bytes} bytes long, as the field before it says")
        fields.append((tag, text[equals + 1 : stop]))
        at = stop + 1
    if len(fields) < 4 or fields[2][0] != 35:
        return Garbled("it has no fields")
    return FixMessage(fields[0][1], fields[2][1], fields, dict(fields), text.encode("latin-1"))


def _tag(name: str) -> int | None:
    digits = name.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) <= _MAX_TAG_DIGITS and digits[:1] != "0":
        return int(name)
    return _TAGS.get(name)


def _data_length(fields: list[tuple[int, str]], tag: int, dictionary: Dictionary) -> int | None:
    if not fields or dictionary.data_lengths.get(fields[-1][0]) != tag:
        return None
    text = fields[-1][1]
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_TAG_DIGITS else None


def encode(begin_string: str, msg_type: str, header: Fields, body: Fields) -> bytes:
    """The bytes of a message. `header` has its fields after MsgType (35).

    Raises: InvalidInput, where a value is empty, is not ASCII, or contains the separator outside a data field.
    """
    count = 1 + len(header) + len(body)
    text = "".join([f"35={msg_type}\x01", *[f"{tag}={value}\x01" for tag, value in header],
                    *[f"{tag}={value}\x01" for tag, value in body]])  # fmt: skip
    if "=\x01" in text or not text.isascii() or text.count(_SOH) != count:
        _refuse(msg_type, [*header, *body])
    head = f"8={begin_string}\x019={len(text)}\x01{text}".encode("latin-1")
    return head + b"10=%03d\x01" % (sum(head) & 255)


def _refuse(msg_type: str, fields: Iterable[tuple[int, str]]) -> None:
    for tag, value in fields:
        if not value:
            raise InvalidInput(f"FIX message {msg_type}: field {tag} has no value: leave it out or give one")
        if not value.isascii():
            raise InvalidInput(f"FIX message {msg_type}: field {tag} is not ASCII: {value[:40]!r}")
        if _SOH in value:
            raise InvalidInput(f"FIX message {msg_type}: field {tag} contains SOH, which ends a field")


def frame_text(frame: bytes) -> str:
    """A frame for people to read, at most 400 characters."""
    return frame[:400].decode("latin-1").replace(_SOH, "|")
