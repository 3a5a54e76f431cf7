"""Where requests are open: at which clouds, on which streams, under which handles. The linked author owns one.

It opens, goes on and leaves, and takes what clouds say of a request; what is to be done is decided elsewhere.
"""

import math
from collections.abc import Callable, Sequence

from htfi.decoding.acceptance_alarm import AcceptanceAlarm, Change
from htfi.decoding.evidence import Evidence
from htfi.decoding.link.clouds import Cloud, Clouds
from htfi.decoding.link.edge_config import EdgeConfig
from htfi.decoding.link.frames import Lead, Leave, Need, Refused, Settled, Welcome, Why, decode
from htfi.decoding.link.ports import Arrival, Finished, Happening, Placer, Wanted
from htfi.decoding.link.pursuit import Pursuit, Took, Way
from htfi.domain.errors import InvalidInput

Report = Callable[[str, str, str], None]
_MOST_OPENED = 64  # times that one request is opened, whatever happens
_RETRY_MS = 10.0  # doubled with each opening, where a cloud does not say when to ask again
_TOLD_EVERY_S = 1.0  # refusals of requests, by one cloud
_WORDS = 200  # characters of a peer's that are passed on


class Ways:
    """`report` is told what happens to peers: peer, what, words."""

    def __init__(
        self,
        clouds: Clouds,
        placer: Placer,
        clock: Callable[[], float],
        report: Report,
        config: EdgeConfig,
        alarm: AcceptanceAlarm | None,
    ) -> None:
        self.evidence = Evidence()
        self.warning = ""
        self._clouds, self._placer = clouds, placer
        self._clock, self._report, self._config, self._alarm = clock, report, config, alarm
        self._open: dict[tuple[str, int], tuple[Pursuit, Way]] = {}
        self._told_of: dict[str, str] = {}  # why a cloud is not used, as it was reported
        self._quiet_s: dict[str, float] = {}  # until when refusals of requests are not reported

    # --- what comes

    def take(self, arrival: Arrival) -> None:
        match arrival.happening:
            case Happening.UP:
                for old in [cloud for cloud in self._clouds if cloud.node == arrival.node]:
                    self.end(old, "")  # it may have ended unheard
                self._clouds.up(arrival.stream, arrival.node, self._clock())
            case Happening.DOWN:
                self._down(arrival.stream)
            case Happening.FRAME:
                cloud = self._clouds.at(arrival.stream)
                if cloud is not None:
                    self._frame(cloud, arrival.body)

    def _down(self, stream: str) -> None:
        cloud = self._clouds.down(stream)
        lost = [key for key in self._open if key[0] == stream]
        for key in lost:
            pursuit, way = self._open.pop(key)
            pursuit.lose(way, self._clock())
        if cloud is not None and lost:
            self._report(cloud.node, "reroute", f"its stream ended with {len(lost)} requests open there")

    def _frame(self, cloud: Cloud, body: bytes) -> None:
        try:
            frame = decode(body)
        except InvalidInput as error:
            self.end(cloud, str(error))
            return
        self._clouds.traffic.note_received(frame, len(body))
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
                self._wrong(cloud, f"it sent a frame that is an edge's to send: {type(frame).__name__}")

    def _welcome(self, cloud: Cloud, welcome: Welcome) -> None:
        if words := self._clouds.welcomed(cloud, welcome):
            self._tell_refused(cloud, words)
        elif self._told_of.pop(cloud.node, None) is not None:
            self._report(cloud.node, "reconnect", "it can be used again")

    def _settled(self, cloud: Cloud, frame: Settled) -> None:
        found = self._open.get((cloud.stream, frame.handle))
        if found is None:
            self._clouds.traffic.num_stale += 1
            return
        pursuit, way = found
        before = len(pursuit.rounds), pursuit.num_drafted, pursuit.num_stood
        match pursuit.take(way, frame, self._clock()):
            case Took.NEWS if len(pursuit.rounds) > before[0]:
                num_drafted, num_stood = pursuit.num_drafted - before[1], pursuit.num_stood - before[2]
                self.evidence.note_round(num_drafted, num_stood)
                self._watch(pursuit.asked.request.kind, num_drafted, num_stood)
            case Took.NEWS | Took.NOTHING:
                pass
            case Took.STALE:
                self._clouds.traffic.num_stale += 1
            case Took.GAP:  # what lies before went to an epoch that is over: ask anew, with all that is known
                self.leave(pursuit, way)
            case Took.WRONG:
                self._wrong(cloud, f"{Took.WRONG.value}: are its weights what it says?")

    def end(self, cloud: Cloud, words: str) -> None:
        """End a stream that is of no use; the next one may be."""
        if words:
            self._tell_refused(cloud, words)
        self._clouds.drop(cloud, words or "a newer stream is up")
        self._down(cloud.stream)

    def _wrong(self, cloud: Cloud, words: str) -> None:
        self._tell_refused(cloud, words)
        self._clouds.contradicted(cloud, words)
        self._down(cloud.stream)

    def _tell_refused(self, cloud: Cloud, words: str) -> None:
        """Once, however often it comes back the same."""
        if self._told_of.get(cloud.node) != words:
            self._told_of[cloud.node] = words
            self._report(cloud.node, "refused", words)

    def _refused(self, cloud: Cloud, frame: Refused) -> None:
        words = frame.words[:_WORDS]
        if frame.handle < 0:
            if frame.why == Why.DRAINING:
                cloud.is_draining = True
            elif frame.why in (Why.VERSION, Why.DIGEST, Why.IDENTITY):
                cloud.refused = words or "it refuses this edge"
            elif frame.why == Why.MALFORMED:  # spoilt on its way: whatever it was, it is told again
                for stream, handle in self._open:
                    if stream == cloud.stream:
                        self._open[stream, handle][1].heard_s = -math.inf
            self._tell_refused(cloud, words)
            return
        pursuit, way = self._open.get((cloud.stream, frame.handle), (None, None))
        if pursuit is None or way is None or frame.epoch != way.epoch:
            self._clouds.traffic.num_stale += 1
            return
        del self._open[cloud.stream, frame.handle]
        cloud.free(frame.handle, self._clock())
        pursuit.ways.remove(way)
        if frame.why == Why.DRAINING:
            cloud.is_draining = True
        elif frame.why == Why.CANNOT:
            pursuit.refusal = words or "the target cannot answer it"
        elif frame.why == Why.RESIDENCY:
            pursuit.barred[cloud.node] = math.inf
        else:
            wait_ms = frame.retry_ms if frame.retry_ms >= 0 else _RETRY_MS * 2 ** min(pursuit.num_opened, 8)
            pursuit.barred[cloud.node] = self._clock() + max(wait_ms, 1.0) / 1e3
        if self._clock() >= self._quiet_s.get(cloud.node, -math.inf):
            self._quiet_s[cloud.node] = self._clock() + _TOLD_EVERY_S
            self._report(cloud.node, "stale" if frame.why == Why.STALE else "refused", words)

    def _needed(self, cloud: Cloud, need: Need) -> None:
        for (stream, _), (pursuit, _) in self._open.items():
            data = pursuit.sent.parts.get(need.name) if stream == cloud.stream else None
            if data is not None:
                self._clouds.send_again(cloud, need, data)
                return

    def _watch(self, kind: str, num_drafted: int, num_stood: int) -> None:
        change = self._alarm.learn(kind, num_drafted, num_stood) if self._alarm else None
        if change is Change.RAISED:
            self.warning = (
                f"{change.value}, at answer {self.evidence.num_answers:,}: is the draft stale, or was it changed? "
                "Answers are the target's own all the same, only later"
            )
        elif change is Change.CLEARED:
            self.warning = ""

    # --- what is done

    def place(self, pursuit: Pursuit, clouds: Sequence[str], is_hedge: bool = False) -> str:
        """Open a request at the cloud that the plan names; why the plan would rather have it written alone, or ''."""
        now_s, request = self._clock(), pursuit.asked.request
        left_ms = 1e3 * (pursuit.until_s - now_s)
        num_left, num_prompt = pursuit.stem.num_left, len(pursuit.asked.prompt)
        placed = self._placer.place(
            Wanted(request.kind, num_left, num_prompt, left_ms, request.residency), clouds
        )
        if not placed.cloud and not (pursuit.is_late or is_hedge):
            return placed.words or "as planned"
        node = placed.cloud if placed.cloud in clouds else clouds[0]
        cloud = self._clouds.named(node)
        pursuit.num_opened += 1
        if cloud is None or cloud.welcome is None or pursuit.num_opened > _MOST_OPENED:
            pursuit.barred[node] = math.inf
            return ""
        is_led = placed.lead in (Lead.LOCKSTEP, Lead.FLIGHT)
        may_lead = pursuit.can_draft and request.max_draft != 0 and not (pursuit.is_late or is_hedge)
        placed = placed._replace(
            cloud=node,
            lead=placed.lead if is_led and may_lead else self._cloud_lead(cloud, pursuit, placed.lead),
            in_flight=max(min(placed.in_flight, cloud.welcome.num_in_flight), 1),
        )
        way = Way(node, cloud.stream, cloud.next_handle(now_s), pursuit.next_epoch(), placed, now_s, now_s)
        pursuit.ways.append(way)
        self._open[cloud.stream, way.handle] = pursuit, way
        self._send_open(cloud, pursuit, way)
        if is_hedge:
            self._report(node, "reroute", "asked as well: another cloud is late")
        return ""

    def go_on(self, pursuit: Pursuit, way: Way) -> None:
        """Let a cloud go on with a request in a new epoch, without this edge's guesses but those that there are."""
        cloud = self._clouds.at(way.stream)
        if cloud is not None and cloud.is_open and not way.is_done:
            way.placed = way.placed._replace(lead=self._cloud_lead(cloud, pursuit, Lead.CLOUD))
            way.epoch = pursuit.next_epoch()
            self._send_open(cloud, pursuit, way)

    def ask_again(self, pursuit: Pursuit) -> None:
        """Tell the clouds that have said nothing of a request for long what is known, and hear what they know."""
        now_s = self._clock()
        for way in pursuit.ways:
            cloud = self._clouds.at(way.stream)
            if cloud is not None and now_s >= pursuit.quiet_until_s(way, self._config.quiet_ms):
                way.heard_s, way.epoch = now_s, pursuit.next_epoch()
                way.num_asked_again += 1
                if way.first_s == math.inf:  # parts, or what it said to lack, may be what was lost
                    self._clouds.forget_parts(cloud, pursuit.sent.parts)
                self._send_open(cloud, pursuit, way)

    def send_windows(self, pursuit: Pursuit) -> int:
        """Send what may go out; how many windows."""
        num = 0
        while self.takes_windows(pursuit) and (found := pursuit.next_window()) is not None:
            way, window = found
            cloud = self._clouds.at(way.stream)
            assert cloud is not None, "a request is open on a stream that has ended"
            self._clouds.send(cloud, window)
            num += 1
        return num

    def takes_windows(self, pursuit: Pursuit) -> bool:
        way = pursuit.leading
        cloud = self._clouds.at(way.stream) if way else None
        return cloud is not None and not cloud.waiting

    def leave(self, pursuit: Pursuit, way: Way) -> None:
        """Want no more of a request at one cloud."""
        cloud = self._clouds.at(way.stream)
        known = self._open.pop((way.stream, way.handle), None)
        if known is not None and cloud is not None:
            cloud.free(way.handle, self._clock())
            if not way.is_done:
                self._clouds.send(cloud, Leave(way.handle, way.epoch))
        pursuit.ways.remove(way)

    def leave_all(self, pursuit: Pursuit) -> None:
        for way in list(pursuit.ways):
            self.leave(pursuit, way)

    def move(self, pursuit: Pursuit) -> None:
        """Leave clouds that are given up."""
        for way in list(pursuit.ways):
            self._report(way.cloud, "reroute", "it is given up: a request goes on elsewhere")
            self.learn(pursuit, way)
            self.leave(pursuit, way)

    def learn(self, pursuit: Pursuit, way: Way) -> None:
        """Let the plan learn what came of a request at a cloud, until now."""
        now_s, is_writer = self._clock(), way is pursuit.writer
        self._placer.learn(
            Finished(
                way.placed,
                pursuit.asked.request.kind,
                way.num_tokens,
                1e3 * (min(way.first_s, now_s) - way.opened_s),
                1e3 * (now_s - way.opened_s),
                pursuit.num_drafted if is_writer else 0,
                pursuit.num_stood if is_writer else 0,
                pursuit.draft_ms / pursuit.num_timed if pursuit.num_timed else 0.0,
                pursuit.is_whole and is_writer,
            )
        )

    def _cloud_lead(self, cloud: Cloud, pursuit: Pursuit, planned: Lead) -> Lead:
        """Who guesses where the edge does not."""
        has_draft = cloud.welcome is not None and cloud.welcome.has_draft
        allowed = planned is not Lead.PLAIN and has_draft and pursuit.asked.request.max_draft != 0
        return Lead.CLOUD if allowed else Lead.PLAIN

    def _send_open(self, cloud: Cloud, pursuit: Pursuit, way: Way) -> None:
        sent = pursuit.sent
        self._clouds.send_parts(cloud, sent.parts, (*sent.prompt, sent.form))
        left_ms = 1e3 * (pursuit.until_s - self._clock())
        self._clouds.send(cloud, pursuit.open(way, left_ms, self._config.budget_bytes))
