"""A run of test files that are collected where they run: nothing that goes wrong in one of them is lost."""

import os
import subprocess
import sys
from pathlib import Path

FILES = {
    "conftest.py": """
import pytest, whole_files

def pytest_configure(config):
    whole_files.register(config)

@pytest.fixture(scope="session")
def made():
    with open("made", "a") as made:
        made.write("once ")
""",
    "test_1.py": """
import pytest

def test_passes(made): pass
def test_fails(): assert 1 == 2

class TestMore:
    @pytest.mark.parametrize("number", [1, 2])
    def test_in_a_class(self, number): assert number == 1
""",
    "test_2.py": "import no_such_module\n",
    "test_3.py": "import pytest\n@pytest.mark.slow\ndef test_takes_long(): assert False\n",
    "test_4.py": "import pytest\npytest.skip('not here', allow_module_level=True)\n",
    "test_5.py": "def test_shares(made): pass\n",
    "test_6.py": "import os\ndef test_dies(): os._exit(3)\n",
    # A file without a test to run leaves nothing of its folder to the next folder.
    "a/test_7.py": "def test_first(): pass\n",
    "a/test_8.py": "import pytest\n@pytest.mark.slow\ndef test_takes_long(): assert False\n",
    "b/test_9.py": "def test_in_another_folder(): pass\n",
    "pytest.ini": "[pytest]\nmarkers = slow\n",
}


def test_every_kind_of_failure_is_named_and_fails_the_run(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "1", "--dist", "loadfile",
         "--max-worker-restart=0", "-m", "not slow", "-q", "-rA"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    summary = {
        line.partition(" - ")[0] for line in done.stdout.splitlines() if line.startswith(("FAIL", "ERR"))
    }
    assert summary == {
        "FAILED test_1.py::test_fails",
        "FAILED test_1.py::TestMore::test_in_a_class[2]",
        "FAILED test_6.py",
        "ERROR test_2.py",
    }
    assert "crashed while running 'test_6.py'" in done.stdout
    assert "3 failed, 5 passed, 1 skipped, 1 error" in done.stdout
    assert (tmp_path / "made").read_text() == "once "
