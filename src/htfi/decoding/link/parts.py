"""Parts of prompts and grammars, by name; grammars as the bytes of a part.

A part is named by the BLAKE2b-128 of its bytes: what an edge has sent is never sent again, an interrupted part
continues where it stopped, and one part cannot replace another. The bytes of a grammar are of bounded size and decoded
strictly, before anything is compiled from them.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from htfi.decoding.link.frames import NAME_BYTES, PartFrame
from htfi.decoding.sampling import SamplingParams
from htfi.domain.errors import InvalidInput
from htfi.domain.generation import (
    ChoiceField,
    ControlToken,
    FixedField,
    FreeTextField,
    OutputGrammar,
    PlainText,
    PromptSegment,
    ScaledMoves,
)

MAX_PART_BYTES = 1 << 21
_SEED_MASK = 2**64 - 1


def part_name(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=NAME_BYTES).digest()


def request_name(
    prompt: Sequence[bytes], grammar: bytes, seed: int, sampling: SamplingParams, *, in_full: bool = False
) -> bytes:
    """The name of a request made of parts with these names: equal requests have equal answers everywhere.

    Seeds are equal modulo 2^64; `in_full` asks for the target in full precision, another model.
    """
    temperature, top_k, top_p = sampling
    content = f"{seed & _SEED_MASK} {float(temperature)!r} {top_k} {float(top_p)!r} {len(prompt)} "
    content = f"{content}{'in full ' if in_full else ''}".encode()
    return part_name(content + b"".join(prompt) + grammar)


class PartReceipt(NamedTuple):
    """The result of a frame: the complete part if it is there now, else the byte from which on it is missing."""

    whole: bytes | None
    missing_from: int


@dataclass(slots=True)
class _TenantParts:
    """One tenant's parts, the least recently used first, and incomplete ones."""

    whole: OrderedDict[bytes, bytes] = field(default_factory=OrderedDict[bytes, bytes])
    begun: OrderedDict[bytes, tuple[int, bytearray]] = field(
        default_factory=OrderedDict[bytes, tuple[int, bytearray]]
    )
    num_bytes: int = 0


class PartStore:
    """Complete parts may be used by every tenant, incomplete ones only by their sender.

    Beyond `max_bytes`, the tenant that holds most loses its least recently used parts, so no tenant can evict the parts
    of others by sending many. `max_begun` parts of a tenant may be incomplete at once.
    """

    def __init__(self, max_bytes: int, max_begun: int) -> None:
        self._max_bytes = max_bytes
        self._max_begun = max_begun
        self._shelves: dict[str, _TenantParts] = {}
        self._owner: dict[bytes, str] = {}
        self.num_bytes = 0

    def get(self, name: bytes) -> bytes | None:
        owner = self._owner.get(name)
        if owner is None:
            return None
        shelf = self._shelves[owner]
        shelf.whole.move_to_end(name)
        return shelf.whole[name]

    def missing_from(self, tenant: str, name: bytes) -> int:
        """How many bytes of an incomplete part have arrived."""
        shelf = self._shelves.get(tenant)
        begun = shelf.begun.get(name) if shelf else None
        return len(begun[1]) if begun else 0

    def take(self, tenant: str, part: PartFrame) -> PartReceipt:
        """Add the bytes of a frame to earlier ones. Raises: InvalidInput for an impossible part."""
        name, offset, total, data = part.name, part.offset, part.total, part.data
        if len(name) != NAME_BYTES or not 0 <= offset <= offset + len(data) <= total:
            raise InvalidInput(f"a part of {total} bytes with {len(data)} of them from {offset} on")
        if total > MAX_PART_BYTES:
            raise InvalidInput(f"a part of {total} bytes; at most {MAX_PART_BYTES} are accepted")
        if (known := self.get(name)) is not None:
            return PartReceipt(known, total)
        shelf = self._shelves.setdefault(tenant, _TenantParts())
        before, come = shelf.begun.pop(name, (total, bytearray()))
        if before != total:
            shelf.num_bytes -= len(come)
            self.num_bytes -= len(come)
            raise InvalidInput(f"a part of {before} bytes that now has {total}")
        if offset > len(come):  # bytes between were lost, or evicted here
            if come:
                shelf.begun[name] = (total, come)
            return PartReceipt(None, len(come))
        new = data[len(come) - offset :]
        come += new
        self._grow(shelf, len(new))
        if len(come) < total:
            shelf.begun[name] = (total, come)
            if len(shelf.begun) > self._max_begun:
                self._grow(shelf, -len(shelf.begun.popitem(last=False)[1][1]))
            self._shrink()
            return PartReceipt(None, len(come))
        whole = bytes(come)
        if part_name(whole) != name:
            self._grow(shelf, -total)
            raise InvalidInput("a part whose bytes do not match its name")
        shelf.whole[name] = whole
        self._owner[name] = tenant
        self._shrink()
        return PartReceipt(whole, total)

    def _grow(self, shelf: _TenantParts, num_bytes: int) -> None:
        shelf.num_bytes += num_bytes
        self.num_bytes += num_bytes

    def _shrink(self) -> None:
        while self.num_bytes > self._max_bytes:
            shelf = max(self._shelves.values(), key=lambda shelf: shelf.num_bytes)
            if shelf.whole:
                name, data = shelf.whole.popitem(last=False)
                del self._owner[name]
                self._grow(shelf, -len(data))
            else:
                self._grow(shelf, -len(shelf.begun.popitem(last=False)[1][1]))


