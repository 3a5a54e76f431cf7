"""Building the parts in C: each stands or falls alone, and without any the same tokens are chosen by numpy."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

WORKS = """
import numpy as np
from htfi import models
from htfi.adapters.native.network import NativeNetwork, is_compiled
from htfi.decoding import sampling as choosing
from htfi.decoding.checkpoint.folder import ModelFolder
from htfi.decoding.sampling import AllowedTokens, SamplingParams, sample_tokens
from htfi.domain.errors import DependencyUnavailable
from htfi.domain import portable_math
from htfi.governance.ledger import merkle
assert not is_compiled() and choosing.core is None and portable_math.core is None and merkle.core is None
assert merkle.perfect_root(merkle.leaf_hashes([b"a", b"b"])) == merkle.node_hash(*map(merkle.leaf_hash, [b"a", b"b"]))
logits, keys = np.eye(3, dtype=np.float32) * 99, np.arange(3, dtype=np.uint64)
tokens = sample_tokens(logits, AllowedTokens.of(np.arange(3)), SamplingParams(1.0), keys)
assert tokens.tolist() == [0, 1, 2]
try:
    NativeNetwork(ModelFolder.open(models.DRAFT))
except DependencyUnavailable as error:
    assert "C compiler" in str(error)
else:
    raise AssertionError
"""


def copied(folder: Path) -> Path:
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    ignored = shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", folder / "src", ignore=ignored)
    return folder


def build(folder: Path, **environment: str) -> str:
    command = [sys.executable, "setup.py", "build_ext", "--inplace"]
    done = subprocess.run(
        command, cwd=folder, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
def test_build_without_a_compiler_leaves_every_part_in_python(tmp_path: Path) -> None:
    stale = copied(tmp_path) / "src/htfi/adapters/native/core.so"
    stale.touch()
    said = build(tmp_path, CC="/bin/false")
    lost_parts = (
        "will run interpreted", "fitted interpreted", "taken by numpy", "chosen by numpy", "by hashlib, one by one",
        "on the general engine", "searched at every place", "found in Python",
    )  # fmt: skip
    for lost in lost_parts:
        assert lost in said
    assert not list((tmp_path / "src").rglob("*.so"))
    subprocess.run(
        [sys.executable, "-c", WORKS],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "src")},
        check=True,
    )


@pytest.mark.slow
def test_a_part_that_does_not_compile_leaves_the_others_compiled(tmp_path: Path) -> None:
    core = copied(tmp_path) / "src/htfi/adapters/native/core.c"
    core.write_text("#error nothing here\n")
    said = build(tmp_path)
    assert "on the general engine" in said
    assert "will run interpreted" not in said
    kept = {file.name.split(".")[0] for file in (tmp_path / "src").rglob("*.so")}
    assert {"kernel", "book", "choosing_core", "portable_core"} <= kept
    assert "core" not in kept
