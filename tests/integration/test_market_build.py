"""Building the kernel: where the compiler fails, the build goes on and the same files run interpreted."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

WORKS = """
from htfi.domain.events import Trade
from htfi.market.config import MarketConfig
from htfi.market.kernel import COMPILED
from htfi.market.state import MarketState
market = MarketState(MarketConfig(bar="volume:100"))
(bar,) = market.observe(Trade(5, 5, "t", 1, "AA", 10.0, 100.0))
assert not COMPILED and bar.close == 10.0
"""


@pytest.mark.slow
def test_build_without_a_compiler_leaves_an_interpreted_kernel(tmp_path: Path) -> None:
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    ignored = shutil.ignore_patterns("*.so", "*.c", "__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=ignored)
    stale = tmp_path / "src/htfi/market/kernel.so"
    stale.touch()
    environment = {**os.environ, "CC": "/bin/false", "PYTHONPATH": str(tmp_path / "src")}
    build = [sys.executable, "setup.py", "build_ext", "--inplace"]
    done = subprocess.run(build, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "will run interpreted" in done.stdout + done.stderr
    assert not list((tmp_path / "src").rglob("*.so"))
    subprocess.run([sys.executable, "-c", WORKS], cwd=tmp_path, env=environment, check=True)
