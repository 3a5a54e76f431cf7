"""A bar that shows how far a long call has come: on standard error, or in the notebook that asked."""

from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def progress_bar(title: str) -> Generator[Callable[[float], None]]:
    """A callback that takes the share done, 0–1; the bar goes away at the end, also after an interruption."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(title, total=1.0)

        def advance(share: float) -> None:
            bars.update(task, completed=share)

        yield advance
