"""Shared parts of the commands: options, progress lines on stderr, and libraries that are imported late."""

import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from htfi.domain.errors import MissingExtra

ProgressCallback = Callable[[int, int], None]  # (done, total)
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

PROGRESS_EVERY_S = 5.0

_FILE = click.Path(path_type=Path, dir_okay=False)
_FOLDER = click.Path(path_type=Path, file_okay=False)

json_option = click.option("--json", "json_file", type=_FILE, help="Write the figures to FILE.")
html_option = click.option("--html", "html_file", type=_FILE, help="Write a page to FILE.")
history_option = click.option(
    "--history", "history_file", type=_FILE, help="Append the figures to FILE, and compare with earlier ones."
)
data_option = click.option("--data", type=_FOLDER, help="Folder of the staged data.")
quick_option = click.option(
    "--quick", is_flag=True, help="One short run: a check that it works, not a measurement."
)


def beside_option(command: str) -> Decorator:
    """`--beside FILE`, the figures of a benchmark that are reported with those of an evaluation."""
    return click.option("--beside", type=_FILE, help=f"JSON of `{command}`, whose figures join these.")


def runs_option(default: int) -> Decorator:
    return click.option("--runs", "num_runs", default=default, show_default=True, type=click.IntRange(1))


def seed_option(default: int, of: str) -> Decorator:
    return click.option("--seed", default=default, show_default=True, help=f"Seed of {of}.")


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--html FILE` and `--json FILE`."""
    return html_option(json_option(command))


def figures_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--json FILE` and `--history FILE`, of every benchmark."""
    return json_option(history_option(command))


class ProgressLine:
    """Called with (done, num): one line at most every five seconds, and one at the end."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._began_s = self._shown_s = time.monotonic()
        click.echo(f"{name} …", err=True)

    def __call__(self, done: int, num: int) -> None:
        now_s = time.monotonic()
        if done >= num or now_s - self._shown_s >= PROGRESS_EVERY_S:
            self._shown_s = now_s
            click.echo(f"{self._name}: {done:,} of {num:,}, {now_s - self._began_s:.1f} s", err=True)


def load_library(module: str) -> Any:
    """Import a library to compare with. Raises: MissingExtra."""
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise MissingExtra(f"{name} is not installed (pip install 'htfi-eval[peers]')") from error
