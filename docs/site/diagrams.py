# ruff: noqa: INP001 - beside the pages that it serves
"""The mermaid diagrams of the pages, and the drawings that stand for them on the site."""

import hashlib
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DIAGRAMS = ROOT / "docs" / "pictures" / "diagrams"
_MERMAID = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SIZE = re.compile(r'viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ')
_SCALE = 0.75  # of the size in which mermaid draws: its letters are then about those of the page


def diagram_sources() -> dict[str, str]:
    """The text of each diagram of the README and of docs/, by the name of its drawing: `protocol-2`."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return {
        diagram_name(page, number): text
        for page in pages
        for number, text in enumerate(_MERMAID.findall(page.read_text(encoding="utf-8")), start=1)
    }


def diagram_name(page: Path, number: int) -> str:
    """The name of the drawing of the `number`-th diagram of a page."""
    return f"{page.stem.lower()}-{number}"


def drawn_from(text: str) -> str:
    """The first line of a drawing: the digest of the text that it shows."""
    return f"drawn from mermaid text with SHA-256 {hashlib.sha256(text.encode()).hexdigest()}"


def with_drawings(page: Path, text: str, folder: str) -> str:
    """The text of a page with drawings, found in `folder`, in place of its diagrams."""
    numbers = iter(range(1, 1 + len(_MERMAID.findall(text))))

    def drawing(_: re.Match[str]) -> str:
        name = diagram_name(page, next(numbers))
        size = _SIZE.search((DIAGRAMS / f"{name}.svg").read_text(encoding="utf-8"))
        width_px = round(_SCALE * float(size[1])) if size else 0
        picture = f'![A diagram]({folder}/{name}.svg){{ style="width: {width_px}px" }}'
        return f'<div class="diagram" markdown>{picture}</div>'

    return _MERMAID.sub(drawing, text)
