"""Options that the training commands share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

out_option = click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder to write."
)


def corpora_option(holds: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--corpora`; its help says what the folder holds."""
    return click.option(
        "--corpora",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path("corpora"),
        show_default=True,
        help=holds,
    )


LINES = "Folder of the corpora; labelled lines are in its folder 'facts'."
