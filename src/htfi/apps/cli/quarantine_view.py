"""What `htfi quarantine` says of items: tables, one item in full, and hidden characters made visible."""

import unicodedata
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from htfi.domain.time import format_ns
from htfi.narrative.text import clean
from htfi.wiring.quarantine import QuarantinedItem

_HEADLINE_CHARS = 120
_MAX_RAW_CHARS = 4_000


def as_json(kept: QuarantinedItem) -> str:
    """One line for machines: the item as it came, what was found, what became of it."""
    row = {
        "number": kept.held.number,
        "status": kept.status,
        "item": kept.held.item,
        "screened": kept.held.screened,
        "release": kept.release,
        "entered": kept.entered,
    }
    return msgspec.json.encode(row).decode()


def show_list(kept: Sequence[QuarantinedItem], folder: Path) -> None:
    """A table of items, with the finding that weighs most."""
    from htfi.apps.display.tables import print_table

    if not kept:
        click.echo(f"{folder} has no news in quarantine")
        return
    columns = ("no.", "arrived", "source", "why", "status", "headline")
    rows: list[tuple[str, ...]] = []
    for one in kept:
        item, screened = one.held.item, one.held.screened
        worst = max(screened.findings, key=lambda found: found.strength, default=None)
        on = f"{', '.join(item.symbols[:3])}: " if item.symbols else ""
        cells = (
            str(one.held.number),
            format_ns(item.available_at_ns)[:16].replace("T", " "),
            clean(item.source, 24),
            worst.rule if worst else "",
            one.status,
            clean(f"{on}{screened.item.headline}", _HEADLINE_CHARS),
        )
        rows.append(cells)
    print_table(columns, rows)


def show_item(kept: QuarantinedItem) -> None:
    """One item in full."""
    from htfi.apps.display.tables import print_facts, print_line

    item, screened = kept.held.item, kept.held.screened
    print_line(f"item {kept.held.number}, {clean(item.id, 80)}: {kept.status}")
    facts = {
        "arrived": format_ns(item.available_at_ns),
        "dated": format_ns(item.event_time_ns) if item.event_time_ns > 0 else "",
        "source": clean(item.source, 80),
        "publisher": visible(item.publisher),
        "link": visible(item.url),
        "on": clean(", ".join(item.symbols), 200),
        "corrects": visible(item.corrects),
    }
    print_facts({name: text for name, text in facts.items() if text})
    click.echo("\nfindings")
    for found in screened.findings:
        print_facts({f"  {found.strength:4.2f}": f"{found.rule}: {found.detail}"})
    click.echo("\ncleaned")
    print_facts(_texts(screened.item.headline, screened.item.body))
    click.echo("\noriginal")
    print_facts(_texts(visible(item.headline), visible(item.body)))
    if kept.release is not None:
        click.echo()
        print_line(f"admitted by {kept.release.words}")
        if kept.entered is not None:
            print_line(
                f"entered the run at {format_ns(kept.entered.at_ns)}, after event {kept.entered.after}"
            )


def _texts(headline: str, body: str) -> dict[str, str]:
    return {"  headline": headline, "  body": body} if body else {"  headline": headline}


def admission_text(kept: QuarantinedItem, goes_on: bool, folder: Path) -> str:
    by = kept.release.by if kept.release else ""
    when = (
        "the run picks it up within seconds"
        if goes_on
        else f"it enters when the run in {folder} resumes: run its `htfi run` command again"
    )
    return f"item {kept.held.number} ({clean(kept.held.item.id, 80)}) is admitted by {by}: {when}"


def visible(text: str) -> str:
    """A text on one line that hides nothing: what is unseen, or drawn like Latin and is not, as its code point."""
    text, more = text[:_MAX_RAW_CHARS], len(text) - _MAX_RAW_CHARS
    letters = [char for char in text if char.isalpha()]
    in_latin = 2 * sum(char.isascii() for char in letters) > len(letters)
    shown = "".join(
        char if _is_plain(char, in_latin) else "\\\\" if char == "\\" else _escaped(char) for char in text
    )
    return shown + (f" … and {more:,} more characters" if more > 0 else "")


def _is_plain(char: str, in_latin: bool) -> bool:
    if char.isascii():
        return " " <= char <= "~" and char != "\\"
    if unicodedata.category(char)[0] not in "LNPS" or _is_disguised(char):
        return False
    return not in_latin or not char.isalpha() or unicodedata.name(char, "").startswith("LATIN")


def _is_disguised(char: str) -> bool:
    """Whether it is another way to write a plain letter or figure (compatibility forms), or is drawn as a blank."""
    return char in "\u115f\u1160\u3164\uffa0\u2800" or unicodedata.normalize(
        "NFKC", char
    ) != unicodedata.normalize("NFC", char)


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
