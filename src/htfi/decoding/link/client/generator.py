"""The text generator of an edge: its draft guesses, clouds verify, and every request is answered despite network
faults.

It implements `LateTextGenerator`: answers that clouds do not complete in time are finished by the draft, provisionally,
from the last accepted token; the target's own answer then comes `late`. Full precision is a generator of its own on the
same streams. For one thread at a time; frames are exchanged only during its calls.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, assert_never
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from htfi.decoding.acceptance import AcceptanceAlarm
from htfi.decoding.automaton import TokenAutomaton
from htfi.decoding.config import FIRST_DRAFT_MS, MAX_PARTS_KNOWN, POLL_MS, EdgeConfig
from htfi.decoding.link.client.answers import LateCompletions, provisional_completion, target_completion
from htfi.decoding.link.client.attempts import CloudAttempts, PeerReport
from htfi.decoding.link.client.connections import CloudConnections, LinkTraffic
from htfi.decoding.link.client.drafting import AheadDrafter
from htfi.decoding.link.client.next_action import (
    NetworkConditions,
    NextAction,
    RequestAction,
    next_action,
    next_change_s,
)
from htfi.decoding.link.client.request import InFlightRequest, WireRequest, grammar_part
from htfi.decoding.link.ports import RequestPlacer, Transport
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.sequence import TokenizedRequest
from htfi.domain.errors import InvalidInput
from htfi.domain.generation import (
    Completion,
    GenerationRequest,
    PromptDialect,
    RequestRefused,
    SpeculationStats,
)
from htfi.telemetry.spans import NO_SPANS, AttributeValue, StepSpans

_MAX_DEADLINE_MS = 1e8  # a day
_MAX_ARRIVALS = 512  # arrivals handled before requests advance
_HELLO_FACTOR = 4  # times `hello_timeout_ms` that a cloud has for its welcome
_MIN_WAIT_S = 1e-4


class ExpectedTarget(NamedTuple):
    """The target that all clouds must have: `version` as generators name it, its digest or the beginning of it."""

    version: str
    digest: str


class LinkedGenerator:
    """`alone` is the draft as a generator, whose sessions also draft ahead. `node` is this edge's name.

    `usable` names the clouds that health monitoring has not given up; `report` is called for events of peers. `clock`:
    seconds. `traceparent` gives the context of the step that asks, '' where it is not traced; `spans` takes what the
    edge itself does for it.
    """

    def __init__(
        self,
        alone: LocalGenerator,
        expected: ExpectedTarget,
        node: str,
        transport: Transport,
        placer: RequestPlacer,
        usable: Callable[[], Sequence[str]],
        clock: Callable[[], float],
        report: PeerReport,
        config: EdgeConfig | None = None,
        alarm: AcceptanceAlarm | None = None,
        traceparent: Callable[[], str] = str,
        spans: StepSpans = NO_SPANS,
    ) -> None:
        self.version = expected.version
        self.config = config or EdgeConfig()
        self._transport, self._usable, self._clock = transport, usable, clock
        self._traceparent, self._spans = traceparent, spans
        self._drafter = AheadDrafter(alone, clock, FIRST_DRAFT_MS)
        tokenizer = alone.vocabulary.tokenizer.digest
        self._clouds = CloudConnections(transport, node, expected.digest, tokenizer, MAX_PARTS_KNOWN)
        self._attempts = CloudAttempts(self._clouds, placer, clock, report, self.config, alarm)
        self._writing: dict[int, InFlightRequest] = {}  # by index
        self._answers: dict[int, Completion | RequestRefused] = {}
        self._late, self._late_in_full = (
            LateCompletions(self.config.max_late),
            LateCompletions(self.config.max_late),
        )
        self._forms: WeakKeyDictionary[TokenAutomaton, tuple[bytes, bytes]] = WeakKeyDictionary()

    @property
    def dialect(self) -> PromptDialect:
        return self._drafter.generator.dialect

    @property
    def traffic(self) -> LinkTraffic:
        return self._clouds.traffic

    @property
    def speculation_stats(self) -> SpeculationStats:
        counts = self._attempts.counts
        return SpeculationStats(
            counts.num_answers,
            counts.num_tokens,
            counts.num_passes,
            counts.acceptance,
            self._attempts.warning,
            num_drafted=counts.num_drafted,
            num_accepted=counts.num_accepted,
        )

    def write(self, requests: Sequence[GenerationRequest]) -> list[Completion | RequestRefused]:
        """One answer per request, in order, each by its deadline: the target's, or a provisional one."""
        self._answers = {}
        now_s = self._clock()
        for place, request in enumerate(requests):
            found = self._start(request, now_s + _deadline_s(request))
            if isinstance(found, RequestRefused):
                self._answers[place] = found
            else:
                self._writing[place] = found
        try:
            while True:
                self._receive_all()
                network = self._advance()
                if not self._writing:
                    return [self._answers[place] for place in range(len(requests))]
                if not self._draft():
                    self._wait(network)
        finally:
            for inflight in self._writing.values():
                self._abandon(inflight)
            self._writing.clear()

    def take_late_completions(self) -> list[tuple[str, Completion | RequestRefused]]:
        """Answers that came since the last call, by the id of their request, without waiting; each once.

        A refusal says that none will come.
        """
        self._receive_all()
        self._advance()
        return self._late.take_all()

    def late_in_full(self) -> list[tuple[str, Completion | RequestRefused]]:
        """The same of requests to the target in full precision."""
        self._receive_all()
        self._advance()
        return self._late_in_full.take_all()

    def request_completions(self, requests: Sequence[GenerationRequest]) -> None:
        """Ask for answers that no decision waits for: they come late. One that is under attempt is not asked twice.

        Raises: InvalidInput for a request without an id, that would identify its answer.
        """
        for request in requests:
            if not request.id:
                raise InvalidInput("a request needs an id, so that it can be answered late")
            late = self._store(request)
            if late.knows(request.id):
                continue
            found = self._start(request, self._clock() + self.config.late_answer_timeout_ms / 1e3)
            if isinstance(found, RequestRefused):
                late.record_refusal(request.id, found)
            else:
                self._defer(found)
        self._receive_all()
        self._advance()

    def wait_ready(self, timeout_s: float) -> list[str]:
        """The usable clouds, waiting at most `timeout_s` for the first of them."""
        until_s = self._clock() + timeout_s
        while True:
            self._receive_all()
            ready = [cloud.node for cloud in self._clouds if cloud.is_open]
            left_s = until_s - self._clock()
            if ready or left_s <= 0.0:
                return ready
            self._wait(None, left_s)

    def close(self) -> None:
        """Cancel everything at the clouds; late answers are no longer reported."""
        for late in (self._late, self._late_in_full):
            for inflight in late:
                self._abandon(inflight)
            late.clear()

    # --- the loop

    def _receive_all(self) -> None:
        """Handle what has arrived, without waiting."""
        for _ in range(_MAX_ARRIVALS):
            arrival = self._transport.receive(0.0)
            if arrival is None:
                break
            self._attempts.receive(arrival)
        self._clouds.flush()

    def _wait(self, network: NetworkConditions | None, most_s: float = 1.0) -> None:
        """Wait for the next arrival, or for the next thing to do."""
        now_s = self._clock()
        wait_s = min(most_s, POLL_MS / 1e3)
        if network is not None:
            inflights = (*self._writing.values(), *self._late, *self._late_in_full)
            wait_s = min([wait_s, *(next_change_s(each, network, self.config) - now_s for each in inflights)])
        arrival = self._transport.receive(max(wait_s, _MIN_WAIT_S))
        if arrival is not None:
            self._attempts.receive(arrival)

    def _advance(self) -> NetworkConditions:
        """Finish complete requests; for the others do what the network conditions require."""
        network = self._network_conditions()
        for place, inflight in list(self._writing.items()):
            if inflight.is_whole:
                self._finish(inflight, place, self._completion(inflight))
            else:
                self._act(inflight, next_action(inflight, self._for(inflight, network), self.config), place)
        for inflight in (*self._late, *self._late_in_full):
            if inflight.is_whole:
                self._finish(inflight, -1, self._completion(inflight))
            else:
                self._act(inflight, next_action(inflight, self._for(inflight, network), self.config), -1)
        return network

    def _draft(self) -> bool:
        """Draft a slice for requests that need one, and send windows; whether anything was done."""
        wanting = [
            each for each in self._writing.values() if each.num_wanted and self._attempts.takes_windows(each)
        ]
        for inflight in self._drafted(wanting):
            inflight.can_draft = False
            if inflight.edge_drafted is not None:
                self._attempts.continue_on_cloud(inflight, inflight.edge_drafted)
        num_sent = sum(map(self._attempts.send_windows, self._writing.values()))
        return bool(wanting or num_sent)

    def _drafted(self, wanting: Sequence[InFlightRequest]) -> list[InFlightRequest]:
        """Draft a slice; the requests for which nothing can be drafted."""
        if not (wanting and self._spans.is_traced):
            return self._drafter.draft(wanting)
        began_s, num_before = self._clock(), sum(len(each.drafted.tokens) for each in wanting)
        failed = self._drafter.draft(wanting)
        num_drafted = sum(len(each.drafted.tokens) for each in wanting) - num_before
        self._spans.add("draft", self._clock() - began_s, 0.0, {"htfi.num_drafted": num_drafted})
        return failed

    def _network_conditions(self) -> NetworkConditions:
        now_s, usable = self._clock(), set(self._usable())
        for cloud in self._clouds.overdue(now_s - _HELLO_FACTOR * self.config.hello_timeout_ms / 1e3):
            self._attempts.end(cloud, "it sent no welcome")
        usable_clouds = [cloud for cloud in self._clouds if cloud.is_open and cloud.node in usable]
        return NetworkConditions(
            now_s,
            list(dict.fromkeys(cloud.node for cloud in usable_clouds)),
            list(dict.fromkeys(cloud.node for cloud in usable_clouds if not cloud.is_draining)),
            any(cloud.awaits_welcome and cloud.node in usable for cloud in self._clouds),
            sum(map(self._drafter.finish_ms, self._writing.values())) / 1e3,
        )

    def _for(self, inflight: InFlightRequest, network: NetworkConditions) -> NetworkConditions:
        """The network conditions for a request that not every cloud may receive or can answer."""
        tags, in_full = inflight.tokenized.request.residency, inflight.tokenized.request.in_full
        if not tags and not in_full:
            return network
        taking = [node for node in network.taking if self._clouds.admits(node, tags)]
        return network._replace(
            taking=[node for node in taking if not in_full or self._clouds.has_full(node)]
        )

    def _store(self, request: GenerationRequest) -> LateCompletions:
        """Late answers of a request's precision: those in full precision displace none of the others."""
        return self._late_in_full if request.in_full else self._late

    # --- actions for a request

    def _start(self, request: GenerationRequest, until_s: float) -> InFlightRequest | RequestRefused:
        asked = self._drafter.generator.tokenize(request)
        if isinstance(asked, RequestRefused):
            return asked
        try:
            sent = WireRequest.of(asked, self._form(asked))
        except InvalidInput as error:
            return RequestRefused(str(error))
        known = self._store(request).take_back(request.id, sent.name)
        if known is not None:
            known.deadline_s = until_s
            return known
        return InFlightRequest(asked, sent, self._clock(), until_s, self._traceparent())

    def _form(self, asked: TokenizedRequest) -> tuple[bytes, bytes]:
        """A grammar's name and bytes, computed once. Raises: InvalidInput for one that no peer can read."""
        known = self._forms.get(asked.grammar)
        if known is None:
            known = self._forms[asked.grammar] = grammar_part(asked)
        return known

    def _act(self, inflight: InFlightRequest, chosen: NextAction, place: int) -> None:
        match chosen.action:
            case RequestAction.WAIT:
                pass
            case RequestAction.HEDGE:
                self._attempts.open(inflight, chosen.clouds, is_hedge=True)
            case RequestAction.OPEN | RequestAction.MOVE:
                if chosen.action is RequestAction.MOVE:
                    self._attempts.leave_unusable(inflight)
                if reason := self._attempts.open(inflight, chosen.clouds):
                    self._finish_alone(inflight, reason, place)
            case RequestAction.ASK_AGAIN:
                self._attempts.repeat(inflight)
            case RequestAction.ALONE:
                self._finish_alone(inflight, chosen.reason, place)
            case RequestAction.GIVE_UP:
                self._finish(inflight, place, RequestRefused(chosen.reason))
            case _:
                assert_never(chosen.act)

    def _finish(self, inflight: InFlightRequest, place: int, answer: Completion | RequestRefused) -> None:
        """Finish a request."""
        self._abandon(inflight)
        if inflight.is_late:
            self._store(inflight.tokenized.request).record(inflight, answer)
        else:
            del self._writing[place]
            self._note_answered(inflight, answer)
            self._answers[place] = answer

    def _note_answered(self, inflight: InFlightRequest, answer: Completion | RequestRefused) -> None:
        if self._spans.is_traced:
            figures: dict[str, AttributeValue] = {
                "htfi.num_tokens": len(inflight.sequence.tokens),
                "htfi.num_drafted": inflight.num_drafted,
                "htfi.num_accepted": inflight.num_accepted,
                "htfi.num_clouds": inflight.num_opened,
                "htfi.is_provisional": not inflight.is_whole,
                "htfi.is_refused": isinstance(answer, RequestRefused),
            }
            self._spans.add("request", self._clock() - inflight.started_s, 0.0, figures)

    def _finish_alone(self, inflight: InFlightRequest, reason: str, place: int) -> None:
        """Answer with the draft; the target's answer may come late."""
        began_s = self._clock()
        answer = self._drafter.finish(inflight)
        if isinstance(answer, RequestRefused):  # other drafted requests may hold the memory
            for other in self._writing.values():
                self._drafter.leave(other)
            answer = self._drafter.finish(inflight)
        if isinstance(answer, Completion):
            self._attempts.counts.record_completion(len(answer.tokens) - len(inflight.sequence.tokens))
            if self._spans.is_traced:
                num_drafted = len(answer.tokens) - len(inflight.sequence.tokens)
                self._spans.add(
                    "finish alone", self._clock() - began_s, 0.0, {"htfi.num_drafted": num_drafted}
                )
            answer = provisional_completion(inflight, answer, self._drafter.generator.version, reason)
        for attempt in inflight.attempts:
            self._attempts.learn(inflight, attempt)
        if not inflight.tokenized.request.id or not self.config.max_late:
            self._finish(inflight, place, answer)
            return
        del self._writing[place]
        self._note_answered(inflight, answer)
        self._answers[place] = answer
        inflight.deadline_s = self._clock() + self.config.late_answer_timeout_ms / 1e3
        self._defer(inflight)
        for attempt in inflight.attempts:
            self._attempts.continue_on_cloud(inflight, attempt)

    def _completion(self, inflight: InFlightRequest) -> Completion:
        self._attempts.counts.record_completion(len(inflight.sequence.tokens))
        if not inflight.is_late:
            for attempt in inflight.attempts:
                self._attempts.learn(inflight, attempt)
        return target_completion(inflight, self._drafter.generator.version)

    def _abandon(self, inflight: InFlightRequest) -> None:
        self._drafter.leave(inflight)
        self._attempts.cancel_all(inflight)

    def _defer(self, inflight: InFlightRequest) -> None:
        for given_up in self._store(inflight.tokenized.request).defer(inflight):
            self._abandon(given_up)


