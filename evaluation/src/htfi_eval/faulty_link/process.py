"""A faulty link in a process of its own: as punctual as the machine, whatever its user computes meanwhile."""

import contextlib
import select
import subprocess
import sys
from collections.abc import Sequence
from typing import BinaryIO, cast

from htfi.domain.errors import DependencyUnavailable
from htfi_eval.faulty_link import messages as steering
from htfi_eval.faulty_link.conditions import CLEAR, LinkConditions, LinkSchedule
from htfi_eval.faulty_link.connection import PipeTraffic
from htfi_eval.faulty_link.link import LinkControl
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
from htfi_eval.faulty_link.proxy import TimelineEntry

_TIMEOUT_S = 20.0
_END_S = 5.0


class FaultyLinkProcess(LinkControl):
    """As `FaultyLink`, for one thread at a time. `command` goes before the child's, to start it elsewhere.

    The child ends when its standard input does, so that it never outlives its parent. Raises: DependencyUnavailable.
    """

    def __init__(
        self,
        target: tuple[str, int],
        conditions: LinkConditions = CLEAR,
        seed: int = 0,
        listen: tuple[str, int] = ("127.0.0.1", 0),
        command: Sequence[str] = (),
    ) -> None:
        self.target, self.seed = target, seed
        self._child = subprocess.Popen(
            [*command, sys.executable, "-m", "htfi_eval.faulty_link.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # an interrupt at the terminal is for its user, who closes it
        )
        try:
            self.address = self._send(BeginLink(target, conditions, seed, listen)).address
        except BaseException:
            self.close()
            raise

    @property
    def conditions(self) -> LinkConditions:
        return self._send(ReportState()).conditions

    @conditions.setter
    def conditions(self, conditions: LinkConditions) -> None:
        self._send(SetConditions(conditions))

    def play_schedule(self, schedule: LinkSchedule) -> None:
        self._send(PlaySchedule(schedule))

    def set_target(self, target: tuple[str, int]) -> None:
        self.target = target
        self._send(SetTarget(target))

    def reset(self) -> None:
        self._send(ResetConnections())

    def traffic(self) -> list[PipeTraffic]:
        return self._send(ReportState()).traffic

    def timeline(self) -> list[TimelineEntry]:
        return self._send(ReportState()).notes

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

    def _send(self, order: LinkOrder) -> LinkState:
        orders, answers = self._pipes()
        if orders.closed:
            raise DependencyUnavailable("faulty link: it has been closed")
        state = None
        with contextlib.suppress(OSError):
            steering.write_message(orders, order)
            if select.select([answers], (), (), _TIMEOUT_S)[0]:
                state = steering.read_message(answers, steering.STATES)
        if state is None:
            status = self._child.poll()
            ended = "does not answer" if status is None else f"ended with status {status}"
            raise DependencyUnavailable(f"faulty link: its process {self._child.pid} {ended}")
        if state.error:
            raise DependencyUnavailable(state.error)
        return state

    def _pipes(self) -> tuple[BinaryIO, BinaryIO]:
        return cast(BinaryIO, self._child.stdin), cast(BinaryIO, self._child.stdout)
