"""The loop of the draft's process: hear of outcomes, write blocks and work ahead. Its entry in wiring runs it.

It looks for messages between any two passes, keeps looking for a moment when nothing is left to draft, and then
sleeps until there is one. When the author's process ends, so does the loop.
"""

import select
import socket
import time
from contextlib import suppress

from htfi.adapters.drafting.board import Board
from htfi.adapters.drafting.messages import (
    DONE,
    Ask,
    Join,
    Leave,
    Message,
    NewForm,
    Settled,
    frames,
    unpacked_form,
)
from htfi.decoding.form import CompiledForm
from htfi.decoding.sampling import Sampling
from htfi.decoding.stem import Asked, Stem
from htfi.decoding.strategies.outcome_drafter import OutcomeDrafter
from htfi.decoding.strategies.outcome_words import NOTHING, word
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.writing import Request

SPIN_S = 200e-6
_READ_BYTES = 1 << 18


class Loop:
    """Owns the channel's end in the draft's process."""

    def __init__(
        self, channel: socket.socket, board: Board, drafter: OutcomeDrafter, vocabulary: Vocabulary
    ) -> None:
        self._channel = channel
        self._board = board
        self._drafter = drafter
        self._vocabulary = vocabulary
        self._forms: dict[int, CompiledForm] = {}
        self._epochs: dict[int, int] = {}  # of the slots that are drafted for
        self._waited: set[int] = set()
        self._inbox = bytearray()

    def run(self) -> None:
        """Until the other end is closed. Raises: IntegrityError, DependencyUnavailable, InvalidInput."""
        self._channel.setblocking(False)
        busy = False
        while self._hear(busy):
            for message in frames(self._inbox):
                self._take(message)
            busy = self._drafter.step()
            self._board.beat()
            self._publish()

    def _hear(self, busy: bool) -> bool:
        """Take in what has come; where nothing is left to do, wait for it. False where the other end is closed."""
        until_s = time.perf_counter() + SPIN_S
        while True:
            try:
                data = self._channel.recv(_READ_BYTES)
            except BlockingIOError:
                if busy:
                    return True
                if time.perf_counter() > until_s:
                    select.select([self._channel], [], [])
                continue
            except ConnectionError:
                return False
            self._inbox += data
            return bool(data)

    def _take(self, message: Message) -> None:
        match message:
            case Settled(slot, epoch, tokens):
                if slot in self._epochs:
                    self._epochs[slot] = epoch
                    self._drafter.settle(slot, tokens)
                    self._board.clear(slot, epoch)
                    self._publish()
            case Ask(slot, length):
                if slot in self._epochs:
                    self._drafter.ask(slot, length)
                    self._waited.add(slot)
            case Join():
                self._join(message)
            case Leave(slot):
                self._drafter.leave(slot)
                self._epochs.pop(slot, None)
                self._waited.discard(slot)
            case NewForm(number, form):
                self._forms[number] = CompiledForm(unpacked_form(form), self._vocabulary)

    def _join(self, message: Join) -> None:
        form = self._forms[message.form]
        sampling = Sampling(message.temperature, message.top_k, message.top_p)
        request = Request((), (), message.seed, kind=message.kind)
        state = form.start
        for token in message.tokens:
            state = form.advance(state, token)
        asked = Asked(request, form, message.prompt, message.num_shared, [], state, sampling)
        self._board.clear(message.slot, message.epoch)
        self._epochs[message.slot] = message.epoch
        self._drafter.join(message.slot, Stem(asked, message.tokens, state))

    def _publish(self) -> None:
        """Write what is new to the board, and say where a block that was asked for is whole."""
        for slot, epoch in list(self._epochs.items()):
            tree = self._drafter.trees.get(slot)
            if tree is None:
                self._board.write(slot, epoch, 0, [word(epoch, True, 0, NOTHING)])
                del self._epochs[slot]
                self._done(slot)
                continue
            first = tree.num_told
            if first < len(tree.nodes):
                self._board.write(slot, epoch, first, tree.untold(epoch))
            if slot in self._waited and tree.wanted() is None:
                self._done(slot)

    def _done(self, slot: int) -> None:
        self._waited.discard(slot)
        # Where nobody reads, nobody waits; and where the other end is closed, the next look finds it so.
        with suppress(BlockingIOError, ConnectionError):
            self._channel.send(DONE)
