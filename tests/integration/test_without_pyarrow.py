"""The default install has no pyarrow: what it reads and writes, and frames of the libraries that people have."""

import subprocess
import sys
from pathlib import Path

import pytest

BARRED = """
import importlib.util, sys

class Bar:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pyarrow":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Bar())
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "pyarrow" else find(name, *rest)

import datetime, math, pathlib
import htfi

closes = [100 + 3 * math.sin(1.7 * day) + math.cos(day * day) for day in range(60)]
days = [datetime.date(2020, 1, 1) + datetime.timedelta(days=day) for day in range(60)]
"""
RUN = """
from htfi.apps.cli.main import main
from htfi.arrow.cells import column_of_cells
from htfi.arrow.columns import make_table
from htfi.arrow.streams import write_parquet

cells = {"date": days, "symbol": ["A"] * 60, "close": closes}
table = make_table({name: column_of_cells(of) for name, of in cells.items()})
with pathlib.Path("prices.parquet").open("wb") as file:
    write_parquet(file, table.schema, table.to_batches(), group_rows=20, notes={})
for line in ("run prices.parquet --out r --outputs jsonl,parquet", "ledger verify r", "report r",
             "forecast prices.parquet", "scenario prices.parquet --shock A=-5%"):
    sys.argv = ["htfi", *line.split()]
    try:
        main()
    except SystemExit as end:
        assert not end.code, line
decisions = htfi.open_ledger("r").decisions()
print(type(decisions).__name__, decisions.num_rows, decisions.column("symbol").to_pylist()[0])
print(decisions.to_pandas()["symbol"].iloc[0], len(decisions.select(["id", "as_of"]).to_pylist()))
"""
FRAMES = {
    "DataFrame pandas": "import pandas; prices = pandas.DataFrame({'A': closes}, pandas.DatetimeIndex(days))",
    "DataFrame polars": "import polars; prices = polars.DataFrame({'date': days, 'close': closes})",
    "ArrowTable htfi": """
prices = pathlib.Path("prices.csv")
prices.write_text("date,A,B\\n" + "".join(f"{day},{close},{close}\\n" for day, close in zip(days, closes)))
""",
}
FORECAST = """
quantiles = htfi.forecast(prices).quantiles
print(type(quantiles).__name__, type(quantiles).__module__.partition(".")[0], "pyarrow" in sys.modules)
"""
RELATION = """
import duckdb
rows = ", ".join(f"(DATE '{day}', {close})" for day, close in zip(days, closes))
quantiles = htfi.forecast(duckdb.sql(f"SELECT * FROM (VALUES {rows}) AS t(day, close)")).quantiles
print(type(quantiles).__name__, len(quantiles.fetchall()), "pyarrow" in sys.modules)
"""


def run(code: str, folder: Path) -> list[str]:
    """What a process prints in which pyarrow cannot be imported."""
    command = [sys.executable, "-W", "error", "-c", BARRED + code]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


def test_a_run_on_parquet_writes_its_table_and_is_verified(tmp_path: Path) -> None:
    lines = run(RUN, tmp_path)
    (verified,) = [line for line in lines if line.startswith("decisions.parquet")]
    assert verified.endswith("lines, each as in the ledger")
    num = verified.split()[1]
    assert lines[-2:] == [f"ArrowTable {num} A", f"A {num}"]


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_come_back_as_they_went_in(tmp_path: Path, kind: str) -> None:
    assert run(FRAMES[kind] + FORECAST, tmp_path)[-1] == f"{kind} False"


def test_a_relation_of_duckdb_comes_back_as_one(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    assert run(RELATION, tmp_path)[-1] == "DuckDBPyRelation 6 False"
