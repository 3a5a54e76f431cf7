"""A faulty link as a process: obeys the orders on its standard input, and ends with it. `apart` starts it."""

import contextlib
import os
import sys

from htfi.domain.errors import HtfiError
from htfi.simulation.faulty_link import steering
from htfi.simulation.faulty_link.link import FaultyLink
from htfi.simulation.faulty_link.steering import Aim, Begin, Enter, Order, Play, Reset, State, Tell
from htfi.simulation.faulty_link.weather import CLEAR

_HASTE = -10


def main() -> None:
    with contextlib.suppress(OSError):  # a network does not wait for the processor; not everybody may say so
        os.setpriority(os.PRIO_PROCESS, 0, _HASTE)
    orders, answers = sys.stdin.buffer, sys.stdout.buffer
    begin = steering.read(orders, steering.BEGINS)
    if begin is None:
        return
    try:
        link = FaultyLink(begin.target, begin.weather, begin.seed, begin.listen)
    except HtfiError as error:
        steering.write(answers, State(begin.listen, CLEAR, [], [], str(error)))
        return
    with link:
        steering.write(answers, _state(link, tells=False))
        while (order := steering.read(orders, steering.ORDERS)) is not None:
            _obey(link, order)
            steering.write(answers, _state(link, isinstance(order, Tell)))


def _obey(link: FaultyLink, order: Order) -> None:
    match order:
        case Enter(weather):
            link.weather = weather
        case Play(schedule):
            link.play(schedule)
        case Aim(target):
            link.aim(target)
        case Reset():
            link.reset()
        case Tell() | Begin():
            pass


def _state(link: FaultyLink, tells: bool) -> State:
    return State(
        link.address, link.weather, link.traffic() if tells else [], link.timeline() if tells else []
    )


if __name__ == "__main__":
    main()
