"""The author whose target is elsewhere: an edge's draft guesses, clouds settle, and no weather leaves a question open.

Narrative asks it, as any author. It implements `LateAuthor`: what the clouds do not settle in time is finished by the
draft, provisionally, from the last settled token; the target's own answer then comes `late`.
One thread at a time; frames are exchanged only during its calls.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple, assert_never

from msgspec.structs import replace

from htfi.decoding.acceptance_alarm import AcceptanceAlarm, Change
from htfi.decoding.author import LocalAuthor
from htfi.decoding.chaining import Chaining
from htfi.decoding.evidence import Evidence
from htfi.decoding.link.clouds import Cloud, Clouds, Traffic
from htfi.decoding.link.edge_config import EdgeConfig
from htfi.decoding.link.forms import encode_form
from htfi.decoding.link.frames import Lead, Leave, Need, Refused, Settled, Welcome, Why, decode, pack
from htfi.decoding.link.parts import part_name, request_name
from htfi.decoding.link.ports import Arrival, Finished, Happening, Placer, Transport, Wanted
from htfi.decoding.link.pursuit import Pursuit, Sent, Took, Way
from htfi.decoding.link.pursuit_course import Act, Course, Weather, course, wakes_s
from htfi.decoding.stem import Asked
from htfi.decoding.strategies.chain import Chain
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.writing import Dialect, Refusal, Request, Spoken, Writing

ALONE = "edge alone"
_TOLD = {
    Lead.PLAIN: ("plain", "plain"),
    Lead.CLOUD: ("cloud", "with its own draft"),
    Lead.LOCKSTEP: ("lockstep", "in lock-step"),
    Lead.FLIGHT: ("flight", "in flight"),
}
_LONG_MS = 1e9
_MOST_OPENED = 64  # times that one request is opened, whatever happens


class Expected(NamedTuple):
    """The target that all clouds must have: `version` as an author tells it, its digest or the beginning of it."""

    version: str
    digest: str


class LinkedAuthor:
    """`alone` is the draft as an author of its own; its sessions are drafted in as well. `usable` names the clouds
    that health does not give up; `report` is told what happens to peers: peer, what, words. `clock` is in seconds.
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
        report: Callable[[str, str, str], None],
        config: EdgeConfig | None = None,
        alarm: AcceptanceAlarm | None = None,
    ) -> None:
        self.version = expected.version
        self.config = config or EdgeConfig()
        self.evidence = Evidence()
        self._alone, self._chain = alone, Chain(alone.sessions)
        self._one_by_one = isinstance(alone.sessions.network, Chaining)
        self._transport, self._placer, self._usable = transport, placer, usable
        self._clock, self._report = clock, report
        tokenizer = alone.vocabulary.tokenizer.digest
        self._clouds = Clouds(transport, node, expected.digest, tokenizer, self.config.max_parts_known)
        self._open: dict[tuple[str, int], tuple[Pursuit, Way]] = {}  # by stream and handle
        self._writing: dict[int, Pursuit] = {}  # by place
        self._late: OrderedDict[str, Pursuit] = OrderedDict()  # by the request's id
        self._told_late: OrderedDict[str, Writing | Refusal] = OrderedDict()
        self._answers: dict[int, Writing | Refusal] = {}
        self._told_of: dict[str, str] = {}  # what was reported of a cloud that is not used
        self._draft_ms = self.config.draft_ms  # a token, as measured
        self._alarm, self._warning = alarm, ""

    @property
    def dialect(self) -> Dialect:
        return self._alone.dialect

    @property
    def traffic(self) -> Traffic:
        return self._clouds.traffic

    @property
    def spoken(self) -> Spoken:
        told = self.evidence
        return Spoken(told.num_answers, told.num_tokens, told.num_passes, told.acceptance, self._warning)

    # --- what is asked of it

    def write(self, requests: Sequence[Request]) -> list[Writing | Refusal]:
        """One answer per request, in order, each by its deadline: the target's, or a provisional one."""
        self._answers = {}
        now_s = self._clock()
        for place, request in enumerate(requests):
            found = self._begin(request, now_s, now_s + request.deadline_ms / 1e3)
            if isinstance(found, Refusal):
                self._answers[place] = found
            else:
                self._writing[place] = found
        try:
            while self._writing:
                self._hear()
                self._steer()
                if self._writing and not self._draft():
                    self._listen()
        finally:
            for pursuit in self._writing.values():
                self._abandon(pursuit)
            self._writing.clear()
        return [self._answers[place] for place in range(len(requests))]

    def late(self) -> list[tuple[str, Writing | Refusal]]:
        """Answers that came since the last call, by the id of their request, without waiting; each once."""
        self._hear()
        self._steer()
        told = list(self._told_late.items())
        self._told_late.clear()
        return told

    def pursue(self, requests: Sequence[Request]) -> None:
        """Ask for answers that nobody waits for: they come late. One that is under way is not asked twice."""
        now_s = self._clock()
        for request in requests:
            if request.id in self._late or request.id in self._told_late:
                continue
            found = self._begin(request, now_s, now_s + self.config.late_ms / 1e3)
            if isinstance(found, Refusal):
                self._tell_late(request.id, found)
            else:
                self._put_off(found)
        self._hear()
        self._steer()

    def wait_ready(self, timeout_s: float) -> list[str]:
        """The clouds that may be asked, waiting at most so long for the first of them."""
        until_s = self._clock() + timeout_s
        while not (ready := [cloud.node for cloud in self._clouds if cloud.is_open]):
            left_s = until_s - self._clock()
            if left_s <= 0.0:
                break
            self._take(self._transport.receive(min(left_s, self.config.look_ms / 1e3)))
        return ready

    def close(self) -> None:
        """Tell the clouds that nothing more is wanted; what was late is not told any more."""
        for pursuit in self._late.values():
            self._abandon(pursuit)
        self._late.clear()

    # --- what comes

    def _hear(self) -> None:
        """Take all that has arrived, without waiting."""
        while (arrival := self._transport.receive(0.0)) is not None:
            self._take(arrival)
        self._clouds.flush()

    def _listen(self) -> None:
        """Wait for the next arrival, or for the next thing to do."""
        now_s = self._clock()
        weather = self._weather(now_s)
        wakes = [
            wakes_s(each, self._for(each, weather), self.config)
            for each in (*self._writing.values(), *self._late.values())
        ]
        wait_s = min(min(wakes) - now_s, self.config.look_ms / 1e3)
        self._take(self._transport.receive(max(wait_s, 0.0)))
        self._clouds.flush()

    def _take(self, arrival: Arrival | None) -> None:
        if arrival is None:
            return
        match arrival.happening:
            case Happening.UP:
                self._clouds.up(arrival.stream, arrival.node, self._clock())
            case Happening.DOWN:
                self._down(arrival.stream)
            case Happening.FRAME:
                self._frame(arrival)
            case _:
                assert_never(arrival.happening)

    def _down(self, stream: str) -> None:
        cloud = self._clouds.down(stream)
        lost = [key for key in self._open if key[0] == stream]
        now_s = self._clock()
        for key in lost:
            pursuit, way = self._open.pop(key)
            pursuit.lose(way, now_s)
        if cloud is not None and lost:
            self._report(cloud.node, "reroute", f"{len(lost)} requests were open there when its stream ended")

    def _frame(self, arrival: Arrival) -> None:
        cloud = self._clouds.at(arrival.stream)
        if cloud is None:
            return
        try:
            frame = decode(arrival.body)
        except InvalidInput as error:
            self._report(cloud.node, "refused", str(error))
            self._clouds.drop(cloud, str(error))
            return
        self.traffic.note_received(frame, len(arrival.body))
        match frame:
            case Welcome():
                self._welcome(cloud, frame)
            case Settled():
                self._settled(cloud, frame)
            case Refused():
                self._refused(cloud, frame)
            case Need():
                self._needed(cloud, frame)
            case _:
                self._contradicted(cloud, f"it sent a {type(frame).__name__}, which is an edge's to send")

    def _welcome(self, cloud: Cloud, welcome: Welcome) -> None:
        words = self._clouds.welcomed(cloud, welcome)
        if words:
            self._tell_refused(cloud, words)
        else:
            self._told_of.pop(cloud.node, None)

    def _tell_refused(self, cloud: Cloud, words: str) -> None:
        if self._told_of.get(cloud.node) != words:
            self._told_of[cloud.node] = words
            self._report(cloud.node, "refused", words)

    def _settled(self, cloud: Cloud, frame: Settled) -> None:
        pursuit, way = self._open.get((cloud.stream, frame.handle), (None, None))
        if pursuit is None or way is None:
            self.traffic.num_stale += 1
            return
        now_s = self._clock()
        stood, drafted, num_rounds = pursuit.num_stood, pursuit.num_drafted, len(pursuit.rounds)
        match pursuit.take(way, frame, now_s):
            case Took.NEWS:
                if len(pursuit.rounds) > num_rounds:
                    drafted, stood = pursuit.num_drafted - drafted, pursuit.num_stood - stood
                    self.evidence.note_round(drafted, stood)
                    self._watch(pursuit.asked.request.kind, drafted, stood)
            case Took.NOTHING:
                pass
            case Took.STALE:
                self.traffic.num_stale += 1
            case Took.GAP:  # what it settled before went to an epoch that is over
                self._leave(pursuit, way)
            case Took.WRONG:
                self._contradicted(cloud, f"{Took.WRONG.value}: are its weights what it says?")

    def _contradicted(self, cloud: Cloud, words: str) -> None:
        self._tell_refused(cloud, words)
        self._clouds.contradicted(cloud, words)
        self._down(cloud.stream)

    def _refused(self, cloud: Cloud, frame: Refused) -> None:
        why, words = frame.why, frame.words[:200]
        if frame.handle < 0:
            if why in (Why.VERSION, Why.DIGEST, Why.IDENTITY, Why.DRAINING):
                cloud.refused = words or "it refuses this edge"
                self._tell_refused(cloud, cloud.refused)
            else:
                self._report(cloud.node, "refused", words)
            return
        pursuit, way = self._open.get((cloud.stream, frame.handle), (None, None))
        if pursuit is None or way is None or frame.epoch != way.epoch:
            self.traffic.num_stale += 1
            return
        now_s = self._clock()
        del self._open[(cloud.stream, frame.handle)]
        pursuit.ways.remove(way)
        match why:
            case Why.DRAINING:
                cloud.is_draining = True
                pursuit.lost_s = now_s
            case Why.CANNOT:
                pursuit.refusal = words or "the target cannot answer it"
            case Why.BUSY | Why.STALE:
                retry_ms = frame.retry_ms if frame.retry_ms >= 0 else _LONG_MS
                pursuit.barred[cloud.node] = now_s + max(retry_ms, 1) / 1e3
            case _:
                pursuit.barred[cloud.node] = now_s + _LONG_MS / 1e3
        self._report(cloud.node, "stale" if why == Why.STALE else "refused", words)

    def _needed(self, cloud: Cloud, need: Need) -> None:
        for stream, handle in self._open:
            if stream == cloud.stream:
                data = self._open[stream, handle][0].sent.parts.get(need.name)
                if data is not None:
                    self._clouds.send_again(cloud, need, data)
                    return

    # --- what is done

    def _steer(self) -> None:
        now_s = self._clock()
        weather = self._weather(now_s)
        for place, pursuit in list(self._writing.items()):
            if pursuit.is_whole:
                self._finish(place, pursuit)
            else:
                self._act(pursuit, course(pursuit, self._for(pursuit, weather), self.config), place)
        for pursuit in list(self._late.values()):
            if pursuit.is_whole:
                self._finish_late(pursuit)
            else:
                self._act(pursuit, course(pursuit, self._for(pursuit, weather), self.config), -1)

    def _act(self, pursuit: Pursuit, chosen: Course, place: int) -> None:
        match chosen.act:
            case Act.WAIT:
                pass
            case Act.OPEN | Act.HEDGE:
                self._place(pursuit, chosen.clouds, place, is_hedge=chosen.act is Act.HEDGE)
            case Act.MOVE:
                for way in list(pursuit.ways):
                    self._report(way.cloud, "reroute", "it is given up: a request goes on elsewhere")
                    self._leave(pursuit, way)
                self._place(pursuit, chosen.clouds, place)
            case Act.ALONE:
                self._go_alone(pursuit, chosen.words, place)
            case Act.GIVE_UP:
                self._abandon(pursuit)
                refusal = Refusal(chosen.words)
                if pursuit.is_late:
                    del self._late[pursuit.asked.request.id]
                    self._tell_late(pursuit.asked.request.id, refusal)
                else:
                    del self._writing[place]
                    self._answers[place] = refusal
            case _:
                assert_never(chosen.act)

    def _weather(self, now_s: float) -> Weather:
        usable = set(self._usable())
        standing = [cloud for cloud in self._clouds if cloud.is_open and cloud.node in usable]
        return Weather(
            now_s,
            list(dict.fromkeys(cloud.node for cloud in standing)),
            list(dict.fromkeys(cloud.node for cloud in standing if not cloud.is_draining)),
            any(cloud.is_greeting and cloud.node in usable for cloud in self._clouds),
            sum(map(self._alone_ms, self._writing.values())) / 1e3,
        )

    def _for(self, pursuit: Pursuit, weather: Weather) -> Weather:
        """The weather for a request that not every cloud may take."""
        tags = pursuit.asked.request.residency
        if not tags:
            return weather
        return weather._replace(taking=[node for node in weather.taking if tags <= self._tags(node)])

    def _tags(self, node: str) -> frozenset[str]:
        cloud = self._clouds.named(node)
        return frozenset(cloud.welcome.residency if cloud and cloud.welcome else ())

    def _alone_ms(self, pursuit: Pursuit) -> float:
        if pursuit.ahead.is_done:
            return 0.0
        return self._draft_ms * pursuit.ahead.num_left

    def _begin(self, request: Request, now_s: float, until_s: float) -> Pursuit | Refusal:
        asked = self._alone.ask(request)
        if isinstance(asked, Refusal):
            return asked
        known = self._late.get(request.id) if request.id else None
        try:
            sent = _sent(asked)
        except InvalidInput as error:
            return Refusal(str(error))
        if known is not None and known.sent.name == sent.name:  # under way already: somebody waits for it now
            del self._late[request.id]
            known.is_late, known.until_s = False, until_s
            return known
        return Pursuit(asked, sent, now_s, until_s)

    def _place(self, pursuit: Pursuit, clouds: Sequence[str], place: int, is_hedge: bool = False) -> None:
        """Open a request at the cloud that the plan names."""
        now_s = self._clock()
        request, stem = pursuit.asked.request, pursuit.stem
        left_ms = 1e3 * (pursuit.until_s - now_s)
        wanted = Wanted(request.kind, stem.num_left, len(pursuit.asked.prompt), left_ms, request.residency)
        placed = self._placer.place(wanted, clouds)
        if not placed.cloud and not pursuit.is_late and not is_hedge:
            self._go_alone(pursuit, placed.words or "as planned", place)
            return
        node = placed.cloud if placed.cloud in clouds else clouds[0]
        cloud = self._clouds.named(node)
        pursuit.num_opened += 1
        if cloud is None or cloud.welcome is None or pursuit.num_opened > _MOST_OPENED:
            pursuit.refusal = "it was opened too often"
            return
        lead = placed.lead
        if lead in (Lead.LOCKSTEP, Lead.FLIGHT) and (pursuit.is_late or is_hedge or not pursuit.can_draft):
            lead = Lead.CLOUD
        if (lead is Lead.CLOUD and not cloud.welcome.has_draft) or request.max_draft == 0:
            lead = Lead.PLAIN
        in_flight = min(placed.in_flight, max(cloud.welcome.num_in_flight, 1))
        placed = placed._replace(cloud=node, lead=lead, in_flight=in_flight)
        way = Way(node, cloud.stream, cloud.next_handle(), pursuit.next_epoch(), placed, now_s)
        pursuit.ways.append(way)
        self._open[cloud.stream, way.handle] = pursuit, way
        self._send_open(cloud, pursuit, way)
        if is_hedge:
            self._report(node, "reroute", "asked beside a cloud that is late")

    def _send_open(self, cloud: Cloud, pursuit: Pursuit, way: Way) -> None:
        sent = pursuit.sent
        self._clouds.send_parts(cloud, sent.parts, (*sent.prompt, sent.form))
        left_ms = 1e3 * (pursuit.until_s - self._clock())
        self._clouds.send(cloud, pursuit.open(way, left_ms, self.config.budget_bytes))

    def _draft(self) -> bool:
        """Draft a slice for those who may use one, and send what may go out; whether anything was done."""
        wanting = [each for each in self._writing.values() if self._may_draft(each)]
        if self._one_by_one:  # a chain in one call is quicker than a pass for each token, and goes out sooner
            wanting = (
                wanting[:1] if len(wanting) < 2 else [min(wanting, key=lambda each: len(each.ahead.tokens))]
            )
        if wanting:
            began_s = self._clock()
            for each in wanting:
                if each.diverged_at >= 0:
                    self._chain.rewind(each.ahead, each.diverged_at)
                    each.diverged_at = -1
            lengths = [each.num_wanted for each in wanting]
            try:
                trees = self._chain.speculate([each.ahead for each in wanting], lengths)
            except DependencyUnavailable:
                trees = []
            spent_ms = 1e3 * (self._clock() - began_s)
            num = sum(map(len, trees))
            if num:
                self._draft_ms += 0.1 * (spent_ms / num - self._draft_ms)
            for at, each in enumerate(wanting):
                each.draft_ms += spent_ms / len(wanting)
                if trees and len(trees[at]):
                    each.draft(trees[at].tokens, trees[at].states[-1])
                else:
                    self._cannot_draft(each)
        num_sent = sum(map(self._send_windows, self._writing.values()))
        return bool(wanting or num_sent)

    def _may_draft(self, pursuit: Pursuit) -> bool:
        way = pursuit.leading
        if way is None or not pursuit.num_wanted:
            return False
        cloud = self._clouds.at(way.stream)
        return cloud is not None and not cloud.waiting

    def _send_windows(self, pursuit: Pursuit) -> int:
        num = 0
        while (way := pursuit.leading) is not None:
            cloud = self._clouds.at(way.stream)
            if cloud is None or cloud.waiting or (found := pursuit.next_window()) is None:
                break
            self._clouds.send(cloud, found[1])
            num += 1
        return num

    def _cannot_draft(self, pursuit: Pursuit) -> None:
        """No room, or a broken draft: the cloud goes on without guesses."""
        pursuit.can_draft = False
        way = pursuit.leading
        if way is not None:
            self._go_on(pursuit, way)

    def _go_on(self, pursuit: Pursuit, way: Way) -> None:
        """Let the cloud go on with a request without this edge's guesses."""
        cloud = self._clouds.at(way.stream)
        if cloud is None or cloud.welcome is None:
            return
        allowed = cloud.welcome.has_draft and pursuit.asked.request.max_draft != 0
        way.placed = way.placed._replace(lead=Lead.CLOUD if allowed else Lead.PLAIN)
        way.epoch = pursuit.next_epoch()
        self._send_open(cloud, pursuit, way)

    def _go_alone(self, pursuit: Pursuit, words: str, place: int) -> None:
        """Finish an answer with the draft; the target's may come late."""
        del self._writing[place]
        self._answers[place] = self._alone_answer(pursuit, words)
        for way in pursuit.ways:
            self._learn(pursuit, way)
        request = pursuit.asked.request
        if not request.id or not self.config.max_late:
            self._abandon(pursuit)
            return
        pursuit.until_s = self._clock() + self.config.late_ms / 1e3
        for way in pursuit.ways:
            self._go_on(pursuit, way)
        self._put_off(pursuit)

    def _alone_answer(self, pursuit: Pursuit, words: str) -> Writing | Refusal:
        settled, asked = list(pursuit.stem.tokens), pursuit.asked
        began_s = self._clock()
        self._chain.leave(pursuit.ahead)  # its room is needed
        tokens = pursuit.ahead.tokens if pursuit.ahead.is_done else settled
        answer = self._alone.write_on(asked.prompt, asked.request, tokens)
        if isinstance(answer, Refusal):
            return answer
        num = len(answer.tokens) - len(tokens)
        if num:
            self._draft_ms += 0.1 * (1e3 * (self._clock() - began_s) / num - self._draft_ms)
        if not pursuit.ahead.is_done:
            pursuit.draft(answer.tokens[len(pursuit.ahead.tokens) :], asked.form.done)
        self.evidence.note_answer(len(answer.tokens) - len(settled))
        return replace(
            answer,
            strategy="alone",
            draft=self._alone.version,
            rounds=tuple(pursuit.rounds),
            place=f"{ALONE}, {words}",
            num_settled=len(settled),
        )

    def _finish(self, place: int, pursuit: Pursuit) -> None:
        del self._writing[place]
        self._answers[place] = self._whole(pursuit)

    def _finish_late(self, pursuit: Pursuit) -> None:
        del self._late[pursuit.asked.request.id]
        self._tell_late(pursuit.asked.request.id, self._whole(pursuit))

    def _whole(self, pursuit: Pursuit) -> Writing:
        asked = pursuit.asked
        way = max(pursuit.ways, key=lambda each: each.num_tokens)
        if not pursuit.is_late:
            self._learn(pursuit, way)
        strategy, told = _TOLD[way.placed.lead]
        self.evidence.note_answer(len(pursuit.stem.tokens))
        self._abandon(pursuit)
        return Writing(
            asked.form.fields(pursuit.stem.tokens),
            tuple(pursuit.stem.tokens),
            len(asked.prompt),
            0,
            tuple(asked.prompt),
            strategy,
            self._alone.version if pursuit.num_drafted else "",
            tuple(pursuit.rounds),
            f"{way.cloud}, {told}",
        )

    def _learn(self, pursuit: Pursuit, way: Way) -> None:
        now_s = self._clock()
        first_s = min(way.first_s, now_s) - way.opened_s
        self._placer.learn(
            Finished(
                way.placed,
                pursuit.asked.request.kind,
                way.num_tokens,
                1e3 * first_s,
                1e3 * (now_s - way.opened_s),
                pursuit.num_drafted,
                pursuit.num_stood,
                pursuit.draft_ms,
            )
        )

    def _leave(self, pursuit: Pursuit, way: Way) -> None:
        """Want no more of a request at one cloud."""
        cloud = self._clouds.at(way.stream)
        known = self._open.pop((way.stream, way.handle), None)
        if known is not None and cloud is not None and not way.is_done:
            self._clouds.send(cloud, Leave(way.handle, way.epoch))
        pursuit.ways.remove(way)

    def _abandon(self, pursuit: Pursuit) -> None:
        self._chain.leave(pursuit.ahead)
        for way in list(pursuit.ways):
            self._leave(pursuit, way)

    def _put_off(self, pursuit: Pursuit) -> None:
        """Await an answer late; where there are too many, the oldest is given up."""
        pursuit.is_late = True
        before = self._late.pop(pursuit.asked.request.id, None)
        if before is not None and before is not pursuit:
            self._abandon(before)
        self._late[pursuit.asked.request.id] = pursuit
        if len(self._late) > self.config.max_late:
            given_up, oldest = self._late.popitem(last=False)
            self._abandon(oldest)
            self._tell_late(given_up, Refusal("given up: too many answers are awaited late"))

    def _tell_late(self, request_id: str, answer: Writing | Refusal) -> None:
        self._told_late[request_id] = answer
        while len(self._told_late) > max(2 * self.config.max_late, 1):
            self._told_late.popitem(last=False)

    def _watch(self, kind: str, num_drafted: int, num_stood: int) -> None:
        change = self._alarm.learn(kind, num_drafted, num_stood) if self._alarm else None
        if change is Change.RAISED:
            self._warning = (
                f"{change.value}, at answer {self.evidence.num_answers:,}: is the draft stale, or was it changed? "
                "Answers are the target's own all the same, only later"
            )
        elif change is Change.CLEARED:
            self._warning = ""


def _sent(asked: Asked) -> Sent:
    """A request as it goes on the wire. Raises: InvalidInput for a form that no peer can read."""
    shared, rest = asked.prompt[: asked.num_shared], asked.prompt[asked.num_shared :]
    packed = [pack(ids) for ids in (shared, rest) if ids]
    form = encode_form(asked.request.form)
    prompt = tuple(map(part_name, packed))
    parts = dict(zip(prompt, packed, strict=True)) | {part_name(form): form}
    name = request_name(prompt, part_name(form), asked.request.seed, asked.sampling)
    return Sent(name, prompt, part_name(form), parts)
