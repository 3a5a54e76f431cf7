"""Progress of `htfi sandbox`: a bar with the trial at work in a terminal, a line for each trial elsewhere."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

import click


@contextmanager
def trial_progress(name: str) -> Generator[Callable[[str, float], None]]:
    """A callback (trial, share of all that is done), on standard error."""
    if not sys.stderr.isatty():
        yield _lines(name)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(f"trying {name}", total=1.0)
        yield lambda trial, share: bars.update(task, completed=share, description=f"trying {name}: {trial}")


def _lines(name: str) -> Callable[[str, float], None]:
    shown = ""

    def show(trial: str, share: float) -> None:
        nonlocal shown
        if trial and trial != shown:
            shown = trial
            click.echo(f"trying {name}: {trial} ({100 * share:.0f}% done)", err=True)

    return show
