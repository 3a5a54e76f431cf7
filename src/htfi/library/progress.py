"""A bar that shows how far a long call has come: on standard error, or in the notebook that asked."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from htfi.pipeline.loop import DecisionLoop

_ITEMS_PER_STEP = 200  # between two steps of a bar


@contextmanager
def progress_bar(title: str, *, is_shown: bool = True) -> Generator[Callable[[float], None]]:
    """A callback that takes the share done, 0–1; the bar goes away at the end, also after an interruption."""
    if not is_shown:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(title, total=1.0)

        def advance(share: float) -> None:
            bars.update(task, completed=share)

        yield advance


def loop_progress(advance: Callable[[float], None]) -> Callable[[DecisionLoop], None]:
    """Called by a loop after each item: says now and then how much of its feed is read."""
    num_items = 0

    def after_item(loop: DecisionLoop) -> None:
        nonlocal num_items
        num_items += 1
        if num_items % _ITEMS_PER_STEP == 0:
            advance(loop.feed.progress() or 0.0)

    return after_item
