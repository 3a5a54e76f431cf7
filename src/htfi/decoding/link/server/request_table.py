"""The requests of a cloud by name: those being answered, their subscribers, and cached answers.

The same request from another stream or edge is the same entry: it is answered once.
"""

import itertools
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from htfi.decoding.config import VerificationServerConfig
from htfi.decoding.link.frames import DraftWindowFrame, OpenFrame, RefusalReason
from htfi.decoding.link.parts import decode_grammar
from htfi.decoding.link.server.requests import (
    EDGE_DRAFTED,
    RequestSubscriber,
    ServerRequest,
    to_request,
    unpack_guesses,
)
from htfi.decoding.link.server.scheduler import RequestProgress, RequestScheduler
from htfi.domain.errors import HtfiError, InvalidInput
from htfi.domain.generation import OutputGrammar, RequestRefused

_MAX_CACHED_GRAMMARS = 64


class Denial(NamedTuple):
    """Why a request is not answered."""

    why: RefusalReason
    message: str
    retry_ms: int = -1


class AnswerProgress(NamedTuple):
    """The accepted tokens of an answer, and their hash."""

    tokens: Sequence[int]
    prefix: int
    is_done: bool


class RequestTable:
    """Owns the requests; the schedulers work on them: `engine`, and that of the target in full precision, which `full`
    returns when first needed.
    """

    def __init__(
        self,
        engine: RequestScheduler,
        config: VerificationServerConfig,
        clock: Callable[[], float],
        full: Callable[[], RequestScheduler] | None = None,
    ) -> None:
        self._engine, self._full = engine, full
        self._config = config
        self._clock = clock
        self._cases: dict[bytes, ServerRequest] = {}
        self._answers: OrderedDict[bytes, AnswerProgress] = OrderedDict()
        self._orphans: OrderedDict[bytes, ServerRequest] = OrderedDict()  # without subscribers
        self._forms: OrderedDict[bytes, OutputGrammar] = (
            OrderedDict()
        )  # decoding a large one takes as long as some passes
        self._keys = itertools.count()

    @property
    def num_requests(self) -> int:
        return len(self._cases)

    def knows(self, name: bytes) -> bool:
        return name in self._cases or name in self._answers

    def create(self, subscriber: RequestSubscriber, parts: dict[bytes, bytes]) -> Denial | None:
        """Create a request whose parts are there, unless it cannot be answered here, or not in time."""
        try:
            grammar = self._form(subscriber.opened.grammar, parts[subscriber.opened.grammar])
            request, ids, num_shared = to_request(subscriber.opened, grammar, parts)
        except InvalidInput as error:
            return Denial(RefusalReason.MALFORMED, str(error))
        try:
            engine = self._engine_for(subscriber.opened)
        except HtfiError as error:
            return Denial(RefusalReason.UNANSWERABLE, str(error))
        asked = engine.engine.tokenize(request, ids, num_shared)
        if isinstance(asked, RequestRefused):
            return Denial(RefusalReason.UNANSWERABLE, asked.reason)
        now_s = self._clock()
        left_ms = subscriber.opened.deadline_ms - 1e3 * (now_s - subscriber.since_s)
        retry_ms = engine.retry_ms(asked, subscriber.tenant, left_ms)
        if retry_ms is not None:
            words = f"{self._config.node} is busy: the answer would take longer than {left_ms:.0f} ms"
            return Denial(RefusalReason.BUSY, words, max(int(retry_ms), 1))
        entry = ServerRequest.of(next(self._keys), subscriber, asked, now_s)
        self._cases[entry.name] = entry
        engine.enter(entry)
        return None

    def subscribe(self, subscriber: RequestSubscriber) -> Denial | None:
        """Subscribe to the request, under the present epoch; the subscriber's guesses are used."""
        asked = subscriber.opened
        entry = self._cases.get(asked.request)
        if entry is None:
            return None  # answered: `progress_for` finds it
        if subscriber not in entry.subscribers:
            if len(entry.subscribers) >= self._config.max_listeners:
                return Denial(
                    RefusalReason.BUSY,
                    "this answer has too many subscribers already",
                    self._config.drain_retry_ms,
                )
            entry.subscribers.append(subscriber)
        else:  # its lead applies from now on
            entry.subscribers.remove(subscriber)
            entry.subscribers.append(subscriber)
        subscriber.request = entry
        self._orphans.pop(entry.name, None)
        try:
            first = unpack_guesses(asked.guesses, 0, entry.sequence, self._vocab_size)
        except InvalidInput as error:
            return Denial(RefusalReason.MALFORMED, str(error))
        posted = self._engine_for(asked).strategy.remote
        posted.clear(entry.sequence)
        if first:
            posted.post(entry.sequence, 0, 0, first)
        entry.deadline_s = self._clock() + asked.deadline_ms / 1e3
        entry.is_patient = True
        self._update_lead(entry)
        return None

    def add_guesses(self, subscriber: RequestSubscriber, window: DraftWindowFrame) -> None:
        """Add a window's guesses. Raises: InvalidInput for what lies outside answer or vocabulary."""
        entry = subscriber.request
        if entry is None or entry.sequence.is_done:
            return
        ids = unpack_guesses(window.ids, window.at, entry.sequence, self._vocab_size)
        if subscriber.is_spent or subscriber.opened.draft_mode not in EDGE_DRAFTED:
            self._update_lead(entry)
            return
        self._engine_for(subscriber.opened).strategy.remote.post(
            entry.sequence, window.at, window.prefix, ids
        )

    def unsubscribe(self, subscriber: RequestSubscriber, is_kept: bool) -> None:
        """A subscriber has left. If it was the last, its request continues for its return, or is given up."""
        entry, subscriber.request = subscriber.request, None
        if entry is None or subscriber not in entry.subscribers:
            return
        entry.subscribers.remove(subscriber)
        if entry.name not in self._cases:
            return
        if entry.subscribers:
            self._update_lead(entry)
        elif is_kept and self._config.max_orphans:
            self._orphans[entry.name] = entry
            self._update_lead(entry)
            if len(self._orphans) > self._config.max_orphans:
                self._give_up(self._orphans.popitem(last=False)[1])
        else:
            self._give_up(entry)

    def record_progress(self, progress: RequestProgress) -> list[RequestSubscriber]:
        """Record a step for a request; the subscribers to notify."""
        entry = progress.request
        subscribers = list(entry.subscribers)
        for subscriber in subscribers:
            subscriber.num_accepted = max(subscriber.num_accepted, progress.num_accepted)
        if progress.is_done or progress.refused:
            self._cases.pop(entry.name, None)
            self._orphans.pop(entry.name, None)
        if progress.is_done:
            self._answers[entry.name] = AnswerProgress(tuple(entry.sequence.tokens), entry.prefix(), True)
            if len(self._answers) > self._config.kept_answers:
                self._answers.popitem(last=False)
        return subscribers

    def progress_for(self, subscriber: RequestSubscriber) -> AnswerProgress | None:
        """What a subscriber may receive now."""
        if (entry := subscriber.request) is not None:
            return AnswerProgress(entry.sequence.tokens, entry.prefix(), entry.sequence.is_done)
        answer = self._answers.get(subscriber.opened.request)
        if answer is not None:
            self._answers.move_to_end(subscriber.opened.request)
        return answer

    def budget_changed(self, subscriber: RequestSubscriber) -> None:
        """A subscriber's budget has changed: it may no longer pay for guesses."""
        if subscriber.request is not None and subscriber.is_spent:
            self._update_lead(subscriber.request)

    def _form(self, name: bytes, data: bytes) -> OutputGrammar:
        """A part as the grammar that it holds. Raises: InvalidInput."""
        grammar = self._forms.get(name)
        if grammar is None:
            grammar = self._forms[name] = decode_grammar(data)
            if len(self._forms) > _MAX_CACHED_GRAMMARS:
                self._forms.popitem(last=False)
        self._forms.move_to_end(name)
        return grammar

    def _update_lead(self, entry: ServerRequest) -> None:
        engine = self._engine_for(entry)
        lead = entry.wanted_lead(engine.strategy.draft is not None)
        if lead is not entry.lead or not entry.sequence.tokens:
            engine.lead(entry, lead)

    def _give_up(self, entry: ServerRequest) -> None:
        self._cases.pop(entry.name, None)
        self._engine_for(entry).leave(entry)

    def _engine_for(self, what: OpenFrame | ServerRequest) -> RequestScheduler:
        """The scheduler of a request. Raises: DependencyUnavailable, InvalidInput without full precision."""
        return self._full() if what.in_full and self._full is not None else self._engine

    @property
    def _vocab_size(self) -> int:
        return self._engine.engine.sessions.network.shape.vocab_size
