"""The cases of a desk by name: which questions are being answered, for whom, and the answers kept for who asks again.

The same question asked again, on another stream or by another edge, is the same case: it is answered once.
"""

import itertools
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from htfi.decoding.link.desk_cases import GUIDED, Case, Listener
from htfi.decoding.link.desk_config import DeskConfig
from htfi.decoding.link.desk_engine import Engine, Progress
from htfi.decoding.link.desk_opening import guesses, question
from htfi.decoding.link.forms import decode_form
from htfi.decoding.link.frames import Open, Why, Window
from htfi.domain.errors import HtfiError, InvalidInput
from htfi.domain.writing import Form, Refusal

_KEPT_FORMS = 64


class Denied(NamedTuple):
    """Why a request is not answered."""

    why: Why
    words: str
    retry_ms: int = -1


class Told(NamedTuple):
    """An answer as far as it is settled, and the hash of its tokens."""

    tokens: Sequence[int]
    prefix: int
    is_done: bool


class Docket:
    """Owns the cases; the engines work on them: `engine`, and that of the target in full precision, which `full` gives
    when it is first asked for.
    """

    def __init__(
        self,
        engine: Engine,
        config: DeskConfig,
        clock: Callable[[], float],
        full: Callable[[], Engine] | None = None,
    ) -> None:
        self._engine, self._full = engine, full
        self._config = config
        self._clock = clock
        self._cases: dict[bytes, Case] = {}
        self._answers: OrderedDict[bytes, Told] = OrderedDict()
        self._orphans: OrderedDict[bytes, Case] = OrderedDict()  # nobody listens to them now
        self._forms: OrderedDict[bytes, Form] = (
            OrderedDict()
        )  # to read a large one takes as long as some passes
        self._keys = itertools.count()

    @property
    def num_cases(self) -> int:
        return len(self._cases)

    def knows(self, name: bytes) -> bool:
        return name in self._cases or name in self._answers

    def opened(self, listener: Listener, parts: dict[bytes, bytes]) -> Denied | None:
        """Make a case of a request whose parts are there, unless it cannot be answered here, or not in time."""
        try:
            form = self._form(listener.asked.form, parts[listener.asked.form])
            request, ids, num_shared = question(listener.asked, form, parts)
        except InvalidInput as error:
            return Denied(Why.MALFORMED, str(error))
        try:
            engine = self._engine_for(listener.asked)
        except HtfiError as error:
            return Denied(Why.CANNOT, str(error))
        asked = engine.rounds.ask(request, ids, num_shared)
        if isinstance(asked, Refusal):
            return Denied(Why.CANNOT, asked.reason)
        now_s = self._clock()
        left_ms = listener.asked.deadline_ms - 1e3 * (now_s - listener.since_s)
        retry_ms = engine.retry_ms(asked, listener.tenant, left_ms)
        if retry_ms is not None:
            words = f"{self._config.node} is busy: the answer would not come within {left_ms:.0f} ms"
            return Denied(Why.BUSY, words, max(int(retry_ms), 1))
        case = Case.of(next(self._keys), listener, asked, now_s)
        self._cases[case.name] = case
        engine.enter(case)
        return None

    def joined(self, listener: Listener) -> Denied | None:
        """Let a listener hear the case of its name, under its present epoch; its guesses are used."""
        asked = listener.asked
        case = self._cases.get(asked.request)
        if case is None:
            return None  # answered: `told` finds it
        if listener not in case.listeners:
            if len(case.listeners) >= self._config.max_listeners:
                return Denied(Why.BUSY, "too many listen to this answer already", self._config.drain_retry_ms)
            case.listeners.append(listener)
        else:  # it leads from now on
            case.listeners.remove(listener)
            case.listeners.append(listener)
        listener.case = case
        self._orphans.pop(case.name, None)
        try:
            first = guesses(asked.guesses, 0, case.stem, self._vocab_size)
        except InvalidInput as error:
            return Denied(Why.MALFORMED, str(error))
        posted = self._engine_for(asked).routed.posted
        posted.clear(case.stem)
        if first:
            posted.post(case.stem, 0, 0, first)
        case.deadline_s = self._clock() + asked.deadline_ms / 1e3
        case.is_patient = True
        self._lead(case)
        return None

    def guessed(self, listener: Listener, window: Window) -> None:
        """Take a window's guesses. Raises: InvalidInput for what lies outside answer or vocabulary."""
        case = listener.case
        if case is None or case.stem.is_done:
            return
        ids = guesses(window.ids, window.at, case.stem, self._vocab_size)
        if listener.is_spent or listener.asked.lead not in GUIDED:
            self._lead(case)
            return
        self._engine_for(listener.asked).routed.posted.post(case.stem, window.at, window.prefix, ids)

    def left(self, listener: Listener, is_kept: bool) -> None:
        """A listener is gone. Where it was the last, its case goes on for its return, or is given up."""
        case, listener.case = listener.case, None
        if case is None or listener not in case.listeners:
            return
        case.listeners.remove(listener)
        if case.name not in self._cases:
            return
        if case.listeners:
            self._lead(case)
        elif is_kept and self._config.max_orphans:
            self._orphans[case.name] = case
            self._lead(case)
            if len(self._orphans) > self._config.max_orphans:
                self._give_up(self._orphans.popitem(last=False)[1])
        else:
            self._give_up(case)

    def progressed(self, progress: Progress) -> list[Listener]:
        """Note what a step did for a case; those who are to be told."""
        case = progress.case
        listeners = list(case.listeners)
        for listener in listeners:
            listener.num_stood = max(listener.num_stood, progress.num_stood)
        if progress.is_done or progress.refused:
            self._cases.pop(case.name, None)
            self._orphans.pop(case.name, None)
        if progress.is_done:
            self._answers[case.name] = Told(tuple(case.stem.tokens), case.prefix(), True)
            if len(self._answers) > self._config.kept_answers:
                self._answers.popitem(last=False)
        return listeners

    def told(self, listener: Listener) -> Told | None:
        """What a listener may be told now."""
        if (case := listener.case) is not None:
            return Told(case.stem.tokens, case.prefix(), case.stem.is_done)
        answer = self._answers.get(listener.asked.request)
        if answer is not None:
            self._answers.move_to_end(listener.asked.request)
        return answer

    def paid(self, listener: Listener) -> None:
        """A listener's budget has changed: it may not pay for guesses any more."""
        if listener.case is not None and listener.is_spent:
            self._lead(listener.case)

    def _form(self, name: bytes, data: bytes) -> Form:
        """A part as the form that it is. Raises: InvalidInput."""
        form = self._forms.get(name)
        if form is None:
            form = self._forms[name] = decode_form(data)
            if len(self._forms) > _KEPT_FORMS:
                self._forms.popitem(last=False)
        self._forms.move_to_end(name)
        return form

    def _lead(self, case: Case) -> None:
        engine = self._engine_for(case)
        lead = case.wanted_lead(engine.routed.draft is not None)
        if lead is not case.lead or not case.stem.tokens:
            engine.lead(case, lead)

    def _give_up(self, case: Case) -> None:
        self._cases.pop(case.name, None)
        self._engine_for(case).leave(case)

    def _engine_for(self, what: Open | Case) -> Engine:
        """Who answers. Raises: DependencyUnavailable, InvalidInput where the target in full cannot be loaded."""
        return self._full() if what.in_full and self._full is not None else self._engine

    @property
    def _vocab_size(self) -> int:
        return self._engine.rounds.sessions.network.shape.vocab_size
