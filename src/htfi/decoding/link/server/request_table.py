"""The requests of a cloud by name: those being answered, their subscribers, and cached answers.

The same request from another stream or edge is the same entry: it is answered once.
"""

import itertools
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from htfi.decoding.link.config import VerificationServerConfig
from htfi.decoding.link.frames import OpenFrame, RefusalReason, WindowFrame
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
    words: str
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

    def create(self, listener: RequestSubscriber, parts: dict[bytes, bytes]) -> Denial | None:
        """Create a request whose parts are there, unless it cannot be answered here, or not in time."""
        try:
            form = self._form(listener.opened.grammar, parts[listener.opened.grammar])
            request, ids, num_shared = to_request(listener.opened, form, parts)
        except InvalidInput as error:
            return Denial(RefusalReason.MALFORMED, str(error))
        try:
            engine = self._engine_for(listener.opened)
        except HtfiError as error:
            return Denial(RefusalReason.CANNOT, str(error))
        asked = engine.engine.tokenize(request, ids, num_shared)
        if isinstance(asked, RequestRefused):
            return Denial(RefusalReason.CANNOT, asked.reason)
        now_s = self._clock()
        left_ms = listener.opened.deadline_ms - 1e3 * (now_s - listener.since_s)
        retry_ms = engine.retry_ms(asked, listener.tenant, left_ms)
        if retry_ms is not None:
            words = f"{self._config.node} is busy: the answer would take longer than {left_ms:.0f} ms"
            return Denial(RefusalReason.BUSY, words, max(int(retry_ms), 1))
        case = ServerRequest.of(next(self._keys), listener, asked, now_s)
        self._cases[case.name] = case
        engine.enter(case)
        return None

    def subscribe(self, listener: RequestSubscriber) -> Denial | None:
        """Subscribe to the request, under the present epoch; the subscriber's guesses are used."""
        asked = listener.opened
        case = self._cases.get(asked.request)
        if case is None:
            return None  # answered: `progress_for` finds it
        if listener not in case.subscribers:
            if len(case.subscribers) >= self._config.max_listeners:
                return Denial(
                    RefusalReason.BUSY,
                    "this answer has too many subscribers already",
                    self._config.drain_retry_ms,
                )
            case.subscribers.append(listener)
        else:  # its lead applies from now on
            case.subscribers.remove(listener)
            case.subscribers.append(listener)
        listener.request = case
        self._orphans.pop(case.name, None)
        try:
            first = unpack_guesses(asked.guesses, 0, case.sequence, self._vocab_size)
        except InvalidInput as error:
            return Denial(RefusalReason.MALFORMED, str(error))
        posted = self._engine_for(asked).strategy.remote
        posted.clear(case.sequence)
        if first:
            posted.post(case.sequence, 0, 0, first)
        case.deadline_s = self._clock() + asked.deadline_ms / 1e3
        case.is_patient = True
        self._update_lead(case)
        return None

    def add_guesses(self, listener: RequestSubscriber, window: WindowFrame) -> None:
        """Add a window's guesses. Raises: InvalidInput for what lies outside answer or vocabulary."""
        case = listener.request
        if case is None or case.sequence.is_done:
            return
        ids = unpack_guesses(window.ids, window.at, case.sequence, self._vocab_size)
        if listener.is_spent or listener.opened.lead not in EDGE_DRAFTED:
            self._update_lead(case)
            return
        self._engine_for(listener.opened).strategy.remote.post(case.sequence, window.at, window.prefix, ids)

    def unsubscribe(self, listener: RequestSubscriber, is_kept: bool) -> None:
        """A subscriber has left. If it was the last, its request continues for its return, or is given up."""
        case, listener.request = listener.request, None
        if case is None or listener not in case.subscribers:
            return
        case.subscribers.remove(listener)
        if case.name not in self._cases:
            return
        if case.subscribers:
            self._update_lead(case)
        elif is_kept and self._config.max_orphans:
            self._orphans[case.name] = case
            self._update_lead(case)
            if len(self._orphans) > self._config.max_orphans:
                self._give_up(self._orphans.popitem(last=False)[1])
        else:
            self._give_up(case)

    def record_progress(self, progress: RequestProgress) -> list[RequestSubscriber]:
        """Record a step for a request; the subscribers to notify."""
        case = progress.request
        listeners = list(case.subscribers)
        for listener in listeners:
            listener.num_accepted = max(listener.num_accepted, progress.num_accepted)
        if progress.is_done or progress.refused:
            self._cases.pop(case.name, None)
            self._orphans.pop(case.name, None)
        if progress.is_done:
            self._answers[case.name] = AnswerProgress(tuple(case.sequence.tokens), case.prefix(), True)
            if len(self._answers) > self._config.kept_answers:
                self._answers.popitem(last=False)
        return listeners

    def progress_for(self, listener: RequestSubscriber) -> AnswerProgress | None:
        """What a subscriber may receive now."""
        if (case := listener.request) is not None:
            return AnswerProgress(case.sequence.tokens, case.prefix(), case.sequence.is_done)
        answer = self._answers.get(listener.opened.request)
        if answer is not None:
            self._answers.move_to_end(listener.opened.request)
        return answer

    def budget_changed(self, listener: RequestSubscriber) -> None:
        """A subscriber's budget has changed: it may no longer pay for guesses."""
        if listener.request is not None and listener.is_spent:
            self._update_lead(listener.request)

    def _form(self, name: bytes, data: bytes) -> OutputGrammar:
        """A part as the grammar that it holds. Raises: InvalidInput."""
        form = self._forms.get(name)
        if form is None:
            form = self._forms[name] = decode_grammar(data)
            if len(self._forms) > _MAX_CACHED_GRAMMARS:
                self._forms.popitem(last=False)
        self._forms.move_to_end(name)
        return form

    def _update_lead(self, case: ServerRequest) -> None:
        engine = self._engine_for(case)
        lead = case.wanted_lead(engine.strategy.draft is not None)
        if lead is not case.lead or not case.sequence.tokens:
            engine.lead(case, lead)

    def _give_up(self, case: ServerRequest) -> None:
        self._cases.pop(case.name, None)
        self._engine_for(case).leave(case)

    def _engine_for(self, what: OpenFrame | ServerRequest) -> RequestScheduler:
        """The scheduler of a request. Raises: DependencyUnavailable, InvalidInput without full precision."""
        return self._full() if what.in_full and self._full is not None else self._engine

    @property
    def _vocab_size(self) -> int:
        return self._engine.engine.sessions.network.shape.vocab_size
