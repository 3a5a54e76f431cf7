"""The layout is enforced: a violation of each contract, planted in a copy of the source, is caught by name."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ("src", "evaluation/src", "training/src")
LINT_IMPORTS = Path(sysconfig.get_path("scripts")) / "lint-imports"

# contract's name → (file to append to, the forbidden import, the line of the report that names it)
PLANTED = {
    "Rooms import only the rooms beneath them": (
        "domain/time.py", "import htfi.pipeline.loop", "htfi.domain.time -> htfi.pipeline.loop"
    ),
    "No adapter knows another": (
        "adapters/keys/ed25519.py",
        "import htfi.adapters.stores.snapshot",
        "htfi.adapters.keys.ed25519 -> htfi.adapters.stores.snapshot",
    ),
    "No app knows another": (
        "../../evaluation/src/htfi_eval/bench/ledger.py",
        "import htfi.apps.cli.main",
        "htfi_eval.bench.ledger -> htfi.apps.cli.main",
    ),
    "What serves agents knows neither the service nor commands": (
        "apps/mcp/http.py", "import htfi.apps.service.app", "htfi.apps.mcp.http -> htfi.apps.service.app"
    ),
    "What runs imports neither training nor evaluation": (
        "domain/time.py", "import htfi_eval.bench.ledger", "htfi.domain.time -> htfi_eval.bench.ledger"
    ),
    "Modules of training import only those beneath them": (
        "../../training/src/htfi_train/corpus.py",
        "import htfi_train.trainer",
        "htfi_train.corpus -> htfi_train.trainer",
    ),
    "Simulation knows neither wiring nor adapters": (
        "../../training/src/htfi_train/simulation/rng.py",
        "import htfi.wiring.config",
        "htfi_train.simulation.rng -> htfi.wiring.config",
    ),
    "Only wiring and what trains import adapters": (
        "apps/cli/main.py",
        "import htfi.adapters.stores.snapshot",
        "htfi.apps.cli.main -> htfi.adapters.stores.snapshot",
    ),
    "Foreign libraries stay in adapters and apps": (
        "pipeline/series.py", "import sqlite3", "htfi.pipeline.series -> sqlite3"
    ),
    "Sibling modules form no cycle": (
        "domain/errors.py", "import htfi.domain.time", "No cycles are allowed in htfi.domain."
    ),
}  # fmt: skip
TRAINS = (
    "domain/plan.py", "import htfi_train.simulation.rng", "htfi.domain.plan -> htfi_train.simulation.rng"
)  # fmt: skip
# training, too, does not know what evaluates it
EVALUATES = (
    "../../training/src/htfi_train/tokenizer.py",
    "import htfi_eval.results",
    "htfi_train.tokenizer -> htfi_eval.results",
)
# two rooms of one row of the layers
NEIGHBOURS = (
    "market/config.py",
    "import htfi.forecasting.config",
    "htfi.market.config -> htfi.forecasting.config",
)


def copy_to(folder: Path) -> Path:
    for source in SOURCES:
        ignored = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(ROOT / source, folder / source, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return copy_to(tmp_path)


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(LINT_IMPORTS), "--no-cache"],
        cwd=folder,
        env={
            "PYTHONPATH": os.pathsep.join(str(folder / source) for source in SOURCES),
            "PATH": "",
            "COLUMNS": "200",
        },
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The linter's report on a copy that holds every planted violation."""
    folder = copy_to(tmp_path_factory.mktemp("planted"))
    for file, line, _ in (*PLANTED.values(), TRAINS, EVALUATES, NEIGHBOURS):
        target = folder / "src/htfi" / file
        target.write_text(f"{target.read_text()}\n{line}\n")
    done = lint(folder)
    assert done.returncode == 1, done.stderr
    return done.stdout


def section(report: str, contract: str) -> str:
    """What the report says of one broken contract: all between its title and the next one."""
    _, found, rest = report.partition(f"\n{contract}\n---")
    assert found, report
    ends = [rest.find(f"\n{other}\n---") for other in PLANTED]
    return rest[: min((end for end in ends if end >= 0), default=len(rest))]


def test_the_house_keeps_every_contract(copy: Path) -> None:
    done = lint(copy)
    assert done.returncode == 0, done.stdout
    assert all(f"{name} KEPT" in done.stdout for name in PLANTED)


@pytest.mark.parametrize("contract", PLANTED)
def test_a_planted_violation_breaks_its_contract(broken: str, contract: str) -> None:
    assert f"{contract} BROKEN" in broken
    assert PLANTED[contract][2] in section(broken, contract)


@pytest.mark.parametrize("planted", [TRAINS, EVALUATES], ids=["a run", "training"])
def test_a_distribution_imports_only_those_beneath_it(broken: str, planted: tuple[str, str, str]) -> None:
    assert planted[2] in section(broken, "What runs imports neither training nor evaluation")


def test_strangers_in_one_row_may_not_meet(broken: str) -> None:
    assert NEIGHBOURS[2] in section(broken, "Rooms import only the rooms beneath them")


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
