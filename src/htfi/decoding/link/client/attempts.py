"""Where requests are open: at which clouds, on which streams, under which handles.

It opens, continues and cancels attempts and handles the clouds' frames; what to do is decided by `next_action`.
"""

import math
from collections.abc import Callable, Sequence

from htfi.decoding.acceptance import AcceptanceAlarm, AlarmChange, SpeculationCounts
from htfi.decoding.config import EdgeConfig
from htfi.decoding.link.client.connections import CloudConnection, CloudConnections
from htfi.decoding.link.client.request import CloudAttempt, FrameEffect, InFlightRequest
from htfi.decoding.link.frames import (
    AcceptedFrame,
    CancelFrame,
    DraftMode,
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
        self._reported: dict[str, str] = {}  # why a cloud is not used, as reported
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
            inflight, attempt = self._open.pop(key)
            inflight.drop_attempt(attempt, self._clock())
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
        if reason := self._clouds.accept_welcome(cloud, welcome):
            self._report_refusal(cloud, reason)
        elif self._reported.pop(cloud.node, None) is not None:
            self._report(cloud.node, "reconnect", "it can be used again")

    def _accepted(self, cloud: CloudConnection, frame: AcceptedFrame) -> None:
        found = self._open.get((cloud.stream, frame.handle))
        if found is None:
            self._clouds.traffic.num_stale += 1
            return
        inflight, attempt = found
        before = len(inflight.rounds), inflight.num_drafted, inflight.num_accepted
        match inflight.apply(attempt, frame, self._clock()):
            case FrameEffect.NEWS if len(inflight.rounds) > before[0]:
                num_drafted, num_stood = inflight.num_drafted - before[1], inflight.num_accepted - before[2]
                self.counts.record_round(num_drafted, num_stood)
                self._update_alarm(inflight.tokenized.request.kind, num_drafted, num_stood)
            case FrameEffect.NEWS | FrameEffect.NOTHING:
                pass
            case FrameEffect.STALE:
                self._clouds.traffic.num_stale += 1
            case FrameEffect.GAP:  # earlier tokens belong to a past epoch: reopen with all known tokens
                self.cancel(inflight, attempt)
            case FrameEffect.WRONG:
                self._reject(
                    cloud, f"{FrameEffect.WRONG.value}: check that its weights are those that it states"
                )

    def end(self, cloud: CloudConnection, reason: str) -> None:
        """End a useless stream; the next one may be better."""
        if reason:
            self._report_refusal(cloud, reason)
        self._clouds.drop(cloud, reason or "a newer stream is open")
        self._down(cloud.stream)

    def _reject(self, cloud: CloudConnection, reason: str) -> None:
        self._report_refusal(cloud, reason)
        self._clouds.reject(cloud, reason)
        self._down(cloud.stream)

    def _report_refusal(self, cloud: CloudConnection, reason: str) -> None:
        """Once, however often it comes back the same."""
        if self._reported.get(cloud.node) != reason:
            self._reported[cloud.node] = reason
            self._report(cloud.node, "refused", reason)

    def _refused(self, cloud: CloudConnection, frame: RefusedFrame) -> None:
        reason = frame.message[:_MAX_MESSAGE]
        if frame.handle < 0:
            if frame.reason == RefusalReason.DRAINING:
                cloud.is_draining = True
            elif frame.reason in (RefusalReason.VERSION, RefusalReason.DIGEST, RefusalReason.IDENTITY):
                cloud.refused = reason or "it refuses this edge"
            elif frame.reason == RefusalReason.MALFORMED:  # damaged on its attempt: repeat everything
                for stream, handle in self._open:
                    if stream == cloud.stream:
                        self._open[stream, handle][1].last_frame_s = -math.inf
            self._report_refusal(cloud, reason)
            return
        inflight, attempt = self._open.get((cloud.stream, frame.handle), (None, None))
        if inflight is None or attempt is None or frame.epoch != attempt.epoch:
            self._clouds.traffic.num_stale += 1
            return
        del self._open[cloud.stream, frame.handle]
        cloud.free(frame.handle, self._clock())
        inflight.attempts.remove(attempt)
        if frame.reason == RefusalReason.DRAINING:
            cloud.is_draining = True
        elif frame.reason == RefusalReason.UNANSWERABLE:
            inflight.refusal = reason or "the target cannot answer it"
        elif frame.reason == RefusalReason.RESIDENCY:
            inflight.retry_at_s[cloud.node] = math.inf
        else:
            wait_ms = frame.retry_ms if frame.retry_ms >= 0 else _RETRY_MS * 2 ** min(inflight.num_opened, 8)
            inflight.retry_at_s[cloud.node] = self._clock() + max(wait_ms, 1.0) / 1e3
        if self._clock() >= self._quiet_s.get(cloud.node, -math.inf):
            self._quiet_s[cloud.node] = self._clock() + _REPORT_EVERY_S
            self._report(cloud.node, "stale" if frame.reason == RefusalReason.STALE else "refused", reason)

    def _needed(self, cloud: CloudConnection, need: NeedFrame) -> None:
        for (stream, _), (inflight, _) in self._open.items():
            data = inflight.wire.parts.get(need.name) if stream == cloud.stream else None
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

    def open(self, inflight: InFlightRequest, clouds: Sequence[str], is_hedge: bool = False) -> str:
        """Open a request at the planned cloud; why the plan prefers to finish it alone, or ''."""
        now_s, request = self._clock(), inflight.tokenized.request
        left_ms = 1e3 * (inflight.deadline_s - now_s)
        num_left, num_prompt = inflight.sequence.num_left, len(inflight.tokenized.prompt)
        placed = self._placer.place(
            PlacementQuery(request.kind, num_left, num_prompt, left_ms, request.residency), clouds
        )
        if not placed.cloud and not (inflight.is_late or is_hedge):
            return placed.reason or "as planned"
        node = placed.cloud if placed.cloud in clouds else clouds[0]
        cloud = self._clouds.by_node(node)
        inflight.num_opened += 1
        if cloud is None or cloud.welcome is None or inflight.num_opened > _MAX_OPENINGS:
            inflight.retry_at_s[node] = math.inf
            return ""
        is_led = placed.draft_mode in (DraftMode.LOCKSTEP, DraftMode.PIPELINED)
        may_lead = inflight.can_draft and request.max_draft != 0 and not (inflight.is_late or is_hedge)
        placed = placed._replace(
            cloud=node,
            draft_mode=placed.draft_mode
            if is_led and may_lead
            else self._cloud_lead(cloud, inflight, placed.draft_mode),
            in_flight=max(min(placed.in_flight, cloud.welcome.num_in_flight), 1),
        )
        attempt = CloudAttempt(
            node, cloud.stream, cloud.next_handle(now_s), inflight.next_epoch(), placed, now_s, now_s
        )
        inflight.attempts.append(attempt)
        self._open[cloud.stream, attempt.handle] = inflight, attempt
        self._send_open(cloud, inflight, attempt)
        if is_hedge:
            self._report(node, "reroute", "requested as well, because another cloud is late")
        return ""

    def continue_on_cloud(self, inflight: InFlightRequest, attempt: CloudAttempt) -> None:
        """Let a cloud continue a request in a new epoch, with the present guesses and no more."""
        cloud = self._clouds.by_stream(attempt.stream)
        if cloud is not None and cloud.is_open and not attempt.is_done:
            attempt.placed = attempt.placed._replace(
                draft_mode=self._cloud_lead(cloud, inflight, DraftMode.CLOUD)
            )
            attempt.epoch = inflight.next_epoch()
            self._send_open(cloud, inflight, attempt)

    def repeat(self, inflight: InFlightRequest) -> None:
        """Send silent clouds the known tokens again, and receive what they know."""
        now_s = self._clock()
        for attempt in inflight.attempts:
            cloud = self._clouds.by_stream(attempt.stream)
            if cloud is not None and now_s >= inflight.repeat_at_s(attempt, self._config.quiet_ms):
                attempt.last_frame_s, attempt.epoch = now_s, inflight.next_epoch()
                attempt.num_repeats += 1
                if attempt.first_s == math.inf:  # a part, or its request for one, may have been lost
                    self._clouds.forget_parts(cloud, inflight.wire.parts)
                self._send_open(cloud, inflight, attempt)

    def send_windows(self, inflight: InFlightRequest) -> int:
        """Send the windows that may be sent; their number."""
        num = 0
        while self.takes_windows(inflight) and (found := inflight.next_window()) is not None:
            attempt, window = found
            cloud = self._clouds.by_stream(attempt.stream)
            assert cloud is not None, "a request is open on a closed stream"
            self._clouds.send(cloud, window)
            num += 1
        return num

    def takes_windows(self, inflight: InFlightRequest) -> bool:
        attempt = inflight.edge_drafted
        cloud = self._clouds.by_stream(attempt.stream) if attempt else None
        return cloud is not None and not cloud.waiting

    def cancel(self, inflight: InFlightRequest, attempt: CloudAttempt) -> None:
        """Cancel a request at one cloud."""
        cloud = self._clouds.by_stream(attempt.stream)
        known = self._open.pop((attempt.stream, attempt.handle), None)
        if known is not None and cloud is not None:
            cloud.free(attempt.handle, self._clock())
            if not attempt.is_done:
                self._clouds.send(cloud, CancelFrame(attempt.handle, attempt.epoch))
        inflight.attempts.remove(attempt)

    def cancel_all(self, inflight: InFlightRequest) -> None:
        for attempt in list(inflight.attempts):
            self.cancel(inflight, attempt)

    def leave_unusable(self, inflight: InFlightRequest) -> None:
        """Leave unusable clouds."""
        for attempt in list(inflight.attempts):
            self._report(attempt.cloud, "reroute", "unusable: a request continues elsewhere")
            self.learn(inflight, attempt)
            self.cancel(inflight, attempt)

    def learn(self, inflight: InFlightRequest, attempt: CloudAttempt) -> None:
        """Let the planner learn the outcome of a request at a cloud so far."""
        now_s, is_writer = self._clock(), attempt is inflight.main_attempt
        self._placer.learn(
            PlacementResult(
                attempt.placed,
                inflight.tokenized.request.kind,
                attempt.num_tokens,
                1e3 * (min(attempt.first_s, now_s) - attempt.opened_s),
                1e3 * (now_s - attempt.opened_s),
                inflight.num_drafted if is_writer else 0,
                inflight.num_accepted if is_writer else 0,
                inflight.draft_ms / inflight.num_timed if inflight.num_timed else 0.0,
                inflight.is_whole and is_writer,
            )
        )

    def _cloud_lead(self, cloud: CloudConnection, inflight: InFlightRequest, planned: DraftMode) -> DraftMode:
        """Who drafts if the edge does not."""
        has_draft = cloud.welcome is not None and cloud.welcome.has_draft
        allowed = planned is not DraftMode.PLAIN and has_draft and inflight.tokenized.request.max_draft != 0
        return DraftMode.CLOUD if allowed else DraftMode.PLAIN

    def _send_open(self, cloud: CloudConnection, inflight: InFlightRequest, attempt: CloudAttempt) -> None:
        sent = inflight.wire
        self._clouds.send_parts(cloud, sent.parts, (*sent.prompt, sent.grammar))
        left_ms = 1e3 * (inflight.deadline_s - self._clock())
        self._clouds.send(cloud, inflight.open(attempt, left_ms, self._config.budget_bytes))
