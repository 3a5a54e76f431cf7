# ruff: noqa: INP001 - beside the script that uses it
"""Whether the built site loads nothing from another machine."""

import re
from html.parser import HTMLParser
from pathlib import Path

# Tags whose address a browser loads by itself.
_LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "video": "src"}
_NOT_LOADED = ("canonical", "prev", "next", "alternate", "edit")
_OF_STYLE = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])((?:https?:)?//[^)'\"]+)")


class LoadsFromElsewhere(Exception):
    """A built page would ask another machine for something."""


def check_site(folder: Path) -> int:
    """How many pages there are, of which none loads anything from elsewhere.

    Raises: LoadsFromElsewhere.
    """
    pages = sorted(folder.rglob("*.html"))
    found: list[str] = []
    for page in pages:
        text = page.read_text(encoding="utf-8")
        found += [f"{page.relative_to(folder)}: {address}" for address in loaded_addresses(text)]
    for style in folder.rglob("*.css"):
        found += [
            f"{style.relative_to(folder)}: {one}" for one in _OF_STYLE.findall(style.read_text("utf-8"))
        ]
    if found:
        raise LoadsFromElsewhere("\n".join(found))
    return len(pages)


def loaded_addresses(page: str) -> list[str]:
    """The addresses of other machines that a browser asks when it shows a page."""
    reader = _Reader()
    reader.feed(page)
    return reader.found


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_style = tag == "style"
        values = dict(attrs)
        address = values.get(_LOADED.get(tag, "")) or ""
        if re.match(r"(https?:)?//", address) and values.get("rel") not in _NOT_LOADED:
            self.found.append(address)

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.found += _OF_STYLE.findall(data)

    def handle_endtag(self, tag: str) -> None:
        del tag
        self._in_style = False
