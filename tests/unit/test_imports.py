"""A barred library is not imported while the bar stands, and is afterwards."""

import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from htfi.domain.imports import barred

TABLES = """
import sys
import htfi.adapters.feeds.parquet.reader, htfi.wiring.outputs, pyarrow
table = pyarrow.table({"close": [1.5]})
assert "pandas" not in sys.modules
assert table.to_pandas()["close"].sum() == 1.5
"""


def test_a_barred_module_is_as_if_not_installed_until_the_bar_is_lifted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("barred_library", "another_library"):
        (tmp_path / f"{name}.py").touch()
    with barred("barred_library"):
        with pytest.raises(ModuleNotFoundError, match="barred_library"):
            import_module("barred_library")
        import_module("another_library")
    import_module("barred_library")
    with barred("barred_library"):
        import_module("barred_library")


@pytest.mark.skipif(find_spec("pandas") is None, reason="pandas is not installed")
def test_tables_are_made_without_pandas_which_is_found_by_who_asks_for_it() -> None:
    done = subprocess.run([sys.executable, "-c", TABLES], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
