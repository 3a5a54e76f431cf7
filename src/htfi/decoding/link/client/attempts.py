"""Where requests are open: at which clouds, on which streams, under which handles.

It opens, continues and cancels attempts and handles the clouds' frames; what to do is decided by `next_action`.
"""

import math
from collections.abc import Callable, Sequence

from htfi.decoding.acceptance import AcceptanceAlarm, AlarmChange, SpeculationCounts
from htfi.decoding.link.client.connections import CloudConnection, CloudConnections
from htfi.decoding.link.client.request import CloudAttempt, FrameEffect, InFlightRequest
from htfi.decoding.link.config import EdgeConfig
from htfi.decoding.link.frames import (
    AcceptedFrame,
    CancelFrame,
    DraftLead,
    NeedFrame,
    RefusalReason,
    RefusedFrame,
    WelcomeFrame,
    decode,
)
from htfi.decoding.link.ports import (
    PlacementQuery,
    PlacementResult,
    RequestPlacer,
    StreamArrival,
    StreamEvent,
)
from htfi.domain.errors import InvalidInput

PeerReport = Callable[[str, str, str], None]
_MAX_OPENINGS = 64  # openings of one request, at most
_RETRY_MS = 10.0  # doubled with each opening, if a cloud does not say when to ask again
_REPORT_EVERY_S = 1.0  # between reported refusals of one cloud
_MAX_MESSAGE = 200  # characters of a peer's message


