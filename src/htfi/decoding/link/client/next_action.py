"""The next action for a request: open it, hedge it, finish it alone, or wait. Pure functions."""

import math
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from htfi.decoding.link.client.request import InFlightRequest
from htfi.decoding.link.config import EdgeConfig


class RequestAction(Enum):
    WAIT = "wait"
    OPEN = "open it at a free cloud"
    MOVE = "leave an unusable cloud and open it elsewhere"
    HEDGE = "open it at a second cloud"
    ASK_AGAIN = "send silent clouds the known tokens again"
    ALONE = "finish it with the edge's own draft"
    GIVE_UP = "it is no longer needed, or can never be answered"


class NetworkConditions(NamedTuple):
    """`usable` clouds are connected and not given up; `taking` are those of them that accept new requests.

    `is_greeting`: a cloud's welcome is on its way. `finish_alone_s`: the time to finish all requests alone.
    """

    now_s: float
    usable: Sequence[str]
    taking: Sequence[str]
    is_greeting: bool
    finish_alone_s: float


class NextAction(NamedTuple):
    action: RequestAction
    clouds: tuple[str, ...] = ()  # to choose among
    words: str = ""


def next_action(pursuit: InFlightRequest, weather: NetworkConditions, config: EdgeConfig) -> NextAction:
    now_s, is_late = weather.now_s, pursuit.is_late
    if pursuit.refusal:
        return NextAction(RequestAction.GIVE_UP, words=pursuit.refusal)
    if is_late and now_s >= pursuit.deadline_s:
        return NextAction(RequestAction.GIVE_UP, words="no cloud answered in time")
    if not is_late and now_s >= finish_alone_at_s(pursuit, weather, config):
        return NextAction(RequestAction.ALONE, words="for its deadline")
    held = {way.cloud for way in pursuit.attempts}
    free = tuple(
        cloud
        for cloud in weather.taking
        if cloud not in held and pursuit.retry_at_s.get(cloud, now_s) <= now_s
    )
    if not pursuit.attempts:
        return NextAction(RequestAction.OPEN, free) if free else _without_cloud(pursuit, weather, config)
    if held.isdisjoint(weather.usable):
        if free:
            return NextAction(RequestAction.MOVE, free)
        return (
            NextAction(RequestAction.WAIT)
            if is_late
            else NextAction(RequestAction.ALONE, words="its cloud is unusable")
        )
    if free and now_s >= _hedge_at_s(pursuit, config):
        return NextAction(RequestAction.HEDGE, free)
    if any(now_s >= pursuit.repeat_at_s(way, config.quiet_ms) for way in pursuit.attempts):
        return NextAction(RequestAction.ASK_AGAIN)
    return NextAction(RequestAction.WAIT)


def next_change_s(pursuit: InFlightRequest, weather: NetworkConditions, config: EdgeConfig) -> float:
    """The next time at which the action may change by itself."""
    times = [pursuit.deadline_s if pursuit.is_late else finish_alone_at_s(pursuit, weather, config)]
    times += [at_s for at_s in pursuit.retry_at_s.values() if at_s > weather.now_s]
    if not pursuit.attempts:
        times.append(pursuit.lost_s + config.patience_ms / 1e3)
        times.append(pursuit.started_s + config.greeting_ms / 1e3)
    times += [pursuit.repeat_at_s(way, config.quiet_ms) for way in pursuit.attempts]
    times.append(_hedge_at_s(pursuit, config))
    return min((at_s for at_s in times if at_s > weather.now_s), default=math.inf)


def finish_alone_at_s(pursuit: InFlightRequest, weather: NetworkConditions, config: EdgeConfig) -> float:
    """When a request must be finished alone to meet its deadline."""
    return pursuit.deadline_s - weather.finish_alone_s - config.margin_ms / 1e3


def _without_cloud(pursuit: InFlightRequest, weather: NetworkConditions, config: EdgeConfig) -> NextAction:
    """What to do if no cloud is free for it and none has it."""
    barred = [pursuit.retry_at_s.get(cloud, -math.inf) for cloud in weather.taking]
    if pursuit.is_late:
        return NextAction(RequestAction.WAIT)
    if any(at_s < finish_alone_at_s(pursuit, weather, config) for at_s in barred):
        return NextAction(RequestAction.WAIT)
    if weather.now_s < pursuit.lost_s + config.patience_ms / 1e3:
        return NextAction(RequestAction.WAIT)
    if weather.is_greeting and weather.now_s < pursuit.started_s + config.greeting_ms / 1e3:
        return NextAction(RequestAction.WAIT)
    return NextAction(
        RequestAction.ALONE, words="every cloud refuses it" if barred else "no cloud is reachable"
    )


def _hedge_at_s(pursuit: InFlightRequest, config: EdgeConfig) -> float:
    if not config.hedges or pursuit.is_late or len(pursuit.attempts) != 1:
        return math.inf
    (way,) = pursuit.attempts
    return way.opened_s + (config.hedge_ms or way.placed.late_ms) / 1e3
