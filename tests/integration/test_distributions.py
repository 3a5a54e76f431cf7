"""Evaluation and training are distributions of their own: a wheel without them says what to install."""

import runpy
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import setuptools

from checks import nonempty

ROOT = Path(__file__).parents[2]
FOLDERS = {"eval": "evaluation", "train": "training"}  # by extra

# `htfi` where neither is installed, whatever this environment holds.
ALONE = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        package = name.partition(".")[0]
        if package in ("htfi_eval", "htfi_train"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=package)
sys.meta_path.insert(0, Absent())
from htfi.apps.cli.main import main
sys.argv = ["htfi", *sys.argv[1:]]
main()
"""


def extras_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """What `setup.py` in this folder passes on, without compiling anything."""
    found: dict[str, list[str]] = {}
    monkeypatch.setattr(setuptools, "setup", lambda **given: found.update(given["extras_require"]))
    monkeypatch.setattr("Cython.Build.cythonize", lambda *_args, **_given: [])
    runpy.run_path(str(folder / "setup.py"))
    return found


def copied(folder: Path) -> Path:
    for name in ("setup.py", "pyproject.toml"):
        (folder / name).write_text((ROOT / name).read_text())
    return folder


def test_the_extras_of_a_checkout_are_its_own_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied(tmp_path)
    for folder in FOLDERS.values():
        (tmp_path / folder).mkdir()
    evaluation = f"htfi-eval @ {(tmp_path / 'evaluation').as_uri()}"
    training = f"htfi-train @ {(tmp_path / 'training').as_uri()}"
    extras = extras_of(tmp_path, monkeypatch)
    assert extras["eval"] == [evaluation, training]
    assert extras["train"] == [training, "torch==2.13.0"]


def test_the_extras_of_a_release_are_the_releases_of_the_same_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extras = extras_of(copied(tmp_path), monkeypatch)
    assert extras["eval"] == ["htfi-eval==0.1.0", "htfi-train==0.1.0"]
    assert extras["train"] == ["htfi-train==0.1.0", "torch==2.13.0"]
    assert all("file:" not in one for each in nonempty(extras.values()) for one in each)


def project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text())["project"]


def test_all_distributions_have_one_version_and_name_it_of_each_other() -> None:
    version = project(ROOT)["version"]
    assert project(ROOT / "training")["version"] == project(ROOT / "evaluation")["version"] == version
    assert project(ROOT / "training")["dependencies"] == [f"htfi=={version}"]
    assert project(ROOT / "evaluation")["dependencies"] == [
        f"htfi=={version}",
        f"htfi-train=={version}",
        "pyarrow>=17",  # of files to compare with
    ]


def test_the_wheel_of_htfi_holds_neither_evaluation_nor_training() -> None:
    packages = setuptools.find_packages(ROOT / "src")
    assert "htfi.apps.cli" in packages
    assert not [name for name in packages if name.startswith(("htfi_eval", "htfi_train"))]
    assert not {"htfi.apps.bench", "htfi.apps.eval", "htfi.simulation.stories", "htfi.wiring.training"} & set(
        packages
    )


@pytest.mark.parametrize(
    ("words", "command", "extra"),
    [
        (["eval"], "eval", "eval"),
        (["bench", "ticks", "--runs", "1"], "bench", "eval"),
        (["eval", "returns", "--help"], "eval", "eval"),
        (["models", "train", "--out", "x"], "models train", "train"),
        (["models", "calibrate", "folder", "--help"], "models calibrate", "train"),
        (["models", "distil"], "models distil", "train"),
        (["models", "fit", "prices.csv"], "models fit", "eval"),
        (["models", "heads"], "models heads", "train"),
        (["models", "wording"], "models wording", "train"),
    ],
)
def test_without_it_the_command_says_what_to_install(words: list[str], command: str, extra: str) -> None:
    done = subprocess.run([sys.executable, "-c", ALONE, *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert f"`htfi {command}` is in the distribution htfi-{extra}" in done.stderr
    assert f"pip install '.[{extra}]'" in done.stderr


@pytest.mark.parametrize(
    ("words", "commands"),
    [
        ([], {"bench", "eval", "run"}),
        (["models"], {"calibrate", "distil", "fit", "heads", "list", "train", "wording"}),
    ],
)
def test_help_still_lists_all_commands_without_it(words: list[str], commands: set[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ALONE, *words, "--help"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert commands <= set(done.stdout.split())


def test_a_command_that_trains_nothing_works_without_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ALONE, "models", "list"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "mini-target" in done.stdout


def built_wheel(name: str, folder: str, tmp_path: Path) -> set[str]:
    """Build the distribution from what is tracked, unpack it in `installed`; the names of its files."""
    source = tmp_path / "source"
    source.mkdir(exist_ok=True)
    tracked = subprocess.run(
        ["git", "ls-files", folder], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    for file in nonempty(tracked):
        target = source / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / file).read_bytes())
    built = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--disable-pip-version-check",
         "-w", str(tmp_path), str(source / folder)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob(f"{name}-*.whl")
    with zipfile.ZipFile(wheel) as held:
        held.extractall(tmp_path / "installed")
        return set(held.namelist())


def run_installed(tmp_path: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "htfi", *words],
        env={"PYTHONPATH": f"{tmp_path / 'installed'}:{ROOT / 'src'}", "PATH": ""},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_of_evaluation_holds_all_commands_pages_and_styles(tmp_path: Path) -> None:
    assert "htfi_eval/py.typed" in built_wheel("htfi_eval", "evaluation", tmp_path)
    built_wheel("htfi_train", "training", tmp_path)
    for words in (["eval", "mini"], ["bench", "ticks"]):
        assert f"htfi {words[0]} {words[1]}" in run_installed(tmp_path, *words, "--help")


def test_the_wheel_of_training_holds_all_commands_and_tables(tmp_path: Path) -> None:
    names = built_wheel("htfi_train", "training", tmp_path)
    assert "htfi_train/py.typed" in names
    data = {
        str(file.relative_to(ROOT / "training/src"))
        for file in (ROOT / "training/src/htfi_train/simulation/data").glob("*.toml")
    }
    assert len(data) > 10
    assert data <= names
    for name in ("calibrate", "distil", "heads", "train", "wording"):
        assert f"htfi models {name}" in run_installed(tmp_path, "models", name, "--help")


@pytest.mark.slow
def test_a_command_of_the_wheel_trains_from_its_own_tables(tmp_path: Path) -> None:
    built_wheel("htfi_train", "training", tmp_path)
    out = tmp_path / "wording.bin"
    assert str(out) in run_installed(tmp_path, "models", "wording", "--out", str(out))
    assert out.stat().st_size > 10_000
