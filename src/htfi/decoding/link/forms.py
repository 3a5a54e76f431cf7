"""A form as the bytes of a part: both sides of the link use it.

Strict both ways: what the bytes hold is a form of bounded size, or it is refused before anything is compiled of it.
"""

import msgspec

from htfi.domain.errors import InvalidInput
from htfi.domain.writing import Choice, Fixed, Form, Mark, Segment, Sigmas, Text, Words

MAX_FORM_BYTES = 1 << 20
_MAX_PARTS = 1_024
_MAX_OPTIONS = 4_096  # of one choice
# What all parts may come to in characters, returns and words. It bounds the automaton, and with it the time for which
# a peer's form can hold up the engine: some 0.1 s at the most.
_MAX_SIZE = 32_768
_MAX_WORDS = 8_192


class _Mark(msgspec.Struct, array_like=True, tag=0, frozen=True, forbid_unknown_fields=True):
    name: str


class _Text(msgspec.Struct, array_like=True, tag=1, frozen=True, forbid_unknown_fields=True):
    text: str


class _Sigmas(msgspec.Struct, array_like=True, tag=2, frozen=True, forbid_unknown_fields=True):
    values: tuple[float, ...]


_Segment = _Mark | _Text | _Sigmas


class _Fixed(msgspec.Struct, array_like=True, tag=0, frozen=True, forbid_unknown_fields=True):
    segments: tuple[_Segment, ...]


class _Choice(msgspec.Struct, array_like=True, tag=1, frozen=True, forbid_unknown_fields=True):
    name: str
    options: tuple[tuple[_Segment, ...], ...]


class _Words(msgspec.Struct, array_like=True, tag=2, frozen=True, forbid_unknown_fields=True):
    name: str
    max_tokens: int
    end: _Segment
    slots: tuple[_Mark, ...]


_Part = _Fixed | _Choice | _Words
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(tuple[_Part, ...])


def encode_form(form: Form) -> bytes:
    """A form's bytes; equal forms have equal bytes. Raises: InvalidInput for text that is not Unicode."""
    try:
        return _encoder.encode([_told(part) for part in form])
    except UnicodeEncodeError as error:
        raise InvalidInput(f"a form holds text that no peer can read: {error}") from error


def decode_form(data: bytes) -> Form:
    """The inverse of `encode_form`. Raises: InvalidInput, in words fit for the peer."""
    if len(data) > MAX_FORM_BYTES:
        raise InvalidInput(f"a form of {len(data)} bytes; at most {MAX_FORM_BYTES} are read")
    try:
        parts = _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"not a form: {error}") from error
    if not 0 < len(parts) <= _MAX_PARTS:
        raise InvalidInput(f"a form of {len(parts)} parts; it has 1 to {_MAX_PARTS}")
    if (size := sum(map(_size, parts))) > _MAX_SIZE:
        raise InvalidInput(f"a form of size {size}; at most {_MAX_SIZE} is written for a peer")
    if (num := sum(part.max_tokens for part in parts if isinstance(part, _Words))) > _MAX_WORDS:
        raise InvalidInput(f"a form of up to {num} words; at most {_MAX_WORDS} are written for a peer")
    return tuple(map(_meant, parts))


def _size(part: _Part) -> int:
    match part:
        case _Fixed(segments):
            return sum(map(_segment_size, segments))
        case _Choice(_, options):
            if len(options) > _MAX_OPTIONS:
                raise InvalidInput(f"a choice of {len(options)} options; at most {_MAX_OPTIONS}")
            return sum(1 + sum(map(_segment_size, option)) for option in options)
        case _Words(_, max_tokens, end, slots):
            if max_tokens < 0:
                raise InvalidInput("words of fewer than no tokens")
            return max_tokens + _segment_size(end) + len(slots)


def _segment_size(segment: _Segment) -> int:
    match segment:
        case _Mark():
            return 1
        case _Text(text):
            return len(text)
        case _Sigmas(values):
            return len(values)


def _told(part: Fixed | Choice | Words) -> _Part:
    match part:
        case Fixed(segments):
            return _Fixed(tuple(map(_segment_told, segments)))
        case Choice(name, options):
            return _Choice(name, tuple(tuple(map(_segment_told, option)) for option in options))
        case Words(name, max_tokens, end, slots):
            return _Words(name, max_tokens, _segment_told(end), tuple(_Mark(slot.name) for slot in slots))


def _segment_told(segment: Segment) -> _Segment:
    match segment:
        case Mark(name):
            return _Mark(name)
        case Text(text):
            return _Text(text)
        case Sigmas(values):
            return _Sigmas(tuple(map(float, values)))


def _meant(part: _Part) -> Fixed | Choice | Words:
    match part:
        case _Fixed(segments):
            return Fixed(tuple(map(_segment_meant, segments)))
        case _Choice(name, options):
            return Choice(name, tuple(tuple(map(_segment_meant, option)) for option in options))
        case _Words(name, max_tokens, end, slots):
            return Words(name, max_tokens, _segment_meant(end), tuple(Mark(slot.name) for slot in slots))


def _segment_meant(segment: _Segment) -> Segment:
    match segment:
        case _Mark(name):
            return Mark(name)
        case _Text(text):
            return Text(text)
        case _Sigmas(values):
            return Sigmas(values)
