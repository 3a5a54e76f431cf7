"""The lines that come from a live run, with their times: which hold a forecast, and which are withheld."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import IO

from htfi.domain.errors import DependencyUnavailable

STEP_S = 20.0
QUIET_S = 0.3  # without a forecast while bars come: the hold holds
_WITHHELD = re.compile(rb'"withheld":true.{0,200}?"as_of_ns":(\d+)')


@dataclass
class ServedLines:
    """Monotonic times (ns) at which lines came; a thread of its own fills it."""

    forecast_ns: list[int] = field(default_factory=list[int])
    withheld_ns: list[int] = field(default_factory=list[int])
    withheld_of: list[int] = field(default_factory=list[int])  # the instant that each of these is on

    def follow(self, lines: IO[bytes]) -> None:
        for line in lines:
            now_ns = time.monotonic_ns()
            found = _WITHHELD.search(line, 0, 500)
            if found is None:
                self.forecast_ns.append(now_ns)
            else:
                self.withheld_of.append(int(found[1]))
                self.withheld_ns.append(now_ns)

    def last_forecast_ns(self, since_ns: int) -> int:
        """When the last forecast since then came; `since_ns` where none did."""
        return max([since_ns, *(at for at in self.forecast_ns[-1:] if at > since_ns)])

    def last_withheld_ns(self, instant_ns: int) -> int:
        """When the last withheld line on an instant came. Raises: DependencyUnavailable where none did."""
        num = len(self.withheld_ns)
        found = [
            at for at, of in zip(self.withheld_ns, self.withheld_of[:num], strict=True) if of == instant_ns
        ]
        if not found:
            raise DependencyUnavailable("the bars that tripped a breaker were not withheld themselves")
        return found[-1]

    def wait_until_held(self) -> None:
        """Wait until decisions come, and none with a forecast for a while. Raises: DependencyUnavailable."""
        wait_for(partial(self._is_held, time.monotonic_ns()))

    def wait_until_released(self, num: int = 1) -> None:
        """Wait until so many forecasts more have come. Raises: DependencyUnavailable."""
        until = len(self.forecast_ns) + num
        wait_for(lambda: len(self.forecast_ns) >= until)

    def _is_held(self, since_ns: int) -> bool:
        now_ns = time.monotonic_ns()
        is_busy = bool(self.withheld_ns) and self.withheld_ns[-1] > since_ns
        return is_busy and now_ns - max(self.forecast_ns[-1], since_ns) > QUIET_S * 1e9


def wait_for(condition: Callable[[], bool]) -> None:
    """Raises: DependencyUnavailable where it does not come to hold."""
    until_s = time.monotonic() + STEP_S
    while not condition():
        if time.monotonic() > until_s:
            raise DependencyUnavailable(
                "the run whose stops are timed does not go on: run `htfi run` to see why"
            )
        time.sleep(0.005)
