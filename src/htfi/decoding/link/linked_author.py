"""The author whose target is elsewhere: an edge's draft guesses, clouds settle, and no weather leaves a question open.

Narrative asks it, as any author. It implements `LateAuthor`: what the clouds do not settle in time is finished by the
draft, provisionally, from the last settled token; the target's own answer then comes `late`.
For one thread at a time; frames are exchanged only during its calls.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, assert_never
from weakref import WeakKeyDictionary

from htfi.decoding.acceptance_alarm import AcceptanceAlarm
from htfi.decoding.author import LocalAuthor
from htfi.decoding.form import CompiledForm
from htfi.decoding.link.clouds import Clouds, Traffic
from htfi.decoding.link.edge_config import EdgeConfig
from htfi.decoding.link.ports import Placer, Transport
from htfi.decoding.link.pursuit import Pursuit, Sent, named_form
from htfi.decoding.link.pursuit_ahead import Ahead
from htfi.decoding.link.pursuit_answers import provisional, whole
from htfi.decoding.link.pursuit_course import Act, Course, Weather, course, wakes_s
from htfi.decoding.link.pursuit_late import Late
from htfi.decoding.link.pursuit_ways import Report, Ways
from htfi.decoding.stem import Asked
from htfi.domain.errors import InvalidInput
from htfi.domain.writing import Dialect, Refusal, Request, Spoken, Writing

_LONGEST_MS = 1e8  # a day
_MOST_HEARD = 512  # arrivals between two looks at what is to be done
_GREETINGS = 4  # times what a request waits for a greeting, the cloud has for it
_LEAST_WAIT_S = 1e-4


class Expected(NamedTuple):
    """The target that all clouds must have: `version` as an author tells it, its digest or the beginning of it."""

    version: str
    digest: str


class LinkedAuthor:
    """`alone` is the draft as an author of its own, in whose sessions is drafted ahead too. `node` is this edge's name.

    `usable` names the clouds that health does not give up; `report` is told what happens to peers. `clock`: seconds.
    """

    def __init__(
        self,
        alone: LocalAuthor,
        expected: Expected,
        node: str,
        transport: Transport,
        placer: Placer,
        usable: Callable[[], Sequence[str]],
        clock: Callable[[], float],
        report: Report,
        config: EdgeConfig | None = None,
        alarm: AcceptanceAlarm | None = None,
    ) -> None:
        self.version = expected.version
        self.config = config or EdgeConfig()
        self._transport, self._usable, self._clock = transport, usable, clock
        self._ahead = Ahead(alone, clock, self.config.draft_ms)
        tokenizer = alone.vocabulary.tokenizer.digest
        self._clouds = Clouds(transport, node, expected.digest, tokenizer, self.config.max_parts_known)
        self._ways = Ways(self._clouds, placer, clock, report, self.config, alarm)
        self._writing: dict[int, Pursuit] = {}  # by place
        self._answers: dict[int, Writing | Refusal] = {}
        self._late, self._late_in_full = Late(self.config.max_late), Late(self.config.max_late)
        self._forms: WeakKeyDictionary[CompiledForm, tuple[bytes, bytes]] = WeakKeyDictionary()

    @property
    def dialect(self) -> Dialect:
        return self._ahead.alone.dialect

    @property
    def traffic(self) -> Traffic:
        return self._clouds.traffic

    @property
    def spoken(self) -> Spoken:
        told = self._ways.evidence
        return Spoken(told.num_answers, told.num_tokens, told.num_passes, told.acceptance, self._ways.warning)

    def write(self, requests: Sequence[Request]) -> list[Writing | Refusal]:
        """One answer per request, in order, each by its deadline: the target's, or a provisional one."""
        self._answers = {}
        now_s = self._clock()
        for place, request in enumerate(requests):
            found = self._begin(request, now_s + _within_s(request))
            if isinstance(found, Refusal):
                self._answers[place] = found
            else:
                self._writing[place] = found
        try:
            while True:
                self._hear()
                weather = self._steer()
                if not self._writing:
                    return [self._answers[place] for place in range(len(requests))]
                if not self._draft():
                    self._listen(weather)
        finally:
            for pursuit in self._writing.values():
                self._abandon(pursuit)
            self._writing.clear()

    def late(self) -> list[tuple[str, Writing | Refusal]]:
        """Answers that came since the last call, by the id of their request, without waiting; each once.

        A refusal says that none will come.
        """
        self._hear()
        self._steer()
        return self._late.tell()

    def late_in_full(self) -> list[tuple[str, Writing | Refusal]]:
        """The same of requests to the target in full precision."""
        self._hear()
        self._steer()
        return self._late_in_full.tell()

    def pursue(self, requests: Sequence[Request]) -> None:
        """Ask for answers that nobody waits for: they come late. One that is under way is not asked twice.

        Raises: InvalidInput for a request without an id, by which its answer could be told.
        """
        for request in requests:
            if not request.id:
                raise InvalidInput("a request without an id cannot be answered late: give it one")
            late = self._store(request)
            if late.knows(request.id):
                continue
            found = self._begin(request, self._clock() + self.config.late_ms / 1e3)
            if isinstance(found, Refusal):
                late.refused(request.id, found)
            else:
                self._put_off(found)
        self._hear()
        self._steer()

    def wait_ready(self, timeout_s: float) -> list[str]:
        """The clouds that may be asked, waiting at most so long for the first of them."""
        until_s = self._clock() + timeout_s
        while True:
            self._hear()
            ready = [cloud.node for cloud in self._clouds if cloud.is_open]
            left_s = until_s - self._clock()
            if ready or left_s <= 0.0:
                return ready
            self._listen(None, left_s)

    def close(self) -> None:
        """Tell the clouds that nothing more is wanted; what is awaited late is not told any more."""
        for late in (self._late, self._late_in_full):
            for pursuit in late:
                self._abandon(pursuit)
            late.clear()

    # --- the loop

    def _hear(self) -> None:
        """Take what has arrived, without waiting."""
        for _ in range(_MOST_HEARD):
            arrival = self._transport.receive(0.0)
            if arrival is None:
                break
            self._ways.take(arrival)
        self._clouds.flush()

    def _listen(self, weather: Weather | None, most_s: float = 1.0) -> None:
        """Wait for the next arrival, or for the next thing to do."""
        now_s = self._clock()
        wait_s = min(most_s, self.config.look_ms / 1e3)
        if weather is not None:
            pursuits = (*self._writing.values(), *self._late, *self._late_in_full)
            wait_s = min([wait_s, *(wakes_s(each, weather, self.config) - now_s for each in pursuits)])
        arrival = self._transport.receive(max(wait_s, _LEAST_WAIT_S))
        if arrival is not None:
            self._ways.take(arrival)

    def _steer(self) -> Weather:
        """Finish what is whole, and do for the others what the weather asks for."""
        weather = self._weather()
        for place, pursuit in list(self._writing.items()):
            if pursuit.is_whole:
                self._answer(pursuit, place, self._whole(pursuit))
            else:
                self._act(pursuit, course(pursuit, self._for(pursuit, weather), self.config), place)
        for pursuit in (*self._late, *self._late_in_full):
            if pursuit.is_whole:
                self._answer(pursuit, -1, self._whole(pursuit))
            else:
                self._act(pursuit, course(pursuit, self._for(pursuit, weather), self.config), -1)
        return weather

    def _draft(self) -> bool:
        """Draft a slice for those who may use one, and send what may go out; whether anything was done."""
        wanting = [
            each for each in self._writing.values() if each.num_wanted and self._ways.takes_windows(each)
        ]
        for pursuit in self._ahead.draft(wanting):
            pursuit.can_draft = False
            if pursuit.leading is not None:
                self._ways.go_on(pursuit, pursuit.leading)
        num_sent = sum(map(self._ways.send_windows, self._writing.values()))
        return bool(wanting or num_sent)

    def _weather(self) -> Weather:
        now_s, usable = self._clock(), set(self._usable())
        for cloud in self._clouds.overdue(now_s - _GREETINGS * self.config.greeting_ms / 1e3):
            self._ways.end(cloud, "it has not said who it is")
        standing = [cloud for cloud in self._clouds if cloud.is_open and cloud.node in usable]
        return Weather(
            now_s,
            list(dict.fromkeys(cloud.node for cloud in standing)),
            list(dict.fromkeys(cloud.node for cloud in standing if not cloud.is_draining)),
            any(cloud.is_greeting and cloud.node in usable for cloud in self._clouds),
            sum(map(self._ahead.alone_ms, self._writing.values())) / 1e3,
        )

    def _for(self, pursuit: Pursuit, weather: Weather) -> Weather:
        """The weather for a request whose data not every cloud may have, or that not every cloud can answer."""
        tags, in_full = pursuit.asked.request.residency, pursuit.asked.request.in_full
        if not tags and not in_full:
            return weather
        taking = [node for node in weather.taking if self._clouds.admits(node, tags)]
        return weather._replace(
            taking=[node for node in taking if not in_full or self._clouds.has_full(node)]
        )

    def _store(self, request: Request) -> Late:
        """Where a request is awaited late: those in full precision displace none of the others."""
        return self._late_in_full if request.in_full else self._late

    # --- what is done for a request

    def _begin(self, request: Request, until_s: float) -> Pursuit | Refusal:
        asked = self._ahead.alone.ask(request)
        if isinstance(asked, Refusal):
            return asked
        try:
            sent = Sent.of(asked, self._form(asked))
        except InvalidInput as error:
            return Refusal(str(error))
        known = self._store(request).take_back(request.id, sent.name)
        if known is not None:
            known.until_s = until_s
            return known
        return Pursuit(asked, sent, self._clock(), until_s)

    def _form(self, asked: Asked) -> tuple[bytes, bytes]:
        """A form's name and bytes, worked out once. Raises: InvalidInput for one that no peer can read."""
        known = self._forms.get(asked.form)
        if known is None:
            known = self._forms[asked.form] = named_form(asked)
        return known

    def _act(self, pursuit: Pursuit, chosen: Course, place: int) -> None:
        match chosen.act:
            case Act.WAIT:
                pass
            case Act.HEDGE:
                self._ways.place(pursuit, chosen.clouds, is_hedge=True)
            case Act.OPEN | Act.MOVE:
                if chosen.act is Act.MOVE:
                    self._ways.move(pursuit)
                if words := self._ways.place(pursuit, chosen.clouds):
                    self._go_alone(pursuit, words, place)
            case Act.ASK_AGAIN:
                self._ways.ask_again(pursuit)
            case Act.ALONE:
                self._go_alone(pursuit, chosen.words, place)
            case Act.GIVE_UP:
                self._answer(pursuit, place, Refusal(chosen.words))
            case _:
                assert_never(chosen.act)

    def _answer(self, pursuit: Pursuit, place: int, answer: Writing | Refusal) -> None:
        """Be done with a request."""
        self._abandon(pursuit)
        if pursuit.is_late:
            self._store(pursuit.asked.request).answered(pursuit, answer)
        else:
            del self._writing[place]
            self._answers[place] = answer

    def _go_alone(self, pursuit: Pursuit, words: str, place: int) -> None:
        """Answer with the draft; the target's answer may come late."""
        answer = self._ahead.finish(pursuit)
        if isinstance(answer, Refusal):  # others that are drafted for may hold the memory
            for other in self._writing.values():
                self._ahead.leave(other)
            answer = self._ahead.finish(pursuit)
        if isinstance(answer, Writing):
            self._ways.evidence.note_answer(len(answer.tokens) - len(pursuit.stem.tokens))
            answer = provisional(pursuit, answer, self._ahead.alone.version, words)
        for way in pursuit.ways:
            self._ways.learn(pursuit, way)
        if not pursuit.asked.request.id or not self.config.max_late:
            self._answer(pursuit, place, answer)
            return
        del self._writing[place]
        self._answers[place] = answer
        pursuit.until_s = self._clock() + self.config.late_ms / 1e3
        self._put_off(pursuit)
        for way in pursuit.ways:
            self._ways.go_on(pursuit, way)

    def _whole(self, pursuit: Pursuit) -> Writing:
        self._ways.evidence.note_answer(len(pursuit.stem.tokens))
        if not pursuit.is_late:
            for way in pursuit.ways:
                self._ways.learn(pursuit, way)
        return whole(pursuit, self._ahead.alone.version)

    def _abandon(self, pursuit: Pursuit) -> None:
        self._ahead.leave(pursuit)
        self._ways.leave_all(pursuit)

    def _put_off(self, pursuit: Pursuit) -> None:
        for given_up in self._store(pursuit.asked.request).put_off(pursuit):
            self._abandon(given_up)


def _within_s(request: Request) -> float:
    """Seconds that an answer may take, whatever is asked for."""
    wanted_ms = 0.0 if math.isnan(request.deadline_ms) else request.deadline_ms
    return min(max(wanted_ms, 0.0), _LONGEST_MS) / 1e3