def _deadline_s(request: GenerationRequest) -> float:
    """Seconds that an answer may take, whatever was requested."""
    wanted_ms = 0.0 if math.isnan(request.deadline_ms) else request.deadline_ms
    return min(max(wanted_ms, 0.0), _MAX_DEADLINE_MS) / 1e3


class FullPrecisionGenerator:
    """The clouds' target in full precision, for deep readings, which no decision waits for. Implements
    `LateTextGenerator`.

    No draft guesses for it or replaces it. `version` is the target's in full precision.
    """

    speculation_stats: SpeculationStats | None = None

    def __init__(self, linked: LinkedGenerator, version: str) -> None:
        self._linked = linked
        self.version = version

    @property
    def dialect(self) -> PromptDialect:
        return self._linked.dialect

    def write(self, requests: Sequence[GenerationRequest]) -> list[Completion | RequestRefused]:
        """Refusals only: use `request_completions`."""
        return [RequestRefused("a cloud's target in full precision only answers late") for _ in requests]

    def take_late_completions(self) -> list[tuple[str, Completion | RequestRefused]]:
        """Answers that came since the last call, by the id of their request; see `LateTextGenerator`."""
        return self._linked.late_in_full()

    def request_completions(self, requests: Sequence[GenerationRequest]) -> None:
        """Ask the clouds that have it."""
        self._linked.request_completions([replace(request, in_full=True) for request in requests])
