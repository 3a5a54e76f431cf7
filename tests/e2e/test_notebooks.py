"""The notebooks of examples/notebooks run from top to bottom, each in a new process where warnings are errors."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = ROOT / "examples" / "notebooks"
RUNNER = ROOT / "tests" / "notebook_cells.py"
PACKAGES = {
    "01_first_forecast": ("pandas",),
    "02_your_prices_and_news": ("pandas",),
    "03_is_it_any_good": ("pandas", "arch", "scipy"),
    "04_what_if": ("pandas",),
    "05_audit_a_decision": ("pandas",),
    "06_speculative_decoding": ("pandas",),
    "07_live_stream": ("pandas", "websockets"),
    "08_service": ("pandas", "httpx", "fastapi", "uvicorn"),
}
QUICK = ("01_first_forecast", "08_service")
CASES = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in PACKAGES]


def test_the_notebooks_are_those_that_are_run() -> None:
    assert sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb")) == sorted(PACKAGES)


@pytest.mark.parametrize("name", CASES)
def test_notebook_runs_without_a_warning(name: str, tmp_path: Path) -> None:
    missing = [package for package in PACKAGES[name] if importlib.util.find_spec(package) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    done = subprocess.run(
        [sys.executable, RUNNER, NOTEBOOKS / f"{name}.ipynb"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "cell 1: " in done.stdout


@pytest.mark.parametrize("name", PACKAGES)
def test_notebook_is_committed_without_outputs(name: str) -> None:
    cells = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code)
