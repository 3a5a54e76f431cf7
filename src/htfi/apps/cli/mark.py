"""`htfi mark`: make a marking key, and look for its noise in a text."""

import sys
from dataclasses import asdict
from pathlib import Path

import click
import msgspec

from htfi.domain.content_marking import FIELD, content_marking
from htfi.domain.errors import InvalidInput
from htfi.library.marks import USUAL_LIMIT, MarkVerification, make_mark_key, verify_mark

_FILE = click.Path(path_type=Path, dir_okay=False)
_FOLDER = click.Path(path_type=Path, file_okay=False)

_TEXT_SUFFIXES = (".txt", ".md", ".html", ".json", ".jsonl", ".csv", ".rst")


@click.group("mark", short_help="Marks in texts: make a key, verify a text.")
def command() -> None:
    """Show that a text came from a model of yours: its tokens were chosen with noise that follows from a secret key.

    `writer.generate(..., temperature=1.0, mark_key=FILE)` in Python writes marked texts, and a run with a key at
    mark.key in its folder marks its readings. No token depends on how it was drafted. Text at temperature 0, or in a
    form that leaves no choice, holds no mark.

    \b
    Examples:
      htfi mark key mark.key
      htfi mark key DIR/mark.key
      htfi mark verify letter.txt --key mark.key
    """


@command.command("key", short_help="Make a marking key.")
@click.argument("file", type=_FILE)
def key_command(file: Path) -> None:
    """Make a marking key in a new FILE, which only its owner may read. Keep it: texts are verified with it.

    \b
    Example:
      htfi mark key mark.key
    """
    click.echo(f"made marking key {make_mark_key(file)} in {file}")


@command.command("verify", short_help="Whether a text was written with a key.")
@click.argument("text", metavar="TEXT|FILE")
@click.option("--key", type=_FILE, help="File of the marking key.")
@click.option(
    "--run", "folder", type=_FOLDER, help="Look for the noise of this run's readings; with its marking key."
)
@click.option("--model", type=_FOLDER, help="Folder of the model that wrote.  [default: the shipped target]")
@click.option(
    "--temperature",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0.0),
    help="At which it would have written, to say how much a mark can show.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def verify_command(
    text: str, key: Path | None, folder: Path | None, model: Path | None, temperature: float, as_json: bool
) -> None:
    """Print how likely a text that was written without the key would look as marked as this one: a p-value.

    TEXT is the text itself, a file of it, or - for standard input. Edited texts and excerpts are recognised as far as
    enough of them is left. The p-value is a bound that holds for texts of any length, with everything that is
    searched; below 0.0001 is a usual limit.

    \b
    Examples:
      htfi mark verify letter.txt --key mark.key
      htfi mark verify "Shares of Acme fell after the cut" --key mark.key --json
      htfi mark verify note.txt --run DIR
    """
    if key is None and folder is None:
        raise InvalidInput("give --key FILE (`htfi mark key FILE` makes one), or --run DIR")
    found = verify_mark(_content(text), key, run=folder, model=model, temperature=temperature)
    if as_json:
        body = {**asdict(found), FIELD: content_marking(is_generated=False)}
        click.echo(msgspec.json.format(msgspec.json.encode(body), indent=2))
    else:
        click.echo(f"{found}; {_capacity(found, temperature, is_free=folder is None)}")


def _content(text: str) -> str:
    if text == "-":
        return sys.stdin.read()
    if "\0" in text or any(char.isspace() for char in text):  # words, unless a file has such a name
        try:
            is_file = Path(text).is_file()
        except (OSError, ValueError):
            is_file = False
        if not is_file:
            return text
    path = Path(text)
    try:
        if path.is_file():
            return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{text} holds no text in UTF-8: give the words themselves, or a text file"
        ) from error
    except OSError as error:
        raise InvalidInput(f"cannot read {text}: {error.strerror}") from error
    if "/" in text or path.suffix in _TEXT_SUFFIXES:
        raise InvalidInput(f"there is no file {text}: check the path, or give the words themselves")
    return text


def _capacity(found: MarkVerification, temperature: float, *, is_free: bool) -> str:
    if is_free and temperature == 0.0:
        return "at temperature 0 a text holds no mark"
    what = (
        f"free text of these tokens at temperature {temperature:g}"
        if is_free
        else "the words of such a reading"
    )
    held = f"{what} can show {found.capacity_nats:.1f} nats on average"
    held += f", and p = {USUAL_LIMIT:g} takes {found.needed_nats:.1f}"
    return held if found.capacity_nats >= found.needed_nats else f"{held}: too little was left to choose"
