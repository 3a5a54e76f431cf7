"""One self-contained HTML page: the frame and the styles that all pages share, and what a page adds."""

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files

from htfi.domain.content_marking import marking_meta

_SCRIPTS_ALLOWED = "; script-src 'unsafe-inline'; img-src data: blob:"


def page_html(
    title: str, body: str, *, style: str = "", scripts: Sequence[str] = (), is_generated: bool = True
) -> str:
    """`body`, `style` and `scripts` are trusted text; without scripts the page forbids them.

    `is_generated`: it shows text that a model wrote.
    """
    parts = {
        "title": escape(title),
        "marking": marking_meta(is_generated=is_generated),
        "policy": _SCRIPTS_ALLOWED if scripts else "",
        "style": resource(__package__ or "", "page.css") + style,
        "body": body,
        "scripts": "".join(f"<script>\n{script}</script>\n" for script in scripts),
    }
    return fill_template(resource(__package__ or "", "page.html"), parts)


def fill_template(template: str, parts: Mapping[str, str]) -> str:
    """Each @@name@@ replaced, in one pass: parts hold braces, dollars and marks of their own."""
    pieces = template.split("@@")
    return "".join(parts[piece] if place % 2 else piece for place, piece in enumerate(pieces))


def resource(package: str, name: str) -> str:
    """The text of a file that is installed with a package."""
    return files(package).joinpath(name).read_text(encoding="utf-8")
