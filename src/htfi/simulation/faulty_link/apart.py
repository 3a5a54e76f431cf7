"""A faulty link in a process of its own: as punctual as the machine, whatever its user computes meanwhile."""

import contextlib
import select
import subprocess
import sys
from collections.abc import Sequence
from typing import BinaryIO, cast

from htfi.domain.errors import DependencyUnavailable
from htfi.simulation.faulty_link import steering
from htfi.simulation.faulty_link.link import Steered
from htfi.simulation.faulty_link.pipe import Traffic
from htfi.simulation.faulty_link.proxy import Note
from htfi.simulation.faulty_link.steering import Aim, Begin, Enter, Order, Play, Reset, State, Tell
from htfi.simulation.faulty_link.weather import CLEAR, Schedule, Weather

_PATIENCE_S = 20.0
_END_S = 5.0


class FaultyLinkApart(Steered):
    """As `FaultyLink`, for one thread at a time. `command` goes before the child's, to start it elsewhere.

    The child ends when its standard input does, so that it outlives nobody. Raises: DependencyUnavailable.
    """

    def __init__(
        self,
        target: tuple[str, int],
        weather: Weather = CLEAR,
        seed: int = 0,
        listen: tuple[str, int] = ("127.0.0.1", 0),
        command: Sequence[str] = (),
    ) -> None:
        self.target, self.seed = target, seed
        self._child = subprocess.Popen(
            [*command, sys.executable, "-m", "htfi.simulation.faulty_link.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # an interrupt at the terminal is for its user, who closes it
        )
        try:
            self.address = self._ask(Begin(target, weather, seed, listen)).address
        except BaseException:
            self.close()
            raise

    @property
    def weather(self) -> Weather:
        return self._ask(Tell()).weather

    @weather.setter
    def weather(self, weather: Weather) -> None:
        self._ask(Enter(weather))

    def play(self, schedule: Schedule) -> None:
        self._ask(Play(schedule))

    def aim(self, target: tuple[str, int]) -> None:
        self.target = target
        self._ask(Aim(target))

    def reset(self) -> None:
        self._ask(Reset())

    def traffic(self) -> list[Traffic]:
        return self._ask(Tell()).traffic

    def timeline(self) -> list[Note]:
        return self._ask(Tell()).notes

    def close(self) -> None:
        orders, answers = self._pipes()
        with contextlib.suppress(OSError):  # it may have ended by itself
            orders.close()
        try:
            self._child.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        answers.close()

    def _ask(self, order: Order) -> State:
        orders, answers = self._pipes()
        if orders.closed:
            raise DependencyUnavailable("faulty link: it has been closed")
        state = None
        with contextlib.suppress(OSError):
            steering.write(orders, order)
            if select.select([answers], (), (), _PATIENCE_S)[0]:
                state = steering.read(answers, steering.STATES)
        if state is None:
            status = self._child.poll()
            ended = "does not answer" if status is None else f"ended with status {status}"
            raise DependencyUnavailable(f"faulty link: its process {self._child.pid} {ended}")
        if state.trouble:
            raise DependencyUnavailable(state.trouble)
        return state

    def _pipes(self) -> tuple[BinaryIO, BinaryIO]:
        return cast(BinaryIO, self._child.stdin), cast(BinaryIO, self._child.stdout)
