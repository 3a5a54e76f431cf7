"""The channel between generator and draft process: msgpack frames on a socket, and outcomes in shared memory.

Back to the generator go the shared memory and, on the socket, single bytes: READY once, DONE when a requested block is
complete, or FAILED and the reason. Each slot has two tables, for rounds of odd and even epoch, so that a round can be
read while the next is written. The memory has no name: it vanishes with both processes.
"""

import mmap
import os
import pickle
import tempfile
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from htfi.decoding.strategies.outcomes.tree import NUM_WORDS
from htfi.domain.errors import IntegrityError
from htfi.domain.generation import OutputGrammar

READY, DONE, FAILED = b"r", b"d", b"!"
_HEAD_BYTES = 4


class RegisterGrammar(msgspec.Struct, array_like=True, tag=0, frozen=True, gc=False):
    """A grammar that requests name by `number`. It is pickled: only the parent process writes to this socket."""

    number: int
    grammar: bytes


class OpenSlot(msgspec.Struct, array_like=True, tag=1, frozen=True, gc=False):
    """A sequence takes a slot: its prompt, the answer's tokens so far and the sampling of further ones."""

    slot: int
    epoch: int
    grammar: int
    prompt: list[int]
    num_shared: int
    tokens: list[int]
    seed: int
    kind: str
    temperature: float
    top_k: int
    top_p: float


class RequestBlock(msgspec.Struct, array_like=True, tag=2, frozen=True, gc=False):
    """The next block, or the one being verified, has `length` chosen tokens."""

    slot: int
    length: int


class TokensAccepted(msgspec.Struct, array_like=True, tag=3, frozen=True, gc=False):
    """The outcome, which begins the round `epoch`."""

    slot: int
    epoch: int
    tokens: list[int]


class CloseSlot(msgspec.Struct, array_like=True, tag=4, frozen=True, gc=False):
    slot: int


DraftMessage = RegisterGrammar | OpenSlot | RequestBlock | TokensAccepted | CloseSlot
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(DraftMessage)


def encode_message(message: DraftMessage) -> bytes:
    body = _encoder.encode(message)
    return len(body).to_bytes(_HEAD_BYTES, "little") + body


def decode_messages(inbox: bytearray) -> Iterator[DraftMessage]:
    """Removes complete messages from the inbox. Raises IntegrityError for anything else."""
    while len(inbox) >= _HEAD_BYTES:
        end = _HEAD_BYTES + int.from_bytes(inbox[:_HEAD_BYTES], "little")
        if len(inbox) < end:
            return
        body = bytes(inbox[_HEAD_BYTES:end])
        del inbox[:end]
        try:
            yield _decoder.decode(body)
        except msgspec.DecodeError as error:
            raise IntegrityError(f"the draft process received an unknown message: {error}") from error


def pickle_grammar(grammar: OutputGrammar) -> bytes:
    return pickle.dumps(grammar)


def unpickle_grammar(packed: bytes) -> OutputGrammar:
    return pickle.loads(packed)


NUM_SLOTS = 16
_HEADER = 8  # words
_AT_ONCE = 64
_NUM_BYTES = 8 * (_HEADER + 2 * NUM_SLOTS * NUM_WORDS)


def new_memory() -> int:
    """A file descriptor of unnamed memory of the right size."""
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("htfi-draft")
    else:
        with tempfile.TemporaryFile() as file:
            number = os.dup(file.fileno())
    os.ftruncate(number, _NUM_BYTES)
    return number


class SharedOutcomes:
    """A view of that memory. Words are 64 bits wide and aligned, so none is ever seen half written."""

    def __init__(self, number: int) -> None:
        self._words = np.frombuffer(mmap.mmap(number, _NUM_BYTES), np.uint64)

    @property
    def num_heartbeats(self) -> int:
        """Rises while the draft process works."""
        return int(self._words[0])

    def heartbeat(self) -> None:
        self._words[0] += np.uint64(1)

    def clear(self, slot: int, epoch: int) -> None:
        begin = _offset(slot, epoch)
        self._words[begin : begin + NUM_WORDS] = 0

    def write(self, slot: int, epoch: int, first: int, words: Sequence[int]) -> None:
        """Write words from place `first` on; words beyond the end are dropped."""
        begin = _offset(slot, epoch)
        words = words[: max(NUM_WORDS - first, 0)]
        self._words[begin + first : begin + first + len(words)] = np.array(words, np.uint64)

    def read(self, slot: int, epoch: int) -> list[int]:
        """The words of that round, as many as there are."""
        begin = _offset(slot, epoch)
        words: list[int] = []
        while len(words) < NUM_WORDS:
            at = begin + len(words)
            words += self._words[at : at + _AT_ONCE].tolist()
            if words[-1] >> 48 != epoch:
                break
        return words

    def has(self, slot: int, epoch: int, place: int) -> bool:
        """Whether the word at `place` of the round has been written."""
        return place < NUM_WORDS and int(self._words[_offset(slot, epoch) + place]) >> 48 == epoch


def _offset(slot: int, epoch: int) -> int:
    return _HEADER + (2 * slot + epoch % 2) * NUM_WORDS
