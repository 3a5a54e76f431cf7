"""The draft process as the generator sees it: started, sent outcomes, read from, given up and restarted.

Only drafts depend on it: if it is slow, blocks are shorter; if it dies, hangs or writes invalid tokens, there are none
until it is restarted, after a pause that doubles each time.
"""

import os
import socket
import subprocess
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from htfi.adapters.drafting.channel import (
    FAILED,
    NUM_SLOTS,
    READY,
    CloseSlot,
    OpenSlot,
    RegisterGrammar,
    RequestBlock,
    SharedOutcomes,
    TokensAccepted,
    encode_message,
    new_memory,
    pickle_grammar,
)
from htfi.adapters.drafting.readiness import READABLE, WRITABLE, wait_until_ready
from htfi.decoding.automaton import TokenAutomaton
from htfi.decoding.sequence import SequenceState
from htfi.decoding.strategies.outcomes.tree import NO_ROOM, NUM_WORDS, next_epoch, read_continuation
from htfi.domain.errors import DependencyUnavailable, IntegrityError


@dataclass(frozen=True, slots=True)
class DraftTimeouts:
    """How long the generator waits. `block_ms`: for a block, before it continues with what is there. `hang_ms`: for a
    heartbeat while a block is due. `spin_ms`: polling before it sleeps. `first_pause_s`: before a restart, doubled up
    to `last_pause_s`; `start_s`: for the model to load.
    """

    block_ms: float = 20.0
    hang_ms: float = 2_000.0
    spin_ms: float = 0.2
    first_pause_s: float = 1.0
    last_pause_s: float = 60.0
    start_s: float = 60.0


@dataclass(slots=True, eq=False)
class DraftSlot:
    """A sequence's slot: `ahead` is what the outcome cache held at the latest outcome."""

    slot: int
    epoch: int
    ahead: list[int] = field(default_factory=list[int])
    has_no_space: bool = False


@dataclass(slots=True, eq=False)
class WorkerHandle:
    process: subprocess.Popen[bytes]
    channel: socket.socket
    board: SharedOutcomes
    started_s: float
    is_ready: bool = False
    slots: dict[int, DraftSlot] = field(default_factory=dict[int, DraftSlot])  # by sequence
    grammars: dict[int, tuple[int, TokenAutomaton]] = field(
        default_factory=dict[int, tuple[int, TokenAutomaton]]
    )
    received: bytes = b""
    behind_since_s: float | None = None
    behind_heartbeats: int = -1


def is_whole(sequence: SequenceState, tokens: Sequence[int], length: int) -> bool:
    """Whether a block holds `length` chosen tokens and what they force, or ends the answer.

    A token that the grammar does not allow completes it too: its reader refuses it.
    """
    grammar, state = sequence.tokenized.grammar, sequence.state
    num_chosen = 0
    for token in tokens:
        if grammar.steps[state].forced < 0:
            num_chosen += 1
        try:
            state = grammar.advance(state, token)
        except IntegrityError:
            return True
        if state == grammar.done:
            return True
    return num_chosen >= length and grammar.steps[state].forced < 0


def stop_worker(running: WorkerHandle, wait_s: float | None) -> None:
    running.channel.close()
    try:
        running.process.wait(wait_s)
    except subprocess.TimeoutExpired:
        running.process.kill()
        running.process.wait()


