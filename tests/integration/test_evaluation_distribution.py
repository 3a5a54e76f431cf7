"""Evaluations and benchmarks are a distribution of their own: a wheel without them says what to install."""

import runpy
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import setuptools

from checks import nonempty

ROOT = Path(__file__).parents[2]
EVALUATION = ROOT / "evaluation"

# `htfi` where htfi_eval is not installed, whatever this environment holds.
ALONE = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "htfi_eval":
            raise ModuleNotFoundError(f"No module named {name!r}", name="htfi_eval")
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


def test_the_extra_of_a_checkout_is_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (copied(tmp_path) / "evaluation").mkdir()
    assert extras_of(tmp_path, monkeypatch)["eval"] == [f"htfi-eval @ {(tmp_path / 'evaluation').as_uri()}"]


def test_the_extra_of_a_release_is_the_release_of_the_same_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extras = extras_of(copied(tmp_path), monkeypatch)
    assert extras["eval"] == ["htfi-eval==0.1.0"]
    assert all("file:" not in one for each in nonempty(extras.values()) for one in each)


def test_both_distributions_have_one_version() -> None:
    versions = {
        line
        for file in (ROOT / "pyproject.toml", EVALUATION / "pyproject.toml")
        for line in file.read_text().splitlines()
        if line.startswith("version = ")
    }
    assert len({line.partition("#")[0].strip() for line in versions}) == 1
    assert '"htfi==0.1.0"' in (EVALUATION / "pyproject.toml").read_text()


def test_the_wheel_of_htfi_holds_no_evaluation() -> None:
    packages = setuptools.find_packages(ROOT / "src")
    assert "htfi.apps.cli" in packages
    assert not [name for name in packages if name.startswith("htfi_eval")]
    assert not {"htfi.apps.bench", "htfi.apps.eval"} & set(packages)


@pytest.mark.parametrize(
    "words", [["eval"], ["bench", "ticks", "--runs", "1"], ["eval", "returns", "--help"]]
)
def test_without_it_the_command_says_what_to_install(words: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", ALONE, *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert f"`htfi {words[0]}`" in done.stderr
    assert "pip install '.[eval]'" in done.stderr


def test_help_still_lists_all_commands_without_it() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE, "--help"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert {"bench", "eval", "run"} <= set(done.stdout.split())


def test_its_wheel_holds_all_commands_pages_and_styles(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    tracked = subprocess.run(
        ["git", "ls-files", "evaluation"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    for name in nonempty(tracked):
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    built = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--disable-pip-version-check",
         "-w", str(tmp_path), str(source / "evaluation")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("htfi_eval-*.whl")
    with zipfile.ZipFile(wheel) as held:
        names = set(held.namelist())
        held.extractall(tmp_path / "installed")
    assert "htfi_eval/py.typed" in names
    for words in (["eval", "mini", "--help"], ["bench", "ticks", "--help"]):
        done = subprocess.run(
            [sys.executable, "-m", "htfi", *words],
            env={"PYTHONPATH": f"{tmp_path / 'installed'}:{ROOT / 'src'}", "PATH": ""},
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert f"htfi {words[0]} {words[1]}" in done.stdout
