# ruff: noqa: INP001, T201 - a script that stands alone and prints for the person who starts it
"""Draws the mermaid diagrams of the pages as SVG, for the documentation site, which loads no script from elsewhere.

    npm pack mermaid@12.3.0 && tar xf mermaid-12.3.0.tgz
    .venv/bin/python docs/pictures/diagrams.py package/dist/mermaid.min.js

It needs Chromium. A drawing names the digest of the text that it was made from; a test finds those out of date.
"""

import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "docs" / "site")]

from diagrams import DIAGRAMS, diagram_sources, drawn_from  # noqa: E402

from chromium import Chromium  # noqa: E402 - the browser that the tests drive

CONFIG = {"startOnLoad": False, "theme": "neutral", "fontFamily": "sans-serif", "htmlLabels": False,
          "flowchart": {"htmlLabels": False, "useMaxWidth": True}, "sequence": {"useMaxWidth": True}}  # fmt: skip


def main(library: Path) -> None:
    """Draw those that are missing or out of date."""
    wanted = diagram_sources()
    DIAGRAMS.mkdir(exist_ok=True)
    for file in set(DIAGRAMS.glob("*.svg")) - {DIAGRAMS / f"{name}.svg" for name in wanted}:
        file.unlink()
    with tempfile.TemporaryDirectory() as folder, Chromium(Path(folder) / "profile") as browser:
        page = Path(folder) / "page.html"
        page.write_text(f'<!doctype html><body><script src="{library.resolve().as_uri()}"></script></body>')
        browser.open(page, 1280)
        browser.run(f"mermaid.initialize({json.dumps(CONFIG)})")
        for name, text in wanted.items():
            drawn = browser.run(
                f"mermaid.render({json.dumps(name)}, {json.dumps(text)}).then((made) => made.svg)"
            )
            file = DIAGRAMS / f"{name}.svg"
            file.write_text(f"<!-- {drawn_from(text)} -->\n{drawn}\n", encoding="utf-8")
            print(f"{file}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