class DraftProcess:
    """Implements `OutcomeDraft`. `command` starts the child, whose last arguments are two file descriptors: the
    channel's and the shared memory's. `notify` receives one line if it fails. Close it in the end.
    """

    def __init__(
        self,
        command: Sequence[str],
        notify: Callable[[str], None],
        patience: DraftTimeouts | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._command = list(command)
        self._notify = notify
        self._patience = patience or DraftTimeouts()
        self._clock = clock
        self._pause_s = self._patience.first_pause_s
        self._again_s = -1.0  # when it may be restarted
        self._epochs = [0] * NUM_SLOTS
        self._why = ""
        self._ending: weakref.finalize[..., DraftProcess] | None = None
        self._running: WorkerHandle | None = None
        self._start()

    @property
    def is_up(self) -> bool:
        if self._running is None and self._clock() >= self._again_s:
            self._start()
        running = self._running
        if running is not None and not running.is_ready:
            self._receive(running)
            if not running.is_ready and self._clock() - running.started_s > self._patience.start_s:
                self._fail("does not start")
        return self._running is not None and self._running.is_ready

    def await_ready(self) -> None:
        """Raises DependencyUnavailable with the reason if it does not start."""
        while not self.is_up:
            if self._running is None:
                raise DependencyUnavailable(f"the draft process {self._why}")
            wait_until_ready(self._running.channel, READABLE, 0.05)

    def blocks(self, sequences: Sequence[SequenceState], lengths: Sequence[int]) -> list[list[int]]:
        running = self._running
        if running is None:
            return [[] for _ in sequences]
        seats = [self._slot(running, sequence) for sequence in sequences]
        out = b"".join(
            encode_message(RequestBlock(seat.slot, length))
            for seat, length in zip(seats, lengths, strict=True)
            if seat is not None
        )
        if out:
            self._send(running, out)
        until_s = self._clock() + (
            0.0 if running.behind_since_s is not None else 1e-3 * self._patience.block_ms
        )
        blocks = [
            self._block(running, seat, sequence, length, until_s) if seat is not None else []
            for seat, sequence, length in zip(seats, sequences, lengths, strict=True)
        ]
        self._check_heartbeat(running)
        return blocks

    def verification_starts(self) -> None:
        """It continues by itself."""

    def accepted(self, sequence: SequenceState, tokens: Sequence[int]) -> bool | None:
        running = self._running
        seat = running.slots.get(id(sequence)) if running is not None else None
        if running is None or seat is None or seat.has_no_space:
            return None
        seat.ahead = read_continuation(running.board.read(seat.slot, seat.epoch), seat.epoch, tokens) or []
        if NO_ROOM in seat.ahead:
            seat.ahead, seat.has_no_space = [], True
            return None
        if not sequence.is_done:
            self._epochs[seat.slot] = seat.epoch = next_epoch(seat.epoch)
            self._send(running, encode_message(TokensAccepted(seat.slot, seat.epoch, list(tokens))))
        return bool(seat.ahead)

    def finish(self, sequence: SequenceState) -> None:
        running = self._running
        seat = running.slots.pop(id(sequence), None) if running is not None else None
        if running is not None and seat is not None:
            self._send(running, encode_message(CloseSlot(seat.slot)))

    def refuse(self, why: str) -> None:
        self._fail(f"wrote invalid tokens ({why})")

    def close(self) -> None:
        """End the child: it ends by itself when its channel is closed, and is killed otherwise."""
        running, self._running = self._running, None
        self._again_s = float("inf")
        if running is not None:
            self._detach_finalizer()
            stop_worker(running, wait_s=2.0)

    def __enter__(self) -> "DraftProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _slot(self, running: WorkerHandle, sequence: SequenceState) -> DraftSlot | None:
        seat = running.slots.get(id(sequence))
        if seat is None:
            taken = {seat.slot for seat in running.slots.values()}
            slot = next((slot for slot in range(NUM_SLOTS) if slot not in taken), None)
            if slot is None:
                return None
            self._epochs[slot] = next_epoch(self._epochs[slot])
            seat = running.slots[id(sequence)] = DraftSlot(slot, self._epochs[slot])
            asked = sequence.tokenized
            join = OpenSlot(
                slot,
                seat.epoch,
                self._form(running, sequence),
                asked.prompt,
                asked.num_shared,
                sequence.tokens,
                asked.request.seed & 0xFFFFFFFFFFFFFFFF,
                asked.request.kind,
                *asked.sampling,
            )
            self._send(running, encode_message(join))
        return None if seat.has_no_space else seat

    def _form(self, running: WorkerHandle, sequence: SequenceState) -> int:
        """The child's number of a grammar; a new one is registered."""
        grammar = sequence.tokenized.grammar
        known = running.grammars.get(id(grammar))
        if known is None:
            known = running.grammars[id(grammar)] = (
                len(running.grammars),
                grammar,
            )  # kept, so that its id is not reused
            self._send(
                running,
                encode_message(RegisterGrammar(known[0], pickle_grammar(sequence.tokenized.request.form))),
            )
        return known[0]

    def _block(
        self, running: WorkerHandle, seat: DraftSlot, sequence: SequenceState, length: int, until_s: float
    ) -> list[int]:
        if is_whole(sequence, seat.ahead, length):
            running.behind_since_s = None
            return seat.ahead
        began_s = self._clock()
        num_seen = 0
        while self._running is running:
            if running.board.has(seat.slot, seat.epoch, num_seen):
                words = running.board.read(seat.slot, seat.epoch)
                tokens = read_continuation(words, seat.epoch) or []
                if NO_ROOM in tokens:
                    seat.has_no_space = True
                    return []
                if is_whole(sequence, tokens, length) or len(words) == NUM_WORDS:
                    running.behind_since_s = None
                    return tokens
                seat.ahead = max(seat.ahead, tokens, key=len)
                num_seen = sum(packed >> 48 == seat.epoch for packed in words)
            now_s = self._clock()
            if now_s >= until_s:
                if running.behind_since_s is None:
                    running.behind_since_s, running.behind_heartbeats = now_s, running.board.num_heartbeats
                break
            if now_s - began_s > 1e-3 * self._patience.spin_ms:
                wait_until_ready(running.channel, READABLE, min(until_s - now_s, 0.002))
                self._receive(running)
        return seat.ahead

    def _check_heartbeat(self, running: WorkerHandle) -> None:
        """Give it up if no heartbeat comes for long although a block is due."""
        if self._running is not running or running.behind_since_s is None:
            return
        now_s = self._clock()
        if running.board.num_heartbeats != running.behind_heartbeats:
            running.behind_since_s, running.behind_heartbeats = now_s, running.board.num_heartbeats
        elif 1e3 * (now_s - running.behind_since_s) > self._patience.hang_ms:
            self._fail("does not answer")

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        memory = new_memory()
        try:
            process = subprocess.Popen(
                [*self._command, str(theirs.fileno()), str(memory)],
                pass_fds=(theirs.fileno(), memory),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            board = SharedOutcomes(memory)
        except (OSError, ValueError) as error:  # ValueError: this system cannot pass descriptors on
            ours.close()
            self._pause(f"cannot be started ({error})")
            return
        finally:
            theirs.close()
            os.close(memory)
        ours.setblocking(False)
        self._running = running = WorkerHandle(process, ours, board, self._clock())
        self._ending = weakref.finalize(self, stop_worker, running, 0.0)  # in case it is never closed

    def _send(self, running: WorkerHandle, data: bytes) -> None:
        if self._running is not running:
            return
        try:
            while sent := running.channel.send(data):
                data = data[sent:]
                if not data:
                    return
        except BlockingIOError:
            self._send_rest(running, data)
        except OSError:
            self._fail("has ended")

    def _send_rest(self, running: WorkerHandle, data: bytes) -> None:
        """Send a long message as fast as it is read."""
        if wait_until_ready(running.channel, WRITABLE, 1e-3 * self._patience.hang_ms):
            self._send(running, data)
        else:
            self._fail("does not read its messages")

    def _receive(self, running: WorkerHandle) -> None:
        """Read its messages, without waiting."""
        try:
            data = running.channel.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not running.is_ready or running.received:
            running.received += data
        if running.received.startswith(FAILED) or FAILED in data:
            running.received = running.received or data[data.index(FAILED) :]
        if not data:
            self._fail(
                running.received[1:].decode(errors="replace")
                if running.received.startswith(FAILED)
                else "has ended"
            )
        elif running.received.startswith(READY):
            running.is_ready, running.received = True, b""

    def _fail(self, why: str) -> None:
        running, self._running = self._running, None
        if running is None:
            return
        self._detach_finalizer()
        running.process.kill()
        stop_worker(running, wait_s=None)
        if self._clock() - running.started_s > self._patience.last_pause_s:
            self._pause_s = self._patience.first_pause_s
        self._pause(why)

    def _detach_finalizer(self) -> None:
        if self._ending is not None:
            self._ending.detach()

    def _pause(self, why: str) -> None:
        self._why = why
        self._notify(f"the draft process {why}: answers continue without it; restart in {self._pause_s:g} s")
        self._again_s = self._clock() + self._pause_s
        self._pause_s = min(2.0 * self._pause_s, self._patience.last_pause_s)