MAX_GRAMMAR_BYTES = 1 << 20
_MAX_PARTS = 1_024
_MAX_OPTIONS = 4_096  # of one choice
# Characters, returns and words of all parts together. It bounds the automaton, and with it the time for which
# a peer's grammar can block the engine: about 0.1 s at most.
_MAX_SIZE = 32_768
_MAX_WORDS = 8_192


class _WireMark(msgspec.Struct, array_like=True, tag=0, frozen=True, forbid_unknown_fields=True):
    name: str


class _WireText(msgspec.Struct, array_like=True, tag=1, frozen=True, forbid_unknown_fields=True):
    text: str


class _WireSigmas(msgspec.Struct, array_like=True, tag=2, frozen=True, forbid_unknown_fields=True):
    values: tuple[float, ...]


_WireSegment = _WireMark | _WireText | _WireSigmas


class _WireFixed(msgspec.Struct, array_like=True, tag=0, frozen=True, forbid_unknown_fields=True):
    segments: tuple[_WireSegment, ...]


class _WireChoice(msgspec.Struct, array_like=True, tag=1, frozen=True, forbid_unknown_fields=True):
    name: str
    options: tuple[tuple[_WireSegment, ...], ...]


class _WireWords(msgspec.Struct, array_like=True, tag=2, frozen=True, forbid_unknown_fields=True):
    name: str
    max_tokens: int
    end: _WireSegment
    slots: tuple[_WireMark, ...]


_WirePart = _WireFixed | _WireChoice | _WireWords
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(tuple[_WirePart, ...])


def encode_grammar(grammar: OutputGrammar) -> bytes:
    """A grammar's bytes; equal grammars have equal bytes. Raises: InvalidInput for text that is not Unicode."""
    try:
        return _encoder.encode([_to_wire(part) for part in grammar])
    except UnicodeEncodeError as error:
        raise InvalidInput(f"a grammar holds text that no peer can read: {error}") from error


def decode_grammar(data: bytes) -> OutputGrammar:
    """The inverse of `encode_grammar`. Raises: InvalidInput with a message for the peer."""
    if len(data) > MAX_GRAMMAR_BYTES:
        raise InvalidInput(f"a grammar of {len(data)} bytes; at most {MAX_GRAMMAR_BYTES} are read")
    try:
        parts = _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"not a grammar: {error}") from error
    if not 0 < len(parts) <= _MAX_PARTS:
        raise InvalidInput(f"a grammar of {len(parts)} parts; it has 1 to {_MAX_PARTS}")
    if (size := sum(map(_size, parts))) > _MAX_SIZE:
        raise InvalidInput(f"a grammar of size {size}; at most {_MAX_SIZE} is accepted")
    if (num := sum(part.max_tokens for part in parts if isinstance(part, _WireWords))) > _MAX_WORDS:
        raise InvalidInput(f"a grammar of up to {num} words; at most {_MAX_WORDS} are accepted")
    return tuple(map(_from_wire, parts))


def _size(part: _WirePart) -> int:
    match part:
        case _WireFixed(segments):
            return sum(map(_segment_size, segments))
        case _WireChoice(_, options):
            if len(options) > _MAX_OPTIONS:
                raise InvalidInput(f"a choice of {len(options)} options; at most {_MAX_OPTIONS}")
            return sum(1 + sum(map(_segment_size, option)) for option in options)
        case _WireWords(_, max_tokens, end, slots):
            if max_tokens < 0:
                raise InvalidInput("free text with a negative bound")
            return max_tokens + _segment_size(end) + len(slots)


def _segment_size(segment: _WireSegment) -> int:
    match segment:
        case _WireMark():
            return 1
        case _WireText(text):
            return len(text)
        case _WireSigmas(values):
            return len(values)


def _to_wire(part: FixedField | ChoiceField | FreeTextField) -> _WirePart:
    match part:
        case FixedField(segments):
            return _WireFixed(tuple(map(_segment_to_wire, segments)))
        case ChoiceField(name, options):
            return _WireChoice(name, tuple(tuple(map(_segment_to_wire, option)) for option in options))
        case FreeTextField(name, max_tokens, end, slots):
            return _WireWords(
                name, max_tokens, _segment_to_wire(end), tuple(_WireMark(slot.name) for slot in slots)
            )


def _segment_to_wire(segment: PromptSegment) -> _WireSegment:
    match segment:
        case ControlToken(name):
            return _WireMark(name)
        case PlainText(text):
            return _WireText(text)
        case ScaledMoves(values):
            return _WireSigmas(tuple(map(float, values)))


def _from_wire(part: _WirePart) -> FixedField | ChoiceField | FreeTextField:
    match part:
        case _WireFixed(segments):
            return FixedField(tuple(map(_segment_from_wire, segments)))
        case _WireChoice(name, options):
            return ChoiceField(name, tuple(tuple(map(_segment_from_wire, option)) for option in options))
        case _WireWords(name, max_tokens, end, slots):
            return FreeTextField(
                name, max_tokens, _segment_from_wire(end), tuple(ControlToken(slot.name) for slot in slots)
            )


def _segment_from_wire(segment: _WireSegment) -> PromptSegment:
    match segment:
        case _WireMark(name):
            return ControlToken(name)
        case _WireText(text):
            return PlainText(text)
        case _WireSigmas(values):
            return ScaledMoves(values)
