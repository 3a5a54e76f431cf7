"""`htfi news`: reads headlines from arguments or a file; shows what is understood, or writes JSON lines."""

import json
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from htfi.domain.content_marking import FIELD, content_marking
from htfi.domain.errors import InvalidInput

if TYPE_CHECKING:
    from htfi.domain.decision import Rung
    from htfi.narrative.ports import NewsReader
    from htfi.narrative.understanding import NewsText, Understanding

EPILOG = """\b
Examples:
  htfi news "Fed leaves rates unchanged, as expected" --on SPX --on EURUSD
  htfi news "Amgen to buy Horizon for $27.8 bln" --on HZNP --name Horizon
  htfi news --file items.jsonl --json out.jsonl    one line in, one line out

Of two documents of one central bank in a file, the second is shown beside the first.

A line of the file is an object with a text, and where known body, symbol, name, source and published_at.
"""
_BATCH = 256
_MAX_LINE_BYTES = 4 << 20


@click.command("news", epilog=EPILOG)
@click.argument("texts", metavar="[TEXT]...", nargs=-1)
@click.option("--on", "symbols", metavar="SYMBOL", multiple=True, help="Asset asked about; repeatable.")
@click.option(
    "--name", "names", multiple=True, help="What the asset is called; one for each --on, in their order."
)
@click.option("--views/--no-views", default=True, help="Also ask the draft and target models (text only).")
@click.option("--body", default="", help="The text below the headline.")
@click.option("--source", default="", help="The feed that it comes from.")
@click.option(
    "--file", "file", type=click.Path(path_type=Path), help="JSON lines of items; '-' is standard input."
)
@click.option(
    "--json", "out", type=click.Path(path_type=Path), help="Write JSON lines to this file; '-' prints them."
)
def command(
    texts: tuple[str, ...],
    symbols: tuple[str, ...],
    names: tuple[str, ...],
    views: bool,
    body: str,
    source: str,
    file: Path | None,
    out: Path | None,
) -> None:
    """Show what is understood of news: the kind of event, who is involved, figures, and what it means for an asset.

    Where it says nothing about the asset, the reason is shown. Nothing is recorded and no prices are needed. Without
    --on, the reading is for what the text is mainly about.
    """
    from htfi.narrative.understanding import NewsText

    if bool(texts) == (file is not None):
        raise click.UsageError("give one or more texts, or a file of items with --file")
    if len(names) > max(len(symbols), 1):
        raise click.UsageError("give at most one --name for each --on")
    if file is None:
        asked = [*zip_longest(symbols, names, fillvalue="")] or [("", "")]
        items = [NewsText(text, body, symbol, name, source) for text in texts for symbol, name in asked]
    else:
        items = read_items(file)
    if out is not None:
        _write(items, out, show_progress=file is not None)
        return
    from htfi.apps.cli.news.screen import show
    from htfi.library.read import model_views, open_view_readers, understand_items

    groups: dict[tuple[str, str], list[Understanding]] = {}
    for one in understand_items(items):
        groups.setdefault((one.item.text, one.item.body), []).append(one)
    has_views = views and file is None and bool(symbols)
    readers: Mapping[Rung, NewsReader] = open_view_readers() if has_views else {}
    for place, group in enumerate(groups.values()):
        if place:
            click.echo()
        show(group, model_views(group, readers) if readers else {})


def read_items(file: Path) -> "list[NewsText]":
    """The items of a file of JSON lines, in order. Raises: InvalidInput, naming the line that is no item."""
    from htfi.narrative.understanding import NewsText

    decoder = msgspec.json.Decoder(NewsText)
    items: list[NewsText] = []
    try:
        opened = nullcontext(sys.stdin.buffer) if str(file) == "-" else file.open("rb")
        with opened as stream:
            for number, raw in enumerate(stream, 1):
                if not raw.strip():
                    continue
                if len(raw) > _MAX_LINE_BYTES:
                    raise InvalidInput(
                        f"{file}, line {number}: longer than {_MAX_LINE_BYTES >> 20} MiB; shorten its body"
                    )
                try:
                    items.append(decoder.decode(raw))
                except (msgspec.DecodeError, UnicodeDecodeError) as error:
                    raise InvalidInput(
                        f"{file}, line {number}: {error}; give an object with a text"
                    ) from error
    except OSError as error:
        raise InvalidInput(f"{file}: {error.strerror}; name a file of JSON lines") from error
    return items


def _write(items: "list[NewsText]", out: Path, *, show_progress: bool) -> None:
    from htfi.library.news_lines import as_line
    from htfi.library.read import understand_items

    try:
        mark = content_marking()
        with nullcontext(sys.stdout) if str(out) == "-" else out.open("w", encoding="utf-8") as stream:
            for place, one in enumerate(understand_items(items), 1):
                stream.write(json.dumps({**as_line(one), FIELD: mark}, ensure_ascii=False) + "\n")
                if show_progress and sys.stderr.isatty():
                    click.echo(f"\rread {place:,} of {len(items):,}", nl=place == len(items), err=True)
    except OSError as error:
        raise InvalidInput(f"{out}: {error.strerror}; name a file that can be written") from error
