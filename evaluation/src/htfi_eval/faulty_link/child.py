"""A faulty link as a process: obeys the orders on its standard input, and ends with it. `apart` starts it."""

import contextlib
import os
import sys

from htfi.domain.errors import HtfiError
from htfi_eval.faulty_link import messages as steering
from htfi_eval.faulty_link.conditions import CLEAR
from htfi_eval.faulty_link.link import FaultyLink
from htfi_eval.faulty_link.messages import (
    BeginLink,
    LinkOrder,
    LinkState,
    PlaySchedule,
    ReportState,
    ResetConnections,
    SetConditions,
    SetTarget,
)

_HASTE = -10


def main() -> None:
    with contextlib.suppress(OSError):  # a network does not wait for the processor; not everybody may say so
        os.setpriority(os.PRIO_PROCESS, 0, _HASTE)
    orders, answers = sys.stdin.buffer, sys.stdout.buffer
    begin = steering.read_message(orders, steering.BEGINS)
    if begin is None:
        return
    try:
        link = FaultyLink(begin.target, begin.conditions, begin.seed, begin.listen)
    except HtfiError as error:
        steering.write_message(answers, LinkState(begin.listen, CLEAR, [], [], str(error)))
        return
    with link:
        steering.write_message(answers, _state(link, has_traffic=False))
        while (order := steering.read_message(orders, steering.ORDERS)) is not None:
            _obey(link, order)
            steering.write_message(answers, _state(link, isinstance(order, ReportState)))


def _obey(link: FaultyLink, order: LinkOrder) -> None:
    match order:
        case SetConditions(conditions):
            link.conditions = conditions
        case PlaySchedule(schedule):
            link.play_schedule(schedule)
        case SetTarget(target):
            link.set_target(target)
        case ResetConnections():
            link.reset()
        case ReportState() | BeginLink():
            pass


def _state(link: FaultyLink, has_traffic: bool) -> LinkState:
    return LinkState(
        link.address,
        link.conditions,
        link.traffic() if has_traffic else [],
        link.timeline() if has_traffic else [],
    )


if __name__ == "__main__":
    main()
