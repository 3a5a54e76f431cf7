"""Runs the code cells of a notebook in this process, as Jupyter would: `python tests/notebook_cells.py FILE.ipynb`.

Code may await at its top level; a result at the end of a cell is shown as HTML where it has that. Warnings are errors.
"""

import ast
import asyncio
import inspect
import json
import sys
import warnings
from pathlib import Path
from typing import Any


def code_cells(path: Path) -> list[str]:
    """The code of each code cell, in order."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


async def run_cell(code: str, names: dict[str, Any]) -> Any:
    """Run a cell on the names of those before it; the value of its last line, None where that is no expression."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    steps: list[ast.Module | ast.Expression] = [tree]
    if isinstance(last, ast.Expr):
        steps.append(ast.Expression(last.value))
    value = None
    for step in steps:
        mode = "exec" if isinstance(step, ast.Module) else "eval"
        value = eval(compile(step, "<cell>", mode, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
        if inspect.iscoroutine(value):
            value = await value
    return value


async def run_notebook(path: Path) -> None:
    """Run all cells in one event loop and write what each shows."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, code in enumerate(code_cells(path), start=1):
        value = await run_cell(code, names)
        shown = value._repr_html_() if hasattr(value, "_repr_html_") else value
        sys.stdout.write(f"cell {number}: {type(value).__name__}: {str(shown)[:200]}\n")


if __name__ == "__main__":
    warnings.simplefilter("error")
    asyncio.run(run_notebook(Path(sys.argv[1])))
