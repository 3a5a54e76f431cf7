"""The next action for a request: open it, hedge it, finish it alone, or wait. Pure functions."""

import math
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from htfi.decoding.config import EdgeConfig
from htfi.decoding.link.client.request import InFlightRequest


class RequestAction(Enum):
    WAIT = "wait"
    OPEN = "open it at a free cloud"
    MOVE = "leave an unusable cloud and open it elsewhere"
    HEDGE = "open it at a second cloud"
    ASK_AGAIN = "send the known tokens again to silent clouds"
    ALONE = "finish it with the edge's own draft"
    GIVE_UP = "it is no longer needed, or can never be answered"


class NetworkConditions(NamedTuple):
    """`usable` clouds are connected and not given up; `taking` are those of them that accept new requests.

    `is_greeting`: a cloud's welcome is on its attempt. `finish_alone_s`: the time to finish all requests alone.
    """

    now_s: float
    usable: Sequence[str]
    taking: Sequence[str]
    is_greeting: bool
    finish_alone_s: float


class NextAction(NamedTuple):
    action: RequestAction
    clouds: tuple[str, ...] = ()  # to choose among
    reason: str = ""


def next_action(inflight: InFlightRequest, network: NetworkConditions, config: EdgeConfig) -> NextAction:
    now_s, is_late = network.now_s, inflight.is_late
    if inflight.refusal:
        return NextAction(RequestAction.GIVE_UP, reason=inflight.refusal)
    if is_late and now_s >= inflight.deadline_s:
        return NextAction(RequestAction.GIVE_UP, reason="no cloud answered in time")
    if not is_late and now_s >= finish_alone_at_s(inflight, network, config):
        return NextAction(RequestAction.ALONE, reason="to meet its deadline")
    held = {attempt.cloud for attempt in inflight.attempts}
    free = tuple(
        cloud
        for cloud in network.taking
        if cloud not in held and inflight.retry_at_s.get(cloud, now_s) <= now_s
    )
    if not inflight.attempts:
        return NextAction(RequestAction.OPEN, free) if free else _without_cloud(inflight, network, config)
    if held.isdisjoint(network.usable):
        if free:
            return NextAction(RequestAction.MOVE, free)
        return (
            NextAction(RequestAction.WAIT)
            if is_late
            else NextAction(RequestAction.ALONE, reason="its cloud is unusable")
        )
    if free and now_s >= _hedge_at_s(inflight, config):
        return NextAction(RequestAction.HEDGE, free)
    if any(now_s >= inflight.repeat_at_s(attempt, config.quiet_ms) for attempt in inflight.attempts):
        return NextAction(RequestAction.ASK_AGAIN)
    return NextAction(RequestAction.WAIT)


def next_change_s(inflight: InFlightRequest, network: NetworkConditions, config: EdgeConfig) -> float:
    """The next time at which the action may change by itself."""
    times = [inflight.deadline_s if inflight.is_late else finish_alone_at_s(inflight, network, config)]
    times += [at_s for at_s in inflight.retry_at_s.values() if at_s > network.now_s]
    if not inflight.attempts:
        times.append(inflight.lost_s + config.reconnect_wait_ms / 1e3)
        times.append(inflight.started_s + config.hello_timeout_ms / 1e3)
    times += [inflight.repeat_at_s(attempt, config.quiet_ms) for attempt in inflight.attempts]
    times.append(_hedge_at_s(inflight, config))
    return min((at_s for at_s in times if at_s > network.now_s), default=math.inf)


def finish_alone_at_s(inflight: InFlightRequest, network: NetworkConditions, config: EdgeConfig) -> float:
    """When a request must be finished alone to meet its deadline."""
    return inflight.deadline_s - network.finish_alone_s - config.margin_ms / 1e3


def _without_cloud(inflight: InFlightRequest, network: NetworkConditions, config: EdgeConfig) -> NextAction:
    """What to do if no cloud is free for it and none has it."""
    barred = [inflight.retry_at_s.get(cloud, -math.inf) for cloud in network.taking]
    if inflight.is_late:
        return NextAction(RequestAction.WAIT)
    if any(at_s < finish_alone_at_s(inflight, network, config) for at_s in barred):
        return NextAction(RequestAction.WAIT)
    if network.now_s < inflight.lost_s + config.reconnect_wait_ms / 1e3:
        return NextAction(RequestAction.WAIT)
    if network.is_greeting and network.now_s < inflight.started_s + config.hello_timeout_ms / 1e3:
        return NextAction(RequestAction.WAIT)
    return NextAction(
        RequestAction.ALONE, reason="every cloud refuses it" if barred else "no cloud is reachable"
    )


def _hedge_at_s(inflight: InFlightRequest, config: EdgeConfig) -> float:
    if not config.hedges or inflight.is_late or len(inflight.attempts) != 1:
        return math.inf
    (attempt,) = inflight.attempts
    return attempt.opened_s + (config.hedge_ms or attempt.placed.late_ms) / 1e3
