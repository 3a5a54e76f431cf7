"""One request under attempt at clouds: its accepted tokens, its draft, where it is open, and its rounds for the record.

It does no I/O and reads no clock: the generator passes frames and times in, and asks what to send. A record lists every
pass of the target in an order in which it can be verified again; what the edge did not see, such as guesses of the
cloud's own draft, is recorded by its accepted tokens.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from htfi.decoding.automaton import TokenAutomaton
from htfi.decoding.link.frames import (
    AcceptedFrame,
    DraftMode,
    DraftWindowFrame,
    OpenFrame,
    pack,
    prefix_hash,
    unpack,
)
from htfi.decoding.link.parts import encode_grammar, part_name, request_name
from htfi.decoding.link.ports import PlannedPlacement
from htfi.decoding.sequence import SequenceState, TokenizedRequest
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.generation import DraftRound


class ObservedRound(NamedTuple):
    """A round, None if only the prompt was read; chosen tokens of the edge's own drafted for it, and accepted."""

    recorded: DraftRound | None
    num_drafted: int
    num_accepted: int


def observe_round(
    grammar: TokenAutomaton, state: int, accepted: Sequence[int], guesses: Sequence[int], is_first: bool
) -> ObservedRound:
    """The round that accepted these tokens, from a grammar state that leaves the next one open.

    `guesses` are the edge's own for the same positions, empty if the target read none. With `is_first` the first chosen
    token follows from the prompt, with those that it forces.
    """
    is_open, end = _open_positions(grammar, state, accepted)
    begin = 0
    if is_first:
        begin = next((at for at, is_chosen in enumerate(is_open) if is_chosen and at), len(accepted))
    fits = list(guesses[:begin]) == list(accepted[:begin])
    rest, own, is_open = accepted[begin:], guesses[begin:] if fits else guesses[:0], is_open[begin:]
    if True not in is_open:
        return ObservedRound(None, 0, 0)
    last = (
        len(is_open) - 1 - is_open[::-1].index(True)
    )  # chosen last: the target's own; what follows is forced
    num_same = common_prefix_length(own, rest)
    if num_same == len(rest) and end == grammar.done:
        return _observed(own[:num_same], num_same, -1, is_open)
    if num_same > last:
        return _observed(own[:last], last, rest[last], is_open)
    if num_same == last:
        _, before = _open_positions(grammar, state, accepted[: begin + last])
        is_open = [*is_open[:last], *_open_positions(grammar, before, own[last:])[0]]
        return _observed(own, last, rest[last], is_open)
    draft_round = DraftRound(tuple(rest[:last]), (), tuple(range(last)), rest[last])
    return ObservedRound(draft_round, 0, 0)


def common_prefix_length(these: Sequence[int], those: Sequence[int]) -> int:
    """How many tokens both begin with."""
    num = 0
    for one, other in zip(these, those, strict=False):
        if one != other:
            break
        num += 1
    return num


def _observed(drafted: Sequence[int], num_stood: int, token: int, is_open: Sequence[bool]) -> ObservedRound:
    draft_round = DraftRound(tuple(drafted), (), tuple(range(num_stood)), token)
    return ObservedRound(draft_round, sum(is_open[: len(drafted)]), sum(is_open[:num_stood]))


def _open_positions(grammar: TokenAutomaton, state: int, tokens: Sequence[int]) -> tuple[list[bool], int]:
    """Which of these tokens the grammar left open, and its state after them."""
    found: list[bool] = []
    for token in tokens:
        found.append(grammar.steps[state].forced < 0)
        state = grammar.advance(state, token)
    return found, state


_NEVER_S = math.inf


class FrameEffect(Enum):
    """The effect of a frame with accepted tokens."""

    NEWS = "tokens that were not known"
    NOTHING = "known already"
    STALE = "of another epoch"
    GAP = "tokens before it are missing"
    WRONG = "it contradicts accepted tokens"


class WireRequest(NamedTuple):
    """A request on the wire: its name, the names of its parts, and their bytes."""

    name: bytes
    prompt: tuple[bytes, ...]
    grammar: bytes
    parts: dict[bytes, bytes]

    @classmethod
    def of(cls, asked: TokenizedRequest, form_part: tuple[bytes, bytes] | None = None) -> "WireRequest":
        """`form_part` is its grammar as a part, name and bytes, if known.

        Raises: InvalidInput for a grammar that no peer can read.
        """
        form_name, grammar = form_part or grammar_part(asked)
        shared, rest = asked.prompt[: asked.num_shared], asked.prompt[asked.num_shared :]
        packed = [pack(ids) for ids in (shared, rest) if ids]
        prompt = tuple(map(part_name, packed))
        parts = dict(zip(prompt, packed, strict=True)) | {form_name: grammar}
        request = asked.request
        name = request_name(prompt, form_name, request.seed, asked.sampling, in_full=request.in_full)
        return cls(name, prompt, form_name, parts)


def grammar_part(asked: TokenizedRequest) -> tuple[bytes, bytes]:
    """A request's grammar as a part: name and bytes. Raises: InvalidInput for one that no peer can read."""
    grammar = encode_grammar(asked.request.form)
    return part_name(grammar), grammar


