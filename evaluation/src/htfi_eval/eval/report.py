"""`htfi eval report`: one page of all evaluations, from the JSON that each wrote; `main` lists it."""

from pathlib import Path

import click

from htfi.domain.errors import InvalidInput
from htfi_eval.report import write_gallery
from htfi_eval.results import read_result

# In which order they are read; others follow by name.
_ORDER = ("returns", "volatility", "narrative", "portfolio", "warning", "mini-returns", "mini")
FOLDER = Path("build/goals")

_EPILOG = """\b
Examples:
  htfi eval warning --json build/goals/warning.json
  htfi eval report                                     all of build/goals, as build/evaluation.html
  htfi eval report mine/*.json --html mine/all.html
"""


@click.command("report", short_help="One page of all evaluations.", epilog=_EPILOG)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--html", "html_file", default="build/evaluation.html", show_default=True,
    type=click.Path(path_type=Path, dir_okay=False), help="Write the page to FILE.",
)  # fmt: skip
def command(files: tuple[Path, ...], html_file: Path) -> None:
    """Put the evaluations in FILES, which other commands wrote with --json, on one page that loads nothing.

    Without FILES: those in build/goals. Figures of benches are left out.
    """

    given = files or tuple(sorted(FOLDER.glob("*.json")))
    if not given:
        raise InvalidInput(
            f"{FOLDER}: no JSON there; give files, or write some with htfi eval NAME --json FILE"
        )
    found = [read_result(file) for file in given]
    shown = [one for one in found if one.kind == "eval"]
    if not shown:
        raise InvalidInput(
            f"{given[0]}: no evaluation among the files given, only benches; see htfi eval --help"
        )
    shown.sort(key=lambda one: (_ORDER.index(one.name) if one.name in _ORDER else len(_ORDER), one.name))
    passed = [one.name for one in found if one.kind != "eval"]
    write_gallery(html_file, shown, [f"benches left out: {', '.join(passed)}"] if passed else [])
