"""What is to be done for a request now: open it, hedge it, finish it alone, or wait. The linked author asks and does.

Pure: all that the choice depends on is told.
"""

import math
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from htfi.decoding.link.edge_config import EdgeConfig
from htfi.decoding.link.pursuit import Pursuit


class Act(Enum):
    WAIT = "wait"
    OPEN = "open it at one of the clouds that are free for it"
    MOVE = "leave a cloud that is given up, and open it elsewhere"
    HEDGE = "open it at a second cloud"
    ASK_AGAIN = "tell the clouds that say nothing of it once more what is known"
    ALONE = "finish it with the edge's own draft"
    GIVE_UP = "nobody waits for it any more, or it can never be answered"


class Weather(NamedTuple):
    """`standing` clouds can be talked with and are not given up, `taking` those of them that take new requests.

    `is_greeting`: a cloud's welcome is on its way. `alone_s` is what going alone takes all that are being
    written.
    """

    now_s: float
    standing: Sequence[str]
    taking: Sequence[str]
    is_greeting: bool
    alone_s: float


class Course(NamedTuple):
    act: Act
    clouds: tuple[str, ...] = ()  # to choose among
    words: str = ""


def course(pursuit: Pursuit, weather: Weather, config: EdgeConfig) -> Course:
    now_s, is_late = weather.now_s, pursuit.is_late
    if pursuit.refusal:
        return Course(Act.GIVE_UP, words=pursuit.refusal)
    if is_late and now_s >= pursuit.until_s:
        return Course(Act.GIVE_UP, words="no cloud has answered in time")
    if not is_late and now_s >= alone_at_s(pursuit, weather, config):
        return Course(Act.ALONE, words="for its deadline")
    held = {way.cloud for way in pursuit.ways}
    free = tuple(
        cloud for cloud in weather.taking if cloud not in held and pursuit.barred.get(cloud, now_s) <= now_s
    )
    if not pursuit.ways:
        return Course(Act.OPEN, free) if free else _without(pursuit, weather, config)
    if held.isdisjoint(weather.standing):
        if free:
            return Course(Act.MOVE, free)
        return Course(Act.WAIT) if is_late else Course(Act.ALONE, words="its cloud is given up")
    if free and now_s >= _hedge_at_s(pursuit, config):
        return Course(Act.HEDGE, free)
    if any(now_s >= pursuit.quiet_until_s(way, config.quiet_ms) for way in pursuit.ways):
        return Course(Act.ASK_AGAIN)
    return Course(Act.WAIT)


def wakes_s(pursuit: Pursuit, weather: Weather, config: EdgeConfig) -> float:
    """The next time at which the course may change by itself."""
    times = [pursuit.until_s if pursuit.is_late else alone_at_s(pursuit, weather, config)]
    times += [at_s for at_s in pursuit.barred.values() if at_s > weather.now_s]
    if not pursuit.ways:
        times.append(pursuit.lost_s + config.patience_ms / 1e3)
        times.append(pursuit.begun_s + config.greeting_ms / 1e3)
    times += [pursuit.quiet_until_s(way, config.quiet_ms) for way in pursuit.ways]
    times.append(_hedge_at_s(pursuit, config))
    return min((at_s for at_s in times if at_s > weather.now_s), default=math.inf)


def alone_at_s(pursuit: Pursuit, weather: Weather, config: EdgeConfig) -> float:
    """When a request has to be finished alone to keep its deadline."""
    return pursuit.until_s - weather.alone_s - config.margin_ms / 1e3


def _without(pursuit: Pursuit, weather: Weather, config: EdgeConfig) -> Course:
    """What to do where no cloud is free for it and none has it."""
    barred = [pursuit.barred.get(cloud, -math.inf) for cloud in weather.taking]
    if pursuit.is_late:
        return Course(Act.WAIT)
    if any(at_s < alone_at_s(pursuit, weather, config) for at_s in barred):
        return Course(Act.WAIT)
    if weather.now_s < pursuit.lost_s + config.patience_ms / 1e3:
        return Course(Act.WAIT)
    if weather.is_greeting and weather.now_s < pursuit.begun_s + config.greeting_ms / 1e3:
        return Course(Act.WAIT)
    return Course(Act.ALONE, words="every cloud refuses it" if barred else "no cloud is there")


def _hedge_at_s(pursuit: Pursuit, config: EdgeConfig) -> float:
    if not config.hedges or pursuit.is_late or len(pursuit.ways) != 1:
        return math.inf
    (way,) = pursuit.ways
    return way.opened_s + (config.hedge_ms or way.placed.late_ms) / 1e3
