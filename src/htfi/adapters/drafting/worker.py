"""The loop of the draft process: receive outcomes, write blocks and work ahead. Its entry in wiring runs it.

It polls for messages between passes, keeps polling briefly when nothing is left to draft, then sleeps until a message
arrives. It ends with the generator's process.
"""

import socket
import time
from contextlib import suppress

from htfi.adapters.drafting.channel import (
    DONE,
    CloseSlot,
    DraftMessage,
    OpenSlot,
    RegisterGrammar,
    RequestBlock,
    SharedOutcomes,
    TokensAccepted,
    decode_messages,
    unpickle_grammar,
)
from htfi.adapters.drafting.readiness import READABLE, wait_until_ready
from htfi.decoding.grammar import CompiledGrammar
from htfi.decoding.sampling import SamplingParams
from htfi.decoding.sequence import SequenceState, TokenizedRequest
from htfi.decoding.strategies.outcomes.drafter import OutcomeDrafter
from htfi.decoding.strategies.outcomes.tree import NO_ROOM, pack_word
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.generation import GenerationRequest

POLL_S = 200e-6
_READ_BYTES = 1 << 18


class DraftWorker:
    """Owns the draft process's end of the channel."""

    def __init__(
        self, channel: socket.socket, board: SharedOutcomes, drafter: OutcomeDrafter, vocabulary: Vocabulary
    ) -> None:
        self._channel = channel
        self._board = board
        self._drafter = drafter
        self._vocabulary = vocabulary
        self._forms: dict[int, CompiledGrammar] = {}
        self._epochs: dict[int, int] = {}  # of the slots in use
        self._waited: set[int] = set()
        self._inbox = bytearray()

    def run(self) -> None:
        """Until the other end is closed. Raises: IntegrityError, DependencyUnavailable, InvalidInput."""
        self._channel.setblocking(False)
        busy = False
        while self._receive(busy):
            for message in decode_messages(self._inbox):
                self._handle(message)
            busy = self._drafter.step()
            self._board.heartbeat()
            self._publish()

    def _receive(self, busy: bool) -> bool:
        """Read what has arrived; without work to do, wait for it. False if the other end is closed."""
        until_s = time.perf_counter() + POLL_S
        while True:
            try:
                data = self._channel.recv(_READ_BYTES)
            except BlockingIOError:
                if busy:
                    return True
                if time.perf_counter() > until_s:
                    wait_until_ready(self._channel, READABLE)
                continue
            except ConnectionError:
                return False
            self._inbox += data
            return bool(data)

    def _handle(self, message: DraftMessage) -> None:
        match message:
            case TokensAccepted(slot, epoch, tokens):
                if slot in self._epochs:
                    self._epochs[slot] = epoch
                    self._drafter.verified(slot, tokens)
                    self._board.clear(slot, epoch)
                    self._publish()
            case RequestBlock(slot, length):
                if slot in self._epochs:
                    self._drafter.ask(slot, length)
                    self._waited.add(slot)
            case OpenSlot():
                self._join(message)
            case CloseSlot(slot):
                self._drafter.finish(slot)
                self._epochs.pop(slot, None)
                self._waited.discard(slot)
            case RegisterGrammar(number, grammar):
                self._forms[number] = CompiledGrammar(unpickle_grammar(grammar), self._vocabulary)

    def _join(self, message: OpenSlot) -> None:
        grammar = self._forms[message.grammar]
        sampling = SamplingParams(message.temperature, message.top_k, message.top_p)
        request = GenerationRequest((), (), message.seed, kind=message.kind)
        state = grammar.start
        for token in message.tokens:
            state = grammar.advance(state, token)
        asked = TokenizedRequest(request, grammar, message.prompt, message.num_shared, [], state, sampling)
        self._board.clear(message.slot, message.epoch)
        self._epochs[message.slot] = message.epoch
        self._drafter.join(message.slot, SequenceState(asked, message.tokens, state))

    def _publish(self) -> None:
        """Write new nodes to the shared memory, and report complete blocks that were requested."""
        for slot, epoch in list(self._epochs.items()):
            tree = self._drafter.trees.get(slot)
            if tree is None:
                self._board.write(slot, epoch, 0, [pack_word(epoch, True, 0, NO_ROOM)])
                del self._epochs[slot]
                self._done(slot)
                continue
            first = tree.num_published
            if first < len(tree.nodes):
                self._board.write(slot, epoch, first, tree.unpublished_words(epoch))
            if slot in self._waited and tree.wanted() is None:
                self._done(slot)

    def _done(self, slot: int) -> None:
        self._waited.discard(slot)
        # A full socket has no waiting reader; a closed one is noticed at the next poll.
        with suppress(BlockingIOError, ConnectionError):
            self._channel.send(DONE)
