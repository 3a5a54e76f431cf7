"""Shows work as it goes: a live terminal view, or one plain line now and then. The long-running commands drive it.

with open_view(console, plain=False) as view:
    …
    if view.due():                       # one comparison
        view.update(model.snapshot(counters))
"""

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from htfi.apps.cli.view.nodes import change_text
from htfi.apps.cli.view.panels import frame, one_line
from htfi.apps.cli.view.state import ViewState
from htfi.apps.display.tables import has_width, wrap_words
from htfi.domain.peers import PeerChange

_FRAME_S = 1 / 8
_LINE_S = 2.0
_SHARE_OF_TIME = 0.05  # drawing may take this much of the one core that the loop runs on
_COLUMNS_MAX = 160
_INDENT = "    "


class HasPeerChanges(Protocol):
    """What is shown of every node."""

    @property
    def changes(self) -> tuple[PeerChange, ...]:
        """The last few of its peers, oldest first."""
        ...


State = TypeVar("State", bound=HasPeerChanges)
Asked = TypeVar("Asked", bound=HasPeerChanges, contravariant=True)


class Renderer(NamedTuple, Generic[State]):
    """How a state is drawn on a terminal of so many columns and lines, and said in one plain line."""

    frame: Callable[[State, int, int], list[Text]]
    one_line: Callable[[State], str]


RUN_RENDERER = Renderer(frame, one_line)


class ProgressView(Protocol[Asked]):
    """Where frames go."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def due(self) -> bool:
        """Whether a frame is wanted now; cheap enough to ask after every event."""
        ...

    def update(self, state: Asked) -> None: ...


def open_view(
    console: Console, plain: bool, now_s: Callable[[], float] = time.monotonic
) -> ProgressView[ViewState]:
    """A run's view: live on a terminal, plain lines elsewhere or when asked for."""
    return open_renderer(RUN_RENDERER, console, plain, now_s)


def open_renderer(
    look: Renderer[State], console: Console, plain: bool, now_s: Callable[[], float] = time.monotonic
) -> ProgressView[State]:
    if plain or not console.is_terminal or console.is_dumb_terminal:
        return LineView(look, console, now_s)
    return LiveView(look, console, now_s)


class LiveView(Generic[State]):
    """Redraws in place at most 8 times a second, less often where drawing is slow. The last frame stays."""

    def __init__(
        self, look: Renderer[State], console: Console, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._look = look
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

    def update(self, state: State) -> None:
        started_s = self._now_s()
        width, height = self._console.size
        lines = self._look.frame(state, min(width, _COLUMNS_MAX), height - 1)
        self._live.update(Group(*lines), refresh=True)
        ended_s = self._now_s()
        self._next_s = ended_s + max(_FRAME_S, (ended_s - started_s) / _SHARE_OF_TIME)


class LineView(Generic[State]):
    """Prints one line every two seconds, and before it what has changed among peers since the one before."""

    def __init__(
        self, look: Renderer[State], console: Console, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._look = look
        self._console = console
        self._now_s = now_s
        self._announced: PeerChange | None = None
        self._next_s = now_s() + _LINE_S

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def due(self) -> bool:
        return self._now_s() >= self._next_s

    def update(self, state: State) -> None:
        for change in _after(state.changes, self._announced):
            self._print_line(change_text(change))
            self._announced = change
        self._print_line(self._look.one_line(state))
        self._next_s = self._now_s() + _LINE_S

    def _print_line(self, line: str) -> None:
        """One line in a file; on a terminal it continues on the next line, no figure broken."""
        if self._console.is_terminal or has_width():
            line = f"\n{_INDENT}".join(wrap_words(line, self._console.width - len(_INDENT)))
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def _after(changes: Sequence[PeerChange], last: PeerChange | None) -> Sequence[PeerChange]:
    """Those that follow `last`; all where so much has happened that it is no longer among them."""
    for k in range(len(changes) - 1, -1, -1):
        if changes[k] == last:
            return changes[k + 1 :]
    return changes
