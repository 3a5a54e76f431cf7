"""The sdist holds what a build needs, and its wheel works in an environment that knows no checkout."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from checks import nonempty

ROOT = Path(__file__).parents[2]
SMOKE = ROOT / "tests" / "installed_smoke.py"
NUM_COMPILED = 30
TOP = ("setup.py", "pyproject.toml", "README.md", "LICENSE")


pytestmark = pytest.mark.slow  # a checkout is copied and built from


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made from a copy of what is tracked, with the folders that extras name."""
    parent = tmp_path_factory.mktemp("sdist")
    for file in nonempty(tracked("src", "training/pyproject.toml", "evaluation/pyproject.toml", *TOP)):
        target = parent / "checkout" / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, target)
    run([sys.executable, "setup.py", "-q", "sdist", "-d", str(parent)], parent / "checkout")
    (made,) = parent.glob("htfi-*.tar.gz")
    return made


def tracked(*paths: str) -> list[str]:
    return subprocess.run(
        ["git", "ls-files", *paths], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()


def run(command: list[str], folder: Path, **variables: str) -> str:
    """Its output, in an environment without the checkout's paths."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env=inherited | variables
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_sdist_holds_every_tracked_source_and_names_no_folder_of_the_checkout(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2]: name for name in archive.getnames()}
        assert not set(nonempty(tracked("src", *TOP))) - set(held)
        assert not [name for name in held if name.startswith(("corpora/", "evaluation/", "training/"))]
        assert not [name for name in held if name.endswith((".so", ".pyd"))]
        about = archive.extractfile(held["PKG-INFO"])
        assert about is not None
        metadata = about.read().decode()
    assert "Requires-Dist: htfi-train==" in metadata
    assert str(sdist.parent) not in metadata


@pytest.mark.slow
@pytest.mark.parametrize(("compiler", "num_modules"), [(None, NUM_COMPILED), ("/bin/false", 0)])
def test_wheel_of_the_sdist_works_in_a_new_environment(
    sdist: Path, tmp_path: Path, compiler: str | None, num_modules: int
) -> None:
    variables = {"CC": compiler} if compiler else {}
    pip = ["-m", "pip", "--disable-pip-version-check"]
    said = run(
        [sys.executable, *pip, "wheel", "-v", "--no-deps", "--no-build-isolation", "-w", ".", str(sdist)],
        tmp_path, **variables,
    )  # fmt: skip
    assert ("the market kernel will run interpreted" in said) == bool(compiler)
    (wheel,) = tmp_path.glob("htfi-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = archive.namelist()
    assert sum(name.endswith((".so", ".pyd")) for name in held) == num_modules
    assert not [name for name in held if name.endswith((".c", ".h", ".pxd"))]
    run([sys.executable, "-m", "venv", "new"], tmp_path)
    (python,) = [*tmp_path.glob("new/bin/python"), *tmp_path.glob("new/Scripts/python.exe")]
    run([str(python), *pip, "install", "-q", "-c", str(ROOT / "constraints.txt"), str(wheel)], tmp_path)
    run([str(python), str(SMOKE), str(num_modules)], tmp_path)
