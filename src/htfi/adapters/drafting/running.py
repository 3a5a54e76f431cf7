"""What the author's side knows of one running draft process: how long to wait for it, its seats and its channel.

`DraftProcess` keeps one of these for as long as the child lives.
"""

import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field

from htfi.adapters.drafting.board import Board
from htfi.decoding.form import CompiledForm
from htfi.decoding.stem import Stem
from htfi.domain.errors import IntegrityError


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the author waits. `block_ms`: for a block, before it goes on with what there is. `hang_ms`: for a sign
    of life while a block is due. `spin_ms`: looking, before it sleeps. `first_pause_s`: before a new start, doubled
    up to `last_pause_s`; `start_s`: for the model to be loaded."""

    block_ms: float = 20.0
    hang_ms: float = 2_000.0
    spin_ms: float = 0.2
    first_pause_s: float = 1.0
    last_pause_s: float = 60.0
    start_s: float = 60.0


@dataclass(slots=True, eq=False)
class Seat:
    """A stem's slot: `ahead` is what the outcome cache held when the last outcome came."""

    slot: int
    epoch: int
    ahead: list[int] = field(default_factory=list[int])
    is_hopeless: bool = False


@dataclass(slots=True, eq=False)
class Running:
    process: subprocess.Popen[bytes]
    channel: socket.socket
    board: Board
    started_s: float
    is_ready: bool = False
    seats: dict[int, Seat] = field(default_factory=dict[int, Seat])  # by stem
    forms: dict[int, tuple[int, CompiledForm]] = field(default_factory=dict[int, tuple[int, CompiledForm]])
    told: bytes = b""
    behind_since_s: float | None = None
    behind_beats: int = -1


def is_whole(stem: Stem, tokens: Sequence[int], length: int) -> bool:
    """Whether a block holds `length` chosen tokens and what they force, or ends the answer.

    A token that the form does not admit makes it whole too: it is refused by whoever reads it.
    """
    form, state = stem.asked.form, stem.state
    num_chosen = 0
    for token in tokens:
        if form.steps[state].forced < 0:
            num_chosen += 1
        try:
            state = form.advance(state, token)
        except IntegrityError:
            return True
        if state == form.done:
            return True
    return num_chosen >= length and form.steps[state].forced < 0


def end(running: Running, wait_s: float | None) -> None:
    running.channel.close()
    try:
        running.process.wait(wait_s)
    except subprocess.TimeoutExpired:
        running.process.kill()
        running.process.wait()