class CloudAttempts:
    """`report` is called for events of peers: peer, event, message."""

    def __init__(
        self,
        clouds: CloudConnections,
        placer: RequestPlacer,
        clock: Callable[[], float],
        report: PeerReport,
        config: EdgeConfig,
        alarm: AcceptanceAlarm | None,
    ) -> None:
        self.counts = SpeculationCounts()
        self.warning = ""
        self._clouds, self._placer = clouds, placer
        self._clock, self._report, self._config, self._alarm = clock, report, config, alarm
        self._open: dict[tuple[str, int], tuple[InFlightRequest, CloudAttempt]] = {}
        self._told_of: dict[str, str] = {}  # why a cloud is not used, as reported
        self._quiet_s: dict[str, float] = {}  # until when refusals are not reported

    # --- incoming

    def receive(self, arrival: StreamArrival) -> None:
        match arrival.event:
            case StreamEvent.UP:
                for old in [cloud for cloud in self._clouds if cloud.node == arrival.node]:
                    self.end(old, "")  # its end may not have arrived
                self._clouds.connected(arrival.stream, arrival.node, self._clock())
            case StreamEvent.DOWN:
                self._down(arrival.stream)
            case StreamEvent.FRAME:
                cloud = self._clouds.by_stream(arrival.stream)
                if cloud is not None:
                    self._frame(cloud, arrival.body)

    def _down(self, stream: str) -> None:
        cloud = self._clouds.disconnected(stream)
        lost = [key for key in self._open if key[0] == stream]
        for key in lost:
            pursuit, way = self._open.pop(key)
            pursuit.drop_attempt(way, self._clock())
        if cloud is not None and lost:
            self._report(cloud.node, "reroute", f"its stream ended with {len(lost)} requests open")

    def _frame(self, cloud: CloudConnection, body: bytes) -> None:
        try:
            frame = decode(body)
        except InvalidInput as error:
            self.end(cloud, str(error))
            return
        self._clouds.traffic.record_received(frame, len(body))
        match frame:
            case WelcomeFrame():
                self._welcome(cloud, frame)
            case AcceptedFrame():
                self._accepted(cloud, frame)
            case RefusedFrame():
                self._refused(cloud, frame)
            case NeedFrame():
                self._needed(cloud, frame)
            case _:
                self._reject(cloud, f"it sent a frame that only an edge sends: {type(frame).__name__}")

    def _welcome(self, cloud: CloudConnection, welcome: WelcomeFrame) -> None:
        if words := self._clouds.accept_welcome(cloud, welcome):
            self._tell_refused(cloud, words)
        elif self._told_of.pop(cloud.node, None) is not None:
            self._report(cloud.node, "reconnect", "it can be used again")

    def _accepted(self, cloud: CloudConnection, frame: AcceptedFrame) -> None:
        found = self._open.get((cloud.stream, frame.handle))
        if found is None:
            self._clouds.traffic.num_stale += 1
            return
        pursuit, way = found
        before = len(pursuit.rounds), pursuit.num_drafted, pursuit.num_accepted
        match pursuit.apply(way, frame, self._clock()):
            case FrameEffect.NEWS if len(pursuit.rounds) > before[0]:
                num_drafted, num_stood = pursuit.num_drafted - before[1], pursuit.num_accepted - before[2]
                self.counts.record_round(num_drafted, num_stood)
                self._update_alarm(pursuit.tokenized.request.kind, num_drafted, num_stood)
            case FrameEffect.NEWS | FrameEffect.NOTHING:
                pass
            case FrameEffect.STALE:
                self._clouds.traffic.num_stale += 1
            case FrameEffect.GAP:  # earlier tokens belong to a past epoch: open anew with all known tokens
                self.cancel(pursuit, way)
            case FrameEffect.WRONG:
                self._reject(cloud, f"{FrameEffect.WRONG.value}: are its weights what it states?")

    def end(self, cloud: CloudConnection, words: str) -> None:
        """End a useless stream; the next one may be better."""
        if words:
            self._tell_refused(cloud, words)
        self._clouds.drop(cloud, words or "a newer stream is open")
        self._down(cloud.stream)

    def _reject(self, cloud: CloudConnection, words: str) -> None:
        self._tell_refused(cloud, words)
        self._clouds.reject(cloud, words)
        self._down(cloud.stream)

    def _tell_refused(self, cloud: CloudConnection, words: str) -> None:
        """Once, however often it comes back the same."""
        if self._told_of.get(cloud.node) != words:
            self._told_of[cloud.node] = words
            self._report(cloud.node, "refused", words)

    def _refused(self, cloud: CloudConnection, frame: RefusedFrame) -> None:
        words = frame.message[:_MAX_MESSAGE]
        if frame.handle < 0:
            if frame.reason == RefusalReason.DRAINING:
                cloud.is_draining = True
            elif frame.reason in (RefusalReason.VERSION, RefusalReason.DIGEST, RefusalReason.IDENTITY):
                cloud.refused = words or "it refuses this edge"
            elif frame.reason == RefusalReason.MALFORMED:  # damaged on its way: repeat everything
                for stream, handle in self._open:
                    if stream == cloud.stream:
                        self._open[stream, handle][1].last_frame_s = -math.inf
            self._tell_refused(cloud, words)
            return
        pursuit, way = self._open.get((cloud.stream, frame.handle), (None, None))
        if pursuit is None or way is None or frame.epoch != way.epoch:
            self._clouds.traffic.num_stale += 1
            return
        del self._open[cloud.stream, frame.handle]
        cloud.free(frame.handle, self._clock())
        pursuit.attempts.remove(way)
        if frame.reason == RefusalReason.DRAINING:
            cloud.is_draining = True
        elif frame.reason == RefusalReason.CANNOT:
            pursuit.refusal = words or "the target cannot answer it"
        elif frame.reason == RefusalReason.RESIDENCY:
            pursuit.retry_at_s[cloud.node] = math.inf
        else:
            wait_ms = frame.retry_ms if frame.retry_ms >= 0 else _RETRY_MS * 2 ** min(pursuit.num_opened, 8)
            pursuit.retry_at_s[cloud.node] = self._clock() + max(wait_ms, 1.0) / 1e3
        if self._clock() >= self._quiet_s.get(cloud.node, -math.inf):
            self._quiet_s[cloud.node] = self._clock() + _REPORT_EVERY_S
            self._report(cloud.node, "stale" if frame.reason == RefusalReason.STALE else "refused", words)

    def _needed(self, cloud: CloudConnection, need: NeedFrame) -> None:
        for (stream, _), (pursuit, _) in self._open.items():
            data = pursuit.wire.parts.get(need.name) if stream == cloud.stream else None
            if data is not None:
                self._clouds.send_again(cloud, need, data)
                return

    def _update_alarm(self, kind: str, num_drafted: int, num_stood: int) -> None:
        change = self._alarm.learn(kind, num_drafted, num_stood) if self._alarm else None
        if change is AlarmChange.RAISED:
            self.warning = (
                f"{change.value}, at answer {self.counts.num_answers:,}: is the draft stale, or was it changed? "
                "Answers are still the target's own, only slower"
            )
        elif change is AlarmChange.CLEARED:
            self.warning = ""

    # --- outgoing

    def open(self, pursuit: InFlightRequest, clouds: Sequence[str], is_hedge: bool = False) -> str:
        """Open a request at the planned cloud; why the plan prefers to finish it alone, or ''."""
        now_s, request = self._clock(), pursuit.tokenized.request
        left_ms = 1e3 * (pursuit.deadline_s - now_s)
        num_left, num_prompt = pursuit.sequence.num_left, len(pursuit.tokenized.prompt)
        placed = self._placer.place(
            PlacementQuery(request.kind, num_left, num_prompt, left_ms, request.residency), clouds
        )
        if not placed.cloud and not (pursuit.is_late or is_hedge):
            return placed.words or "as planned"
        node = placed.cloud if placed.cloud in clouds else clouds[0]
        cloud = self._clouds.by_node(node)
        pursuit.num_opened += 1
        if cloud is None or cloud.welcome is None or pursuit.num_opened > _MAX_OPENINGS:
            pursuit.retry_at_s[node] = math.inf
            return ""
        is_led = placed.lead in (DraftLead.LOCKSTEP, DraftLead.FLIGHT)
        may_lead = pursuit.can_draft and request.max_draft != 0 and not (pursuit.is_late or is_hedge)
        placed = placed._replace(
            cloud=node,
            lead=placed.lead if is_led and may_lead else self._cloud_lead(cloud, pursuit, placed.lead),
            in_flight=max(min(placed.in_flight, cloud.welcome.num_in_flight), 1),
        )
        way = CloudAttempt(
            node, cloud.stream, cloud.next_handle(now_s), pursuit.next_epoch(), placed, now_s, now_s
        )
        pursuit.attempts.append(way)
        self._open[cloud.stream, way.handle] = pursuit, way
        self._send_open(cloud, pursuit, way)
        if is_hedge:
            self._report(node, "reroute", "asked as well, since another cloud is late")
        return ""

    def continue_on_cloud(self, pursuit: InFlightRequest, way: CloudAttempt) -> None:
        """Let a cloud continue a request in a new epoch, with the present guesses and no more."""
        cloud = self._clouds.by_stream(way.stream)
        if cloud is not None and cloud.is_open and not way.is_done:
            way.placed = way.placed._replace(lead=self._cloud_lead(cloud, pursuit, DraftLead.CLOUD))
            way.epoch = pursuit.next_epoch()
            self._send_open(cloud, pursuit, way)

    def repeat(self, pursuit: InFlightRequest) -> None:
        """Send silent clouds the known tokens again, and receive what they know."""
        now_s = self._clock()
        for way in pursuit.attempts:
            cloud = self._clouds.by_stream(way.stream)
            if cloud is not None and now_s >= pursuit.repeat_at_s(way, self._config.quiet_ms):
                way.last_frame_s, way.epoch = now_s, pursuit.next_epoch()
                way.num_repeats += 1
                if way.first_s == math.inf:  # a part, or its request for one, may have been lost
                    self._clouds.forget_parts(cloud, pursuit.wire.parts)
                self._send_open(cloud, pursuit, way)

    def send_windows(self, pursuit: InFlightRequest) -> int:
        """Send the windows that may be sent; their number."""
        num = 0
        while self.takes_windows(pursuit) and (found := pursuit.next_window()) is not None:
            way, window = found
            cloud = self._clouds.by_stream(way.stream)
            assert cloud is not None, "a request is open on a closed stream"
            self._clouds.send(cloud, window)
            num += 1
        return num

    def takes_windows(self, pursuit: InFlightRequest) -> bool:
        way = pursuit.edge_drafted
        cloud = self._clouds.by_stream(way.stream) if way else None
        return cloud is not None and not cloud.waiting

    def cancel(self, pursuit: InFlightRequest, way: CloudAttempt) -> None:
        """Cancel a request at one cloud."""
        cloud = self._clouds.by_stream(way.stream)
        known = self._open.pop((way.stream, way.handle), None)
        if known is not None and cloud is not None:
            cloud.free(way.handle, self._clock())
            if not way.is_done:
                self._clouds.send(cloud, CancelFrame(way.handle, way.epoch))
        pursuit.attempts.remove(way)

    def cancel_all(self, pursuit: InFlightRequest) -> None:
        for way in list(pursuit.attempts):
            self.cancel(pursuit, way)

    def leave_unusable(self, pursuit: InFlightRequest) -> None:
        """Leave unusable clouds."""
        for way in list(pursuit.attempts):
            self._report(way.cloud, "reroute", "unusable: a request continues elsewhere")
            self.learn(pursuit, way)
            self.cancel(pursuit, way)

    def learn(self, pursuit: InFlightRequest, way: CloudAttempt) -> None:
        """Let the planner learn the outcome of a request at a cloud so far."""
        now_s, is_writer = self._clock(), way is pursuit.main_attempt
        self._placer.learn(
            PlacementResult(
                way.placed,
                pursuit.tokenized.request.kind,
                way.num_tokens,
                1e3 * (min(way.first_s, now_s) - way.opened_s),
                1e3 * (now_s - way.opened_s),
                pursuit.num_drafted if is_writer else 0,
                pursuit.num_accepted if is_writer else 0,
                pursuit.draft_ms / pursuit.num_timed if pursuit.num_timed else 0.0,
                pursuit.is_whole and is_writer,
            )
        )

    def _cloud_lead(self, cloud: CloudConnection, pursuit: InFlightRequest, planned: DraftLead) -> DraftLead:
        """Who drafts if the edge does not."""
        has_draft = cloud.welcome is not None and cloud.welcome.has_draft
        allowed = planned is not DraftLead.PLAIN and has_draft and pursuit.tokenized.request.max_draft != 0
        return DraftLead.CLOUD if allowed else DraftLead.PLAIN

    def _send_open(self, cloud: CloudConnection, pursuit: InFlightRequest, way: CloudAttempt) -> None:
        sent = pursuit.wire
        self._clouds.send_parts(cloud, sent.parts, (*sent.prompt, sent.form))
        left_ms = 1e3 * (pursuit.deadline_s - self._clock())
        self._clouds.send(cloud, pursuit.open(way, left_ms, self._config.budget_bytes))
