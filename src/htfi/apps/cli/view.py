"""Shows a run as it goes: a live terminal view, or one plain line now and then. `htfi run` drives it.

with open_view(console, plain=False) as view:
    …
    if view.due():                       # one comparison
        view.update(desk.snapshot(counters))
"""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group
from rich.live import Live

from htfi.apps.cli.view_panels import frame, one_line
from htfi.apps.cli.view_state import ViewState

_FRAME_S = 1 / 8
_LINE_S = 2.0
_SHARE_OF_TIME = 0.05  # drawing may take this much of the one core that the loop runs on
_COLUMNS_MAX = 160


class View(Protocol):
    """Where frames go."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def due(self) -> bool:
        """Whether a frame is wanted now; cheap enough to ask after every event."""
        ...

    def update(self, state: ViewState) -> None: ...


def open_view(console: Console, plain: bool, now_s: Callable[[], float] = time.monotonic) -> View:
    """The live view on a terminal, plain lines elsewhere or when asked for."""
    if plain or not console.is_terminal or console.is_dumb_terminal:
        return LineView(console, now_s)
    return LiveView(console, now_s)


class LiveView:
    """Redraws in place at most 8 times a second, less often where drawing is slow. The last frame stays."""

    def __init__(self, console: Console, now_s: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._now_s = now_s
        self._next_s = 0.0
        self._live = Live(console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def due(self) -> bool:
        return self._now_s() >= self._next_s

    def update(self, state: ViewState) -> None:
        started_s = self._now_s()
        width, height = self._console.size
        lines = frame(state, min(width, _COLUMNS_MAX), height - 1)
        self._live.update(Group(*lines), refresh=True)
        ended_s = self._now_s()
        self._next_s = ended_s + max(_FRAME_S, (ended_s - started_s) / _SHARE_OF_TIME)


class LineView:
    """Prints one line every two seconds."""

    def __init__(self, console: Console, now_s: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._now_s = now_s
        self._next_s = now_s() + _LINE_S

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def due(self) -> bool:
        return self._now_s() >= self._next_s

    def update(self, state: ViewState) -> None:
        self._console.print(one_line(state), markup=False, highlight=False, soft_wrap=True)
        self._next_s = self._now_s() + _LINE_S
