"""The layout is enforced: a violation of each contract, planted in a copy of the source, is caught by name."""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINT_IMPORTS = Path(sysconfig.get_path("scripts")) / "lint-imports"

# contract's name → (file to append to, the forbidden import)
PLANTED = {
    "Rooms import only the rooms beneath them": ("domain/time.py", "import htfi.pipeline.loop"),
    "No adapter knows another": ("adapters/keys/ed25519.py", "import htfi.adapters.stores.snapshot"),
    "No app knows another": ("apps/bench/ledger.py", "import htfi.apps.cli.lazy"),
    "Only wiring imports adapters": ("apps/cli/main.py", "import htfi.adapters.stores.snapshot"),
    "Foreign libraries stay in adapters and apps": ("pipeline/moments.py", "import sqlite3"),
    "Sibling modules form no cycle": ("domain/errors.py", "import htfi.domain.time"),
}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(LINT_IMPORTS), "--no-cache"],
        cwd=folder,
        env={"PYTHONPATH": str(folder / "src"), "PATH": "", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_house_keeps_every_contract(copy: Path) -> None:
    done = lint(copy)
    assert done.returncode == 0, done.stdout
    assert all(f"{name} KEPT" in done.stdout for name in PLANTED)


@pytest.mark.parametrize("contract", PLANTED)
def test_a_planted_violation_breaks_its_contract(copy: Path, contract: str) -> None:
    file, line = PLANTED[contract]
    target = copy / "src/htfi" / file
    target.write_text(f"{target.read_text()}\n{line}\n")
    done = lint(copy)
    assert done.returncode == 1
    assert f"{contract} BROKEN" in done.stdout


def test_strangers_in_one_row_may_not_meet(copy: Path) -> None:
    target = copy / "src/htfi/market/config.py"
    target.write_text(f"{target.read_text()}\nimport htfi.forecasting.config\n")
    done = lint(copy)
    assert "Rooms import only the rooms beneath them BROKEN" in done.stdout


def test_a_room_that_is_in_no_row_is_noticed(copy: Path) -> None:
    (copy / "src/htfi/attic").mkdir()
    (copy / "src/htfi/attic/__init__.py").touch()
    done = lint(copy)
    assert done.returncode != 0
    assert "attic" in done.stdout


def test_a_folder_without_init_is_noticed(copy: Path) -> None:
    (copy / "src/htfi/market/hidden").mkdir()
    (copy / "src/htfi/market/hidden/work.py").write_text('"""Out of sight."""\n')
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", "src"],
        cwd=copy,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "INP001" in done.stdout
