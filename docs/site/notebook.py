# ruff: noqa: INP001, T201 - a script that stands alone
"""A notebook as a page: its words, its code, and what the code shows when it is run now.

.venv/bin/python docs/site/notebook.py examples/notebooks/01_first_forecast.ipynb > page.md
"""

import asyncio
import contextlib
import io
import json
import sys
import warnings
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from notebook_cells import run_cell  # noqa: E402 - what the test of the notebooks runs them with


async def notebook_page(file: Path, *, runs: bool) -> str:
    """The page, with what its cells show where `runs`."""
    names: dict[str, Any] = {"__name__": "__main__"}
    blocks: list[str] = []
    for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code":
            blocks.append(source)
            continue
        blocks.append(f"```python\n{source}\n```")
        if runs:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                value = await run_cell(source, names)
            blocks += shown(printed.getvalue(), value)
    blocks.append(
        f"*This page is the notebook `examples/notebooks/{file.name}`, run when the site was built.*"
    )
    return "\n\n".join(blocks) + "\n"


def shown(printed: str, value: Any) -> list[str]:
    """What a cell printed, and its value as a notebook shows it."""
    blocks = [f'<div class="output"><pre>{escape(printed)}</pre></div>'] if printed.strip() else []
    if value is not None:
        html = value._repr_html_() if hasattr(value, "_repr_html_") else f"<pre>{escape(repr(value))}</pre>"
        blocks.append(
            '<div class="output">' + "".join(line.strip() + "\n" for line in html.splitlines()) + "</div>"
        )
    return blocks


if __name__ == "__main__":
    warnings.simplefilter("error")
    print(asyncio.run(notebook_page(Path(sys.argv[1]), runs="--quick" not in sys.argv)), end="")