@dataclass(slots=True, eq=False)
class CloudAttempt:
    """A request as it is open at one cloud: guesses before `sent` were sent; `windows` are the ends of those without an
    outcome.
    """

    cloud: str
    stream: str
    handle: int
    epoch: int
    placed: PlannedPlacement
    opened_s: float
    last_frame_s: float  # of its latest frame, or when it was asked again
    sent: int = 0
    first_s: float = _NEVER_S
    num_tokens: int = 0  # that it accepted first
    is_done: bool = False  # the cloud has sent everything
    num_repeats: int = 0
    windows: deque[int] = field(default_factory=deque[int])

    @property
    def is_led(self) -> bool:
        """Whether the edge drafts for it."""
        return self.placed.draft_mode in (DraftMode.LOCKSTEP, DraftMode.PIPELINED)


@dataclass(slots=True, eq=False)
class InFlightRequest:
    """`sequence` holds the accepted tokens, `drafted` these and the guesses after them. Times in seconds of one clock.

    `retry_at_s`: clouds that refused it, with the time from which they may be asked again.
    """

    tokenized: TokenizedRequest
    wire: WireRequest
    started_s: float
    deadline_s: float  # its deadline; for a late one, when it is given up
    traceparent: str = ""  # of the step that asked first, where it is traced
    sequence: SequenceState = field(init=False)
    drafted: SequenceState = field(init=False)
    is_late: bool = False
    epoch: int = 0
    attempts: list[CloudAttempt] = field(default_factory=list[CloudAttempt])
    main_attempt: CloudAttempt | None = None  # where most tokens were accepted first
    retry_at_s: dict[str, float] = field(default_factory=dict[str, float])
    lost_s: float = -math.inf  # when it last lost a cloud
    num_opened: int = 0
    refusal: str = ""  # why it can never be answered
    rounds: list[DraftRound] = field(default_factory=list[DraftRound])
    num_drafted: int = 0
    num_accepted: int = 0
    draft_ms: float = 0.0  # of the last `num_timed` drafted tokens: the first included reading the prompt
    num_timed: int = 0
    can_draft: bool = True
    has_drafted: bool = False
    has_begun: bool = False  # the prompt gave a token
    window_ends: deque[int] = field(default_factory=deque[int])  # ends of drafted windows that are not sent
    diverged_at: int = -1  # the draft has read rejected guesses from here on

    def __post_init__(self) -> None:
        self.sequence = SequenceState(
            self.tokenized, list(self.tokenized.forced_prefix), self.tokenized.start_state
        )
        self.drafted = SequenceState(
            self.tokenized, list(self.tokenized.forced_prefix), self.tokenized.start_state
        )

    # --- events

    def apply(self, attempt: CloudAttempt, frame: AcceptedFrame, now_s: float) -> FrameEffect:
        """Apply a cloud's accepted tokens. Nothing is used that does not fit up to the last token."""
        if frame.epoch != attempt.epoch:
            return FrameEffect.STALE
        held = self.sequence.tokens
        if frame.at > len(held):
            return FrameEffect.GAP
        if frame.at < 0:
            return FrameEffect.WRONG
        try:
            ids = unpack(frame.ids)
            known = ids[: len(held) - frame.at]
            if known != held[frame.at : frame.at + len(known)]:
                return FrameEffect.WRONG
            new, state = ids[len(known) :], self.sequence.state
            for token in new:
                state = self.tokenized.grammar.advance(state, token)
        except (InvalidInput, IntegrityError):
            return FrameEffect.WRONG
        whole = [*held[: frame.at], *ids]
        is_done = len(whole) >= len(held) and state == self.tokenized.grammar.done
        if prefix_hash(whole) != frame.prefix or frame.is_done != is_done:
            return FrameEffect.WRONG
        attempt.is_done, attempt.last_frame_s = is_done, now_s
        if not new:
            self._clear_windows(attempt, frame)
            return FrameEffect.NOTHING
        self._record_round(attempt, new, frame.num_accepted)
        attempt.first_s = min(attempt.first_s, now_s)
        attempt.num_tokens += len(new)
        attempt.num_repeats = 0
        if self.main_attempt is None or attempt.num_tokens >= self.main_attempt.num_tokens:
            self.main_attempt = attempt
        self.sequence.tokens += new
        self.sequence.state = state
        self._reconcile_draft()
        self._clear_windows(attempt, frame)
        return FrameEffect.NEWS

    def repeat_at_s(self, attempt: CloudAttempt, quiet_ms: float) -> float:
        """When to ask a silent cloud again: later each time."""
        return attempt.last_frame_s + quiet_ms / 1e3 * 2 ** min(attempt.num_repeats, 16)

    def drop_attempt(self, attempt: CloudAttempt, now_s: float) -> None:
        self.attempts.remove(attempt)
        self.lost_s = now_s

    def add_draft(self, tokens: Sequence[int], state: int) -> None:
        """Append guesses."""
        self.drafted.tokens += tokens
        self.drafted.state = state
        self.window_ends.append(len(self.drafted.tokens))

    # --- queries

    @property
    def is_whole(self) -> bool:
        return self.sequence.is_done

    @property
    def edge_drafted(self) -> CloudAttempt | None:
        """The attempt that the edge drafts for."""
        return next((attempt for attempt in self.attempts if attempt.is_led), None)

    @property
    def num_wanted(self) -> int:
        """How many tokens to draft now: what may be sent, and one window in reserve."""
        attempt = self.edge_drafted
        if attempt is None or self.drafted.is_done or not self.can_draft:
            return 0
        if attempt.placed.draft_mode is DraftMode.LOCKSTEP:
            ready = bool(attempt.windows) or attempt.sent < len(self.drafted.tokens)
        else:
            ready = len(self.window_ends) > 0
        return 0 if ready else self._window(attempt)

    def next_window(self) -> tuple[CloudAttempt, DraftWindowFrame] | None:
        """A window that may be sent now; it counts as sent."""
        attempt = self.edge_drafted
        if attempt is None:
            return None
        lockstep = attempt.placed.draft_mode is DraftMode.LOCKSTEP
        if len(attempt.windows) >= (1 if lockstep else max(attempt.placed.in_flight, 1)):
            return None
        while self.window_ends and self.window_ends[0] <= attempt.sent:
            self.window_ends.popleft()
        end = len(self.drafted.tokens) if lockstep or not self.window_ends else self.window_ends.popleft()
        if end <= attempt.sent:
            return None
        begin, attempt.sent = attempt.sent, end
        attempt.windows.append(end)
        tokens = self.drafted.tokens
        return attempt, DraftWindowFrame(
            attempt.handle, attempt.epoch, begin, prefix_hash(tokens[:begin]), pack(tokens[begin:end])
        )

    def open(self, attempt: CloudAttempt, deadline_ms: float, budget_bytes: int) -> OpenFrame:
        """The frame that opens an attempt, or continues it differently: all known tokens go along as guesses."""
        request, known = self.tokenized.request, self.drafted.tokens[len(self.tokenized.forced_prefix) :]
        attempt.windows.clear()
        attempt.sent = len(self.drafted.tokens)
        self.window_ends.clear()
        if known:
            attempt.windows.append(attempt.sent)
        return OpenFrame(
            handle=attempt.handle,
            request=self.wire.name,
            epoch=attempt.epoch,
            prompt=self.wire.prompt,
            grammar=self.wire.grammar,
            seed=request.seed % 2**64,
            temperature=request.temperature,
            top_k=request.top_k,
            top_p=request.top_p,
            kind=request.kind,
            deadline_ms=max(math.ceil(deadline_ms), 1),
            draft_mode=int(attempt.placed.draft_mode),
            budget_bytes=budget_bytes,
            residency=tuple(sorted(request.residency)),
            guesses=pack(self.drafted.tokens) if known else b"",
            suspicion=round(1e3 * min(max(request.suspicion, 0.0), 1.0)),
            in_full=request.in_full,
            traceparent=self.traceparent,
        )

    def next_epoch(self) -> int:
        self.epoch += 1
        return self.epoch

    def _window(self, attempt: CloudAttempt) -> int:
        allowed = self.tokenized.request.max_draft
        return max(attempt.placed.window if allowed is None else min(attempt.placed.window, allowed), 1)

    def _record_round(self, attempt: CloudAttempt, new: Sequence[int], num_stood: int) -> None:
        """Record the round that accepted `new`, which `sequence` does not hold yet."""
        held, guesses = len(self.sequence.tokens), self.drafted.tokens[:0]
        if num_stood >= 0:
            end = held
            for end in attempt.windows:
                if end >= held + len(new):
                    break
            guesses = self.drafted.tokens[held:end]
        read = observe_round(self.tokenized.grammar, self.sequence.state, new, guesses, not self.has_begun)
        self.has_begun = True
        if read.recorded is not None:
            self.rounds.append(read.recorded)
        self.num_drafted += read.num_drafted
        self.num_accepted += read.num_accepted

    def _reconcile_draft(self) -> None:
        """Keep the guesses if they agree with all accepted tokens; otherwise draft again."""
        accepted, ahead = self.sequence.tokens, self.drafted.tokens
        num = common_prefix_length(accepted, ahead)
        if num == len(accepted):
            return
        if num < len(ahead):  # a guess was wrong
            self.diverged_at = num if self.diverged_at < 0 else min(self.diverged_at, num)
            for attempt in self.attempts:
                attempt.windows.clear()
                attempt.sent = min(attempt.sent, num)
        ahead[:] = accepted
        self.drafted.state = self.sequence.state
        self.window_ends.clear()

    def _clear_windows(self, attempt: CloudAttempt, frame: AcceptedFrame) -> None:
        """Drop windows whose outcome is known."""
        held = len(self.sequence.tokens)
        while attempt.windows and attempt.windows[0] <= held:
            attempt.windows.popleft()
        attempt.sent = max(attempt.sent, held)
        if attempt.placed.draft_mode is DraftMode.LOCKSTEP and frame.num_accepted >= 0:
            attempt.windows.clear()
            attempt.sent = held
