"""One request on its way to its answer at clouds: what is settled, what is guessed ahead, where it is open.

It does no I/O and reads no clock: the linked author tells it what came and when, and asks what to send.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from htfi.decoding.link.forms import encode_form
from htfi.decoding.link.frames import Lead, Open, Settled, Window, pack, prefix_hash, unpack
from htfi.decoding.link.parts import part_name, request_name
from htfi.decoding.link.ports import Placed
from htfi.decoding.link.pursuit_rounds import num_common, read_round
from htfi.decoding.stem import Asked, Stem
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.writing import DraftRound

_NEVER_S = math.inf


class Took(Enum):
    """What a frame that settles was good for."""

    NEWS = "tokens that were not known"
    NOTHING = "known already"
    STALE = "of another epoch"
    GAP = "tokens before it are missing"
    WRONG = "it contradicts what is settled"


class Sent(NamedTuple):
    """What a request is on the wire: its name, the names of its parts, and their bytes."""

    name: bytes
    prompt: tuple[bytes, ...]
    form: bytes
    parts: dict[bytes, bytes]

    @classmethod
    def of(cls, asked: Asked, form_part: tuple[bytes, bytes] | None = None) -> "Sent":
        """`form_part` is its form as a part, name and bytes, where that is known.

        Raises: InvalidInput for a form that no peer can read.
        """
        form_name, form = form_part or named_form(asked)
        shared, rest = asked.prompt[: asked.num_shared], asked.prompt[asked.num_shared :]
        packed = [pack(ids) for ids in (shared, rest) if ids]
        prompt = tuple(map(part_name, packed))
        parts = dict(zip(prompt, packed, strict=True)) | {form_name: form}
        request = asked.request
        name = request_name(prompt, form_name, request.seed, asked.sampling, in_full=request.in_full)
        return cls(name, prompt, form_name, parts)


def named_form(asked: Asked) -> tuple[bytes, bytes]:
    """A request's form as a part: its name and bytes. Raises: InvalidInput for a form that no peer can read."""
    form = encode_form(asked.request.form)
    return part_name(form), form


@dataclass(slots=True, eq=False)
class Way:
    """A request as it is open at one cloud: the guesses before `sent` have gone there, `windows` are the ends of those
    whose outcome is not known."""

    cloud: str
    stream: str
    handle: int
    epoch: int
    placed: Placed
    opened_s: float
    heard_s: float  # when it last said something, or was asked again
    sent: int = 0
    first_s: float = _NEVER_S
    num_tokens: int = 0  # that it was the first to settle
    is_done: bool = False  # the cloud has said all
    num_asked_again: int = 0
    windows: deque[int] = field(default_factory=deque[int])

    @property
    def is_led(self) -> bool:
        """Whether the edge guesses ahead for it."""
        return self.placed.lead in (Lead.LOCKSTEP, Lead.FLIGHT)


