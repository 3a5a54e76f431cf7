"""Tells on stderr how far a stage of an evaluation is; every command that takes its time uses it."""

import time

import click

_EVERY_S = 5.0


class ProgressLine:
    """Called with (done, num): a line at most every five seconds, and one at the end."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._began_s = self._told_s = time.monotonic()
        click.echo(f"{name} …", err=True)

    def __call__(self, done: int, num: int) -> None:
        now_s = time.monotonic()
        if done >= num or now_s - self._told_s >= _EVERY_S:
            self._told_s = now_s
            click.echo(f"{self._name}: {done:,} of {num:,}, {now_s - self._began_s:.1f} s", err=True)
