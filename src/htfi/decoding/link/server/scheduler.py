"""The cloud's scheduler: requests wait, join, advance round after round and leave.

`TurnPolicy` decides whose turn it is; this executes one pass per step, so that frames are handled between passes.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from htfi.decoding.config import VerificationServerConfig
from htfi.decoding.engine import DecodingEngine, PassResult
from htfi.decoding.link.frames import DraftMode
from htfi.decoding.link.ports import TurnPolicy, TurnRequest
from htfi.decoding.link.server.measurements import EngineMeasurements, MeasuredPlanner
from htfi.decoding.link.server.remote_drafts import SELF_DRAFTED, RoutedStrategy
from htfi.decoding.link.server.requests import (
    EDGE_DRAFTED,
    ServerRequest,
    active_tenants,
    suspicion_by_tenant,
    tokens_left,
)
from htfi.decoding.prefill import block_bounds
from htfi.decoding.sequence import TokenizedRequest
from htfi.domain.errors import DependencyUnavailable, HtfiError
from htfi.domain.generation import RequestRefused


class RequestProgress(NamedTuple):
    """A step for a request: how many of its edge's guesses were accepted (−1: none were read), or why it has no answer.

    `is_done`: it has left. `is_passing`: the refusal may be temporary.
    """

    request: ServerRequest
    num_accepted: int = -1
    is_done: bool = False
    refused: str = ""
    is_passing: bool = False


class RequestScheduler:
    """Owns the waiting requests and those being written. `routed` is the strategy of `rounds`."""

    def __init__(
        self,
        rounds: DecodingEngine,
        routed: RoutedStrategy,
        turns: TurnPolicy,
        config: VerificationServerConfig,
        clock: Callable[[], float],
        measured: EngineMeasurements | None = None,
    ) -> None:
        self.engine = rounds
        self.strategy = routed
        self.turns = turns
        self.measured = measured or EngineMeasurements()
        self.waiting: dict[int, ServerRequest] = {}
        self.writing: dict[int, ServerRequest] = {}
        self.num_passes = 0
        self.num_tokens = 0
        rounds.length_planner = MeasuredPlanner(rounds.length_planner, self.measured, routed)
        self._config = config
        self._clock = clock
        self._planned_passes: deque[list[int]] = deque()  # passes of the current round
        self._round_ms = 0.0  # expected time of that round
        self._read_ms = 0.0  # spent on prompts since it began
        self._has_read = False
        self._drafted = (0, 0.0)  # tokens, s: the draft's totals before this pass

    def retry_ms(self, asked: TokenizedRequest, tenant: str, deadline_ms: float) -> float | None:
        """None if a new request would be in time, else when to ask again."""
        num_tokens = self.measured.expected_tokens(asked.request.kind, asked.grammar.max_tokens)
        read_ms = self.measured.read_ms(len(asked.prompt))
        backlog: dict[str, float] = {}
        num_waiting: dict[str, int] = {}
        for entry in (*self.waiting.values(), *self.writing.values()):
            backlog[entry.tenant] = backlog.get(entry.tenant, 0.0) + self._left_ms(entry)
        for entry in self.waiting.values():
            num_waiting[entry.tenant] = num_waiting.get(entry.tenant, 0) + 1
        own_ms = read_ms + num_tokens * self._token_ms(1)
        alone_ms = read_ms + num_tokens * self.measured.pace.pass_ms(len(self.writing) + 1, 1)
        return self.turns.retry_ms(own_ms, alone_ms, tenant, deadline_ms, backlog, num_waiting)

    def enter(self, entry: ServerRequest) -> None:
        self.waiting[entry.key] = entry
        self._report_load()

    def leave(self, entry: ServerRequest, wipe: bool = False) -> None:
        """Remove a request, whatever its state."""
        self.engine.remove(entry.job, wipe)
        self._forget(entry)

    def lead(self, entry: ServerRequest, lead: DraftMode) -> None:
        """Set who drafts for a request from now on."""
        entry.lead = lead
        self.strategy.lead(entry.sequence, lead)

    def step(self) -> list[RequestProgress] | None:
        """One pass: a prompt, or a round of some requests. None if there is nothing to do."""
        if not self._planned_passes:
            self._begin_round()
        if self.waiting and (not self._planned_passes or self._may_read()):
            read = self._read_next()
            if read is not None:
                return read
        while self._planned_passes:
            now_s = self._clock()
            entries = [self.writing[key] for key in self._planned_passes.popleft() if key in self.writing]
            going = [entry for entry in entries if self._is_ready(entry, now_s)]
            if going:
                return self._pass(going)
        return None

    def next_s(self) -> float | None:
        """Seconds until a request that waits for its edge continues; None if none does."""
        waits = [
            entry.was_served_s + self._config.window_ms / 1e3 - self._clock()
            for entry in self.writing.values()
            if entry.lead is DraftMode.LOCKSTEP and entry.is_patient
        ]
        return max(min(waits), 0.0) if waits else None

    @property
    def queue_ms(self) -> float:
        """The expected time of all requests here together."""
        return sum(self._left_ms(entry) for entry in (*self.waiting.values(), *self.writing.values()))

    def _begin_round(self) -> None:
        now_s = self._clock()
        turns = [self._turn(entry, now_s) for entry in self.writing.values() if self._is_ready(entry, now_s)]
        pace = self.measured.pace
        self._planned_passes = deque(self.turns.passes(turns, pace))
        widths = {turn.key: turn.num_tokens for turn in turns}
        self._round_ms = sum(
            pace.pass_ms(len(keys), max(widths[key] for key in keys)) for keys in self._planned_passes
        )
        self._read_ms, self._has_read = 0.0, False

    def _may_read(self) -> bool:
        """Whether another prompt may be read before the round continues: one always, more if they cost little."""
        return not self._has_read or self._read_ms < self._config.prompt_share * self._round_ms

    def _read_next(self) -> list[RequestProgress] | None:
        now_s = self._clock()
        key = self.turns.next_joining(
            [self._turn(entry, now_s) for entry in self.waiting.values()],
            [self._turn(entry, now_s) for entry in self.writing.values()],
            self.measured.pace,
        )
        if key is None:
            return None
        entry = self.waiting[key]
        if not self.engine.num_admissible([entry.sequence.tokenized.max_length], len(self.writing)):
            if self.writing:
                return None
            self.leave(entry)
            return [RequestProgress(entry, refused="other sequences hold the memory", is_passing=True)]
        self._has_read = True
        try:
            if self._read_ahead(entry):
                return []
            steps = self.engine.prefill([entry.job])
        except HtfiError as error:
            return self._failed([entry], error)
        asked = entry.sequence.tokenized
        self._has_been_read(entry, len(asked.prompt) + len(asked.forced_prefix), entry.job.num_reused, now_s)
        del self.waiting[key]
        self.writing[key] = entry
        return self._progress([entry], steps, [-1])

    def _read_ahead(self, entry: ServerRequest) -> bool:
        """Read the next blocks of a long prompt into the cache, so that rows being written need not wait for all of it.

        False if the rest may be read at once.
        """
        sessions, asked = self.engine.sessions, entry.sequence.tokenized
        num_tokens = self._config.prompt_ms / self.measured.pace.prompt_ms
        if not self.writing or entry.num_to_read <= num_tokens:
            return False
        ids = [*asked.prompt, *asked.forced_prefix]
        cuts = block_bounds(len(ids), asked.num_shared, sessions.config.block_tokens)
        read = [end for _, end in cuts[:-1] if end > entry.num_read_ahead]
        end = next((end for end in read if end >= entry.num_read_ahead + num_tokens), read[-1] if read else 0)
        if not end or 2 * len(cuts) > sessions.cache.num_blocks or not sessions.has_space(end):
            return False
        began_s = self._clock()
        opened = sessions.open(ids[:end], end, asked.num_shared)
        sessions.close(opened.row)
        self._has_been_read(entry, end, opened.num_reused_tokens, began_s)
        entry.num_read_ahead = end
        return True

    def _has_been_read(self, entry: ServerRequest, num_tokens: int, num_reused: int, began_s: float) -> None:
        took_ms = 1e3 * (self._clock() - began_s)
        self._read_ms += took_ms
        before = entry.num_read_ahead
        self.measured.record_prefill(num_tokens - before, max(num_reused - before, 0), took_ms)
        self.turns.spent([(entry.tenant, took_ms)])

    def _pass(self, entries: list[ServerRequest]) -> list[RequestProgress]:
        began_s = self._clock()
        offered = [self.strategy.remote.fitting(entry.sequence) for entry in entries]
        lengths = [
            self._length(entry, guesses, len(entries))
            for entry, guesses in zip(entries, offered, strict=True)
        ]
        for entry, guesses in zip(entries, offered, strict=True):
            entry.is_patient = guesses is not None
        widths = [
            len(entry.job.pending) + (length or 0) for entry, length in zip(entries, lengths, strict=True)
        ]
        try:
            steps = self.engine.decode_round([entry.job for entry in entries], lengths)
        except HtfiError as error:
            return self._failed(entries, error)
        took_ms = 1e3 * (self._clock() - began_s)
        num_before, before_s = self._drafted
        self._drafted = self.strategy.num_drafted, self.strategy.draft_s
        self.measured.record_draft(
            self.strategy.num_drafted - num_before, 1e3 * (self.strategy.draft_s - before_s)
        )
        total = sum(widths)
        self.turns.spent(
            [(entry.tenant, took_ms * width / total) for entry, width in zip(entries, widths, strict=True)]
        )
        by_job = {id(step.job): step for step in steps}
        ordered = [by_job[id(entry.job)] for entry in entries]
        stood = [
            step.num_accepted if guesses is not None and step.num_drafted else -1
            for step, guesses in zip(ordered, offered, strict=True)
        ]
        for entry, step, num in zip(entries, ordered, stood, strict=True):
            if num >= 0:
                self.measured.record_guesses(entry.kind, step.num_drafted, num)
        return self._progress(entries, ordered, stood)

    def _length(self, entry: ServerRequest, guesses: list[int] | None, num_rows: int) -> int | None:
        """Draft length: in lock-step the whole window, in flight what is worth its time, None as planned."""
        if guesses is None:
            return None if entry.lead in SELF_DRAFTED else 0
        if entry.lead is DraftMode.LOCKSTEP:
            return len(guesses)
        acceptance = self.measured.acceptance(entry.kind)
        return self.turns.reading_depth(num_rows, len(guesses), acceptance, self.measured.pace)

    def _progress(
        self, entries: list[ServerRequest], steps: list[PassResult], stood: list[int]
    ) -> list[RequestProgress]:
        now_s = self._clock()
        self.num_passes += 1
        progress: list[RequestProgress] = []
        for entry, step, num_stood in zip(entries, steps, stood, strict=True):
            entry.was_served_s, entry.num_drafted = now_s, step.num_drafted
            self.num_tokens += len(step.tokens)
            if step.answer is None:
                progress.append(RequestProgress(entry, num_stood))
                continue
            self._forget(entry)
            if isinstance(step.answer, RequestRefused):
                progress.append(RequestProgress(entry, refused=step.answer.reason))
            else:
                self.measured.record_completion(
                    entry.kind, len(step.answer.tokens), entry.sequence.tokenized.grammar.max_tokens
                )
                progress.append(RequestProgress(entry, num_stood, is_done=True))
        return progress

    def _failed(self, entries: list[ServerRequest], error: HtfiError) -> list[RequestProgress]:
        """The engine failed: what went into the pass cannot be trusted."""
        for entry in entries:
            self.leave(entry, wipe=True)
        is_passing = isinstance(error, DependencyUnavailable)
        return [RequestProgress(entry, refused=str(error), is_passing=is_passing) for entry in entries]

    def _forget(self, entry: ServerRequest) -> None:
        self.waiting.pop(entry.key, None)
        self.writing.pop(entry.key, None)
        self._report_load()

    def _is_ready(self, entry: ServerRequest, now_s: float) -> bool:
        """In lock-step a request waits for its window, but not for ever: a dead edge blocks nothing."""
        if entry.lead is not DraftMode.LOCKSTEP or not entry.is_patient:
            return True
        if self.strategy.remote.fitting(entry.sequence) is not None:
            return True
        return now_s - entry.was_served_s >= self._config.window_ms / 1e3

    def _turn(self, entry: ServerRequest, now_s: float) -> TurnRequest:
        waits = entry.key in self.waiting
        if waits:
            num_tokens = entry.num_to_read
        else:
            guesses = self.strategy.remote.fitting(entry.sequence) if entry.lead in EDGE_DRAFTED else None
            drafts = entry.num_drafted if entry.lead is DraftMode.CLOUD else 0  # about as many as last time
            num_tokens = len(entry.job.pending) + (drafts if guesses is None else len(guesses))
        num_left = tokens_left(
            entry, self.measured.expected_tokens(entry.kind, entry.sequence.tokenized.grammar.max_tokens)
        )
        left_ms = num_left * self.measured.pace.pass_ms(max(len(self.writing) + waits, 1), 1)
        left_ms += self.measured.read_ms(entry.num_to_read) if waits else 0.0
        slack_ms = 1e3 * (entry.deadline_s - now_s) - left_ms
        return TurnRequest(
            entry.key, entry.tenant, slack_ms, 1e3 * (now_s - entry.was_served_s), max(num_tokens, 1)
        )

    def _left_ms(self, entry: ServerRequest) -> float:
        asked = entry.sequence.tokenized
        num_tokens = tokens_left(entry, self.measured.expected_tokens(entry.kind, asked.grammar.max_tokens))
        read_ms = self.measured.read_ms(entry.num_to_read) if entry.key in self.waiting else 0.0
        return read_ms + num_tokens * self._token_ms(0)

    def _token_ms(self, num_more: int) -> float:
        """A token's share of the engine, with as many rows per pass as now."""
        rows = max(len(self.writing) + num_more, 1)
        return self.measured.pace.pass_ms(rows, 1) / rows

    def _report_load(self) -> None:
        """Report the active tenants and their suspicion to the turn policy."""
        entries = (*self.waiting.values(), *self.writing.values())
        self.turns.active(active_tenants(entries))
        self.turns.suspect(suspicion_by_tenant(entries))