@dataclass(slots=True, eq=False)
class Pursuit:
    """`stem` holds what is settled, `ahead` the same and the guesses after it. Times in seconds of one clock.

    `barred` are clouds that refused it, with the time from which they may be asked again.
    """

    asked: Asked
    sent: Sent
    begun_s: float
    until_s: float  # its deadline; of a late one, when it is given up
    stem: Stem = field(init=False)
    ahead: Stem = field(init=False)
    is_late: bool = False
    epoch: int = 0
    ways: list[Way] = field(default_factory=list[Way])
    writer: Way | None = None  # where most of it was settled first
    barred: dict[str, float] = field(default_factory=dict[str, float])
    lost_s: float = -math.inf  # when it last lost a cloud
    num_opened: int = 0
    refusal: str = ""  # why it can never be answered
    rounds: list[DraftRound] = field(default_factory=list[DraftRound])
    num_drafted: int = 0
    num_stood: int = 0
    draft_ms: float = (
        0.0  # for the last `num_timed` of the tokens drafted: the first had the prompt to be read
    )
    num_timed: int = 0
    can_draft: bool = True
    has_drafted: bool = False
    has_begun: bool = False  # a token came of the prompt
    cuts: deque[int] = field(default_factory=deque[int])  # ends of drafted windows that have not gone out
    diverged_at: int = -1  # the draft has read guesses from here on that did not stand

    def __post_init__(self) -> None:
        self.stem = Stem(self.asked, list(self.asked.head), self.asked.state)
        self.ahead = Stem(self.asked, list(self.asked.head), self.asked.state)

    # --- what is told

    def take(self, way: Way, frame: Settled, now_s: float) -> Took:
        """Tokens that a cloud says are settled. Nothing is taken that does not fit to the last token."""
        if frame.epoch != way.epoch:
            return Took.STALE
        held = self.stem.tokens
        if frame.at > len(held):
            return Took.GAP
        if frame.at < 0:
            return Took.WRONG
        try:
            ids = unpack(frame.ids)
            known = ids[: len(held) - frame.at]
            if known != held[frame.at : frame.at + len(known)]:
                return Took.WRONG
            new, state = ids[len(known) :], self.stem.state
            for token in new:
                state = self.asked.form.advance(state, token)
        except (InvalidInput, IntegrityError):
            return Took.WRONG
        whole = [*held[: frame.at], *ids]
        is_done = len(whole) >= len(held) and state == self.asked.form.done
        if prefix_hash(whole) != frame.prefix or frame.is_done != is_done:
            return Took.WRONG
        way.is_done, way.heard_s = is_done, now_s
        if not new:
            self._clear(way, frame)
            return Took.NOTHING
        self._note(way, new, frame.num_stood)
        way.first_s = min(way.first_s, now_s)
        way.num_tokens += len(new)
        way.num_asked_again = 0
        if self.writer is None or way.num_tokens >= self.writer.num_tokens:
            self.writer = way
        self.stem.tokens += new
        self.stem.state = state
        self._agree()
        self._clear(way, frame)
        return Took.NEWS

    def quiet_until_s(self, way: Way, quiet_ms: float) -> float:
        """When a way that says nothing is to be asked again: later each time."""
        return way.heard_s + quiet_ms / 1e3 * 2 ** min(way.num_asked_again, 16)

    def lose(self, way: Way, now_s: float) -> None:
        self.ways.remove(way)
        self.lost_s = now_s

    def draft(self, tokens: Sequence[int], state: int) -> None:
        """Guesses that follow those there are."""
        self.ahead.tokens += tokens
        self.ahead.state = state
        self.cuts.append(len(self.ahead.tokens))

    # --- what is asked

    @property
    def is_whole(self) -> bool:
        return self.stem.is_done

    @property
    def leading(self) -> Way | None:
        """The way that the edge drafts for."""
        return next((way for way in self.ways if way.is_led), None)

    @property
    def num_wanted(self) -> int:
        """How many tokens to draft now: what may be sent, and one window in reserve."""
        way = self.leading
        if way is None or self.ahead.is_done or not self.can_draft:
            return 0
        if way.placed.lead is Lead.LOCKSTEP:
            ready = bool(way.windows) or way.sent < len(self.ahead.tokens)
        else:
            ready = len(self.cuts) > 0
        return 0 if ready else self._window(way)

    def next_window(self) -> tuple[Way, Window] | None:
        """A window that may go out now; it is taken to be sent."""
        way = self.leading
        if way is None:
            return None
        lockstep = way.placed.lead is Lead.LOCKSTEP
        if len(way.windows) >= (1 if lockstep else max(way.placed.in_flight, 1)):
            return None
        while self.cuts and self.cuts[0] <= way.sent:
            self.cuts.popleft()
        end = len(self.ahead.tokens) if lockstep or not self.cuts else self.cuts.popleft()
        if end <= way.sent:
            return None
        begin, way.sent = way.sent, end
        way.windows.append(end)
        tokens = self.ahead.tokens
        return way, Window(way.handle, way.epoch, begin, prefix_hash(tokens[:begin]), pack(tokens[begin:end]))

    def open(self, way: Way, deadline_ms: float, budget_bytes: int) -> Open:
        """The frame that opens a way, or goes on with it otherwise: all that is known goes along as guesses."""
        request, known = self.asked.request, self.ahead.tokens[len(self.asked.head) :]
        way.windows.clear()
        way.sent = len(self.ahead.tokens)
        self.cuts.clear()
        if known:
            way.windows.append(way.sent)
        return Open(
            handle=way.handle,
            request=self.sent.name,
            epoch=way.epoch,
            prompt=self.sent.prompt,
            form=self.sent.form,
            seed=request.seed % 2**64,
            temperature=request.temperature,
            top_k=request.top_k,
            top_p=request.top_p,
            kind=request.kind,
            deadline_ms=max(math.ceil(deadline_ms), 1),
            lead=int(way.placed.lead),
            budget_bytes=budget_bytes,
            residency=tuple(sorted(request.residency)),
            guesses=pack(self.ahead.tokens) if known else b"",
            doubt=round(1e3 * min(max(request.doubt, 0.0), 1.0)),
            in_full=request.in_full,
        )

    def next_epoch(self) -> int:
        self.epoch += 1
        return self.epoch

    def _window(self, way: Way) -> int:
        allowed = self.asked.request.max_draft
        return max(way.placed.window if allowed is None else min(way.placed.window, allowed), 1)

    def _note(self, way: Way, new: Sequence[int], num_stood: int) -> None:
        """Keep the round that settled `new`, which `stem` does not hold yet."""
        held, guesses = len(self.stem.tokens), self.ahead.tokens[:0]
        if num_stood >= 0:
            end = held
            for end in way.windows:
                if end >= held + len(new):
                    break
            guesses = self.ahead.tokens[held:end]
        read = read_round(self.asked.form, self.stem.state, new, guesses, not self.has_begun)
        self.has_begun = True
        if read.told is not None:
            self.rounds.append(read.told)
        self.num_drafted += read.num_drafted
        self.num_stood += read.num_stood

    def _agree(self) -> None:
        """Keep the guesses that agree with what is settled, where all of it does; else begin to guess anew."""
        settled, ahead = self.stem.tokens, self.ahead.tokens
        num = num_common(settled, ahead)
        if num == len(settled):
            return
        if num < len(ahead):  # a guess was wrong
            self.diverged_at = num if self.diverged_at < 0 else min(self.diverged_at, num)
            for way in self.ways:
                way.windows.clear()
                way.sent = min(way.sent, num)
        ahead[:] = settled
        self.ahead.state = self.stem.state
        self.cuts.clear()

    def _clear(self, way: Way, frame: Settled) -> None:
        """Forget windows that have had their outcome."""
        held = len(self.stem.tokens)
        while way.windows and way.windows[0] <= held:
            way.windows.popleft()
        way.sent = max(way.sent, held)
        if way.placed.lead is Lead.LOCKSTEP and frame.num_stood >= 0:
            way.windows.clear()
            way.sent = held
